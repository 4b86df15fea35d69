"""Forty nasty files, made here, and what happens to each: the same five records, or a clear error.

Every file is meant to hold the same records: two in Köln, three in Bonn, with turnover 1234.5,
7.25, 12, 20000 and 8.
"""

import bz2
import gzip
import sys
import zipfile

import duckdb
import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pyreadstat
import pytest

import discreet as dc

PLACES = ["Köln", "Köln", "Bonn", "Bonn", "Bonn"]
TURNOVER = [1234.5, 7.25, 12.0, 20000.0, 8.0]
FRAME = pa.table({"id": ["a", "b", "c", "d", "e"], "place": PLACES, "turnover": TURNOVER})
GERMAN = ["1.234,5", "7,25", "12", "20.000", "8"]
PLAIN = ["1234.5", "7.25", "12", "20000", "8"]


def text(numbers=PLAIN, delimiter=",", end="\n", quote=""):
    rows = [["id", "place", "turnover"], *zip("abcde", PLACES, numbers, strict=True)]
    return "".join(delimiter.join(f"{quote}{v}{quote}" for v in row) + end for row in rows)


def put(content, encoding="utf-8"):
    raw = content.encode(encoding) if isinstance(content, str) else content
    return lambda path: path.write_bytes(raw)


def excel(rows, sheets=("records",), above=0):
    def write(path):
        book = openpyxl.Workbook()
        book.remove(book.active)
        for name in sheets:
            sheet = book.create_sheet(name)
            for _ in range(above):
                sheet.append(["Turnover of enterprises"])
            for row in rows:
                sheet.append(row)
        book.save(path)

    return write


def labelled(writer, **more):
    def write(path):
        frame = FRAME.set_column(1, "place", pa.array([1.0, 1.0, 2.0, 2.0, 2.0]))
        labels = {"place": {1: "Köln", 2: "Bonn", 3: "Aachen"}}
        more_here = {} if writer is pyreadstat.write_xport else {"variable_value_labels": labels}
        writer(frame.to_pandas(), str(path), **more_here, **more)

    return write


def misnamed(path):
    as_xlsx(path.with_suffix(".xlsx"))
    path.with_suffix(".xlsx").rename(path)


def zipped(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("people.csv", text())


def database(path):
    with duckdb.connect(str(path)) as connection:
        connection.sql("CREATE TABLE people AS SELECT * FROM FRAME")


def folder_of(write, ending):
    def make(path):
        path.mkdir()
        for k in (0, 3):
            write(FRAME.slice(k, 3 - k // 3), path / f"part{k}{ending}")

    return make


def fixed_width(path):
    lines = [f"{p:<6}{i}{t:>8}" for i, p, t in zip("abcde", PLACES, PLAIN, strict=True)]
    path.write_text("\n".join(lines), encoding="utf-8")
    path.with_suffix(".rda").write_text(
        "place 1 6\n  <RECODEABLE>\nid 7 1\nturnover 8 8\n  <NUMERIC>\n  <DECIMALS> 2\n"
    )


def json_lines(path):
    rows = zip("abcde", PLACES, TURNOVER, strict=True)
    path.write_text(
        "".join(f'{{"id":"{i}","place":"{p}","turnover":{t}}}\n' for i, p, t in rows), "utf-8"
    )


def cut_off(write):
    def make(path):
        write(path)
        path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])

    return make


ROWS = [["id", "place", "turnover"], *map(list, zip("abcde", PLACES, TURNOVER, strict=True))]
german = text(GERMAN, ";")
as_xlsx, as_csv = excel(ROWS), put(text())

# Name, how it is made, options, and what is said when it is opened, if anything.
READ = [
    ("plain.csv", as_csv, {}, ""),
    ("semicolon.csv", put(text(delimiter=";")), {}, "delimiter ';'"),
    ("pipe.txt", put(text(delimiter="|")), {}, "delimiter '|'"),
    ("tab.tsv", put(text(delimiter="\t")), {}, ""),
    ("tab.csv", put(text(delimiter="\t")), {}, "delimiter tab"),
    ("caret.csv", put(text(delimiter="^")), {"delimiter": "^"}, ""),
    ("excel_says.csv", put("sep=;\n" + text(delimiter=";")), {}, ""),
    ("quoted.csv", put(text(quote='"')), {}, ""),
    ("windows_lines.csv", put(text(end="\r\n")), {}, ""),
    ("bom.csv", put(text(), "utf-8-sig"), {}, ""),
    ("german.csv", put(german, "cp1252"), {}, "encoding cp1252; delimiter ';'; decimal comma"),
    ("german_said.csv", put(german), {"decimal": ",", "thousands": ".", "delimiter": ";"}, ""),
    ("quoted_german.csv", put(text(GERMAN, quote='"'), "latin-1"), {}, "decimal comma"),
    ("french.csv", put(german.replace(".", "\u202f")), {}, "thousands narrow space"),
    ("swiss.csv", put(german.replace(".", "'").replace(",", ".")), {}, "thousands '''"),
    ("dos.csv", put(german, "cp850"), {"encoding": "cp850"}, "decimal comma"),
    ("utf16.csv", put(text(), "utf-16"), {}, "encoding utf-16"),
    ("utf16_no_bom.csv", put(text(), "utf-16-le"), {}, "encoding utf-16-le"),
    ("title.csv", put("Turnover\n\n" + text()), {"header": 3}, ""),
    ("packed.csv.gz", put(gzip.compress(german.encode("cp1252"))), {}, "encoding cp1252"),
    ("packed.csv.bz2", put(bz2.compress(text().encode())), {}, ""),
    ("packed.csv.zst", put(pa.compress(text().encode(), "zstd", asbytes=True)), {}, ""),
    ("packed_unsaid.csv", put(gzip.compress(text().encode())), {}, ""),
    ("sheet.xlsx", as_xlsx, {}, ""),
    ("sheets.xlsx", excel(ROWS, ["notes", "records"]), {"table": "records"}, ""),
    ("title.xlsx", excel(ROWS, above=2), {"header": 3}, ""),
    ("spss.sav", labelled(pyreadstat.write_sav), {}, ""),
    ("stata.dta", labelled(pyreadstat.write_dta), {}, ""),
    ("sas.xpt", labelled(pyreadstat.write_xport), {}, ""),
    ("whole.parquet", lambda path: pq.write_table(FRAME, path), {}, ""),
    ("parts", folder_of(pq.write_table, ".parquet"), {}, ""),
    ("arrow_parts", folder_of(feather.write_feather, ".arrow"), {}, ""),
    ("whole.feather", lambda path: feather.write_feather(FRAME, path), {}, ""),
    ("people.duckdb", database, {}, ""),
    ("lines.jsonl", json_lines, {}, ""),
    ("fixed.asc", fixed_width, {}, "described by"),
    ("is_parquet.csv", lambda path: pq.write_table(FRAME, path), {}, "it is a file of Parquet"),
    ("is_excel.csv", misnamed, {}, "it is a file of Excel"),
]
SECRET = "SECRET"
long_text = text() + "".join(f"x{k},Bonn,1\n" for k in range(5000))
REFUSED = [
    ("empty.csv", put(""), {}, "is empty"),
    ("blank.csv", put("\n\n"), {}, "is empty"),
    ("absent.csv", lambda path: None, {}, "there is no file"),
    ("picture.png", put(b"\x89PNG\r\n\x1a\n"), {}, "cannot tell what"),
    ("zeros.csv", put(bytes(4000)), {}, "is not text"),
    ("dos_unsaid.csv", put(german, "cp850"), {}, "name its encoding"),
    ("wrongly_said.csv", put(german, "cp1252"), {"encoding": "utf-8"}, "is not text in encoding"),
    ("ambiguous.csv", put("id;turnover\na;1.234\nb;2.500\n"), {}, "thousands or decimals"),
    ("ragged.csv", put(text() + f"f,{SECRET},1,2\n"), {}, "line 7"),
    ("ragged_cp1252.csv", put(text() + f"f,{SECRET},1,2\n", "cp1252"), {}, "record 7 has 4 values"),
    ("open_quote.csv", put(text() + f'f,"{SECRET},1\n'), {}, "line 7"),
    ("twice.csv", put("a,a\n1,2\n"), {}, "two columns with the name 'a'"),
    ("case.csv", put("a,A\n1,2\n"), {}, "differ by upper and lower case only"),
    ("archive.zip", zipped, {}, "ZIP archive; unpack it"),
    ("cut.csv.gz", cut_off(put(gzip.compress(long_text.encode()))), {}, "cut off or damaged"),
    ("cut.parquet", cut_off(lambda path: pq.write_table(FRAME, path)), {}, "could not be read"),
    ("cut.xlsx", cut_off(as_xlsx), {}, "cut off or damaged"),
    ("cut.sav", cut_off(labelled(pyreadstat.write_sav)), {}, "damaged or cut off"),
    ("cut.dta", cut_off(labelled(pyreadstat.write_dta)), {}, "damaged or cut off"),
    ("sheets.xlsx", excel(ROWS, ["notes", "records"]), {}, "holds these sheets"),
    ("sheet.xlsx", as_xlsx, {"table": "record"}, "Did you mean 'records'"),
    ("no_rda.asc", put("Köln  a"), {"metadata": "absent.rda"}, "absent.rda"),
    ("broken.jsonl", put('{"id":"a"}\n{"id":\n'), {}, "could not be read"),
]


def sums(data):
    table = data.tabulate("place", value="turnover")
    index, codes = table.design.published_codes()[0]
    labels = {"1": "Köln", "2": "Bonn"}
    names = [labels.get(codes[i], codes[i]) for i in index]
    both = zip(table.z.tolist(), table.contributions.published.sum.tolist(), strict=True)
    return {name: both for name, both in zip(names, both, strict=True) if both[0]}


@pytest.mark.parametrize(("name", "make", "options", "said"), READ, ids=[c[0] for c in READ])
def test_nasty_files_are_read(tmp_path, name, make, options, said):
    make(tmp_path / name)
    data = dc.open(tmp_path / name, id="id", **options)
    assert sums(data) == {"Köln": (2, 1241.75), "Bonn": (3, 20020.0), "Total": (5, 21261.75)}
    assert data.data_set.name == name.split(".")[0]
    assert said in " ".join(data.notes)
    assert bool(said) == bool(data.notes)


def read_all(path, options):
    data = dc.open(path, **options)
    return data.tabulate([data.columns[1:2]])


@pytest.mark.parametrize(("name", "make", "options", "said"), REFUSED, ids=[c[0] for c in REFUSED])
def test_nasty_files_are_refused_in_one_clear_line(tmp_path, name, make, options, said):
    make(tmp_path / name)
    with pytest.raises(dc.DiscreetError) as caught:
        read_all(tmp_path / name, options)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("decimal", "thousands"), [(".", ""), (",", ""), (",", "."), (".", ","), (",", " "), (".", "'")]
)
def test_numbers_are_what_was_written_in_any_style(tmp_path, decimal, thousands):
    rng = np.random.default_rng(7)
    numbers = np.round(10 ** rng.uniform(-1, 7, 60), 2) * rng.choice([-1, 1], 60)
    swapped = str.maketrans({",": thousands, ".": decimal})
    rows = [f"{k};{number:,.2f}".translate(swapped) for k, number in enumerate(numbers)]
    path = tmp_path / "numbers.csv"
    path.write_text("id;v\n" + "\n".join(rows), "utf-8")
    data = dc.open(path, id="id")
    read = data.table.mutate(v=data.table.v.cast("float64")).order_by(data.table.id.cast("int64"))
    assert data.backend.answer(read).column("v").to_pylist() == numbers.tolist()


def test_labels_of_values_are_a_code_list_that_declares_nothing_by_itself(tmp_path):
    labelled(pyreadstat.write_sav)(tmp_path / "people.sav")
    data = dc.open(tmp_path / "people.sav", id="id")
    (tree,) = data.hierarchies["place"]
    assert tree.leaves == ("1", "2", "3")
    assert [tree.labels[code] for code in tree.leaves] == ["Köln", "Bonn", "Aachen"]
    assert not data.tabulate("place").design.axes[0].declared
    said = dc.open(tmp_path / "people.sav", id="id", declared=["place"])
    assert said.tabulate("place").design.axes[0].declared


def test_labels_of_some_values_make_no_code_list(tmp_path):
    frame = pa.table({"age": [30.0, 41.0, 99.0]}).to_pandas()
    path = str(tmp_path / "people.sav")
    pyreadstat.write_sav(frame, path, variable_value_labels={"age": {99: "no answer"}})
    data = dc.open(path)
    assert not data.hierarchies
    assert "not every value of 'age' has a label" in data.notes[0]


@pytest.mark.parametrize(
    ("name", "make", "package"),
    [
        ("people.sav", labelled(pyreadstat.write_sav), "pyreadstat"),
        ("people.xlsx", as_xlsx, "python_calamine"),
    ],
)
def test_a_reader_that_is_not_installed_is_named(tmp_path, monkeypatch, name, make, package):
    make(tmp_path / name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(dc.errors.MissingDependencyError, match=r"discreet\[files\]"):
        dc.open(tmp_path / name)


def test_hierarchies_of_an_rda_come_along(tmp_path):
    fixed_width(tmp_path / "people.asc")
    (tmp_path / "places.hrc").write_text("NRW\n@Köln\n@Bonn\n", "utf-8")
    rda = (tmp_path / "people.rda").read_text()
    option = '<RECODEABLE>\n  <HIERCODELIST> "places.hrc"\n  <HIERLEADSTRING> "@"'
    (tmp_path / "other.rda").write_text(rda.replace("<RECODEABLE>", option), "utf-8")
    data = dc.open(tmp_path / "people.asc", metadata=tmp_path / "other.rda")
    assert data.hierarchies["place"][0].children("NRW") == ("Köln", "Bonn")
    assert data.tabulate("place").z.tolist()[-1] == 5
