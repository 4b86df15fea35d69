"""Linked tables in files: a workbook with a sheet for each, folders with a file for each."""

import csv
import json
import warnings

import openpyxl
import pandas as pd
import pytest
from pyaxis import pyaxis
from pyjstat import pyjstat

import discreet as dc
from discreet.errors import ParameterError
from discreet.release.formats.write import INDEX

NAMES = {"Age by region": "region*age", "Sex by region and age": "region*age*sex", "Sex": "sex"}
PARENTS = {"N": "Land", "S": "Land", "N1": "N", "N2": "N", "S1": "S"}
REGIONS = dc.Hierarchy("Land", PARENTS, {"N1": "=Nord"})


@pytest.fixture(scope="module")
def release():
    cells = [(r, a, s) for r in ("N1", "N2", "S1") for a in ("0-64", "65+") for s in "fm"]
    frame = dict(zip(("region", "age", "sex"), map(list, zip(*cells, strict=True)), strict=True))
    frame["count"] = [40, 12, 3, 1, 22, 9, 30, 8, 51, 17, 6, 2]
    table = dc.Table.from_counts(
        frame, "count", NAMES, hierarchies={"region": REGIONS}, declared=True
    )
    return table.with_secret(dc.Secret.demo()).protect("suppress", rules="threshold(3)")


def test_a_workbook_has_contents_tables_and_notes(release, tmp_path):
    path = release.write(tmp_path / "book.xlsx", title="People", footnotes=("All of them.",))
    book = openpyxl.load_workbook(path)
    assert book.sheetnames == ["Contents", "Table 1", "Table 2", "Table 3", "Notes"]
    contents = book["Contents"]
    assert contents["A1"].value == "People"
    assert [contents.cell(4 + k, 2).value for k in range(3)] == [*NAMES]
    assert contents["A4"].hyperlink.location == "'Table 1'!A1"
    first = book["Table 1"]
    assert first["A1"].value == "Age by region"
    indents = {row[0].value: row[0].alignment.indent for row in first.iter_rows(min_row=4)}
    assert (indents["N"], indents["=Nord"]) == (0, 1)
    assert first.print_area
    assert first.print_title_rows == "$3:$3"
    assert ":c  confidential" in [row[0].value for row in first.iter_rows()]
    told = [row[1].value for row in book["Notes"].iter_rows()]
    assert release.statement.plain in told
    assert "All of them." in told
    assert not any(
        cell.data_type == "f" for sheet in book for row in sheet.iter_rows() for cell in row
    )


def test_headings_over_several_columns_span_them(release, tmp_path):
    path = release["Sex by region and age"].write(tmp_path / "b.xlsx", columns=("age", "sex"))
    sheet = openpyxl.load_workbook(path)["Table"]
    assert sorted(map(str, sheet.merged_cells.ranges)) == ["B3:D3", "E3:G3", "H3:J3"]


def test_paper_has_room_for_whatever_is_said(release, tmp_path):
    """Titles and footnotes may be wider than a table, and names of variables than their codes."""
    title, long = "People of the region by sex, on the first of January", "All of them. " * 20
    given = {"title": title, "source": "Office", "edition": "2026", "footnotes": (long,)}
    sheet = openpyxl.load_workbook(release["Sex"].write(tmp_path / "b.xlsx", **given))["Table"]
    assert [sheet["A1"].value, sheet["A2"].value] == [title, "Office · Edition 2026"]
    last = sheet.print_area.rpartition("$")[0].rpartition("$")[2]
    letters = [chr(k) for k in range(ord("A"), ord(last) + 1)]
    widths = [sheet.column_dimensions[x].width if x < "C" else 9 for x in letters]
    assert sum(widths) >= 95
    (merged,) = sheet.merged_cells.ranges
    assert (sheet.cell(merged.min_row, 1).value, merged.max_col) == (long, len(letters))
    assert sheet.row_dimensions[merged.min_row].height >= 45
    cell = {"municipality_of_work": ["N", "S"], "count": [40, 50]}
    table = dc.Table.from_counts(cell, "count", "municipality_of_work", declared=True)
    made = table.with_secret(dc.Secret.demo()).protect("suppress", rules="threshold(3)")
    narrow = openpyxl.load_workbook(made.write(tmp_path / "c.xlsx"))["Table"]
    assert narrow.column_dimensions["A"].width > len(narrow["A3"].value)


def test_pandas_reads_a_sheet(release, tmp_path):
    path = release.write(tmp_path / "book.xlsx")
    frame = pd.read_excel(path, sheet_name="Table 3", header=2, index_col=0, engine="openpyxl")
    assert frame["count"]["f"] == 152


def test_a_folder_has_a_file_for_each_table_and_an_index(release, tmp_path):
    formats = ["csv", "px", "json-stat", "sdmx-csv", "xlsx"]
    folder = release.write(tmp_path / "all", format=formats, name="people", title="People")
    rows = list(csv.DictReader((folder / INDEX).read_text().splitlines()))
    assert len(rows) == 4 * 3 + 1
    for row in rows:
        assert (folder / row["file"]).stat().st_size
    listed = {row["file"] for row in rows} | {INDEX}
    beside = {p.name for p in folder.iterdir()} - listed
    assert beside == {
        f"{name}.csv-metadata.json" for name in ("age-by-region", "sex", "sex-by-region-and-age")
    }
    frame = pyaxis.parse(str(folder / "sex.px"), encoding="utf-8")["DATA"]
    assert sorted(frame["DATA"].astype(int)) == [49, 152, 201]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own calls of what it has deprecated
        text = (folder / "sex.jsonstat.json").read_text()
        read = pyjstat.Dataset.read(text).write("dataframe")
    assert sorted(read["value"]) == [49, 152, 201]
    stored = json.loads((folder / "age-by-region.jsonstat.json").read_text())
    assert stored["id"] == ["region", "age"]
    total = sum(int(row["cells"]) for row in rows if row["format"] == "csv")
    assert total == sum(release[name].design.n_published for name in NAMES)


def test_a_file_of_one_crossing_refuses_several_tables(release, tmp_path):
    with pytest.raises(ParameterError, match="folder"):
        release.write(tmp_path / "all.px")
    with pytest.raises(ParameterError, match="folder"):
        release.write(tmp_path / "all.csv", layout="wide")
    assert not list(tmp_path.iterdir())
    assert release["Sex"].write(tmp_path / "sex.px").exists()


def test_no_table_overwrites_the_file_of_another(tmp_path):
    frame = {"a": ["x", "y"], "b": ["u", "v"], "count": [10, 20]}
    names = {"年齢": "a", "地域": "b", "Index": "a*b", "Table 2": "1", "table": "a"}
    table = dc.Table.from_counts(frame, "count", names, declared=True)
    made = table.with_secret(dc.Secret.demo()).protect("suppress", rules="threshold(3)")
    folder = made.write(tmp_path / "all", format=["csv"])
    rows = list(csv.DictReader((folder / INDEX).read_text().splitlines()))
    assert [row["table"] for row in rows] == [*names]
    files = [row["file"] for row in rows]
    assert files == ["table.csv", "table-3.csv", "index-2.csv", "table-2.csv", "table-4.csv"]
    assert all((folder / name).is_file() for name in files)
    with pytest.raises(ParameterError, match="'index'"):
        made["Index"].write(tmp_path / "one", format=["csv"], name="index")
    with pytest.raises(ParameterError, match="two tables are called 'A'"):
        dc.Table.from_counts(frame, "count", {"A": "a", "A ": "b"}, declared=True)
