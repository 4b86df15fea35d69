"""Mistakes at every step of a publication: one line that names them, and nothing is left behind."""

import errno
import json
import shutil

import pytest

from discreet.files import written_whole
from discreet.ledger import Ledger
from discreet.publication import editions
from discreet.release import language
from discreet.release.language import built_in
from tests.publication.office import OFF, publish, records, run, write

LANGUAGES = 'languages = ["en", "nb"]'


@pytest.fixture
def plan(office):
    """A publication that is drawn at once, without attacks."""
    write(office, gate=OFF)
    return office / "publication.toml"


def mend(plan, old, new):
    text = plan.read_text(encoding="utf-8")
    assert old in text
    plan.write_text(text.replace(old, new, 1), encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"cell-key"', '"cel-key"', "'cell-key'?"),
        ("V = 1.0", "VV = 1.0", "'V'?"),
        ('"non-negative"', '"non-negativ"', "'non-negative'?"),
        ("ledger =", "leger =", "entry of [data] 'leger'. Did you mean 'ledger'?"),
        ('formats = ["xlsx", "px", "json-stat", "sdmx-csv", "csv"]', 'formats = "px"', '["px"]'),
        (LANGUAGES, 'languages = "nb"', '["nb"]'),
        ('title = "People by', 'title = 5 # "', "a text in quotation marks, got 5"),
        ('["Age in years."]', '"Age in years."', "a list of texts"),
        ('margins = "region*age"', "", "needs margins"),
        ("[tables.", "[tables.Twice]\n[tables.", "needs margins"),
        ('"people.csv"', '"nobody.csv"', "nobody.csv."),
        ('"codes.toml"', '"lists.toml"', "lists.toml. Draft one"),
        (LANGUAGES, 'languages = ["en", "xx"]', "no language 'xx'"),
        (LANGUAGES, 'log = "published/x"', "log = 'published/x' is confidential"),
        (LANGUAGES, 'folder = "."', "is confidential, and lies in the folder that readers"),
        ('formats = ["xlsx", "px", "json-stat", "sdmx-csv", "csv"]', "formats = []", "names none"),
        ("People by region and age", "Sex by region", "have the same title"),
    ],
)
def test_a_check_finds_what_would_stop_a_run(plan, capsys, old, new, told):
    mend(plan, old, new)
    assert run("check", "publication", plan) == 2
    assert told in capsys.readouterr().err.replace("\n", " ")


def test_other_encodings_and_no_tables_are_explained(plan, capsys):
    text = plan.read_text(encoding="utf-8")
    plan.write_bytes(text.replace("Age in years", "Alder i år").encode("latin-1"))
    assert run("publish", plan, "--edition", "1") == 2
    assert "not TOML in UTF-8" in capsys.readouterr().err
    plan.write_text(text.split("[tables")[0] + '[protect]\nmethod = "safe"\n', encoding="utf-8")
    assert run("publish", plan, "--edition", "1") == 2
    assert "has no tables" in capsys.readouterr().err


def test_a_misspelt_fitter_costs_no_draw(office, plan):
    mend(plan, '"non-negative"', '"non-negativ"')
    assert publish("1") == 2
    drawn = [row for row in Ledger(office / "discreet.db").rows() if row["entry"] == "release"]
    assert drawn == []


def test_records_of_nobody_are_not_published(office, plan, capsys):
    (office / "people.csv").write_text("id,region,age,sex\n")
    assert publish("1") == 2
    assert "count no record" in capsys.readouterr().err
    assert not (office / "published").exists()


def test_names_and_folders_that_cannot_be(office, plan, capsys):
    for name in ("a/b", "x\ny", "x" * 80, "..", ""):
        assert publish(name) == 2
    (office / "published" / "1").mkdir(parents=True)
    assert publish("1") == 2
    assert "no published edition" in capsys.readouterr().err
    (office / "confidential").write_text("")
    assert publish("2") == 2
    assert "confidential: File exists" in capsys.readouterr().err


@pytest.mark.parametrize(
    "more",
    [
        ("--withdraw", "1", "--edition", "1", "--reason", "R."),
        ("--edition", "1", "--reason", "R."),
        ("--draft", "people.csv", "--edition", "1"),
        ("--codes", "codes.toml"),
    ],
)
def test_options_that_say_nothing_together(plan, capsys, more):
    assert run("publish", "new.toml" if "--draft" in more else plan, *more) == 2
    assert "does not go with" in capsys.readouterr().err


def test_a_full_disk_is_told_in_words(tmp_path):
    with pytest.raises(Exception, match="cannot write to .*No space") as told:  # noqa: SIM117
        with written_whole(tmp_path / "table.csv"):
            raise OSError(errno.ENOSPC, "No space left on device")
    assert type(told.value).__name__ == "DataError"
    assert not [*tmp_path.iterdir()]


def test_a_withdrawal_that_was_killed_is_finished(office, plan, monkeypatch, capsys):
    assert publish("1") == 0
    withdraw = ("publish", plan, "--withdraw", "1", "--reason", "Wrong records.")
    with monkeypatch.context() as patched:
        patched.setattr(editions, "renew", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run(*withdraw)
    assert run(*withdraw) == 0
    assert "withdrawn: Wrong records." in (office / "published/1/note.en.md").read_text()
    rows = Ledger(office / "discreet.db").rows()
    assert [row.get("decision") for row in rows].count("withdrawn") == 1
    assert run(*withdraw) == 2
    mend(plan, 'name = "people"\ntitle', 'name = "others"\ntitle')
    assert run(*withdraw) == 2
    assert "is an edition of the publication 'people'" in capsys.readouterr().err


def test_two_publications_of_a_ledger_are_corrected_each(office, plan):
    """A correction of the same name of other data is another correction."""
    twin = office / "twin.toml"
    text = plan.read_text(encoding="utf-8").replace('name = "people"', 'name = "twins"')
    text = text.replace("people.csv", "twins.csv").replace(
        "[publication]", '[publication]\nfolder = "twins"'
    )
    twin.write_text(text, encoding="utf-8")
    for seed, more in ((1, ("1",)), (2, ("1-r1", "--corrects", "1", "--reason", "R."))):
        records(seed).to_csv("people.csv", index=False)
        records(seed + 9).to_csv("twins.csv", index=False)
        for file in (plan, twin):
            assert run("publish", file, "--edition", *more) == 0
    rows = [r for r in Ledger(office / "discreet.db").rows() if r.get("decision") == "corrected"]
    assert [row["name"] for row in rows] == ["people", "twins"]


def test_an_edition_is_made_again_with_its_series_whole_or_not(office, plan, capsys):
    for seed, year in ((1, "2025"), (2, "2026")):
        records(seed).to_csv("people.csv", index=False)
        assert publish(year) == 0
    first = office / "published" / "2026"
    assert run("republish", first, "--out", "again") == 0
    names = {str(p.relative_to(first)) for p in first.rglob("*") if p.is_file()}
    again = office / "again"
    assert names == {str(p.relative_to(again)) for p in again.rglob("*") if p.is_file()}
    assert all((again / n).read_bytes() == (first / n).read_bytes() for n in names)
    assert run("republish", first, "--out", "again") == 2
    assert "not empty" in capsys.readouterr().err
    manifest = json.loads((first / "manifest.json").read_text())
    manifest["series"]["version"], manifest["files"]["series/people.xlsx"] = "0.1.9", "0" * 64
    (again / "manifest.json").write_text(json.dumps(manifest))
    shutil.copytree(again, first, dirs_exist_ok=True)
    assert run("republish", first, "--out", "more") == 2
    assert "install discreet==0.1.9" in capsys.readouterr().err
    (office / "published" / "2025").rename(office / "elsewhere")
    assert run("republish", first, "--out", "more") == 2
    assert "need edition 2025" in capsys.readouterr().err
    assert not (office / "more").exists()


def test_an_edition_that_says_sentences_of_an_earlier_version_is_withdrawn(
    office, plan, monkeypatch
):
    assert publish("1") == 0
    left = {e: n for e, n in built_in("nb")["texts"].items() if "cell key method" not in e}
    words = built_in("nb")["words"]
    monkeypatch.setattr(language, "built_in", lambda code: {"texts": left, "words": words})
    assert run("publish", plan, "--withdraw", "1", "--reason", "R.") == 0
    said = (office / "published" / "1" / "methods.nb.md").read_text(encoding="utf-8")
    assert "Values were changed by the cell key method" in said
    assert "Hva som loves" in said
    records(2).to_csv("people.csv", index=False)
    assert publish("2") == 2, "a new edition says everything in its languages"
