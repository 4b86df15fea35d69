import pytest

from discreet import margins
from discreet.design.formula import parse
from discreet.errors import ParameterError


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("a", {("a",), ()}),
        ("a*b", {("a", "b"), ("a",), ("b",), ()}),
        ("a:b", {("a", "b")}),
        ("a*b + c", {("a", "b"), ("a",), ("b",), ("c",), ()}),
        ("a:b + 1", {("a", "b"), ()}),
        ("a*b - 1", {("a", "b"), ("a",), ("b",)}),
        ("a*b - a", {("a", "b"), ("b",), ()}),
        ("(a + b):c", {("a", "c"), ("b", "c")}),
        ("(a + b)*c", {("a", "c"), ("b", "c"), ("a",), ("b",), ("c",), ()}),
        ("a*b*c", {("a", "b", "c"), ("a", "b"), ("a", "c"), ("b", "c"), *"abc", ()}),
        ("a*a", {("a",), ()}),
        ("region[county]*sex", {("region[county]", "sex"), ("region[county]",), ("sex",), ()}),
        ("`my column`:b", {("my column", "b")}),
        ("größe*år", {("größe", "år"), ("größe",), ("år",), ()}),
        ("1", {()}),
    ],
)
def test_a_formula_names_its_margins(formula, expected):
    assert set(parse(formula)) == {(t,) if isinstance(t, str) else t for t in expected}


@pytest.mark.parametrize(
    "formula", ["", "a +", "a ** b", "(a + b", "a b", "a & b", "*a", "a - a - 1", ")"]
)
def test_a_formula_that_cannot_be_read_is_refused_with_an_example(formula):
    with pytest.raises(ParameterError, match="region"):
        parse(formula)


def test_tuples_are_taken_exactly():
    assert parse([("a", "b"), ()]) == [("a", "b"), ()]
    assert parse(["a", ("b",), "a"]) == [("a",), ("b",)]


def test_tuples_may_not_repeat_a_variable_or_be_absent():
    with pytest.raises(ParameterError, match="twice"):
        parse([("a", "a")])
    with pytest.raises(ParameterError, match="total alone"):
        parse([])


def test_margins_lists_all_of_an_order():
    assert margins("abc", 2) == [
        ("a", "b"), ("a", "c"), ("b", "c"), ("a",), ("b",), ("c",), (),
    ]  # fmt: skip
    assert margins("abc", 2, lower=False) == [("a", "b"), ("a", "c"), ("b", "c")]
    with pytest.raises(ParameterError, match="order"):
        margins("abc", 4)
