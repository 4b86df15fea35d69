"""The commands `assess` and `compare`."""

import json

import pytest

import discreet as dc
from discreet.cli.options import finite_rows
from discreet.frames import Frame
from discreet.parquet import read_parquet
from tests.assess import party
from tests.assess.helpers import weighted_table
from tests.commands import run

METHODS = ["--method", "cell-key:D=5,V=3,js=2,margins=summed", "--method", "pram:margins=summed"]
QUICK = ["-m", "unchanged-cells", "-m", "hellinger-utility", "--replicates", "3"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = party.table()
    table.save("table.parquet")
    party.RELEASES["ckm"].save("release.parquet")
    return tmp_path


def failed(capsys, *arguments):
    assert run(*arguments) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("error: ")
    assert len(shown.strip().splitlines()) == 1
    return shown


def test_assess_prints_risk_and_utility(folder, capsys):
    assert run("assess", "table.parquet", "release.parquet", "--sensitive", "party") == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Assessment (confidential)")
    assert "party given age, sex  0.5556" in shown


def test_assess_speaks_json(folder, capsys):
    dc.perturbation_table(D=5, V=3, js=2).to_ptable_csv("ptable.csv")
    assert run("assess", "table.parquet", "release.parquet", "--json", "--ptable", "ptable.csv",
               "-m", "mechanism-delta", "-m", "unchanged-small-cells",
               "-s", "small=3") == 0  # fmt: skip
    answer = json.loads(capsys.readouterr().out)
    assert answer["side"] == "confidential"
    assert [s["measure"] for s in answer["scores"]] == ["mechanism-delta", "unchanged-small-cells"]
    assert all(s["value"] is not None for s in answer["scores"])


def test_assess_refuses_what_it_cannot_use(folder, capsys):
    assert "'party'" in failed(
        capsys, "assess", "table.parquet", "release.parquet", "--sensitive", "partei"
    )
    assert "unchanged-cells" in failed(
        capsys, "assess", "table.parquet", "release.parquet", "-m", "unchanged-cell"
    )
    assert "release" in failed(capsys, "assess", "release.parquet", "table.parquet")


def test_compare_prints_a_table_and_writes_confidential_files(folder, capsys):
    code = run("compare", "table.parquet", *METHODS, *QUICK, "--seed", 2,
               "--report", "out.html", "--plot", "map.svg", "--out", "scores.parquet",
               "--threshold", "unchanged-cells=0.9")  # fmt: skip
    assert code == 0
    shown = capsys.readouterr().out
    assert "Comparison (confidential): 2 methods, 3 draws each" in shown
    assert "recommendation: cell-key" in shown or "recommendation: pram" in shown
    assert "written (confidential): out.html" in shown
    for name in ("out.html", "map.svg", "scores.parquet"):
        assert (folder / name).stat().st_mode & 0o777 == 0o600
    scores = read_parquet("scores.parquet")
    assert set(scores["measure"].to_pylist()) == {"unchanged-cells", "hellinger-utility"}
    again = dc.compare(
        dc.facade.read_table("table.parquet"),
        [m for m in METHODS if m != "--method"],
        measures=["unchanged-cells", "hellinger-utility"],
        replicates=3,
        seed=2,
    )
    assert scores == again.frame


def test_compare_speaks_json(folder, capsys):
    assert run("compare", "table.parquet", *METHODS, *QUICK[:-1], "1", "--json",
               "--out", "scores.csv") == 0  # fmt: skip
    answer = json.loads(capsys.readouterr().out)
    assert answer["files"] == ["scores.csv"]
    assert {s["label"] for s in answer["scores"]} == {
        "cell-key D=5 V=3 js=2 margins=summed",
        "pram margins=summed",
    }


@pytest.mark.parametrize("measure", ["unchanged-cells", "hellinger-utility"])
def test_compare_shows_what_there_is_of_risk_and_utility(folder, capsys, measure):
    assert run("compare", "table.parquet", *METHODS, "-m", measure, "--replicates", 2) == 0
    shown = capsys.readouterr().out
    assert shown.count("95 % range") == 1
    assert measure in shown
    assert len(shown.strip().splitlines()) == 6


def test_compare_tunes_to_equal_risk_and_goes_on(folder, capsys):
    command = ["compare", "table.parquet", "--method", "laplace:epsilon=1", *QUICK,
               "--equal-risk", "unchanged-cells@published=0.3", "--resume", "kept"]  # fmt: skip
    assert run(*command) == 0
    first = capsys.readouterr().out
    assert "the target is 0.3" in first
    assert run(*command) == 0
    assert capsys.readouterr().out == first


def test_compare_takes_the_unit_of_a_table_with_weights(folder, capsys):
    weighted_table().save("weighted.parquet")
    command = ["compare", "weighted.parquet", "--method", "drop-add:grid=10", "--method",
               "laplace:epsilon=1", "-m", "hellinger-utility", "--replicates", 2]  # fmt: skip
    assert "--unit" in failed(capsys, *command)
    assert run(*command, "--unit", "weight", "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert {s["on"] for s in answer["scores"]} == {"published weights"}


ONE_RISK = ["--replicates", "1", "--equal-risk", "exact-disclosure-own=0.5"]
WRONG = {
    "method": (["--method", "prom"], "'pram'"),
    "parameter": (["--method", "pram:alpa=1"], "alpha"),
    "value": (["--method", "pram:alpha"], "NAME=VALUE"),
    "report": (["--method", "pram", "--report", "out.pdf"], ".html"),
    "plot": (["--method", "pram", "--plot", "out.pdf"], ".svg"),
    "out": (["--method", "pram", "--out", "out.xlsx"], ".parquet"),
    "folder": (["--method", "pram", "--report", "none/out.html"], "no directory none"),
    "strength": (["--method", "laplace"], "needs a value of epsilon"),
    "twice": (["--method", "pram", "--method", "pram"], "change a parameter"),
    "threshold": (["--method", "pram", "--threshold", "unchanged-cells=low"], "number"),
    "threshold's measure": (["--method", "pram", "--threshold", "uniqueness=0"], "uniqueness"),
    "equal risk": (["--method", "pram", *ONE_RISK], "--sensitive"),
    "replicates": (["--method", "pram", "--replicates", "0"], "replicates"),
}


@pytest.mark.parametrize(("arguments", "words"), WRONG.values(), ids=WRONG)
def test_wrong_input_is_one_clear_line_and_leaves_nothing(folder, capsys, arguments, words):
    before = sorted(p.name for p in folder.iterdir())
    assert words in failed(capsys, "compare", "table.parquet", *arguments)
    assert sorted(p.name for p in folder.iterdir()) == before


def test_json_has_no_infinite_numbers():

    rows = finite_rows(Frame({"a": [1.5, float("inf"), float("nan")], "b": ["x", None, "y"]}))
    assert [row["a"] for row in rows] == [1.5, None, None]
