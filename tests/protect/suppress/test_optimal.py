"""Patterns of least cost: against all patterns of tiny tables, and laws on random ones."""

from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import discreet as dc
from discreet import Design, Table
from discreet.errors import InfeasibleError, ParameterError
from discreet.suppress import optimal as module
from discreet.suppress.optimal import Covering
from tests.protect.suppress.test_interval import RULES, SQUARE, square, tables

SLOW = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
FEW = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))


def optimal(table, rule, **options):
    return dc.Suppress(rule, secondary="optimal", **options).pattern(table)


def reaches(X, y, shown, held, target, sign, need):
    """Whether a target can move as far as needed, by a program on cells that stay filled."""
    fixed = np.vstack([X[:, shown].T, np.eye(len(y))[held]])
    bounds = [(1 - v, None) for v in y]
    found = linprog(-sign * target, A_eq=fixed, b_eq=np.zeros(len(fixed)), bounds=bounds)
    return found.status == 3 or -found.fun >= need - 1e-7


def keeps_all(pattern, shown, *, lone):
    """Whether a pattern of positive counts keeps every interval, for everybody and who is alone."""
    X, y = pattern.design.matrix().toarray(), pattern.y
    for k in np.flatnonzero(pattern.primary):
        sides = ((1, pattern.upper[k]), (-1, pattern.lower[k]))
        for (sign, need), who in product(sides, [-1, *np.flatnonzero(y == 1)] if lone else [-1]):
            mine = X[who, k] if who >= 0 else 0
            is_own = mine and X[:, k].sum() == 1
            asked = min(need, pattern.z[k] - 1) if mine and sign < 0 else need
            held = [who] if who >= 0 else []
            if asked > 0 and not is_own and not reaches(X, y, shown, held, X[:, k], sign, asked):
                return False
    return True


def least_cost(pattern, *, lone):
    """The least cost of all patterns with the same primaries, each tried by its cost."""
    free = np.flatnonzero(~pattern.primary)
    choices = np.array(list(product([False, True], repeat=len(free))))
    costs = choices @ pattern.costs[free]
    for row in np.argsort(costs, kind="stable"):
        shown = ~pattern.primary
        shown[free[choices[row]]] = False
        if keeps_all(pattern, shown, lone=lone):
            return float(costs[row] + pattern.costs[pattern.primary].sum())
    return None


@st.composite
def tiny(draw):
    r, c = draw(st.sampled_from([(2, 3), (3, 2), (2, 4)]))
    counts = st.sampled_from([1, 1, 2, 4, 5, 6, 9, 14])
    return square(np.reshape(draw(st.lists(counts, min_size=r * c, max_size=r * c)), (r, c)))


@FEW
@given(tiny(), st.integers(1, 2), st.booleans(), st.sampled_from(["value", "cells"]))
def test_no_pattern_of_a_tiny_table_is_cheaper(table, most, lone, cost):
    pattern = optimal(table, dc.rules.Threshold(most), singletons=lone, cost=cost)
    assert pattern.cost == least_cost(pattern, lone=lone)
    assert pattern.bound == pattern.cost


@pytest.mark.parametrize("lone", [False, True])
def test_no_pattern_of_three_rows_and_four_columns_is_cheaper(lone):
    table = square([[1, 9, 7, 12], [8, 2, 6, 11], [14, 5, 10, 9]])
    pattern = optimal(table, dc.rules.Threshold(2), singletons=lone)
    assert pattern.cost == pattern.bound == least_cost(pattern, lone=lone)


@SLOW
@given(tables(), RULES, st.booleans())
def test_the_least_cost_is_safe_and_not_above_that_of_intervals(table, rule, lone):
    pattern = optimal(table, rule, singletons=lone)
    other = dc.Suppress(rule, secondary="interval", singletons=lone)
    assert pattern.cost <= other.pattern(table).cost
    assert other.lower_bound(table) <= pattern.bound <= pattern.cost
    assert not len(pattern.proofs.unproven(pattern))
    view = "signs" if lone else "none"
    assert dc.audit(replace(pattern, proofs=None), lone=view, workers=1).is_clean


def test_cost_and_bound_stand_beside_each_other():
    table = square(SQUARE)
    pattern = optimal(table, dc.rules.Threshold(3))
    by_interval = dc.Suppress(dc.rules.Threshold(3), secondary="interval")
    assert (pattern.cost, by_interval.pattern(table).cost) == (62, 67)
    assert by_interval.lower_bound(table) == 62
    assert "cost 62 (at least 62)" in repr(pattern)


def test_frozen_cells_are_shown_and_forbidden_ones_are_not():
    table, frozen, forbidden = square(SQUARE), {"r": "1", "c": "2"}, {"r": "4", "c": "1"}
    pattern = optimal(table, dc.rules.Threshold(3), frozen=[frozen], forbidden=[forbidden])
    assert not pattern.suppressed[pattern.position(frozen)]
    assert pattern.suppressed[pattern.position(forbidden)]


def test_a_level_that_no_suppression_gives_is_refused_by_name():
    method = dc.Suppress(
        dc.rules.Threshold(3), secondary="optimal", frozen=[{"r": "1"}, {"r": "1", "c": "2"}]
    )
    for asked in (method.pattern, method.lower_bound):
        with pytest.raises(InfeasibleError, match="cell c=1, r=1 needs an interval that reaches 1"):
            asked(square([[2, 9], [9, 9]]))


def test_large_tables_are_refused():
    table = Table.from_inner(Design.product({"r": 45, "c": 45}, "r*c"), np.full(2025, 2))
    with pytest.raises(ParameterError, match="at most 2000 published cells, but this one has 2,1"):
        optimal(table, dc.rules.Threshold(3))


def test_programs_that_took_all_they_may_leave_the_best_pattern_found(monkeypatch):
    table = square(SQUARE)
    monkeypatch.setattr(module, "_MOST_WORK", 0)
    found = optimal(table, dc.rules.Threshold(3))
    assert len(found.proofs.unproven(found)) == 0
    assert found.bound <= found.cost
    monkeypatch.undo()
    assert optimal(table, dc.rules.Threshold(3)).bound >= found.bound


def test_a_search_that_ends_at_its_effort_keeps_all_intervals_and_reports_the_bound(monkeypatch):
    monkeypatch.setattr(module, "Covering", partial(Covering, effort=0))
    rng = np.random.default_rng(3)
    design = Design.product({"a": 4, "b": 5, "c": 5}, "a*b*c")
    table = Table.from_inner(design, rng.poisson(5, design.n_inner))
    pattern = optimal(table, dc.rules.Threshold(2))
    assert not len(pattern.proofs.unproven(pattern))
    assert 0 < pattern.bound < pattern.cost
    assert pattern.cost <= dc.Suppress(dc.rules.Threshold(2)).pattern(table).cost


def test_a_tree_that_runs_out_of_nodes_gives_its_bound():
    rng = np.random.default_rng(4)
    things = Covering(rng.uniform(1, 2, 60), effort=40 * 11)
    for _ in range(40):
        things.add((rng.random(60) < 0.15) * rng.uniform(0.3, 1, 60))
    found = things.whole()
    assert things.relax().bound <= found.bound + 1e-9
