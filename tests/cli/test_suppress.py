"""Suppression on the command line: from a file of records to audited releases, and wrong input."""

import contextlib
import json
import shutil
import warnings

import pandas as pd
import pytest

import discreet as dc
from tests.commands import run

ACTIVITIES = ["bread"] * 30 + ["paper"] * 12 + ["steel"] * 10
REGIONS = ["north"] * 14 + ["south"] * 10 + ["hills"] * 6
REGIONS += ["north"] * 7 + ["south"] * 4 + ["hills"] + ["north"] * 4 + ["south"] * 2 + ["hills"] * 4
FIRMS = pd.DataFrame(
    {
        "id": range(52),
        "activity": ACTIVITIES,
        "region": REGIONS,
        "enterprise": [f"E{k % 45}" for k in range(52)],
        "group": ["G1" if k % 13 == 0 else None for k in range(52)],
        "turnover": [7 + (k * 37) % 91 for k in range(52)],
    }
)
TABULATE = ("tabulate", "firms.csv", "--by", "activity*region", "--out")
SUMS = ("--value", "turnover", "--contributor", "enterprise")
RULES = 'rules=["p%(10)", "few-contributors(3)"]'


@pytest.fixture(scope="module")
def tabulated(tmp_path_factory):
    """The records and both tables, made once; each test gets copies."""
    made = tmp_path_factory.mktemp("firms")
    with contextlib.chdir(made):
        FIRMS.to_csv("firms.csv", index=False)
        assert run(*TABULATE, "counts.parquet") == 0
        assert run(*TABULATE, "sums.parquet", *SUMS) == 0
    return made


@pytest.fixture
def folder(tabulated, tmp_path, monkeypatch):
    shutil.copytree(tabulated, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def protect(table, out, *settings):
    given = [text for each in settings for text in ("-s", each)]
    return run("protect", table, "--method", "suppress", *given, "--out", out)


def audited(capsys, *arguments):
    capsys.readouterr()
    assert run("audit", *arguments, "--json") == 0
    return json.loads(capsys.readouterr().out)


def test_counts_are_tabulated_suppressed_and_audited(folder, capsys):
    assert protect("counts.parquet", "release.csv", "max=3") == 0
    published = pd.read_csv("release.csv").set_index(["activity", "region"])
    truth = dc.facade.read_table("counts.parquet").to_pandas().set_index(["activity", "region"])
    shown = published["status"] == "published"
    assert (published["count"][shown] == truth["count"][shown]).all()
    assert published["count"][~shown].isna().all()
    assert not shown[truth["count"].between(1, 3)].any()
    assert "not shown" in (folder / "release.statement.txt").read_text()
    found = audited(capsys, "release.csv", "--table", "counts.parquet")
    assert found["suppressed"] == (~shown).sum() > 2
    assert found["disclosed"] == []
    assert audited(capsys, "release.csv")["disclosed"] == []


def test_sums_are_suppressed_by_named_rules(folder, capsys):
    assert protect("sums.parquet", "turnover.parquet", RULES) == 0
    assert "fewer than 3 contributors" in " ".join(capsys.readouterr().out.split())
    release, table = (
        dc.facade.read_release("turnover.parquet"),
        dc.facade.read_table("sums.parquet"),
    )
    few = (table.contributions.count > 0) & (table.contributions.count < 3)
    assert few.any()
    assert release.hidden[few].all()
    assert (release.z == table.contributions.sum)[~release.hidden].all()
    found = audited(capsys, "turnover.parquet", "--table", "sums.parquet")
    assert found["disclosed"] == found["disclosed_with_signs"] == []


def test_holdings_and_the_number_of_largest_are_options(folder):
    code = run(*TABULATE, "groups.parquet", *SUMS, "--holding", "group", "--largest", "5")
    assert code == 0
    given = dc.facade.read_table("groups.parquet").contributions
    assert given.largest.shape[1] == 5
    assert "G1" in given.owners


def test_an_outsider_finds_what_a_pattern_of_another_program_lets_through(folder, capsys):
    (folder / "pattern.csv").write_text("activity,region,status\npaper,hills,p\n")
    found = audited(capsys, "--table", "counts.parquet", "--labels", "pattern.csv")
    assert found["disclosed"] == found["at_risk"] == ["activity=paper, region=hills"]
    assert not found["is_clean"]


WRONG_TABLES = {
    "whose each record is": ("--value", "turnover"),
    "name the value as well": ("--contributor", "enterprise"),
    "Did you mean 'turnover'": ("--value", "turnver", "--contributor", "enterprise"),
    "column 'region' cannot be read": ("--value", "region", "--contributor", "enterprise"),
    "different columns": ("--value", "turnover", "--contributor", "turnover"),
    "largest must be at least 2": (*SUMS, "--largest", "1"),
    "--negative must be one of refuse, absolute": (*SUMS, "--negative", "ignore"),
}


@pytest.mark.parametrize("message", WRONG_TABLES)
def test_wrong_options_of_sums_are_explained_and_leave_no_file(folder, capsys, message):
    assert run(*TABULATE, "x.parquet", *WRONG_TABLES[message]) == 2
    assert message in capsys.readouterr().err
    assert not list(folder.glob("x.*"))


def test_negative_and_missing_values_are_refused_with_a_remedy(folder, capsys):
    FIRMS.assign(turnover=FIRMS["turnover"] - 50).to_csv("firms.csv", index=False)
    assert run(*TABULATE, "x.parquet", *SUMS) == 2
    assert "absolute" in capsys.readouterr().err
    assert run(*TABULATE, "x.parquet", *SUMS, "--negative", "absolute") == 0
    FIRMS.assign(turnover=FIRMS["turnover"].where(FIRMS["id"] > 3)).to_csv("firms.csv", index=False)
    assert run(*TABULATE, "y.parquet", *SUMS) == 2
    assert "turnover" in capsys.readouterr().err
    assert not (folder / "y.parquet").exists()


BREAD = '[{"activity": "bread"}]'
WRONG_METHODS = {
    "counts only": ("counts.parquet", "rules=p%(10)"),
    "Did you mean 'dominance'": ("sums.parquet", "rules=dominanc(1, 80)"),
    "bracket that is not closed": ("sums.parquet", "rules=p%(10"),
    "percentage above 0": ("sums.parquet", "rules=p%(0)"),
    "largest=5": ("sums.parquet", "rules=dominance(5, 80)"),
    "Did you mean 'interval'": ("counts.parquet", "secondary=interva"),
    "Did you mean 'max'": ("counts.parquet", "maxx=3"),
    "got 'three'": ("counts.parquet", "max=three"),
    "Take it out of one": ("counts.parquet", f"forced={BREAD}", f"forbidden={BREAD}"),
    "Did you mean 'bread'": ("counts.parquet", 'forced=[{"activity": "bred"}]'),
    "is a list of cells": ("counts.parquet", 'frozen={"activity": "bread"}'),
    "there is no file": ("nothing.parquet",),
}


@pytest.mark.parametrize("message", WRONG_METHODS)
def test_wrong_settings_of_suppression_are_explained_and_leave_no_file(folder, capsys, message):
    table, *settings = WRONG_METHODS[message]
    assert protect(table, "x.csv", *settings) == 2
    assert message in capsys.readouterr().err
    assert not list(folder.glob("x.*"))


WRONG_AUDITS = {
    "true counts and is marked confidential": ("sums.parquet",),
    "is a release, not a table": ("release.csv", "--table", "turnover.parquet"),
    "does not hold 'turnover'": ("turnover.parquet", "--table", "counts.parquet"),
    "there is no file": ("nothing.parquet",),
    "intervals must be one of": ("release.csv", "--intervals", "some"),
    "lone must be one of": ("release.csv", "--lone", "nobody"),
    "--workers": ("release.csv", "--workers", "0"),
    "unknown state 'x'": ("--table", "counts.parquet", "--labels", "letters.csv"),
    "Did you mean 'bread'": ("--table", "counts.parquet", "--labels", "codes.csv"),
}


@pytest.mark.parametrize("message", WRONG_AUDITS)
def test_what_cannot_be_audited_is_explained(folder, capsys, message):
    assert protect("counts.parquet", "release.csv") == 0
    assert protect("sums.parquet", "turnover.parquet", RULES) == 0
    (folder / "letters.csv").write_text("activity,region,status\nbread,hills,x\n")
    (folder / "codes.csv").write_text("activity,region,status\nbred,hills,p\n")
    assert run("audit", *WRONG_AUDITS[message]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("written", ["False", "no", "NO", "false"])
def test_what_is_written_as_false_means_false(folder, written):
    assert protect("counts.parquet", "release.parquet", "max=3", f"zeros={written}") == 0
    parameters = dc.facade.read_release("release.parquet").statement.steps[-1].parameters
    assert parameters["zeros"] is False
    assert protect("counts.parquet", "release.parquet", f"singletons={written}") == 0
    release = dc.facade.read_release("release.parquet")
    assert release.statement.says("lone-contributors")


@pytest.mark.parametrize("setting", ["zeros=0", "singletons=maybe", "zeros=nein"])
def test_what_is_neither_true_nor_false_is_refused(folder, capsys, setting):
    assert protect("counts.parquet", "release.parquet", setting) == 2
    assert "must be True or False" in capsys.readouterr().err


def test_indicators_are_linked(folder):
    firms = FIRMS.assign(domestic=FIRMS["turnover"] - 3, export=3)
    firms.to_csv("firms.csv", index=False)
    by = ("tabulate", "firms.csv", "--by", "indicator*activity", *SUMS, "--out", "linked.parquet")
    assert run(*by, "--link", "turnover = domestic + export") == 0
    assert dc.facade.read_table("linked.parquet").design.axes[0].total == "turnover"
    assert run(*by, "--link", "turnover = domestic") == 2


def test_the_custodian_is_told_what_is_hidden_and_why(folder, capsys):
    given = ("-s", RULES, "--out", "t.csv", "--show-kinds", "kinds.csv")
    assert run("protect", "sums.parquet", "--method", "suppress", *given) == 0
    shown = capsys.readouterr().out
    assert "Confidential." in shown
    assert "few-contributors(3):" in shown
    kinds = pd.read_csv("kinds.csv")
    assert (folder / "kinds.csv").stat().st_mode & 0o777 == 0o600
    hidden = pd.read_csv("t.csv")["status"] == "suppressed"
    assert (kinds["state"] != "published").sum() == hidden.sum()
    assert {"primary", "secondary"} <= set(kinds["state"])
    assert "primary" not in (folder / "t.csv").read_text()
    assert run("protect", "counts.parquet", "--method", "suppress", "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["side"] == "confidential"
    found = answer["confidential"]
    assert sum(found["levels"]["all cells"].values()) == 16
    assert run("protect", "counts.parquet", "--method", "suppress", "--show-kinds", "x.txt") == 2


def test_a_way_that_is_gone_is_said_on_one_line(folder, monkeypatch):
    told = []
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        show = lambda *given, **_: told.append(warnings.formatwarning(*given[:4]))  # noqa: E731
        monkeypatch.setattr(warnings, "showwarning", show)
        assert protect("counts.parquet", "t.csv", "secondary=gauss") == 0
    assert [line.partition(",")[0] for line in told] == ['note: secondary="gauss"']
    assert warnings.formatwarning("x", UserWarning, "file.py", 1).startswith("file.py:1")
