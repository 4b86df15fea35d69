"""`discreet attack`: the findings as text, as JSON and in a file; people who are certain."""

import json
import stat

import pytest

import discreet as dc
from tests.attack.weak_and_sound import crossed, plain
from tests.attacks.victims import country


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = country(mean=4.0)
    table.save("table.parquet")
    table.protect("cell-key").save("release.parquet")
    return tmp_path


def run(capsys, *words):
    from discreet.cli import main

    with pytest.raises(SystemExit) as ended:
        main(["attack", *words])
    return ended.value.code, capsys.readouterr().out


def test_findings_beside_guessing(files, capsys):
    words = ("release.parquet", "--truth", "table.parquet", "-a", "averages", "-a", "bounds")
    code, text = run(capsys, *words, "--out", "found.txt")
    assert code == 0
    assert "averages" in text
    assert "lift" in text
    written = files / "found.txt"
    assert written.read_text().startswith("CONFIDENTIAL")
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    found = json.loads(run(capsys, *words, "--json")[1])
    assert [row["attack"] for row in found["findings"]] == ["averages", "bounds"]


def test_people_who_are_certain_need_no_truth(files, capsys):
    code, text = run(capsys, "release.parquet", "--json")
    assert code == 0
    assert json.loads(text)["provably_fixed"] == 0
    table = crossed()
    found = dc.attack(None, plain(table))
    judged = dc.attack(table, plain(table), ["integer-reconstruction"], method=plain)
    assert found.provably_fixed == judged.provably_fixed > 0
    assert "are certain" in found.text
    with pytest.raises(dc.errors.ParameterError, match="true table"):
        dc.attack(None, plain(table), ["averages"])
