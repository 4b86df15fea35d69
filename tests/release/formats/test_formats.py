"""Each format says what the cube says, as a reader that is not ours finds it."""

import csv
import io
import json
import logging
import re
import warnings
from dataclasses import replace

import numpy as np
import openpyxl
import pandas
import polars
import pyarrow.parquet as pq
import pytest

from discreet.errors import ConfidentialError, ParameterError, UnknownNameError
from discreet.release import Cube, Options, writer_named, writers
from discreet.release.cube import CubeEntry
from discreet.release.formats.write import About, writer_of
from tests.release.formats.conftest import ABOUT, OPTIONS, release, truth


def content(name, cube, options=OPTIONS):
    return writer_named(name).write(cube, options)


def number(value):
    return None if value in (None, "", ":c", ":z") else int(value)


@pytest.mark.parametrize("name", ["csvw", "html", "json", "json-stat", "px", "sdmx-csv"])
def test_notes_and_statement_survive(name, cube):
    text = content(name, cube).decode()
    assert "Noise has variance 3." in text
    assert "Figures were changed." in text
    assert "Islands are part of the north." in text


@pytest.mark.parametrize("writer", writers(), ids=lambda w: w.name)
def test_equal_tables_are_equal_files(writer):
    first, second = (writer.write(Cube.of(release()), OPTIONS) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("writer", writers(), ids=lambda w: w.name)
def test_what_lies_under_a_hidden_cell_leaves_no_trace(writer, made):
    cubes = [Cube.of(made), Cube.of(made)]
    cubes[1].values[~cubes[1].is_shown] = 7_777_777
    first, second = (writer.write(cube, OPTIONS) for cube in cubes)
    assert first == second


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_csv_has_a_row_per_cell(cube, separator):
    text = content("csv", cube, Options(separator=separator, about=ABOUT)).decode()
    rows = list(csv.DictReader(io.StringIO(text), delimiter=separator))
    assert {(r["place"], r["sex"]): number(r["count"]) for r in rows} == truth(cube)
    assert {r["status"] for r in rows} == {"published", "suppressed", "structural zero"}


def test_csv_with_labels_runs_nothing(cube):
    rows = list(csv.DictReader(io.StringIO(content("csv", cube, Options(labels="both")).decode())))
    assert "'=Nørrby" in {r["place_label"] for r in rows}
    assert "n1" in {r["place"] for r in rows}
    wide = content("csv", cube, Options(layout="wide", labels="labels")).decode()
    assert "\n'=Nørrby,21,:c,20" in wide


def test_csv_in_rows_and_columns(cube):
    text = content("csv", cube, Options(layout="wide", columns=("sex",))).decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    expected = truth(cube)
    for row in rows:
        for sex in ("f", "m", "Total"):
            assert number(row[sex]) == expected[row["place"], sex]
    (hidden,) = [row["f"] for row in rows if row["place"] == "n1"]
    assert hidden == ":c"


def test_readers_load_a_csv_file_plainly(cube):
    text = content("csv", cube)
    frames = [
        polars.read_csv(io.BytesIO(text)),
        polars.from_pandas(pandas.read_csv(io.BytesIO(text))),
    ]
    for frame in frames:
        assert frame.columns == ["place", "sex", "count", "status"]
        assert frame["count"].dtype.is_numeric()
        found = {(r["place"], r["sex"]): r["count"] for r in frame.to_dicts()}
        assert found == truth(cube)


@pytest.mark.parametrize(
    "options",
    [
        Options(),
        Options(labels="both", separator=";"),
        Options(layout="wide", labels="labels", separator="\t"),
        Options(layout="wide", columns=("place", "sex")),
    ],
)
def test_metadata_of_a_csv_file_describe_its_columns(cube, options):
    said = json.loads(content("csvw", cube, replace(options, about=ABOUT, file="people.csv")))
    delimiter = said.get("dialect", {}).get("delimiter", ",")
    text = content("csv", cube, options).decode()
    first, *rows = csv.reader(io.StringIO(text), delimiter=delimiter)
    columns = said["tableSchema"]["columns"]
    assert first == [column["titles"] for column in columns]
    for column, values in zip(columns, zip(*rows, strict=True), strict=True):
        shown = [v for v in values if v not in column.get("null", [""])]
        if column["datatype"] == "integer":
            assert all(v.isdecimal() for v in shown)
    assert said["url"] == "people.csv"
    assert said["dc:title"] == ABOUT.title
    assert said["dc:provenance"] == "Noise has variance 3."


def test_metadata_lie_beside_a_csv_file(made, tmp_path):
    made.write(tmp_path / "people.csv", title="People")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "people.csv",
        "people.csv-metadata.json",
    ]
    said = json.loads((tmp_path / "people.csv-metadata.json").read_text())
    assert (said["url"], said["dc:title"]) == ("people.csv", "People")
    assert said["@context"][0] == "http://www.w3.org/ns/csvw"


def test_parquet_has_types_and_metadata(cube):
    frame = polars.read_parquet(io.BytesIO(content("parquet", cube)))
    assert {(r["place"], r["sex"]): r["count"] for r in frame.to_dicts()} == truth(cube)
    table = pq.read_table(io.BytesIO(content("parquet", cube)))
    said = json.loads(table.schema.metadata[b"discreet_table"])
    assert said["statement"]["text"] == "Noise has variance 3."
    assert said["footnotes"] == ["Islands are part of the north."]


def test_excel_finds_numbers_and_a_sheet_of_notes(cube):
    book = openpyxl.load_workbook(io.BytesIO(content("xlsx", cube)))
    sheet = book["Table"]
    assert sheet["A1"].value == ABOUT.title
    rows = [list(row) for row in sheet.iter_rows(min_row=3, values_only=True)]
    assert rows[0] == ["Place", "Total", "f", "m"]
    found = {(r[0], sex): r[k] for r in rows[1:] for k, sex in enumerate(rows[0][1:], 1)}
    label = {e.code: e.label for e in cube.axis("place").entries}
    for (place, sex), value in truth(cube).items():
        if value is not None:
            assert found[label[place], sex] == value
    assert found["=Nørrby", "f"] == ":c"
    assert all(cell.data_type != "f" for row in sheet.iter_rows() for cell in row)
    told = {row[0]: row[1] for row in book["Notes"].iter_rows(values_only=True)}
    assert told["Statement"] == "Noise has variance 3."
    assert told["Footnote"] == "Islands are part of the north."
    assert told[":c"] == "confidential"


def test_excel_in_long_layout(cube):
    book = openpyxl.load_workbook(io.BytesIO(content("xlsx", cube, Options(layout="long"))))
    head, *rows = book["Table"].iter_rows(min_row=3, values_only=True)
    assert head[:3] == ("Place", "Sex", "count")
    assert len(rows) == cube.values.size


def test_a_table_that_no_sheet_holds_is_refused(cube, monkeypatch):
    monkeypatch.setattr("discreet.release.formats.xlsx._MOST_ROWS", 5)
    for layout in ("long", "wide"):
        with pytest.raises(ParameterError, match="a sheet holds 5"):
            content("xlsx", cube, Options(layout=layout))


def test_json_stat_as_pyjstat_reads_it(cube):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyjstat import pyjstat

        found = pyjstat.Dataset.read(content("json-stat", cube).decode())
        frame = found.write("dataframe", naming="id")
    read = {(r["place"], r["sex"]): r["value"] for r in frame.to_dict("records")}
    for codes, value in truth(cube).items():
        assert (value is None and np.isnan(read[codes])) or read[codes] == value


def test_json_stat_says_why_a_figure_is_missing(cube):
    found = json.loads(content("json-stat", cube))
    assert (found["version"], found["class"]) == ("2.0", "dataset")
    assert found["size"] == [6, 3]
    place, sex = (found["dimension"][v]["category"]["index"] for v in ("place", "sex"))
    at = str(place["n1"] * 3 + sex["f"])
    assert found["status"][at] == ":c"
    assert found["extension"]["status"][":c"] == "confidential"
    assert found["dimension"]["place"]["category"]["child"]["n"] == ["n1", "n2"]
    assert "Islands are part of the north." in found["note"]


def test_sdmx_csv_as_pysdmx_reads_it(cube):
    from pysdmx.io.csv.sdmx10.reader import read

    text = content("sdmx-csv", cube, Options(dataflow="EX:PEOPLE(1.0)", about=ABOUT)).decode()
    (found,) = read(text)
    rows = found.data.to_dict("records")
    assert {(r["place"], r["sex"]): number(r["OBS_VALUE"]) for r in rows} == truth(cube)
    codes = {(r["place"], r["sex"]): (r["OBS_STATUS"], r["CONF_STATUS"]) for r in rows}
    assert codes["n1", "f"] == ("Q", "C")
    assert codes["s1", "f"] == ("M", "F")
    assert codes["n2", "f"] == ("A", "F")
    assert "EX:PEOPLE(1.0)" in found.short_urn


@pytest.mark.parametrize("name", ["csv", "sdmx-csv"])
def test_the_name_of_a_group_never_runs_as_a_formula(name, cube):
    grouped = cube.group("place", {'=HYPERLINK("http://x")': ["n1"], "-5": ["n2"]})
    rows = list(csv.DictReader(io.StringIO(content(name, grouped).decode())))
    assert {r["place"] for r in rows} == {"all", '\'=HYPERLINK("http://x")', "-5"}


def test_data_flows_have_agency_id_and_version(cube):
    with pytest.raises(ParameterError, match="agency, id and version"):
        content("sdmx-csv", cube, Options(dataflow="people"))


def test_px_as_pyaxis_reads_it(cube, tmp_path):
    from pyaxis import pyaxis

    logging.disable(logging.CRITICAL)
    path = tmp_path / "t.px"
    path.write_bytes(content("px", cube))
    parsed = pyaxis.parse(str(path), encoding="utf-8")
    logging.disable(logging.NOTSET)
    label = {e.code: e.label for e in cube.axis("place").entries}
    rows = parsed["DATA"].to_dict("records")
    read = {(r["Place"], r["Sex"]): r["DATA"] for r in rows}
    for (place, sex), value in truth(cube).items():
        assert value is None or int(read[label[place], sex]) == value
    keywords = parsed["METADATA"]
    assert keywords["CODES(Place)"] == list(cube.axis("place").codes)
    assert keywords["VARIABLECODE(Place)"] == ["place"]
    assert "Islands are part of the north." in keywords["NOTEX"][0]


def test_px_has_symbols_for_cells_that_are_not_shown(cube):
    text = content("px", cube).decode()
    assert 'DATASYMBOL2=":c";' in text
    data = text.partition("DATA=\n")[2]
    assert data.count('".."') == 1
    assert data.count('"."') == 1
    assert "TITLE=\"People by place and 'sex'\";" in text


@pytest.mark.parametrize(
    ("codes", "told"),
    [
        (["2025", "2026"], 'TLIST(A1),"2025","2026";'),
        (["2025-Q4", "2026-Q1"], 'TLIST(Q1),"20254","20261";'),
        (["2025-11", "2025-12"], 'TLIST(M1),"202511","202512";'),
        (["2025-W51", "2025-W52"], 'TLIST(W1),"202551","202552";'),
        (["spring", "autumn"], ""),
    ],
)
def test_px_tells_periods_as_it_writes_them(codes, told, cube):
    axis = replace(cube.axes[1], entries=tuple(CubeEntry(c, c, 1, is_sum=False) for c in codes))
    place = cube.axes[0]
    values, status = cube.values[:, : len(codes)], cube.status[:, : len(codes)]
    series = replace(cube, axes=(place, axis), values=values, status=status)
    text = content("px", series, Options(time=axis.name, about=About(edition="2026"))).decode()
    assert told in text
    assert ("TIMEVAL" in text) == bool(told)
    assert 'NOTEX="Edition 2026#' in text


def test_px_keeps_decimals(made):
    cube = Cube.of(made).shares(["sex"])
    text = content("px", cube).decode()
    assert "DECIMALS=6;" in text
    assert f"{cube.values[0, 1]:.6f}" in text


def test_html_escapes_and_marks_headings(cube):
    text = content("html", cube).decode()
    assert "People by place and &quot;sex&quot;" in text
    assert '<th scope="row">Country</th>' in text
    assert "<td>:c</td>" in text


def test_json_has_the_cells_of_the_csv_file(cube):
    found = json.loads(content("json", cube))
    assert found["columns"] == ["place", "sex", "count", "status"]
    assert {(p, s): v for p, s, v, _ in found["cells"]} == truth(cube)
    assert found["variables"][0]["codes"][0] == {"code": "all", "label": "Country", "depth": 0}
    assert found["source"] == "Office"


@pytest.mark.parametrize("writer", writers(), ids=lambda w: w.name)
def test_shares_of_nothing_are_missing_figures(writer, made):
    shares = Cube.of(made.with_parts(z=np.zeros_like(made.z))).shares(["sex"])
    written = writer.write(shares, OPTIONS)
    assert writer.name in ("xlsx", "parquet") or not re.search(rb"\bnan\b", written.lower())


@pytest.mark.parametrize("writer", writers(), ids=lambda w: w.name)
@pytest.mark.parametrize("layout", ["long", "wide"])
def test_margins_that_were_not_published_are_no_figures(writer, layout):
    made = release()
    cube = Cube.of(made)
    cube.status[1, 1] = -1
    assert writer.write(cube, Options(layout=layout))


def test_a_table_of_one_variable(made):
    cube = Cube.of(made).at("sex", "Total")
    text = content("csv", cube, Options(layout="wide")).decode()
    assert text.splitlines()[0] == "place,count"
    assert 'STUB="Place";' in content("px", cube).decode()


@pytest.mark.parametrize("name", ["t.csv", "t.sdmx.csv", "t.JSON", "t.jsonstat.json", "t.xlsx"])
def test_the_name_says_the_format(name, made, tmp_path):
    path = made.write(tmp_path / name, title="People", layout="wide", labels="labels")
    assert writer_of(name).ending == "." + name.lower().partition(".")[2]
    assert path.stat().st_size


def test_names_and_options_that_mean_nothing_are_refused(made, tmp_path):
    with pytest.raises(ParameterError, match=r"must end in one of"):
        made.write(tmp_path / "t.doc")
    with pytest.raises(UnknownNameError, match="'layot'"):
        made.write(tmp_path / "t.csv", layot="wide")
    with pytest.raises(ParameterError, match="layout cannot be 'tall'"):
        made.write(tmp_path / "t.csv", layout="tall")
    assert not list(tmp_path.iterdir())


def test_trials_are_not_exported(made, tmp_path):
    from discreet import Trial
    from discreet.release.formats.write import write

    with pytest.raises(ConfidentialError):
        write(Trial.wrap(made), tmp_path / "t.csv")


def test_printed_tables_have_the_same_symbol(made):
    assert ":c" in repr(made)
    assert ":c" in made._repr_html_()
