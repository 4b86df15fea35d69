"""Feasibility intervals, and the reduction and programs behind them, against slow references."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog

from discreet import Design
from discreet.errors import InfeasibleError
from discreet.progress import listening
from discreet.solve.linear.elimination import find_spanned
from discreet.solve.linear.intervals import Limits, feasible_intervals
from discreet.solve.linear.program import Program
from discreet.solve.linear.unknowns import (
    combination,
    connected_parts,
    distinct_columns,
    free_part,
    unknowns,
)

LINKED = [
    ({"a": 3, "b": 4}, "a*b"),
    ({"a": 2, "b": 3, "c": 2}, "a*b + b*c + a*c"),
    ({"a": 5}, "a"),
]


def problem(seed, *, largest=4):
    """A table with random counts of which some published cells are hidden."""
    rng = np.random.default_rng(seed)
    variables, margins = LINKED[seed % len(LINKED)]
    design = Design.product(variables, margins)
    y = rng.integers(0, largest, design.n_inner)
    X = design.matrix()
    hidden = rng.random(design.n_published) < 0.5
    return X[:, np.flatnonzero(~hidden)], X[:, np.flatnonzero(hidden)].tocsc(), y


def by_linprog(X, values, target, signs=True):
    bounds = (0, None) if signs else (None, None)
    ends = []
    for sense in (1, -1):
        found = linprog(sense * target, A_eq=X.T.toarray(), b_eq=values, bounds=bounds)
        ends.append(sense * found.fun if found.status == 0 else -sense * np.inf)
    return ends


@given(st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_intervals_are_those_of_plain_linear_programs(seed):
    X, targets, y = problem(seed)
    found = feasible_intervals(X, X.T @ y, targets)
    dense = targets.toarray()
    for k in range(dense.shape[1]):
        low, high = by_linprog(X, X.T @ y, dense[:, k])
        assert found.low[k] == pytest.approx(low, abs=1e-6)
        assert found.high[k] == pytest.approx(high, abs=1e-6)
    assert found.is_proven.all()


@given(st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_without_signs_a_target_is_known_exactly_or_not_at_all(seed):
    X, targets, y = problem(seed)
    found = feasible_intervals(X, X.T @ y, targets, signs=False)
    is_known = find_spanned(sparse.csc_array(X), targets)
    np.testing.assert_allclose(found.low[is_known], (targets.T @ y)[is_known], atol=1e-6)
    np.testing.assert_allclose(found.high[is_known], (targets.T @ y)[is_known], atol=1e-6)
    assert np.isinf(found.low[~is_known]).all()
    assert np.isinf(found.high[~is_known]).all()


@given(st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_the_reduction_keeps_values_and_equations(seed):
    X, targets, y = problem(seed, largest=2)
    for signs in (False, True):
        system = unknowns(X, X.T @ y, signs=signs)
        known = np.setdiff1d(np.arange(len(y)), system.cells)
        np.testing.assert_array_equal(system.known[known], y[known])
        np.testing.assert_array_equal(system.equations.T @ y[system.cells], system.right)
        assert (np.diff(system.equations.indptr) > 1).all()
        total = system.constant(targets) + system.restrict(targets).T @ y[system.cells]
        np.testing.assert_array_equal(total, targets.T @ y)


def test_long_chains_are_taken_out_one_by_one():
    n = 300
    chain = sparse.csr_array(np.eye(n, dtype=int) + np.eye(n, k=1, dtype=int))
    first = sparse.csr_array((np.ones(1, int), ([0], [0])), shape=(n, 1))
    y = np.arange(n)
    X = sparse.hstack([chain, first], format="csr")
    assert len(unknowns(X, X.T @ y).cells) == 0
    assert len(connected_parts(unknowns(chain[:, 1:], chain[:, 1:].T @ y).equations)) == 1


def test_cells_that_share_no_equation_are_different_components():
    design = Design.product({"a": 4, "b": 2}, "a*b")
    shown = [design.position({"a": a}) for a in range(1, 5)]
    system = unknowns(design.matrix()[:, shown], np.array([3, 4, 5, 6]))
    assert len(connected_parts(system.equations)) == 4
    total = design.matrix()[:, [design.position({"b": 1})]].tocsc()
    found = feasible_intervals(design.matrix()[:, shown], np.array([3, 4, 5, 6]), total)
    assert (found.low[0], found.high[0]) == (0, 18)


def test_no_program_is_solved_where_a_sum_bounds_what_a_solution_reaches():
    design = Design.product({"a": 2}, "a")
    total = design.matrix()[:, [design.position({})]]
    targets = sparse.csc_array(np.eye(2, dtype=int))
    found = feasible_intervals(total, np.array([10]), targets)
    assert (found.low.tolist(), found.high.tolist()) == ([0, 0], [10, 10])
    assert found.programs == 2
    least = Limits(targets, np.ones(2), np.full(2, np.inf))
    found = feasible_intervals(total, np.array([10]), targets, limits=least)
    assert (found.low.tolist(), found.high.tolist()) == ([1, 1], [9, 9])


def test_equal_columns_are_of_one_kind():
    columns = sparse.csc_array(np.array([[1, 0, 1, 1], [0, 1, 0, 1]]))
    first, kind = distinct_columns(columns)
    assert sorted(first.tolist()) == [0, 1, 3]
    assert kind[0] == kind[2]
    assert len(set(kind.tolist())) == 3


def test_public_bounds_narrow_an_interval():
    design = Design.product({"a": 3}, "a")
    X, target = design.matrix(), design.matrix()[:, [0]].tocsc()
    total = X[:, [design.position({})]]
    bound = Limits(X[:, [1]].tocsc(), np.array([2.0]), np.array([4.0]))
    free = feasible_intervals(total, np.array([10]), target)
    bounded = feasible_intervals(total, np.array([10]), target, limits=bound)
    assert (free.low[0], free.high[0]) == (0, 10)
    assert (bounded.low[0], bounded.high[0]) == (0, 8)


def test_a_bound_of_a_sum_ties_components_together():
    design = Design.product({"a": 2, "b": 2}, "a*b")
    X = design.matrix()
    rows = [design.position({"a": a}) for a in (1, 2)]
    first = design.inner_position({"a": 1, "b": 1})
    target = sparse.csc_array((np.ones(1), ([first], [0])), shape=(4, 1))
    bound = Limits(X[:, [design.position({"b": 1})]].tocsc(), np.array([9.0]), np.array([np.inf]))
    found = feasible_intervals(X[:, rows], np.array([6, 4]), target, limits=bound)
    assert (found.low[0], found.high[0]) == (5, 6)


def test_differences_of_cells_reach_below_zero():
    design = Design.product({"a": 3}, "a")
    total = design.matrix()[:, [design.position({})]]
    targets = sparse.csc_array(np.array([[1, -1], [-1, 1], [0, 0]]))
    found = feasible_intervals(total, np.array([10]), targets)
    assert found.low.tolist() == [-10, -10]
    assert found.high.tolist() == [10, 10]


def test_what_is_enough_is_not_followed_further():
    X, targets, y = problem(1, largest=30)
    middle = targets.T @ y
    asked = feasible_intervals(X, X.T @ y, targets, enough=(middle - 1, middle + 1))
    exact = feasible_intervals(X, X.T @ y, targets)
    assert asked.programs <= exact.programs
    assert (asked.low >= exact.low - 1e-6).all()
    assert (asked.high <= exact.high + 1e-6).all()
    reached_low = np.minimum(middle - 1, np.inf) >= asked.low - 1e-6
    assert (reached_low | (np.abs(asked.low - exact.low) < 1e-6)).all()


def test_what_somebody_knows_narrows_intervals():
    design = Design.product({"a": 3}, "a")
    X = design.matrix()
    total, y = X[:, [design.position({})]], np.array([1, 5, 2])
    mine = np.array([True, False, False])
    found = feasible_intervals(total, total.T @ y, X[:, [1]].tocsc(), known=mine, y=y)
    assert (found.low[0], found.high[0]) == (0, 7)


def test_contradictions_are_an_error():
    design = Design.product({"a": 2, "b": 2}, "a + b")
    X, z = design.matrix(), design.aggregate(np.ones(4, dtype=int))
    z[design.position({})] = 9
    with pytest.raises(InfeasibleError, match="contradict"):
        feasible_intervals(X, z, X[:, [0]].tocsc() * 0 + sparse.csc_array([[1], [0], [0], [0]]))


def test_magnitudes_with_rounding_errors_are_feasible():
    rng = np.random.default_rng(3)
    design = Design.product({"a": 6, "b": 7}, "a*b")
    y = np.round(rng.lognormal(8, 2, design.n_inner), 2)
    X = design.matrix()
    inner = np.flatnonzero(design.column_sizes == 1)
    hidden = inner[rng.random(len(inner)) < 0.6]
    shown = np.setdiff1d(np.arange(design.n_published), hidden)
    values = np.round(X[:, shown].T @ y + rng.normal(0, 1e-9, len(shown)), 8)
    found = feasible_intervals(X[:, shown], values, X[:, hidden].tocsc())
    truth = X[:, hidden].T @ y
    assert (found.low <= truth + 1e-3).all()
    assert (found.high >= truth - 1e-3).all()


@pytest.mark.slow
def test_several_processes_find_the_same_and_report_progress(monkeypatch):
    monkeypatch.setattr("discreet.solve.linear.intervals._FIRST", 2)
    design = Design.product({"a": 5, "b": 5}, "a*b")
    X, y = design.matrix(), np.random.default_rng(5).integers(0, 9, design.n_inner)
    inner = np.flatnonzero(design.column_sizes == 1)
    shown = np.setdiff1d(np.arange(design.n_published), inner)
    heard = []
    with listening(lambda task, share: heard.append((task, share))):
        both = feasible_intervals(X[:, shown], X[:, shown].T @ y, X[:, inner].tocsc(), workers=2)
    alone = feasible_intervals(X[:, shown], X[:, shown].T @ y, X[:, inner].tocsc(), workers=1)
    np.testing.assert_allclose(both.low, alone.low, atol=1e-6)
    np.testing.assert_allclose(both.high, alone.high, atol=1e-6)
    assert heard[-1] == ("intervals", 1.0)
    assert [share for _, share in heard] == sorted(share for _, share in heard)


def test_a_projection_is_the_one_of_the_pseudo_inverse():
    rng = np.random.default_rng(0)
    design = Design.product({"a": 4, "b": 5}, "a + b")
    X, g = design.matrix().astype(float), rng.normal(size=(20, 3))
    dense = X.toarray()
    expected = g - dense @ np.linalg.pinv(dense) @ g
    np.testing.assert_allclose(free_part(X, g), expected, atol=1e-12)
    c = combination(X, g[:, 0])
    np.testing.assert_allclose(dense @ c, g[:, 0] - expected[:, 0], atol=1e-10)


def test_a_program_without_a_lower_limit_says_so():
    one = sparse.csc_array(np.ones((2, 1)))
    program = Program(one, np.zeros(1), np.zeros(1), np.full(2, -np.inf), np.full(2, np.inf))
    assert program.minimise(np.array([1.0, 0.0])) is None
    assert program.minimise(np.array([1.0, 1.0])).sum() == pytest.approx(0)
