import itertools
from dataclasses import replace

import numpy as np
import pytest

import discreet as dc
from discreet import Table, registry
from discreet.errors import DataError, DesignError, ParameterError, UnknownNameError
from discreet.tables import CellStatus
from discreet.testing import check_method
from tests.protect.suppress.reference import disclosed, told
from tests.protect.suppress.test_positive import widths
from tests.protect.tables import SECRET, party


def table():
    return party("party*age*sex")


def test_a_release_shows_the_truth_or_nothing():
    release = table().protect("suppress", max=3)
    hidden = release.status == CellStatus.suppressed
    assert hidden.any()
    assert (release.z[hidden] == 0).all()
    assert (release.z[~hidden] == table().z[~hidden]).all()
    assert release.to_pandas()["count"].isna().sum() == hidden.sum()


def test_the_statement_says_what_the_pattern_tells():
    release = table().protect(dc.Suppress(dc.rules.Threshold(3)))
    assert release.statement.says("pattern-tells")
    assert release.statement.says("not-derivable")
    assert "linear combination" in release.statement.text
    assert "hidden" in release.statement.plain
    assert "drawn anew" not in release.statement.text


@pytest.mark.parametrize(
    "method",
    [
        dc.Suppress(dc.rules.Threshold(3)),
        dc.Suppress(dc.rules.Threshold(2, zeros=True), singletons=False),
        dc.Suppress([dc.rules.Threshold(2), dc.rules.DirectDisclosure(1), dc.rules.KDisclosure(1)]),
        dc.Suppress(dc.rules.GroupDisclosure(0.8), cost="cells"),
    ],
    ids=["threshold", "zeros", "several", "group"],
)
def test_suppression_keeps_what_it_claims(method):
    found = check_method(method)
    assert found["neighbour"] == "exempt: the statement says so"
    assert found["source"] == "exempt: no value is drawn"


def test_forced_cells_are_shown_and_forbidden_ones_are_not():
    forced, forbidden = {"party": "B", "age": "middle", "sex": "m"}, {"age": "middle"}
    method = dc.Suppress(dc.rules.Threshold(3), forced=[forced], forbidden=[forbidden])
    pattern = method.pattern(table())
    assert not pattern.suppressed[pattern.position(forced)]
    assert pattern.suppressed[pattern.position(forbidden)]
    assert not pattern.primary[pattern.position(forbidden)]
    assert disclosed(pattern, zeros_are_public=True) == []


def test_frozen_cells_do_not_protect_others():
    free = dc.Suppress(dc.rules.Threshold(3)).pattern(table())
    chosen = free.cells(free.secondary)[0]
    pattern = dc.Suppress(dc.rules.Threshold(3), frozen=[chosen]).pattern(table())
    assert not pattern.suppressed[pattern.position(chosen)]
    assert disclosed(pattern, zeros_are_public=True) == []
    assert told(pattern) == []


def test_a_factor_on_its_cost_keeps_a_cell_shown():
    free = dc.Suppress(dc.rules.Threshold(3)).pattern(table())
    chosen = free.cells(free.secondary)[0]
    pattern = dc.Suppress(dc.rules.Threshold(3), priorities=[(chosen, 1000)]).pattern(table())
    assert not pattern.suppressed[pattern.position(chosen)]


def test_a_cell_both_forced_and_forbidden_is_named():
    cell = {"party": "A", "sex": "m"}
    with pytest.raises(ParameterError, match="cell party=A, sex=m is forbidden, but also"):
        dc.Suppress(forced=[cell], forbidden=[cell]).pattern(table())


def test_unknown_options_and_cells_are_named():
    with pytest.raises(UnknownNameError, match="unknown secondary suppression 'gaus'"):
        dc.Suppress(secondary="gaus")
    with pytest.raises(UnknownNameError, match="unknown cost 'size'"):
        dc.Suppress(cost="size")
    with pytest.raises(ParameterError, match="given by their codes"):
        dc.Suppress(forced=["A"])
    with pytest.raises(ParameterError, match="rules such as Threshold"):
        dc.Suppress(3)
    with pytest.raises(DesignError, match="not among the published cells"):
        dc.Suppress(forced=[{"party": "A", "sex": "m"}]).pattern(party("party + sex"))


def test_the_pattern_says_why_each_primary_is_sensitive():
    pattern = dc.Suppress([dc.rules.Threshold(1), dc.rules.DirectDisclosure(0)]).pattern(table())
    assert set(pattern.reasons) == set(np.flatnonzero(pattern.primary).tolist())
    assert "a count of 1" in pattern.reasons.values()
    assert (np.maximum(pattern.lower, pattern.upper)[pattern.primary] >= 1).all()
    assert "(confidential)" in repr(pattern)
    assert pattern.to_arrow().num_rows == len(pattern.z)


def test_a_table_of_occurring_cells_is_released_on_the_full_crossing():
    occurring = party("party*age*sex", support="occurring")
    for rule in (dc.rules.Threshold(3), dc.rules.Threshold(3, zeros=True)):
        here = table().protect(dc.Suppress(rule))
        there = occurring.protect(dc.Suppress(rule))
        assert (here.status == there.status).all()
        assert (here.z == there.z).all()


def test_a_ledger_takes_a_suppressed_table_without_a_secret(tmp_path):
    counted = party("party*age*sex", name="party")
    ledger = tmp_path / "ledger.db"
    release = counted.protect("suppress", ledger=ledger)
    assert (release.z == counted.protect("suppress", ledger=ledger).z).all()
    # Costs from a secret hide other cells, and the two patterns together tell more.
    with pytest.raises(dc.errors.DiscreetError, match="again=True"):
        counted.with_secret(SECRET).protect("suppress", ledger=ledger)


def test_a_table_without_inner_cells_is_suppressed_by_the_published_ones():
    full = table()
    margins_only = Table(full.design, full.published)
    method = dc.Suppress(dc.rules.Threshold(3))
    assert (method.pattern(margins_only).state == method.pattern(full).state).all()


def test_a_table_of_margins_alone_keeps_intervals_for_the_public():
    """Any table with its sums stands in for the true one: programs on shown cells say the same."""
    full = party("party*age + age*sex")
    margins_only = Table(full.design, full.published)
    for way in ("interval", "optimal"):
        method = dc.Suppress(dc.rules.Threshold(3), way)
        pattern, release = method.pattern(margins_only), margins_only.protect(method)
        assert pattern.n_secondary > 0
        np.testing.assert_allclose(full.design.aggregate(pattern.y), full.z, atol=1e-4)
        assert not len(pattern.proofs.unproven(pattern))
        found = widths(release)
        assert min(found[int(k)] for k in np.flatnonzero(pattern.primary)) >= 2 - 1e-5
        # Nobody knows who is alone in a cell that was not read.
        assert release.statement.says("lone-contributors")
        assert full.protect(method).statement.says("lone-contributors") is False


def test_sums_of_margins_alone_promise_nothing_of_contributors_in_several_cells():
    cells = itertools.product("xyz", "uvw", "pq", range(4))
    rows = [(a, b, c, f"{a}{b}{c}{k}", 5.0 + k) for a, b, c, k in cells]
    rows.append(("x", "u", "p", "big", 900.0))
    names = ["a", "b", "c", "firm", "turnover"]
    frame = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    full = dc.Table.from_contributions(
        frame, "a*b + b*c", value="turnover", contributor="firm", support="occurring"
    )
    alone = replace(full, inner=None, contributions=replace(full.contributions, inner=None))
    method = dc.Suppress(dc.rules.PPercent(10))
    pattern = method.pattern(alone)
    assert pattern.n_primary > 0
    assert not len(pattern.proofs.unproven(pattern))
    assert "This is proven for all of them." in full.protect(method).statement.text
    said = alone.protect(method).statement.text
    assert "proven" not in said
    assert "Someone who is alone in a suppressed cell may compute" in said


def test_sums_that_no_table_has_are_refused_with_the_cell():
    full = party("party*age + age*sex")
    wrong = full.z.copy()
    wrong[full.design.position({"party": "A"})] += 7
    with pytest.raises(DataError, match="no table has all of these published cells"):
        dc.Suppress().pattern(Table(full.design, replace(full.published, count=wrong)))


def test_elimination_gives_way_to_intervals():
    with pytest.warns(FutureWarning, match="Leave secondary= out"):
        method = dc.Suppress(dc.rules.Threshold(3), secondary="gauss")
    assert method == dc.Suppress(dc.rules.Threshold(3))


def test_sums_without_inner_cells_are_suppressed_by_the_published_ones():
    frame = {"trade": list("aabbbccc") * 2, "region": list("xyxyzxyz") * 2}
    frame |= {"firm": list(range(16)), "turnover": [90.0, 5, 8, 7, 60, 4, 3, 9] * 2}
    full = dc.Table.from_contributions(
        frame, "trade*region", value="turnover", contributor="firm", support="occurring"
    )
    alone = replace(full.contributions, inner=None)
    method = dc.Suppress(dc.rules.PPercent(30))
    pattern = method.pattern(replace(full, inner=None, contributions=alone))
    assert (pattern.state == method.pattern(full).state).all()
    assert pattern.n_primary > 0


def test_intervals_are_kept_by_default():
    assert dc.Suppress().secondary == "interval" == registry.build("method", "suppress").secondary
    pattern = dc.Suppress().pattern(table())
    assert not len(pattern.proofs.unproven(pattern))
    assert table().protect("suppress").statement.says("interval-width")


def test_a_rule_for_counts_is_refused_where_sums_are_published():
    frame = {"region": ["n"] * 6 + ["s"] * 6, "firm": list(range(12)), "turnover": [0.5] * 12}
    table = dc.Table.from_contributions(frame, "region", value="turnover", contributor="firm")
    with pytest.raises(dc.DiscreetError, match="FewContributors"):
        table.protect(dc.Suppress(dc.rules.Threshold(3)))
    assert table.protect(dc.Suppress(dc.rules.Threshold(3)), unit="count").unit == "count"
