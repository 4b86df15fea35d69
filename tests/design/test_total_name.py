"""The total has one name, 1, wherever margins are named."""

import pytest

import discreet as dc
from discreet.design.formula import parse, single_margins, term_of
from discreet.errors import ParameterError, UnknownNameError
from discreet.protect import SeededDraws


@pytest.fixture
def table():
    frame = {"region": ["a", "a", "b", "b"], "sex": ["m", "f"] * 2, "count": [40, 30, 20, 10]}
    return dc.Table.from_counts(frame, "count", "region*sex", declared=True)


@pytest.mark.parametrize("total", ["1", 1, [1], ["1"], [()], [" 1 "]])
def test_the_total_is_known_under_one_name(table, total):
    made = dc.DiscreteLaplace(epsilon=0.1, known=total)(table, draws=SeededDraws(3))
    assert made.z[-1] == 100
    assert made.statement.steps[-1].parameters["known"] == ["1"]


@pytest.mark.parametrize("known", [["region", "1"], ["region", 1], [("region",), ()]])
def test_margins_may_be_listed_with_the_total(table, known):
    made = dc.DiscreteLaplace(epsilon=0.1, known=known)(table, draws=SeededDraws(3))
    assert [made.z[table.design.position({"region": r})] for r in "ab"] == [70, 30]
    assert made.statement.steps[-1].parameters["known"] == ["region", "1"]


@pytest.mark.parametrize("exact", ["1", 1, ["1"], [()]])
def test_the_total_is_exact_under_the_same_name(table, exact):
    z = table.z + 5
    fit = dc.NonNegative(exact=exact)(table.design, z)
    assert fit.z[-1] == pytest.approx(z[-1], abs=fit.certificate.tolerance)


def test_lists_of_margins_read_like_formulas():
    assert parse(["region:sex", "1"]) == [("region", "sex"), ()]
    assert term_of(("a:b",)) == ("a:b",)
    assert single_margins("region : sex") == (("region", "sex"),)


@pytest.mark.parametrize("name", ["total", "Total", "_T", "all"])
def test_other_names_of_the_total_are_refused_with_the_right_one(table, name):
    with pytest.raises(ParameterError, match="the total is '1'"):
        dc.DiscreteLaplace(epsilon=0.1, known=[name])(table, draws=SeededDraws(3))
    with pytest.raises(ParameterError, match="the total is '1'"):
        dc.NonNegative(exact=[name])(table.design, table.z)
    with pytest.raises(ParameterError, match="the total is '1'"):
        dc.open({"region": ["a"]}).tabulate(["region", name])


@pytest.mark.parametrize("margin", [0, 2, 1.5, None, True])
def test_what_names_no_margin_is_refused(margin):
    with pytest.raises(ParameterError, match="the total by 1"):
        term_of(margin)


def test_an_unknown_variable_is_still_an_unknown_name(table):
    with pytest.raises(UnknownNameError, match="region"):
        dc.NonNegative(exact=["regoin"])(table.design, table.z)
