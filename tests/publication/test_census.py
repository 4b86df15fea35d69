"""The example of the documentation: five linked tables of the demo census, two years, all formats.

Independent readers read the files: openpyxl and pandas, pyaxis, pyjstat, pysdmx.
"""

import csv
import json
import shutil
import warnings
from pathlib import Path

import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyaxis import pyaxis
from pyjstat import pyjstat
from pysdmx.io.csv.sdmx10.reader import read as read_sdmx

from discreet.cli.demo import prepare_census
from discreet.facade import read_release
from discreet.ledger import Ledger
from tests.publication.office import run

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "census"
YEARS = {"2025": 1, "2026": 2}
WRONG = "Two provinces were exchanged."


def write_people(folder, seeds):
    """The census of each year in one file, with a column that tells the year."""
    parts = []
    for year, seed in seeds.items():
        prepare_census(folder, 1500, seed)
        people = pq.read_table(folder / f"census-1500-{seed}.parquet")
        parts.append(people.append_column("year", pa.array([year] * len(people))))
    pq.write_table(pa.concat_tables(parts), folder / "people.parquet")


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """Two periods by one command, then a correction of the second."""
    folder = tmp_path_factory.mktemp("census")
    shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True)
    write_people(folder, YEARS)
    plan = folder / "publication.toml"
    text = plan.read_text(encoding="utf-8")  # the default set takes 22 processor seconds an edition
    plan.write_text(f'{text}\n[gate]\nattack = ["bounds"]\n', encoding="utf-8")
    assert run("check", "publication", plan) == 0
    assert run("publish", plan) == 0
    write_people(folder, {**YEARS, "2026": 3})
    assert (
        run("publish", plan, "--edition", "2026-r1", "--corrects", "2026", "--reason", WRONG) == 0
    )
    return folder / "published"


def part(folder, name):
    """A table of the release by its file's name, and its figures by codes."""
    release = read_release(folder / "release.parquet")
    names = {n.lower().replace(" ", "-"): n for n in release.tables}
    frame = release[names[name]].to_arrow().to_pandas()
    return frame.set_index([c for c in frame.columns if c != "count"])["count"]


def stems(folder):
    rows = csv.DictReader((folder / "index.csv").read_text().splitlines())
    return [r["file"].removesuffix(".px") for r in rows if r["format"] == "px"]


def test_five_linked_tables_in_every_format(published):
    folder = published / "2025"
    assert len(stems(folder)) == 5
    for stem in stems(folder):
        figures = part(folder, stem)
        total = figures.to_numpy()
        px = pyaxis.parse(str(folder / f"{stem}.px"), encoding="utf-8")["DATA"]["DATA"].astype(int)
        assert sorted(px) == sorted(total)
        text = (folder / f"{stem}.jsonstat.json").read_text()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its own calls of what it has deprecated
            assert sorted(pyjstat.Dataset.read(text).write("dataframe")["value"]) == sorted(total)
        for ending in ("sdmx.csv", "en.sdmx.csv", "nb.sdmx.csv"):
            read = read_sdmx((folder / f"{stem}.{ending}").read_text())[0].data
            by_code = read.set_index(list(figures.index.names))["OBS_VALUE"].astype(int)
            assert by_code.to_dict() == figures.to_dict()
        rows = pd.read_csv(folder / f"{stem}.csv")
        assert sorted(rows["count"]) == sorted(total)
    # what tables share is the same in all of them
    grand = {int(part(folder, stem).max()) for stem in stems(folder)}
    assert len(grand) == 1


@pytest.mark.parametrize(
    ("file", "sheet"), [("census.xlsx", "Table"), ("census.nb.xlsx", "Tabell")]
)
def test_workbooks_hold_the_figures_of_the_release(published, file, sheet):
    folder = published / "2026"
    book = openpyxl.load_workbook(folder / file)
    for k, stem in enumerate(stems(folder)):
        cells = [c.value for row in book[f"{sheet} {k + 1}"].iter_rows() for c in row]
        assert sorted(v for v in cells if isinstance(v, int)) == sorted(part(folder, stem))
    given = {"sheet_name": f"{sheet} 2", "header": 2, "index_col": 0, "engine": "openpyxl"}
    frame = pd.read_excel(folder / file, **given)
    assert frame.iloc[0, 0] == part(folder, "age-and-sex").max()


def test_the_correction_is_told_and_stands_in_the_series(published):
    new, old = published / "2026-r1", published / "2026"
    assert f"This edition replaces edition 2026: {WRONG}" in (new / "age-and-sex.px").read_text()
    note = (old / "note.nb.md").read_text()
    assert f"Utgave 2026-r1 har tatt plassen til denne utgaven: {WRONG}" in note
    assert not json.loads((old / "manifest.json").read_text())["valid"]
    rows = pd.read_csv(
        new / "series" / "education-by-province.sdmx.csv", dtype={"TIME_PERIOD": str}
    )
    for year, folder in (("2025", published / "2025"), ("2026", new)):
        shown = rows[rows["TIME_PERIOD"] == year].set_index(["region", "education"])["OBS_VALUE"]
        assert shown.to_dict() == part(folder, "education-by-province").to_dict()
    assert set(rows["TIME_PERIOD"]) == set(YEARS)
    book = openpyxl.load_workbook(new / "series" / "census.nb.xlsx")
    assert [c.value for c in book["Tabell 2"][3]][-2:] == ["2025", "2026"]
    ledger = Ledger(published.parent / "discreet.db").rows()
    assert [row["about"] for row in ledger if row.get("decision") == "corrected"] == ["2026-r1"]


def test_an_old_edition_is_made_again(published, tmp_path):
    assert run("republish", published / "2025", "--out", tmp_path / "again") == 0
    made = [path for path in (tmp_path / "again").rglob("*") if path.is_file()]
    assert len(made) > 60
    for path in made:
        first = published / "2025" / path.relative_to(tmp_path / "again")
        assert path.read_bytes() == first.read_bytes()
