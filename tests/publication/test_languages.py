"""What a publication says in every language: labels, titles and footnotes, in every format."""

import csv
import json
import re
import tomllib
import warnings

import openpyxl
import pandas as pd
import pytest
import tomli_w
from pyaxis import pyaxis
from pyjstat import pyjstat
from pysdmx.io.csv.sdmx10.reader import read as read_sdmx

import discreet as dc
from discreet.errors import DataError, UnknownNameError
from discreet.publication import Publication, editions
from discreet.release.language import Language
from discreet.release.notes import methods_note
from tests.publication.office import NORWEGIAN, publish, records, run
from tools import notes_page

ENGLISH_WORDS = re.compile(
    r"\b(the|figures?|cells?|People|Region|Title|Source|confidential|Contents|Notes|Total|of)\b"
)
"""Words that a Norwegian text does not have."""


@pytest.fixture
def edition(office):
    assert publish("2025") == 0
    return office / "published" / "2025"


def test_a_workbook_speaks_one_language(edition):
    book = openpyxl.load_workbook(edition / "people.nb.xlsx")
    assert book.sheetnames == ["Innhold", "Tabell 1", "Tabell 2", "Merknader"]
    sheet = book["Tabell 1"]
    assert sheet["A1"].value == "Folk etter landsdel og alder"
    assert [sheet["A3"].value, sheet["B3"].value] == ["Landsdel", "I alt"]
    assert [sheet.cell(row, 1).value for row in range(4, 8)] == ["I alt", "Nord", "Sør", "Vest"]
    texts = [c.value for s in book for r in s.iter_rows() for c in r if isinstance(c.value, str)]
    assert "Alder i år." in texts
    english = [text for text in texts if ENGLISH_WORDS.search(text)]
    assert english == []
    first = openpyxl.load_workbook(edition / "people.xlsx")
    assert first["Table 1"]["A1"].value == "People by region and age"
    # the figures are the same ones
    figures = [[c.value for r in b["Tabell 1" if k else "Table 1"].iter_rows(min_row=4, min_col=2)
                for c in r] for k, b in enumerate((first, book))]  # fmt: skip
    assert figures[0] == figures[1]


def test_one_px_file_holds_all_languages(edition):
    path = edition / "age-by-region.px"
    text = path.read_text(encoding="utf-8")
    assert 'LANGUAGE="en";\nLANGUAGES="en","nb";' in text
    assert 'TITLE[nb]="Folk etter landsdel og alder";' in text
    assert 'VALUES[nb]("Landsdel")="I alt","Nord","Sør","Vest";' in text
    assert 'CODES[nb]("Landsdel")="Total","N","S","W";' in text
    marked = [line for line in text.splitlines() if "[nb]" in line and "VARIABLECODE" not in line]
    marked = [line for line in marked if "CODES" not in line]
    assert [line for line in marked if ENGLISH_WORDS.search(line.partition("=")[2])] == []
    assert not (edition / "age-by-region.nb.px").exists()
    by_language = [pyaxis.parse(str(path), encoding="utf-8", lang=code) for code in ("en", "nb")]
    frames = [read["DATA"] for read in by_language]
    assert [[*frame.columns] for frame in frames] == [
        ["Region", "Age", "DATA"],
        ["Landsdel", "Alder", "DATA"],
    ]
    assert [*dict.fromkeys(frames[1]["Landsdel"])] == ["I alt", "Nord", "Sør", "Vest"]
    assert frames[0]["DATA"].equals(frames[1]["DATA"])


def test_json_stat_and_sdmx_and_csv_have_labels(edition):
    stored = json.loads((edition / "age-by-region.nb.jsonstat.json").read_text())
    assert stored["dimension"]["region"]["label"] == "Landsdel"
    assert stored["dimension"]["region"]["category"]["label"]["N"] == "Nord"
    assert not any(ENGLISH_WORDS.search(note) for note in stored["note"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own calls of what it has deprecated
        frame = pyjstat.Dataset.read(json.dumps(stored)).write("dataframe")
    assert set(frame["Landsdel"]) == {"I alt", "Nord", "Sør", "Vest"}
    labelled = (edition / "age-by-region.nb.sdmx.csv").read_text()
    assert labelled.splitlines()[0].startswith('"DATAFLOW","region: Landsdel","age: Alder"')
    both = [read_sdmx(text)[0].data for text in
            (labelled, (edition / "age-by-region.sdmx.csv").read_text())]  # fmt: skip
    columns = ["region", "age", "OBS_VALUE", "OBS_STATUS"]
    pd.testing.assert_frame_equal(both[0][columns], both[1][columns])
    rows = pd.read_csv(edition / "age-by-region.nb.csv")
    assert dict(zip(rows["region"], rows["region_label"], strict=True))["S"] == "Sør"
    assert [*pd.read_csv(edition / "age-by-region.csv").columns] == ["region", "age", "count"]
    index = list(csv.DictReader((edition / "index.csv").read_text().splitlines()))
    assert {row["language"] for row in index} == {"en", "nb"}
    assert all((edition / row["file"]).is_file() for row in index)


def test_notes_and_corrections_are_said_in_every_language(edition, office):
    note = (edition / "note.nb.md").read_text()
    assert note.startswith("# Folk\n")
    assert not ENGLISH_WORDS.search(note)
    records(3).to_csv("people.csv", index=False)
    assert publish("2025-r1", "--corrects", "2025", "--reason", "Feil.") == 0
    old = (edition / "age-by-region.px").read_text()
    assert "Edition 2025-r1 has taken the place of this edition: Feil." in old
    assert "Utgave 2025-r1 har tatt plassen til denne utgaven: Feil." in old


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (NORWEGIAN.replace('N = "Nord"\n', ""), r"missing: \[codes.region\] N"),
        (NORWEGIAN.replace('age = "Alder"\n', ""), r"missing: \[variables\] age"),
        (NORWEGIAN.replace('footnotes = ["Alder i år."]\n', ""), r"missing: .*footnotes"),
        (NORWEGIAN.replace('title = "Folk"\n', ""), r"missing: \[publication\] title"),
        (NORWEGIAN.replace('W = "Vest"', 'W = "Vest"\nX = "?"'), r"names nothing: .* X"),
        (NORWEGIAN.replace('["Alder i år."]', '["Alder.", "I år."]'), "2 instead of 1"),
    ],
)
def test_what_a_language_lacks_is_named_before_anything_is_drawn(office, text, told):
    (office / "texts" / "nb.toml").write_text(text)
    plan = Publication.read("publication.toml")
    with pytest.raises(DataError, match=told):
        editions.publish(plan, office, edition="1")
    assert not (office / "published").exists()
    assert not [r for r in dc.Ledger(office / "discreet.db").rows() if r["entry"] == "release"]


def test_the_first_language_stands_in_only_where_that_is_said(office, capsys):
    (office / "texts" / "nb.toml").write_text(NORWEGIAN.replace('N = "Nord"\n', ""))
    assert run("check", "publication", "publication.toml") != 0
    told = capsys.readouterr().out
    assert "missing: [codes.region] N" in told
    lost = tomllib.loads(told.partition("# to be translated, in texts/nb.toml\n")[2])
    assert lost == {"codes": {"region": {"N": "N"}}}, "it can be pasted and translated"
    (office / "texts" / "nb.toml").write_text("fallback = true\n[variables]\nregion = 'Landsdel'\n")
    assert run("check", "publication", "publication.toml") == 0
    assert publish("1") == 0
    text = (office / "published" / "1" / "age-by-region.px").read_text()
    assert 'STUB[nb]="Landsdel";' in text
    assert 'TITLE[nb]="People by region and age";' in text
    (office / "texts" / "nb.toml").write_text("[label]\n")
    with pytest.raises(UnknownNameError, match="section"):
        editions.publish(Publication.read("publication.toml"), office, edition="2")


def test_a_language_of_ones_own_is_told_at_once_all_that_it_lacks(office, capsys):
    """An empty file, what the check prints, then the sentences: three steps, and one draw."""
    path = office / "texts" / "da.toml"
    plan = office / "publication.toml"
    text = plan.read_text().replace('"en", "nb"', '"en", "da"').replace("year", "år")
    plan.write_text(text)
    assert run("check", "publication", plan) == 2
    assert "Make an empty one" in capsys.readouterr().err
    path.write_text("")
    assert run("check", "publication", plan) == 2
    path.write_text(capsys.readouterr().out.partition("# to be translated, in texts/da.toml\n")[2])
    assert run("check", "publication", plan) == 0
    capsys.readouterr()
    assert publish("1") == 2
    assert "texts/da.missing.toml" in capsys.readouterr().err
    assert not (office / "published" / "1").exists()
    lost = tomllib.loads((office / "texts" / "da.missing.toml").read_text())
    fitted = "Inner cells were then fitted to the changed values ({}), and published cells are "
    assert f"{fitted}their sums." in lost["texts"]
    own = tomllib.loads(path.read_text())
    for section, texts in lost.items():
        own.setdefault(section, {}).update({english: "Dansk: " + english for english in texts})
    path.write_text(tomli_w.dumps(own))
    assert publish("1") == 0
    note = (office / "published" / "1" / "methods.da.md").read_text()
    said = [line for line in note.splitlines() if line and not line.startswith(("|", "# "))]
    cited = said.index("## Dansk: References")
    assert all("Dansk: " in line for line in said[1:cited])  # after the edition
    rows = dc.Ledger(office / "discreet.db").rows()
    assert [row["number"] for row in rows if row["entry"] == "release"] == [1]


def test_notes_for_readers_are_as_they_are_made_now():
    for method in notes_page.METHODS:
        committed = (notes_page.FOLDER / f"{method}.md").read_text(encoding="utf-8")
        assert committed == notes_page.note_of(method), "run python tools/notes_page.py"


def test_notes_of_a_workbook_stand_under_headings(edition):
    headings = {
        "people.xlsx": ("Notes", "Contents", "What was done", "Edition"),
        "people.nb.xlsx": ("Merknader", "Innhold", "Hva som er gjort", "Utgave"),
    }
    for file, (notes, contents, done, named) in headings.items():
        book = openpyxl.load_workbook(edition / file)
        rows = [[cell.value for cell in row[:2]] for row in book[notes].iter_rows()]
        first = [heading for heading, _ in rows].index(done)
        assert not rows[first + 1][0], "a paragraph under the same heading"
        assert not any(heading in ("Statement", "Erklæring") for heading, _ in rows)
        assert f"{named} 2025" in book[contents]["A2"].value


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("cell-key", {"D": 3, "V": 1.0}),
        ("discrete-laplace", {"epsilon": 1.0}),
        ("laplace", {"epsilon": 1.0}),
        ("discrete-gaussian", {"rho": 0.1}),
    ],
)
def test_accuracy_is_told_of_figures_that_were_fitted_and_rounded(office, method, options):
    data = dc.open("people.csv", id="id", codes="codes.toml", secret="keys.secret")
    release = data.tabulate("region*age + region*sex").protect(method, **options)
    for language in (Language.read("en"), Language.read("nb")):
        rows = {
            made: [t for _, said in methods_note(each, language) for t in said if t[0] == "|"]
            for made, each in (("noised", release), ("fitted", release.fit("non-negative")))
        }
        assert len(rows["noised"]) == 9
        assert rows["fitted"] == rows["noised"]
    if method == "laplace":  # its noise goes on margins
        return
    summed = data.tabulate("region*age").protect(method, margins="summed", **options)
    said = [text for _, texts in methods_note(summed, Language.read("en")) for text in texts]
    assert any(text.startswith("The table is about the finest figures") for text in said)
