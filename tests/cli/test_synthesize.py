"""`discreet synthesize`: files in, synthetic files out, one clear line on bad input."""

import json

import pandas as pd
import pyarrow.parquet as pq
import pytest

from discreet import Secret
from discreet.cli import main
from tests.synthesize.people import lonely, people

PEOPLE = people(80)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    PEOPLE.to_parquet("people.parquet")
    PEOPLE.to_csv("people.csv", index=False)
    lonely(40).to_parquet("lonely.parquet")
    Secret.from_file("keys.secret", create=True)
    return tmp_path


def run(*arguments):
    with pytest.raises(SystemExit) as end:
        main(["synthesize", *arguments])
    return end.value.code


def test_records_become_synthetic(folder, capsys):
    arguments = ["people.parquet", "--model", "income + tax ~ age + region", "--method", "ipso"]
    arguments += ["--secret", "keys.secret", "--out", "synthetic.parquet"]
    assert run(*arguments, "--report", "preserved.html") == 0
    assert "What is preserved is disclosed" in capsys.readouterr().out
    made = pd.read_parquet("synthetic.parquet")
    assert list(made.columns) == list(PEOPLE.columns)
    assert made["income"].mean() == pytest.approx(PEOPLE["income"].mean(), rel=1e-12)
    assert (made["income"] != PEOPLE["income"]).all()
    assert (folder / "preserved.html").stat().st_mode & 0o077 == 0
    first = pq.read_table("synthetic.parquet")
    assert run(*arguments) == 0
    assert pq.read_table("synthetic.parquet").equals(first)


def test_the_report_tells_what_the_records_betray(folder):
    PEOPLE[:60].to_parquet("apart.parquet")
    arguments = ["people.parquet", "--model", "income + tax ~ age + region"]
    arguments += ["--report", "preserved.html", "--control", "apart.parquet", "--target", "sex"]
    assert run(*arguments) == 0
    page = (folder / "preserved.html").read_text()
    for name in ("membership-inference", "correct-attribution", "pmse-ratio"):
        assert name in page
    assert "control=" not in page
    assert "target=" not in page


def test_mixed_records_are_made_with_a_method_for_counts(folder):
    arguments = ["people.parquet", "--model", "income ~ region", "--method", "mixed"]
    arguments += ["-s", "counts=controlled-rounding", "--secret", "keys.secret"]
    assert run(*arguments, "--name", "people", "--out", "mixed.parquet") == 0
    assert set(pd.read_parquet("mixed.parquet").columns) == {"income", "region"}


def test_hybrid_options_and_parameters_reach_the_method(folder, capsys):
    arguments = ["people.parquet", "--model", "income ~ local(1) + shared(sex)"]
    arguments += ["--method", "hybrid", "--clusters", "8", "-s", "variant=c", "--json"]
    arguments += ["--large", "top-code", "--rule", "p%(5)", "--rule", "few-contributors(4)"]
    assert run(*arguments, "--out", "synthetic.csv", "--keep", "sex") == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["synthetic_columns"] == ["income"]
    assert "at least 8 similar records" in summary["statement"]
    assert "large values were cut" in summary["statement"]
    assert "(p%, few-contributors(4))" in summary["statement"]
    assert list(pd.read_csv("synthetic.csv").columns) == ["income", "sex"]


def test_numbers_of_a_csv_file_are_named_as_such(folder, capsys):
    model = "income ~ number(age) + region"
    assert run("people.csv", "--model", model, "--out", "synthetic.csv") == 0
    made = pd.read_csv("synthetic.csv")
    assert made["income"].mean() == pytest.approx(PEOPLE["income"].mean(), rel=1e-9)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["people.parquet", "--model", "income ~ agge"], "Did you mean 'age'"),
        (["people.parquet", "--model", "income"], "written as"),
        (["people.parquet", "--model", "income ~ age", "--method", "romm"], "lambda"),
        (["people.parquet", "--model", "income ~ age", "--method", "hybrid"], "--clusters"),
        (["people.parquet", "--model", "income ~ age", "--seed", "1"], "--secret"),
        (["people.parquet", "--model", "income ~ age", "--out", "x.xlsx"], "must end in"),
        (["people.parquet", "--model", "income ~ age", "--report", "x.pdf"], "must end in"),
        (
            [
                "people.parquet",
                "--model",
                "income ~ sex",
                "--method",
                "mixed",
                "--report",
                "x.html",
            ],
            "makes new ones",
        ),
        (["lonely.parquet", "--model", "income ~ region"], "--merge pool"),
    ],
)
def test_bad_input_ends_in_one_clear_line(folder, capsys, arguments, says):
    assert run(*arguments) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
