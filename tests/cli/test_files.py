"""Files and flags on the command line: what cannot work is said before any work is done."""

import os

import pytest

import discreet as dc
from discreet.cli.options import in_flags
from tests.commands import run

ROWS = "".join(f"{p},{s},1.5\n" for p in "ab" for s in "mf" for _ in range(30))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text(f"place,sex,w\n{ROWS}")
    (tmp_path / "codes.toml").write_text('[place]\ncodes = ["a", "b"]\n[sex]\ncodes = ["m", "f"]\n')
    return tmp_path


def tabulate(*more, out="table.parquet", source="people.csv"):
    codes = ("--codes", "codes.toml") * os.path.exists("codes.toml")
    return run("tabulate", source, "--by", "place*sex", "--out", out, *codes, *more)


def protect(*more, out="release.csv"):
    return run("protect", "table.parquet", "--method", "discrete-laplace", *more, "--out", out)


def test_a_table_is_never_written_under_the_name_of_a_csv_file(folder, capsys):
    assert tabulate(out="table.csv") == 2
    assert "must end in .parquet" in capsys.readouterr().err
    assert not (folder / "table.csv").exists()


def test_a_private_release_in_csv_is_fitted_and_assessed_without_new_noise(folder, capsys):
    assert tabulate() == 0
    assert protect("-s", "epsilon=1", "-s", "known=1") == 0
    assert run("fit", "release.csv", "--out", "fitted.csv") == 0
    assert run("assess", "table.parquet", "release.csv") == 0
    released, fitted = dc.facade.read_release("release.csv"), dc.facade.read_release("fitted.csv")
    assert released.z[-1] == 120
    assert fitted.statement.privacy == released.statement.privacy


def test_a_release_is_written_for_other_programs(folder, capsys):
    assert tabulate() == 0
    assert protect("-s", "epsilon=1", out="release.xlsx") == 0
    assert protect("-s", "epsilon=1") == 0
    assert run("export", "release.csv", "--out", "table.px", "--title", "People") == 0
    assert 'TITLE="People";' in (folder / "table.px").read_text()
    assert (folder / "release.xlsx").read_bytes()[:2] == b"PK"


@pytest.mark.parametrize("known", ["known=1", 'known=["place","1"]', 'known="1"'])
def test_the_total_has_one_name_on_the_command_line(folder, known):
    assert tabulate() == 0
    assert protect("-s", "epsilon=1", "-s", known) == 0
    assert dc.facade.read_release("release.csv").z[-1] == 120


def test_a_release_that_cannot_be_written_costs_nothing(folder, capsys):
    assert tabulate() == 0
    ledger = ("--ledger", "ledger.db", "--budget", "1")
    assert protect("-s", "epsilon=1", *ledger, out="release.doc") == 2
    assert "must end in one of .csv" in capsys.readouterr().err
    assert not (folder / "ledger.db").exists()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--round", "margins"], "--seed"),
        (["--round", "up", "--seed", "1"], "--round must be one of margins"),
        (["--out", "fitted.txt"], "must end in"),
    ],
)
def test_a_fit_that_cannot_be_finished_is_not_begun(folder, capsys, monkeypatch, flags, said):
    assert tabulate() == 0
    assert protect("-s", "epsilon=1") == 0
    monkeypatch.setattr(dc.Release, "fit", None)
    assert run("fit", "release.csv", *flags) == 2
    assert said in capsys.readouterr().err


def test_records_without_ids_get_keys_in_a_copy(folder):
    assert tabulate("--random-keys", "with-keys.parquet") == 0
    first = dc.facade.read_table("table.parquet").cell_keys
    assert tabulate("--random-keys", "with-keys.parquet") == 0
    assert (first == dc.facade.read_table("table.parquet").cell_keys).all()
    assert (folder / "with-keys.parquet").stat().st_mode & 0o777 == 0o600


def test_encoding_and_decimal_comma_are_flags(folder, capsys):
    (folder / "codes.toml").unlink()
    text = f"place,sex,w\n{ROWS}".replace(",", ";").replace(".", ",").replace("a;", "Köln;")
    (folder / "wien.csv").write_bytes(text.encode("cp1252"))
    flags = ["--encoding", "cp1252", "--decimal", ",", "--weight", "w"]
    assert tabulate(*flags, source="wien.csv") == 0
    table = dc.facade.read_table("table.parquet")
    assert table.weights[table.design.position({"place": "Köln"})] == 90
    assert tabulate("--weight", "w", source="wien.csv") == 0
    assert tabulate("--weight", "w", "--encoding", "utf-8", source="wien.csv") == 2
    assert "is not text in --encoding utf-8" in capsys.readouterr().err


def test_codes_that_became_one_are_announced(folder, caplog):
    (folder / "codes.toml").unlink()
    (folder / "jobs.csv").write_text("place,sex\n47,1\n47.0,1\n,2\n")
    assert tabulate(source="jobs.csv") == 0
    assert "47.0 is 47" in caplog.text


def test_messages_speak_of_flags():
    assert in_flags("rounding needs seed=1") == "rounding needs --seed 1"
    assert in_flags("use support='occurring'.") == "use --support occurring."


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--value w --value sex", "--value is given 2 times, and takes one value."),
        ("--by sex --by place", "--by is given 3 times"),
        ("--hierarchy place.hrc", "a hierarchy must be given as VARIABLE=FILE"),
        ("--delimiter ;", "3 with ',': say --delimiter , or leave it out"),
        ("--value w", "name the column, e.g. --contributor enterprise"),
        ("--hierarchies place=place.hrc", "--hierarchy"),
    ],
)
def test_wrong_words_are_answered_in_words_of_the_command(folder, capsys, words, said):
    (folder / "codes.toml").unlink()
    assert tabulate(*words.split()) == 2
    assert said in capsys.readouterr().err
    assert not (folder / "table.parquet").exists()


def test_an_option_that_may_be_repeated_is(folder, capsys):
    (folder / "codes.toml").unlink()
    assert run("check", "data", "people.csv", "--value", "w", "--value", "w", "--json") == 0
    assert tabulate("--json", "--json") == 0


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a.hrc", "--hierarchy VARIABLE=FILE"),
        ("a.arb", "discreet argus"),
        ("a.rda", "--metadata file.rda"),
        ("a.tab", ".tsv"),
        ("a.md", "cannot tell what"),
    ],
)
def test_a_file_that_holds_no_records_is_told_what_it_is(folder, capsys, name, said):
    (folder / name).write_text("A\n@A1\n")
    assert run("check", "data", name) == 2
    assert said in capsys.readouterr().err


def test_a_column_with_a_comma_in_its_name_may_be_alone(folder):
    (folder / "one.csv").write_text("Turnover, net\n1,5\n2,5\n")
    assert run("check", "data", "one.csv", "--delimiter", ";") == 0


def test_a_site_with_an_unknown_method_is_not_whole(folder, capsys):
    run("secret", "make", "keys.secret")
    (folder / "site.toml").write_text(
        """title = "S"
[datasets.d]
title = "D"
[datasets.d.records]
source = "people.csv"
codes = "codes.toml"
secret = "keys.secret"
[datasets.d.recipe.tabulate]
margins = "place*sex"
[datasets.d.recipe.protect]
method = "saef"
"""
    )
    assert run("check", "site", "site.toml") == 2
    assert "unknown method 'saef'" in capsys.readouterr().err


def test_private_tables_say_that_a_refusal_tells(folder, caplog):
    words = ("private", "people.csv", "--codes", "codes.toml", "--epsilon", "1", "--out", "s.csv")
    assert run(*words) == 0
    assert "code lists refuse records outside them ('place', 'sex')" in caplog.text
    caplog.clear()
    text = (folder / "codes.toml").read_text()
    drop = 'other = "drop"\nmissing = "drop"\n'
    (folder / "codes.toml").write_text(text.replace("[sex]", f"{drop}[sex]") + drop)
    assert run(*words) == 0
    assert not caplog.text
