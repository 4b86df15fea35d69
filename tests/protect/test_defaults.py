"""Methods run without parameters, and one text names a method with its parameters everywhere."""

import json

import pyarrow as pa
import pytest

import discreet as dc
from discreet import registry
from discreet.cli import main
from discreet.cli.methods import describe
from discreet.publication import Publication
from tests.protect.methods import FOR_COUNTS

NEEDS_A_BUDGET = ("discrete-gaussian", "discrete-laplace", "laplace")
TEXT = "cell-key:D=4,V=2.5,js=2"


@pytest.fixture(scope="module")
def table():
    design = dc.Design.product({"a": 3, "b": 4}, "a*b")
    return dc.Table.from_inner(design, [0, 1, 2, 3, 7, 9, 0, 4, 20, 1, 1, 5])


@pytest.mark.parametrize("name", [n for n in FOR_COUNTS if n not in NEEDS_A_BUDGET])
def test_every_method_runs_without_parameters(name, table):
    table.simulate(name, seed=1)
    table.simulate(
        registry.load("method", name)(**({} if name not in WRAPPING else WRAPPED)), seed=1
    )


WRAPPING = ("adjust", "quality")
WRAPPED = {"method": dc.CellKey()}


@pytest.mark.parametrize("name", NEEDS_A_BUDGET)
def test_a_private_method_needs_its_budget_and_nothing_else(name, table):
    with pytest.raises(dc.DiscreetError, match="epsilon"):
        table.simulate(name, seed=1)
    more = {"delta": 1e-9} if name == "discrete-gaussian" else {}
    table.simulate(name, seed=1, epsilon=1, **more)


def test_the_same_text_works_wherever_a_method_is_named(table, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    expected = registry.build("method", "cell-key", {"D": 4, "V": 2.5, "js": 2})
    assert registry.build("method", TEXT).matrix.parameters == expected.matrix.parameters
    assert (table.simulate(TEXT, seed=1).z == table.simulate(expected, seed=1).z).all()
    assert dc.compare(table, [TEXT], replicates=2, seed=1).frame.num_rows
    recipe = Publication.from_dict({"tabulate": {"margins": "a"}, "protect": {"method": TEXT}})
    assert registry.build("method", recipe.method.name).matrix.parameters["V"] == 2.5
    people = pa.table({"id": [*range(30)], "a": list("xyz") * 10})
    dc.open(people, id="id", secret="k.secret").tabulate("a").save("t.parquet")
    with pytest.raises(SystemExit, match="0"):
        main(["protect", "t.parquet", "--method", TEXT, "--secret", "k.secret", "--out", "r.csv"])
    with pytest.raises(SystemExit, match="0"):
        main(["assess", "t.parquet", "r.csv", "--measure", "mechanism-epsilon", "--json"])
    shown = capsys.readouterr().out.splitlines()[-1]
    (score,) = json.loads(shown)["scores"]
    truth, release = dc.read("t.parquet"), dc.read("r.csv")
    given = dc.assess(truth, release, ["mechanism-epsilon"], mechanism=expected.matrix)
    assert score["note"] is None
    assert (score["value"] or float("inf")) == given.scores[0].value


def test_a_parameter_said_twice_is_refused(table):
    with pytest.raises(dc.DiscreetError, match="two values of 'D'"):
        table.simulate("cell-key:D=4,V=2.5,js=2", seed=1, D=5)
    with pytest.raises(dc.DiscreetError, match="NAME=VALUE"):
        table.simulate("cell-key:D", seed=1)


def test_every_name_is_described_with_its_parameters(capsys):
    for kind in ("method", "fitter", "matrix", "rule"):
        for name in registry.names(kind):
            found = describe(kind, name)
            assert found.summary
    shown = str(describe("method", "cell-key"))
    assert "preset no-small-counts: D=5, V=3, js=2; Langsrud & Lupp (2021)" in shown
    assert "V (default none): Variance of the noise." in shown
    with pytest.raises(SystemExit, match="0"):
        main(["methods", "--json"])
    assert set(json.loads(capsys.readouterr().out)["methods"]) >= set(registry.METHODS)
    with pytest.raises(SystemExit, match="2"):
        main(["methods", "cel-key"])
    assert "cell-key" in capsys.readouterr().err


def test_the_list_of_what_can_be_chosen_is_for_a_terminal_and_tells_names_apart(capsys):
    with pytest.raises(SystemExit):
        main(["methods", "--json"])
    listed = json.loads(capsys.readouterr().out)
    said = [text for names in listed.values() for text in names.values()]
    assert [text for text in said if "\\" in text] == []  # formulas are for other pages
    assert len(set(listed["measures"].values())) == len(listed["measures"])
