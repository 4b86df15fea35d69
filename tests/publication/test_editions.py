"""Publications in files: editions that appear whole or not at all, corrections, series, notes."""

import ast
import json
import os
import re
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet import registry
from discreet.errors import DataError, ParameterError
from discreet.facade import read_release
from discreet.ledger import Ledger
from discreet.publication import Publication, editions, republish
from discreet.release.fitting import METHODS
from discreet.release.language import WORDS, Language
from discreet.release.notes import methods_note, public_note
from tests.publication.office import KEYS, OFF, PRIVATE, publish, records, run, write


def test_two_periods_and_a_correction(office, capsys):
    """With the usual attacks."""
    write(office, gate="")
    assert publish("2025") == 0
    first = office / "published" / "2025"
    names = {p.name for p in first.iterdir()}
    for name in ("people.xlsx", "age-by-region.px", "sex-by-region.sdmx.csv", "index.csv"):
        assert name in names
    assert {"note.nb.md", "methods.en.docx", "methods.nb.html", "manifest.json"} <= names
    assert "people.csv" not in (first / "manifest.json").read_text()
    assert (office / "confidential" / "people-2025.md").stat().st_mode & 0o077 == 0
    records(2).to_csv("people.csv", index=False)
    assert publish("2026") == 0
    series = (office / "published" / "2026" / "series" / "age-by-region.px").read_text()
    assert 'TIMEVAL("Year")=TLIST(A1),"2025","2026";' in series
    rows = pd.read_csv(office / "published" / "2026" / "series" / "age-by-region.sdmx.csv")
    assert sorted(set(rows["TIME_PERIOD"])) == [2025, 2026]
    release = read_release(office / "published" / "2025" / "release.parquet")
    total = rows[(rows["region"] == "Total") & (rows["age"] == "Total")]
    by_year = dict(zip(total["TIME_PERIOD"], total["OBS_VALUE"], strict=True))
    assert by_year[2025] == release["Age by region"].z[release["Age by region"].design.position({})]
    records(3).to_csv("people.csv", index=False)
    assert publish("2026-r1", "--corrects", "2026") == 2
    assert "reason" in capsys.readouterr().err
    assert publish("2026-r1", "--corrects", "2026", "--reason", "  ") == 2
    assert publish("2026-r1", "--corrects", "2026", "--reason", "Regions were exchanged.") == 0
    old = (office / "published" / "2026" / "note.en.md").read_text()
    assert "Edition 2026-r1 has taken the place of this edition: Regions were exchanged." in old
    new = office / "published" / "2026-r1"
    assert "Denne utgaven erstatter utgave 2026" in (new / "note.nb.md").read_text()
    assert "This edition replaces edition 2026" in (new / "age-by-region.px").read_text()
    assert any(row.get("decision") == "corrected" for row in Ledger(office / "discreet.db").rows())
    years = pd.read_csv(new / "series" / "age-by-region.sdmx.csv")["TIME_PERIOD"]
    assert set(years) == {2025, 2026}, "a correction stands in the period of what it corrects"
    assert run("republish", "published/2026-r1", "--out", "again") == 0
    made = [p for p in (office / "again").rglob("*") if p.is_file()]
    assert len(made) > 30
    for path in made:
        assert path.read_bytes() == (new / path.relative_to(office / "again")).read_bytes()
    assert run("publish", "publication.toml", "--withdraw", "2025", "--reason", "Old.") == 0
    assert "withdrawn: Old." in (first / "note.en.md").read_text()


def test_an_edition_is_published_once(office):
    assert publish("1") == 0
    plan = Publication.read("publication.toml")
    with pytest.raises(DataError, match="--corrects 1"):
        editions.publish(plan, office, edition="1")
    with pytest.raises(ParameterError, match="folder"):
        editions.publish(plan, office, edition="../x")


@pytest.mark.parametrize(
    ("method", "parameters"), [("cell-key", KEYS), ("discrete-laplace", PRIVATE)]
)
@pytest.mark.parametrize("broken", ["edition_files", "write_log", "put_in_place"])
def test_what_is_interrupted_is_not_published_and_goes_on(
    office, monkeypatch, broken, method, parameters
):
    write(office, method, parameters)
    plan, ledger = Publication.read("publication.toml"), Ledger(office / "discreet.db")

    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(editions, broken, stop)
        with pytest.raises(KeyboardInterrupt):
            editions.publish(plan, office, edition="1")
    assert not (office / "published" / "1").exists()
    entered, waiting = ledger.rows(), office / "published" / ".1.part" / "release.parquet"
    drawn = read_release(waiting)
    assert entered, "figures were drawn, so the ledger knows them"
    done = editions.publish(plan, office, edition="1")
    assert np.array_equal(done.release.z, drawn.z)
    assert ledger.rows() == entered, "nothing was paid twice"
    assert not [p for p in done.folder.parent.iterdir() if p.name.startswith(".")]


def test_other_records_do_not_go_on_with_an_old_draw(office, monkeypatch):
    plan = Publication.read("publication.toml")
    with monkeypatch.context() as patch:
        patch.setattr(editions, "put_in_place", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            editions.publish(plan, office, edition="1")
    records(9).to_csv("people.csv", index=False)
    with pytest.raises(DataError.__base__, match="other"):
        editions.publish(plan, office, edition="1")  # the ledger knows other records


def test_a_repaired_title_or_language_pays_nothing_twice(office, monkeypatch):
    write(office, "discrete-laplace", PRIVATE)
    plan, ledger = Publication.read("publication.toml"), Ledger(office / "discreet.db")
    unknown = replace(plan, outlet=replace(plan.outlet, languages=("xx",)))
    with pytest.raises(DataError, match="no language"):
        editions.publish(unknown, office, edition="1")
    assert not ledger.rows(), "languages are read before anything is drawn"
    danish = replace(plan, outlet=replace(plan.outlet, languages=("da",)))
    (office / "texts" / "da.toml").write_text('[texts]\n"Nothing." = "Intet."\n')
    with pytest.raises(DataError, match=r"missing: \[words\] Title"):
        editions.publish(danish, office, edition="1")
    assert not ledger.rows(), "words are looked at before anything is drawn"
    words = "".join(f'"{word}" = "{word}"\n' for word in WORDS)
    (office / "texts" / "da.toml").write_text(f"[words]\n{words}")
    with pytest.raises(DataError, match="has no translation of"):
        editions.publish(danish, office, edition="1")
    waiting, entered = office / "published" / ".1.part", ledger.rows()
    assert waiting.stat().st_mode & 0o777 == 0o700
    drawn = read_release(waiting / "release.parquet")
    outlet = replace(plan.outlet, title="All", footnotes=("x",), languages=("en",))
    mended = replace(plan, outlet=outlet, told={})
    done = editions.publish(mended, office, edition="1")
    assert np.array_equal(done.release.z, drawn.z)
    assert ledger.rows() == entered
    assert done.folder.stat().st_mode & 0o777 == 0o755
    modes = {p.stat().st_mode & 0o777 for p in done.folder.rglob("*") if p.is_file()}
    assert modes == {0o644}


def test_an_interrupted_correction_is_entered_once(office, monkeypatch):
    plan = Publication.read("publication.toml")
    editions.publish(plan, office, edition="1")
    records(3).to_csv("people.csv", index=False)
    given = {"edition": "1-r1", "corrects": "1", "reason": "Wrong."}
    for broken in ("_stage", "put_in_place"):
        with monkeypatch.context() as patch:
            patch.setattr(editions, broken, lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                editions.publish(plan, office, **given)
    editions.publish(plan, office, **given)
    decided = [r for r in Ledger(office / "discreet.db").rows() if r["entry"] == "decision"]
    assert [(row["edition"], row["about"]) for row in decided] == [("1", "1-r1")]


def test_a_correction_killed_after_the_rename_is_finished(office, monkeypatch):
    plan = Publication.read("publication.toml")
    plan = replace(plan, outlet=replace(plan.outlet, formats=("csv",), languages=("en",)))
    plan = replace(plan, data={k: v for k, v in plan.data.items() if k != "ledger"})
    for edition in ("2026-1", "2026-2", "2026-10"):
        editions.publish(plan, office, edition=edition)
    given = {"edition": "2026-2-r1", "corrects": "2026-2", "reason": "Wrong."}
    with monkeypatch.context() as patch:
        patch.setattr(editions, "renew", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            editions.publish(plan, office, **given)
    with pytest.raises(DataError, match="published already"):
        editions.publish(plan, office, **{**given, "corrects": "2026-1"})
    editions.publish(plan, office, edition="2026-11")  # the old edition is not marked yet
    done = editions.publish(plan, office, **given)
    assert done.log.is_file()
    old = json.loads((office / "published" / "2026-2" / "manifest.json").read_text())
    assert not old["valid"]
    assert old["notices"] == ["Edition 2026-2-r1 has taken the place of this edition: Wrong."]
    with pytest.raises(DataError, match="published already"):
        editions.publish(plan, office, **given)
    series = pd.read_csv(office / "published" / "2026-11" / "series" / "age-by-region.csv")
    periods = [*dict.fromkeys(series["year"])]
    assert periods == ["2026-1", "2026-2", "2026-10", "2026-11"]


@pytest.mark.parametrize("given", ["codes", "tabulate", "data"])
def test_a_changed_hierarchy_is_another_publication(office, monkeypatch, given):
    """Files of hierarchies decide about figures as records do, wherever they are named."""
    file = office / "region.csv"
    file.write_text("part,region\nA,N\nA,S\nB,W\n")
    lists = (office / "codes.toml").read_text().splitlines()[2:]
    first = ['region = {hierarchy = "region.csv"}'] if given == "codes" else []
    (office / "codes.toml").write_text("\n".join([*first, *lists]))
    plan = Publication.read("publication.toml")
    data = {k: v for k, v in plan.data.items() if k != "ledger"}
    if given == "data":
        data["hierarchies"] = {"region": "region.csv"}
    named = {"region": "region.csv"} if given == "tabulate" else {}
    outlet = replace(plan.outlet, formats=("csv",), languages=("en",))
    plan = replace(plan, data=data, hierarchies=named, outlet=outlet)
    monkeypatch.chdir("/")  # files are named from where the publication lies
    with monkeypatch.context() as patch:
        patch.setattr(editions, "put_in_place", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            editions.publish(plan, office, edition="1")
    file.write_text(file.read_text().replace("A,S", "B,S"))
    editions.publish(plan, office, edition="1")
    rows = pd.read_csv(office / "published" / "1" / "sex-by-region.csv").set_index(
        ["region", "sex"]
    )
    count = rows["count"]
    assert count["B", "Total"] == count["S", "Total"] + count["W", "Total"]


def test_a_draw_for_another_folder_publishes_nothing_here(office, monkeypatch):
    plan = Publication.read("publication.toml")
    plan = replace(plan, data={k: v for k, v in plan.data.items() if k != "ledger"})
    other = replace(plan, outlet=replace(plan.outlet, folder="elsewhere"))
    editions.publish(other, office, edition="1")
    with monkeypatch.context() as patch:  # killed before the folder is there
        patch.setattr(editions, "put_in_place", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            editions.publish(plan, office, edition="1")
    with pytest.raises(DataError, match="published already"):
        editions.publish(other, office, edition="1")
    assert editions.publish(plan, office, edition="1").folder == office / "published" / "1"
    assert (office / "published" / "1" / "people.xlsx").is_file()


def test_an_interrupted_run_leaves_no_file_of_other_formats_or_languages(office, monkeypatch):
    plan = Publication.read("publication.toml")
    with monkeypatch.context() as patch:
        patch.setattr(editions, "put_in_place", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            editions.publish(plan, office, edition="1")
    mended = replace(plan, outlet=replace(plan.outlet, formats=("csv",), languages=("en",)))
    folder = editions.publish(mended, office, edition="1").folder
    assert {path.suffix for path in folder.rglob("*.*")} == {
        ".csv", ".json", ".md", ".html", ".docx", ".parquet"}  # fmt: skip
    assert not list(folder.rglob("*nb*"))
    log = (office / "confidential" / "people-1.md").read_text()
    assert "Limit the tables" in log, "a release that was stored still tells the office"


def test_the_newest_correction_stands_in_the_series(office):
    plan = Publication.read("publication.toml")
    plan = replace(plan, outlet=replace(plan.outlet, formats=("csv",), languages=("en",)))
    plan = replace(plan, data={k: v for k, v in plan.data.items() if k != "ledger"})
    editions.publish(plan, office, edition="1")
    last = None
    for seed, edition in ((2, "1-r9"), (3, "1-r10")):  # both correct the first edition
        records(seed).to_csv("people.csv", index=False)
        last = editions.publish(plan, office, edition=edition, corrects="1", reason="Wrong.")
    records(4).to_csv("people.csv", index=False)
    editions.publish(plan, office, edition="2")
    table = last.release["Age by region"]
    for folder in ("1-r10", "2"):
        rows = pd.read_csv(
            office / "published" / folder / "series" / "age-by-region.csv", dtype=str
        )
        shown = rows[rows["year"] == "1"]["count"].astype(float)
        assert sorted(shown) == sorted(table.z[: table.design.n_published])


def test_series_say_that_they_have_figures_of_an_edition_that_is_no_more(office, capsys):
    write(office, gate=OFF)
    plan = Publication.read("publication.toml")
    for k, year in enumerate(("2025", "2026")):
        records(k + 1).to_csv("people.csv", index=False)
        editions.publish(plan, office, edition=year)
    later = office / "published" / "2026"
    figures = (later / "series" / "age-by-region.csv").read_bytes()
    own = (later / "age-by-region.px").read_bytes()
    records(3).to_csv("people.csv", index=False)
    assert publish("2025-r1", "--corrects", "2025", "--reason", "Wrong.") == 0
    said = "The series has figures of edition 2025, which edition 2025-r1 has taken the place of"
    text = (later / "series" / "age-by-region.px").read_text()
    assert f"{said}: Wrong." in text
    assert "som utgave 2025-r1 har tatt plassen til: Wrong." in text
    newest = office / "published" / "2025-r1" / "series" / "age-by-region.px"
    assert "The series has figures" not in newest.read_text()
    assert run("publish", "publication.toml", "--withdraw", "2026", "--reason", "R.") == 0
    assert "edition 2026, withdrawn: R." in (later / "series" / "age-by-region.px").read_text()
    assert "edition 2026, withdrawn: R." in newest.read_text()
    assert (later / "series" / "age-by-region.csv").read_bytes() == figures
    assert (later / "age-by-region.px").read_bytes() != own
    for name in ("2025", "2026", "2025-r1"):
        assert run("republish", later.with_name(name), "--out", f"again-{name}") == 0, name


def test_the_manifest_lists_files_of_series(office):
    assert publish("1") == 0
    folder = office / "published" / "1"
    listed = json.loads((folder / "manifest.json").read_text())["files"]
    series = {f"series/{path.name}" for path in (folder / "series").iterdir()}
    assert series
    assert series <= {*listed}


def test_republish_says_which_version_it_needs(office):
    assert publish("1") == 0
    path = office / "published" / "1" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["files"]["index.csv"] = "0" * 64
    path.write_text(json.dumps(manifest))
    with pytest.raises(DataError, match="changed since"):
        republish(path.parent, office / "again")
    path.write_text(json.dumps({**manifest, "version": "0.1.7"}))
    with pytest.raises(DataError, match=r"discreet==0\.1\.7"):
        republish(path.parent, office / "again")
    assert not (office / "again").exists()


def test_republish_makes_what_was_published_for_everybody_to_read(office):
    """Whoever makes more files today adds none to an old edition."""
    assert publish("1") == 0
    path = office / "published" / "1" / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["files"]["index.csv"]
    path.write_text(json.dumps(manifest))
    before = os.umask(0o077)
    try:
        again = republish(path.parent, office / "again")
    finally:
        os.umask(before)
    made = {p.relative_to(again).as_posix() for p in again.rglob("*") if p.is_file()}
    assert made == {*manifest["files"], "release.parquet", "manifest.json"}
    assert again.stat().st_mode & 0o777 == 0o755


def test_a_release_that_was_changed_is_named_whichever_version_made_it(office):
    assert publish("1") == 0
    folder = office / "published" / "1"
    manifest = json.loads((folder / "manifest.json").read_text())
    changed = json.dumps({**manifest, "version": "0.1.7", "release": "0" * 64})
    (folder / "manifest.json").write_text(changed)
    with pytest.raises(DataError, match=r"changed since it was published: release\.parquet"):
        republish(folder, office / "again")


def test_notes_are_complete_in_norwegian_for_every_method(office):
    parameters = {
        "adjust": {"D": 3, "V": 1.0},
        "cell-key": {"D": 3, "V": 1.0},
        "quality": {"D": 3, "V": 1.0},
        "discrete-laplace": {"epsilon": 1.0},
        "discrete-gaussian": {"rho": 0.1},
        "laplace": {"epsilon": 1.0},
        "suppress": {"rules": "threshold(3)"},
    }
    data = dc.open("people.csv", id="id", codes="codes.toml", secret="keys.secret")
    table, norwegian = data.tabulate("region*age + region*sex"), Language.read("nb")
    for method in sorted({*registry.METHODS} - {"magnitude-key"}):  # it publishes sums alone
        release = table.protect(method, **parameters.get(method, {}))
        for made in (release, release.fit("non-negative")):
            said = methods_note(made, norwegian)
            assert [h for h, _ in said][:2] == ["Hva som er gjort", "Hva som loves"] or said
            assert public_note(made, norwegian) or not made.statement.plain
            assert len(said) == len(methods_note(made, Language.read("en")))
            assert norwegian.say(made.statement.office)
            said = norwegian.say(made.statement.text)
            assert not re.search(r"\b(the|is|are|of|were|value|cell)\b", said), method
    fitted = table.protect("cell-key").fit("non-negative", decimals=True)
    for rounding in METHODS:
        assert norwegian.say(fitted.round(rounding, seed=1).statement.text)
    assert norwegian.say("Figures of 1 and 2 are never shown.") == "Tall på 1 og 2 vises aldri."
    magnitudes = "Each figure was changed by a random amount that is larger where one contributor "
    assert norwegian.say(f"{magnitudes}stands out.").startswith("Hvert tall ble endret med")
    with pytest.raises(DataError, match="has no text"):
        norwegian.say("Nobody has translated this.")


@pytest.mark.parametrize("known", [None, ["1"], ["1", "region"]])
@pytest.mark.parametrize("method", ["discrete-laplace", "discrete-gaussian"])
def test_guarantees_are_complete_in_norwegian(office, method, known):
    data = dc.open("people.csv", codes="codes.toml", secret="keys.secret", id="id")
    table, norwegian = data.tabulate("region*age + region*sex"), Language.read("nb")
    cost = {"epsilon": 1.0} if method == "discrete-laplace" else {"rho": 0.1}
    for more in ({}, {"known": known}, {"known": known, "known_base": 5})[: 3 if known else 1]:
        release = table.protect(method, **cost, **more)
        assert len(methods_note(release, norwegian)) == len(
            methods_note(release, Language.read("en"))
        )
        said = norwegian.say(release.statement.text)
        assert not re.search(r"\b(the|is|are|were|record|known|of)\b", said)


def constant_sentences():
    """Sentences of statements into which nothing is put, as the source has them."""
    for room in ("protect", "release", "suppress"):
        for path in (Path(dc.__file__).parent / room).rglob("*.py"):
            for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                name = getattr(getattr(call, "func", None), "id", "")
                if name in ("Sentence", "process", "limit") and len(call.args) > 1:
                    text = getattr(call.args[1], "value", None)
                    if isinstance(text, str) and text:
                        yield text


def test_every_constant_sentence_is_said_in_norwegian():
    found, norwegian = sorted({*constant_sentences()}), Language.read("nb")
    assert len(found) > 20
    for text in found:
        assert norwegian.say(text) != text
    said = norwegian.say("At most 3 records of one person (pnr) were counted.")
    assert said == "Høyst 3 enheter for én person (pnr) ble talt."


def test_another_language_is_a_file_in_the_folder(office):
    (office / "texts" / "da.toml").write_text(
        '[texts]\n"No figure moved by {}." = "Intet tal ({})."\n'
    )
    danish = Language.read("da", office)
    assert danish.say("No figure moved by 3.") == "Intet tal (3)."
    with pytest.raises(DataError, match=r"da\.toml"):
        Language.read("da")


def test_advice_to_the_office_is_in_no_public_file(office):
    assert publish("1") == 0
    for path in (office / "published" / "1").rglob("*"):
        if path.suffix in (".xlsx", ".docx"):
            with zipfile.ZipFile(path) as archive:
                content = b"".join(map(archive.read, archive.namelist()))
        elif path.is_file():
            content = path.read_bytes()
        assert b"Limit the tables" not in content
    assert "Limit the tables" in (office / "confidential" / "people-1.md").read_text()
