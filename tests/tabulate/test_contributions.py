"""Magnitudes from records: sums, contributors, and the largest contributions of every cell."""

import ibis
import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.errors import DataError, DesignError, EngineError, ParameterError, UnknownNameError
from discreet.randomness import stream
from discreet.records import QueryEngine, tabulate
from discreet.records import tabulate as plan
from discreet.tables.magnitude import NOBODY
from discreet.testing import check_engine

FIRMS = pa.table(
    {
        "region": ["n", "n", "n", "s", "s", "s", "s"],
        "trade": ["x", "y", "x", "x", "x", "y", "y"],
        "firm": ["A", "A", "B", "A", "C", "C", "D"],
        "group": ["g", "g", None, "g", "g", "g", None],
        "turnover": [60.0, 50.0, 80.0, 10.0, 70.0, 0.0, 5.0],
        "w": [1.0, 1.0, 2.0, 1.0, 1.0, 1.0, 1.0],
        "county": ["n1", "n2", "n1", "s1", "s1", "s1", "s1"],
    }
)
VALUE = {"value": "turnover", "contributor": "firm"}


def cell(table, **codes):
    """Sum, number of contributors and largest contributions of a cell, with whose they are."""
    given, k = table.contributions, table.design.position(codes)
    owners = [None if i == NOBODY else given.owners[i] for i in given.owner[k]]
    return given.sum[k], given.count[k], given.largest[k].tolist(), owners


def test_the_largest_of_a_margin_are_not_those_of_its_cells(place):
    table = place.tabulate(FIRMS, "region*trade", **VALUE)
    assert cell(table, region="n", trade="x") == (140.0, 2, [80.0, 60.0, 0.0], ["B", "A", None])
    assert cell(table, region="n") == (190.0, 2, [110.0, 80.0, 0.0], ["A", "B", None])
    assert cell(table) == (275.0, 4, [120.0, 80.0, 70.0], ["A", "B", "C"])


def test_contributions_of_zero_do_not_count(place):
    table = place.tabulate(FIRMS, "region*trade", **VALUE)
    assert cell(table, region="s", trade="y") == (5.0, 1, [5.0, 0.0, 0.0], ["D", None, None])
    assert table.z[table.design.position({"region": "s", "trade": "y"})] == 2


def test_contributors_of_one_holding_count_as_one(place):
    table = place.tabulate(FIRMS, "region*trade", **VALUE, holding="group")
    assert cell(table) == (275.0, 3, [190.0, 80.0, 5.0], ["g", "B", "D"])


def test_a_contributor_named_like_a_holding_is_another(place):
    group = pa.array(["B", "B", None, "B", "B", "B", None])
    frame = FIRMS.set_column(3, "group", group)
    table = place.tabulate(frame, "region", **VALUE, holding="group", largest=2)
    assert cell(table)[3] == ["B", "B (no holding)"]


def test_weights_multiply_values(place):
    table = place.tabulate(FIRMS, "region*trade", roles={"weight": "w"}, **VALUE)
    assert cell(table, region="n") == (270.0, 2, [160.0, 110.0, 0.0], ["B", "A", None])
    assert table.contributions.is_weighted


def test_bounds_of_weights_and_records_hold_for_contributions(place):
    numbered = FIRMS.append_column("id", [[1, 2, 3, 4, 5, 6, 7]])
    people = place.people(numbered, weight="w", id="id")
    people = people.with_roles(weight_bound=1.5, person="firm", max_records=2)
    table = people.tabulate("region", engine=place.engine, **VALUE)
    assert cell(table, region="n") == (230.0, 2, [120.0, 110.0, 0.0], ["B", "A", None])
    assert cell(table, region="s") == (75.0, 2, [70.0, 5.0, 0.0], ["C", "D", None])


def test_negative_values_are_refused_or_judged_by_their_size(place):
    turnover = pa.array([60.0, 50.0, -80.0, 10.0, 70.0, 0.0, 5.0])
    frame = FIRMS.set_column(4, "turnover", turnover)
    with pytest.raises(DataError, match="negative='absolute'"):
        place.tabulate(frame, "region", **VALUE)
    table = place.tabulate(frame, "region", **VALUE, negative="absolute")
    assert cell(table, region="n") == (30.0, 2, [110.0, 80.0, 0.0], ["A", "B", None])
    assert table.contributions.published.absolute[table.design.position({"region": "n"})] == 190.0
    assert table.contributions.may_be_negative


def test_levels_of_hierarchies_have_contributions_of_their_own(place):
    tree = dc.Hierarchy.from_dict({"All": {"n": ["n1", "n2"], "s": ["s1"]}})
    table = place.tabulate(FIRMS, "county*trade", hierarchies={"county": tree}, **VALUE)
    assert cell(table, county="n") == (190.0, 2, [110.0, 80.0, 0.0], ["A", "B", None])
    inner = table.contributions.inner
    k = table.design.inner_position({"county": "n2", "trade": "y"})
    assert inner.lone[k] == table.contributions.owners.index("A")
    np.testing.assert_allclose(table.design.aggregate(inner.sum), table.contributions.sum)


def test_branches_of_unequal_depth(place):
    tree = dc.Hierarchy.from_dict({"All": {"n": ["n1", "n2"], "s1": []}})
    table = place.tabulate(FIRMS, "county", hierarchies={"county": tree}, **VALUE)
    inner = table.contributions.inner
    assert inner.sum.tolist() == [140.0, 50.0, 85.0]
    assert inner.count.tolist() == [2, 1, 3]


def test_inner_cells_that_are_not_published_are_asked_for(place):
    table = place.tabulate(FIRMS, "region + trade", **VALUE)
    assert table.contributions.inner.count.tolist() == [2, 1, 2, 1]
    assert table.contributions.inner.largest[:, 0].tolist() == [80.0, 50.0, 70.0, 5.0]


def test_recodes_reach_contributions(place):
    people = place.people(FIRMS).recode(county={"n1": "N", "n2": "N"})
    table = people.tabulate("county", engine=place.engine, **VALUE)
    assert cell(table, county="N") == (190.0, 2, [110.0, 80.0, 0.0], ["A", "B", None])


def test_the_id_is_the_contributor_unless_one_is_named(place):
    table = place.tabulate(FIRMS, "region", roles={"id": "firm"}, value="turnover")
    assert cell(table, region="n")[1] == 2


def test_missing_names_and_roles_are_told(place):
    people = place.people(FIRMS)
    with pytest.raises(ParameterError, match="whose each record is: name the column"):
        people.tabulate("region", value="turnover")
    with pytest.raises(ParameterError, match="name the value as well"):
        people.tabulate("region", contributor="firm")
    with pytest.raises(UnknownNameError, match="Did you mean 'turnover'"):
        people.tabulate("region", value="turnovr", contributor="firm")
    with pytest.raises(ParameterError, match="largest must be at least 2"):
        people.tabulate("region", **VALUE, largest=1)
    with pytest.raises(ParameterError, match="different columns"):
        people.tabulate("region", value="firm", contributor="firm")
    with pytest.raises(ParameterError, match="'refuse' or 'absolute'"):
        people.tabulate("region", **VALUE, negative="keep")


def test_frames_give_the_same_contributions_without_an_engine(place):
    rng = stream(3, "contributions of frames")
    n = 400
    frame = pa.table(
        {
            "a": rng.integers(0, 4, n),
            "b": pa.array(["p", "q", "r"]).take(rng.integers(0, 3, n)),
            "who": rng.integers(0, 40, n),
            "x": np.round(rng.lognormal(2, 2, n), 2),
            "w": rng.integers(1, 4, n),
        }
    )
    roles = {"value": "x", "contributor": "who", "largest": 4}
    here = dc.Table.from_contributions(frame, "a*b", weight="w", support="occurring", **roles)
    there = place.tabulate(frame, "a*b", roles={"weight": "w"}, support="occurring", **roles)
    for ours, theirs in (
        (here.contributions.published, there.contributions.published),
        (here.contributions.inner, there.contributions.inner),
    ):
        for part in ("sum", "absolute", "count", "largest", "owner"):
            np.testing.assert_allclose(getattr(ours, part), getattr(theirs, part))
    assert here.contributions.owners == there.contributions.owners
    np.testing.assert_array_equal(here.z, there.z)


class KnowsHalf(QueryEngine):
    """Sees half of what a contributor gives, as if it were split over two cells."""

    def contributions(self, data, of, groups):
        answer = super().contributions(data, of, groups)
        alone = answer.column("x").to_numpy() / 2
        return answer.set_column(answer.column_names.index("x"), "x", pa.array(alone))


class CountsZeros(QueryEngine):
    """Counts contributors of nothing."""

    def contributions(self, data, of, groups):
        answer = super().contributions(data, of, groups)
        more = pa.array(answer.column("n").to_numpy() + 1)
        return answer.set_column(answer.column_names.index("n"), "n", more)


class ForgetsHoldings(QueryEngine):
    """Takes every contributor for itself."""

    def contributions(self, data, of, groups):
        return super().contributions(data, type(of)(of.value, of.contributor), groups)


class Hopes(QueryEngine):
    """Does not look at the values."""

    def value_facts(self, data, of):
        facts = super().value_facts(data, of)
        return type(facts)(facts.records, facts.records, facts.records, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("liar", "case"),
    [
        (KnowsHalf, "contributions"),
        (CountsZeros, "whole contributions"),
        (ForgetsHoldings, "contributions of holdings"),
        (Hopes, "negative value"),
        (Hopes, "missing contributor"),
    ],
)
def test_the_battery_catches_engines_that_lie_about_contributions(liar, case):
    with pytest.raises(EngineError, match=case):
        check_engine(ibis.duckdb.connect(), engine=liar(), cases=[case])


@pytest.mark.slow
def test_tables_too_large_for_inner_cells_have_contributions_to_their_margins(place, monkeypatch):
    whole = place.tabulate(FIRMS, "region*trade + trade*county", **VALUE)
    for module in (plan, tabulate):
        monkeypatch.setattr(module, "HELD", 0)
    monkeypatch.setattr(plan, "_AFFORDABLE", 0)
    table = place.tabulate(FIRMS, "region*trade + trade*county", **VALUE)
    assert table.inner is None
    assert table.contributions.inner is None
    for codes in ({}, {"region": "n"}, {"trade": "x", "county": "n1"}):
        assert cell(table, **codes) == cell(whole, **codes)
    with pytest.raises(DesignError, match="published cells only"):
        table.contributions.require_inner()
