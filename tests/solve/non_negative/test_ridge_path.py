"""Ridge paths against dense references: both ways to solve their systems, and heavy margins."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import nnls

import discreet as dc
from discreet.solve import Accuracy, LeastSquaresProblem, Prior
from discreet.solve.non_negative import non_negative
from discreet.solve.non_negative.ridge_path import (
    DEFLATED,
    DIRECT,
    LIGHT,
    RidgePath,
    solve_lifted,
)
from tests.solve.slow import HARD, dense, noisy

WAYS = pytest.mark.parametrize(
    "systems", [DIRECT, DEFLATED, LIGHT], ids=["direct", "deflated", "light"]
)


def problem_of(design, seed, weights=None, exact=()):
    prior = Prior.of(design, None, None)
    at = np.array(exact, dtype=np.int64)
    return LeastSquaresProblem.of(design, noisy(design, seed), weights, prior, Accuracy(1e-3), at)


def path_of(problem, systems, penalty=0.0):
    return RidgePath(problem, systems, 100_000, penalty)


@WAYS
@pytest.mark.parametrize("name", sorted(HARD))
def test_a_path_with_a_penalty_ends_in_the_stacked_system(systems, name):
    design, ridge = HARD[name](), 0.3
    problem = problem_of(design, 1)
    path = path_of(problem, systems, ridge)
    for _ in range(20):
        path.stage()
    A = np.vstack([dense(design).T, np.sqrt(ridge) * np.eye(design.n_inner)])
    wanted = nnls(A, np.append(problem.z, np.zeros(design.n_inner)))[0]
    np.testing.assert_allclose(path.y, wanted, atol=1e-3)


@pytest.mark.parametrize("name", sorted(HARD))
def test_the_table_is_the_positive_part_of_its_point(name):
    problem = problem_of(HARD[name](), 2)
    path = path_of(problem, DIRECT)
    for _ in range(6):
        path.stage()
        wanted = np.maximum(dense(problem.design) @ path.nu, 0.0)
        np.testing.assert_allclose(path.y, wanted, atol=1e-6)


@pytest.mark.parametrize("heavy", [1e2, 1e6, 1e10])
@pytest.mark.parametrize("seed", range(4))
def test_no_weight_is_too_heavy_for_a_factor(heavy, seed):
    design = HARD["all pairs"]()
    at = np.random.default_rng(seed).random(design.n_published) < 0.3
    truth = design.aggregate(np.random.default_rng(seed).poisson(2.0, design.n_inner))
    z = np.where(at, truth, noisy(design, seed))
    fit = dc.NonNegative()(design, z, weights=np.where(at, heavy, 1.0)).require()
    assert fit.iterations < 60
    exact = dc.NonNegative(exact=np.flatnonzero(at).tolist())(design, z).require()
    np.testing.assert_allclose(fit.z[at], exact.z[at], atol=1e4 / heavy + 1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_both_ways_to_solve_systems_end_in_the_same_fit(monkeypatch, seed):
    design = dc.Design.product({"a": 6, "b": 7, "c": 5}, "a*b + b*c + a*c")
    rng = np.random.default_rng(seed)
    y = rng.poisson(rng.gamma(0.3, 4.0, design.n_inner))
    z = design.aggregate(y) + rng.laplace(0, 3, design.n_published)
    fitter = dc.NonNegative(exact="1")
    direct = fitter(design, z).require()
    monkeypatch.setattr(non_negative, "SMALL", 0)
    monkeypatch.setattr(non_negative, "DENSE", 0)
    iterative = fitter(design, z).require()
    assert iterative.iterations > direct.iterations
    np.testing.assert_allclose(iterative.z, direct.z, atol=1e-2)


def crowded_out(seed):
    """Exact margins of few people, whose cells noisy margins push far below zero."""
    sizes = {"a": 4, "b": 5, "c": 3, "d": 3}
    pairs, triples = (list(itertools.combinations(sizes, k)) for k in (2, 3))
    full = dc.Design.product(sizes, [*pairs, *triples])
    rng = np.random.default_rng(seed)
    y = rng.poisson(rng.gamma(0.2, 4.0, full.n_inner))
    codes = np.unravel_index(np.flatnonzero(y), tuple(sizes.values()))
    design = dc.Design.sparse(sizes, [*pairs, *triples], codes)
    true = design.aggregate(y[y > 0]).astype(float)
    is_pair = np.arange(design.n_published) < design.offsets[len(pairs)]
    return design, np.where(is_pair, true, true + rng.laplace(0, 50, len(true))), pairs


@pytest.mark.parametrize("seed", range(3))
def test_margins_that_only_large_multipliers_can_meet_are_met_without_a_factor(monkeypatch, seed):
    design, z, pairs = crowded_out(seed)
    monkeypatch.setattr(non_negative, "SMALL", 0)
    monkeypatch.setattr(non_negative, "DENSE", 0)
    fit = dc.NonNegative(exact=pairs, tolerance=1e-5)(design, z).require()
    assert np.abs(fit.notes["multipliers"]).max() > 50
    assert fit.iterations < 1_000


def test_a_factor_takes_over_where_conjugate_gradients_fail(monkeypatch):
    design = HARD["all pairs"]()
    z = noisy(design, 3)
    monkeypatch.setattr(non_negative, "SMALL", 0)
    monkeypatch.setattr(non_negative, "DEFLATED", replace(DEFLATED, tight=1e9, sharper=1.0))
    fit = dc.NonNegative()(design, z).require()
    expected = nnls(dense(design).T, z)[0]
    np.testing.assert_allclose(fit.z, design.aggregate(expected), atol=0.01)


def test_a_matrix_that_rounding_makes_indefinite_is_raised_until_it_is_not():
    matrix = np.ones((3, 3)) * 7
    x = solve_lifted(matrix, np.full(3, 1e-30), np.full(3, 21.0))
    np.testing.assert_allclose(matrix @ x, 21.0, atol=1e-6)
