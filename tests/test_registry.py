"""Names become objects: plain data, nested or flat, and what is refused."""

import inspect
from typing import Annotated

import pytest

import discreet as dc
from discreet import registry
from discreet.cli.options import LedgerOptions, RecordOptions, with_options
from discreet.errors import ParameterError, UnknownNameError
from discreet.recipe import Choice, Recipe

TABLE = {"D": 5, "V": 3, "js": 2}
NESTED = {"matrix": {"name": "perturbation-table", **TABLE}}
METHOD = dc.CellKey(dc.perturbation_table(**TABLE))


@pytest.mark.parametrize(
    "given",
    [
        {"name": "cell-key", **NESTED},
        {"name": "cell-key", **TABLE},
        {"name": "cell-key", "matrix": "perturbation-table", **TABLE},
        {"name": "cell-key", "matrix": METHOD.matrix},
    ],
)
def test_a_part_is_a_name_with_parameters_nested_data_or_an_object(given):
    assert registry.build("method", given) == METHOD


def test_parameters_are_handed_on_through_every_part():
    flat = registry.build("method", "adjust", {**TABLE, "threshold": None, "min_count": 3})
    assert flat == dc.Adjust(METHOD, min_count=3)
    within = {"name": "quality", "method": {"name": "drop-add", "cap": 3}, "keep": 0.4}
    assert registry.build("method", within) == dc.protect.Quality(dc.DropAdd(cap=3), keep=0.4)


def test_a_part_that_may_be_absent_stays_absent():
    assert registry.build("method", "pram", {"matrix": None}) == dc.Pram()
    assert registry.build("method", "pram", {"matrix": "drop-add", "share": 0.1}).law.name != (
        dc.Pram().law.name
    )


def test_several_parts_are_a_list_and_texts_with_brackets_are_read_by_the_method():
    rules = ["p%(10)", {"name": "threshold", "max": 2, "zeros": True}, "dominance"]
    built = registry.build("method", "suppress", {"rules": rules})
    assert built.rules == (
        dc.rules.PPercent(10),
        dc.rules.Threshold(2, zeros=True),
        dc.rules.Dominance(),
    )
    assert registry.build("method", "suppress", {"max": 5}).rules == (dc.rules.Threshold(5),)
    assert registry.build(
        "method", "suppress", {"decimals": "none"}
    ).decimals == dc.suppress.Decimals("none")
    links = ["least-absolute", {"name": "log-linear", "tolerance": 1e-3}]
    chain = registry.build("fitter", {"name": "chain", "fitters": links})
    assert [link.tolerance for link in chain.fitters] == [dc.LeastAbsolute().tolerance, 1e-3]


@pytest.mark.parametrize(
    ("method", "parameters", "words"),
    [
        ("cell-key", {**TABLE, "thresold": 10}, "method 'cell-key' 'thresold'.*'threshold'"),
        ("cell-key", {"matrix": METHOD.matrix, "D": 5}, "method 'cell-key' 'D'"),
        ("adjust", {"method": dc.DropAdd(), "cap": 3}, "method 'adjust' 'cap'"),
        ("adjust", {"method": "drop-ad"}, "unknown method 'drop-ad'.*'drop-add'"),
        ("suppress", {"rules": "p%(10)", "max": 3}, "method 'suppress' 'max'"),
        ("drop-add", {"D": 5}, "method 'drop-add' 'D'"),
    ],
)
def test_a_name_that_nothing_answers_to_is_never_ignored(method, parameters, words):
    with pytest.raises(UnknownNameError, match=words):
        registry.build("method", method, parameters)


@pytest.mark.parametrize(
    ("method", "parameters", "words"),
    [
        ("adjust", {"parameters": TABLE}, 'method={"name": "drop-add"'),
        ("cell-key", {"ptable": "p.csv"}, '"path": "ptable.csv"'),
        ("suppress", {"sensitive_zeros": True}, "threshold.3, zeros"),
        ("cell-key", {"matrix": TABLE}, 'matrix as plain data needs a "name"'),
        ("cell-key", {"D": 5}, "D=5 needs the variance V= as well"),
        ("cell-key", {**NESTED, "D": 7}, "'perturbation-table' has two values of 'D'"),
    ],
)
def test_what_cannot_be_built_is_said_with_what_to_write(method, parameters, words):
    with pytest.raises(ParameterError, match=words):
        registry.build("method", method, parameters)


def test_recipes_hold_nested_data(tmp_path):
    recipe = Recipe("a*b", Choice("cell-key", NESTED))
    read = Recipe.read(recipe.write(tmp_path / "recipe.toml"))
    assert read == recipe
    recipe.to_dict()["protect"]["parameters"]["matrix"]["D"] = 7
    assert read == recipe
    assert registry.build("method", read.method.name, read.method.parameters) == METHOD


def test_an_options_object_becomes_options_in_the_order_that_is_asked_for():
    seen = []

    @with_options
    def command(
        *,
        source: str,
        book: LedgerOptions,
        records: Annotated[RecordOptions, ("id", "weight")],
        more: int = 3,
    ) -> None:
        """Do something."""
        seen.append((source, book, records, more))

    names = list(inspect.signature(command).parameters)
    budget = ["ledger", "budget", "budget_delta", "budget_relation", "again"]
    assert names == ["source", *budget, "id", "weight", "more"]
    given = dict.fromkeys(names[1:4]) | {"again": True, "id": "pid", "weight": None}
    given["budget_relation"] = "add-remove"
    command(source="x", **given, more=4)
    assert seen == [("x", LedgerOptions(again=True), RecordOptions(id="pid"), 4)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("false", False),
        ("False", False),
        ("NO", False),
        ("True", True),
        ("yes", True),
        ('"no"', "no"),
        ("[1, 2]", [1, 2]),
        ("p%(10)", "p%(10)"),
        ("none", "none"),
    ],
)
def test_values_are_read_as_they_are_written(text, value):
    found = registry.plain_value(text)
    assert found == value
    assert type(found) is type(value)
