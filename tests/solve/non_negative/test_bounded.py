"""Non-negative fits by conjugate gradients within bounds, against active sets and references."""

import functools
import itertools

import numpy as np
import pytest
from scipy.optimize import nnls

import discreet as dc
from discreet.design import Incidence
from discreet.solve import Accuracy, LeastSquaresProblem, Prior
from discreet.solve.least_squares.problem import EXCESS, certify_non_negative, smallest_norm
from discreet.solve.non_negative import non_negative
from discreet.solve.non_negative.bounded import BoundedFit, bounded_steps
from discreet.solve.non_negative.held import HeldMargins

SIZES = {"a": 5, "b": 6, "c": 4, "d": 3}
PAIRS = list(itertools.combinations(SIZES, 2))
TRIPLES = list(itertools.combinations(SIZES, 3))
BOTH = dc.Design.product(SIZES, [*PAIRS, *TRIPLES])
IS_PAIR = np.arange(BOTH.n_published) < BOTH.offsets[len(PAIRS)]
METHOD = "conjugate gradients within bounds"


@pytest.fixture
def bounded(monkeypatch):
    """The method for tables of any size."""
    monkeypatch.setattr(non_negative, "LARGE", 0)


def noisy(seed, scale=1.0):
    """Exact two-way margins of a sparse table, with three-way margins that have noise."""
    rng = np.random.default_rng(seed)
    counts = scale * rng.poisson(rng.gamma(0.2, 5.0, BOTH.n_inner)).astype(float)
    truth = BOTH.aggregate(counts)
    return np.where(IS_PAIR, truth, truth + rng.laplace(scale=3.0, size=len(truth)))


CASES = {
    "plain": ({}, None),
    "exact": ({"exact": PAIRS}, None),
    "heavy": ({}, np.where(IS_PAIR, 1000.0, 1.0)),
    "uneven": ({}, np.where(IS_PAIR, 0.2, 3.0)),
    "ridge": ({"ridge": 0.5}, None),
}


@functools.cache
def smallest_fit(seed):
    """The fit of smallest norm, by active sets."""
    return dc.NonNegative()(BOTH, noisy(seed)).require()


# One heavy fit of forty ends along a ridge: that of seed 3.
@pytest.mark.parametrize(("case", "seed"), [*((case, 0) for case in CASES), ("heavy", 3)])
def test_published_cells_are_those_of_active_sets(monkeypatch, case, seed):
    options, weights = CASES[case]
    z = noisy(seed)
    expected = dc.NonNegative(**options)(BOTH, z, weights=weights).require()
    assert expected.notes["solver"] == "active sets along a ridge"
    monkeypatch.setattr(non_negative, "LARGE", 0)
    fit = dc.NonNegative(**options)(BOTH, z, weights=weights).require()
    assert fit.notes["solver"] == METHOD
    assert fit.y.min() >= 0
    np.testing.assert_allclose(fit.z, expected.z, atol=0.05)


@pytest.mark.parametrize("seed", range(3))
def test_large_counts_with_exact_margins_are_fitted_to_the_same_accuracy(bounded, seed):
    z = noisy(seed, scale=1e5)
    fit = dc.NonNegative(exact=PAIRS)(BOTH, z).require()
    np.testing.assert_allclose(fit.z[IS_PAIR], z[IS_PAIR], rtol=1e-12, atol=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_cells_in_exact_zeros_are_zero_and_a_force_proves_it(bounded, seed):
    truth = noisy(seed)
    zeros = np.flatnonzero(IS_PAIR & (truth == 0))
    if not len(zeros):
        truth[0] = 0.0
        zeros = np.array([0])
    fit = dc.NonNegative(exact=zeros.tolist())(BOTH, truth).require()
    marks = np.zeros(BOTH.n_published)
    marks[zeros] = 1.0
    assert not fit.y[BOTH.adjoint(marks) > 0].any()
    assert fit.notes["solver"] == METHOD


@pytest.mark.parametrize("seed", range(5))
def test_steps_within_bounds_reach_non_negative_least_squares(seed):
    design, z = BOTH, noisy(seed)
    cells = np.arange(0, design.n_inner, 2)
    incidence = Incidence.of(design, cells)
    targets = z[incidence.position]
    x, ones = np.zeros(len(cells)), np.ones(len(targets))
    curvature = incidence.adjoint(ones)
    limits = np.full(len(cells), 1e-7)
    taken = bounded_steps(incidence.sums, ones, targets, 0.0, x, curvature, limits, 10_000)
    assert taken < 10_000
    X = design.matrix().toarray()[cells][:, incidence.position].astype(float)
    np.testing.assert_allclose(X.T @ x, X.T @ nnls(X.T, targets)[0], atol=1e-4)


@pytest.mark.parametrize("seed", range(2))
def test_no_table_with_the_same_margins_has_a_norm_below_the_bound(seed):
    smallest = smallest_fit(seed)
    norm, rng = np.linalg.norm(smallest.y), np.random.default_rng(seed)
    own = smallest.notes["dual"]
    for share in (0.0, 0.1, 1.0, 10.0):
        dual = own + share * np.abs(own).mean() * rng.normal(size=len(own))
        bound = smallest_norm(smallest.z, dual, BOTH.adjoint(dual))
        assert bound <= norm * (1 + 1e-3)
        if share == 0.0:
            assert bound == pytest.approx(norm, rel=1e-3)


@pytest.mark.parametrize("seed", range(2))
def test_the_norm_is_nearly_the_smallest(bounded, monkeypatch, seed):
    z = noisy(seed)
    fit = dc.NonNegative()(BOTH, z).require()
    assert fit.notes["solver"] == METHOD
    monkeypatch.undo()  # tables of this size go through active sets
    assert np.linalg.norm(fit.y) <= (1 + EXCESS) * np.linalg.norm(smallest_fit(seed).y)


def test_a_table_with_the_same_margins_and_a_larger_norm_is_refused():
    design = dc.Design.product({"a": 3, "b": 3}, "a + b")
    z = design.aggregate(np.full(9, 10.0))
    problem = LeastSquaresProblem.of(
        design, z, None, Prior(), Accuracy(1e-3), np.empty(0, dtype=np.int64)
    )
    dual = np.full(design.n_published, 1.0)
    even = np.full(9, 10.0)
    uneven = even + 10 * np.array([1, -1, 0, -1, 1, 0, 0, 0, 0])
    assert certify_non_negative(
        problem, even, np.zeros(0), dual=None, ridge=0.0, norm_dual=dual
    ).holds
    refused = certify_non_negative(
        problem, uneven, np.zeros(0), dual=None, ridge=0.0, norm_dual=dual
    )
    assert refused.stationarity <= 1e-9
    assert not refused.holds


def test_cells_with_a_gradient_that_a_run_may_leave_stay_at_zero():
    z = noisy(1, scale=1e6)
    problem = LeastSquaresProblem.of(
        BOTH, z, None, Prior(), Accuracy(1e-3), np.empty(0, dtype=np.int64)
    )
    held = HeldMargins(problem, lambda alone: alone.z)
    held.weigh(1.0)
    fit = BoundedFit(held, np.zeros(BOTH.n_inner), 0.0)
    gradient = -problem.right_hand_side
    share = float(np.median(-gradient / problem.limits.gradient))
    weak = -gradient <= share * problem.limits.gradient
    fit._improve(gradient, share)
    assert not fit.y[weak].any()
    assert fit.y[~weak].any()


def test_heavier_margins_keep_their_multipliers():
    z = noisy(2, scale=10.0)
    problem = LeastSquaresProblem.of(BOTH, z, None, Prior(), Accuracy(1e-3), np.arange(5))
    held, fitted = HeldMargins(problem, lambda alone: alone.z), np.zeros_like(z)
    held.weigh(0.5)
    before = held.multipliers(fitted)
    held.weigh_more(4.0, 10.0, fitted)
    np.testing.assert_allclose(held.multipliers(fitted), before)
    assert (held.problem.weights[:5] == 2.0).all()
    held.weigh_more(10.0, 10.0, fitted)
    assert (held.problem.weights[:5] == 2.0).all()
