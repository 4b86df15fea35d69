"""`discreet audit`: a release alone, with its table, and a pattern of another program."""

import json

import pytest

import discreet as dc
from discreet import Secret
from tests.assess.audit.test_audit import LABELS, paper_table
from tests.commands import run


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = paper_table().with_secret(Secret.demo())
    table.save("table.parquet")
    table.protect("suppress", decimals="rmse").save("decimals.parquet")
    table.protect(dc.Suppress()).save("release.parquet")
    return tmp_path


def pattern_file(folder, left_out=()):
    lines = [f"{r},{c},{s}" for (r, c), s in LABELS.items() if (r, c) not in left_out]
    path = folder / "pattern.csv"
    path.write_text("\n".join(["row,col,status", *lines]))
    return path


@pytest.mark.parametrize("name", ["release.parquet", "decimals.parquet"])
def test_a_release_is_audited_with_and_without_its_table(folder, capsys, name):
    assert run("audit", name, "--json") == 0
    outside = json.loads(capsys.readouterr().out)
    assert run("audit", name, "--table", "table.parquet", "--lone", "signs", "--json") == 0
    inside = json.loads(capsys.readouterr().out)
    assert outside["is_clean"]
    assert inside["suppressed"] == outside["suppressed"] == 8


def test_a_pattern_of_another_program_is_audited(folder, capsys):
    pattern_file(folder, left_out=[(1, 2)])
    assert run("audit", "--table", "table.parquet", "--labels", "pattern.csv", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["disclosed"] == ["row=1, col=1", "row=2, col=2"]
    assert not found["is_clean"]
    assert run("audit", "--table", "table.parquet", "--labels", "pattern.csv") == 0
    assert "Confidential" in capsys.readouterr().out


def test_what_protect_shows_to_the_custodian_is_a_pattern(folder, capsys):
    words = ("protect", "table.parquet", "--method", "suppress", "--show-kinds", "kinds.csv")
    assert run(*words, "--out", "release.csv") == 0
    capsys.readouterr()
    assert run("audit", "release.csv", "--table", "table.parquet", "--json") == 0
    blind = json.loads(capsys.readouterr().out)  # a release does not say which cells are sensitive
    assert run("audit", "--table", "table.parquet", "--labels", "kinds.csv", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["suppressed"] == blind["suppressed"] > found["sensitive"] > 0
    assert blind["sensitive"] == blind["suppressed"]


def test_what_is_missing_is_said(folder, capsys):
    assert run("audit") != 0
    assert run("audit", "--labels", pattern_file(folder)) != 0
    assert "--table" in capsys.readouterr().err
    (folder / "odd.csv").write_text("row,status\n1,p\n")
    assert run("audit", "--labels", "odd.csv", "--table", "table.parquet") != 0
    assert "col" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no column"),
        ("row,col,status\n", "has no cells"),
        ("row,col,status\n1,1,p\n1,2\n", "line 3 of pattern.csv has 2 values"),
        ("row,col,status\n1,1,p\n1,2,s,s\n", "line 3 of pattern.csv has 4 values"),
        ("row,col,status\n1,1,p\n1,1,s\n", "names cell 1, 1 twice, with 'p' and 's'"),
    ],
)
def test_a_pattern_that_is_cut_off_empty_or_contradicts_itself_is_refused(
    folder, capsys, text, message
):
    (folder / "pattern.csv").write_text(text)
    assert run("audit", "--table", "table.parquet", "--labels", "pattern.csv") == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_pattern_from_a_spreadsheet_is_audited(folder, capsys):
    path = pattern_file(folder)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes() + b"\r\n\r\n")
    assert run("audit", "--table", "table.parquet", "--labels", "pattern.csv", "--json") == 0
    assert json.loads(capsys.readouterr().out)["suppressed"] == len(LABELS)
