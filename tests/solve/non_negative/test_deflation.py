"""Heavy margins taken out of the equations, against dense matrices."""

import numpy as np
import pytest

from discreet.design import Incidence
from discreet.solve import Accuracy, LeastSquaresProblem, Prior
from discreet.solve.least_squares.conjugate import solve_on_cells
from discreet.solve.non_negative.ridge_path import Deflation, _factor
from tests.solve.slow import HARD, dense, noisy


def problem_of(design, seed, heavy=1.0):
    """A problem with a variance for every cell, and some heavy margins."""
    rng = np.random.default_rng(seed)
    at = np.flatnonzero(rng.random(design.n_published) < 0.5)
    at = at if len(at) else np.array([0])
    weights = np.ones(design.n_published)
    weights[at] = heavy
    prior = Prior.of(design, None, rng.uniform(0.5, 2.0, design.n_inner))
    return LeastSquaresProblem.of(design, noisy(design, seed), weights, prior, Accuracy(1e-3)), at


def some_cells(design, rng):
    cells = np.flatnonzero(rng.random(design.n_inner) < 0.7)
    return cells if len(cells) else np.arange(design.n_inner)


@pytest.mark.parametrize("name", sorted(HARD))
@pytest.mark.parametrize("seed", range(3))
def test_the_preconditioner_is_its_formula_whatever_the_cells_were_before(name, seed):
    design = HARD[name]()
    problem, at = problem_of(design, seed)
    deflation = Deflation(problem, at)
    rng = np.random.default_rng(seed)
    lift = rng.uniform(0.01, 0.1, len(at))
    for _ in range(3):
        cells = some_cells(design, rng)
        incidence = Incidence.of(design, cells)
        D = np.sqrt(problem.prior.variance[cells])
        X = D[:, None] * dense(design)[cells]
        E = X[:, deflation.at]
        s = rng.normal(size=len(incidence.position))
        r = X[:, incidence.position] @ s
        image = deflation.on(cells, incidence.position, lift)(s, X[:, incidence.position].T @ r)
        wanted = r - E @ np.linalg.solve(E.T @ E + np.diag(lift), E.T @ r)
        np.testing.assert_allclose(X[:, incidence.position] @ image, wanted, atol=1e-10)


def solved_on(cells, problem, at, *, curvature, tolerance):
    """The ridge problem on some cells, heavy margins taken out."""
    incidence = Incidence.of(problem.design, cells)
    deflation, lift = Deflation(problem, at), curvature / problem.weights[at]
    return solve_on_cells(
        problem,
        incidence,
        cells,
        np.zeros(problem.design.n_published),
        ridge=0.1,
        limits=np.full(len(cells), tolerance),
        max_steps=10_000,
        deflate=deflation.on(cells, incidence.position, lift),
    )


@pytest.mark.parametrize("name", sorted(HARD))
@pytest.mark.parametrize("heavy", [1e2, 1e6])
def test_heavy_margins_do_not_spoil_the_solution(name, heavy):
    design = HARD[name]()
    problem, at = problem_of(design, 5, heavy)
    cells = some_cells(design, np.random.default_rng(5))
    D = np.sqrt(problem.prior.variance[cells])
    X = D[:, None] * dense(design)[cells]
    M = (X * problem.weights) @ X.T + 0.1 * np.eye(len(cells))
    solved = solved_on(cells, problem, at, curvature=10.0, tolerance=1e-9 * heavy)
    wanted = D * np.linalg.solve(M, X @ (problem.weights * problem.z))
    np.testing.assert_allclose(solved.y, wanted, atol=1e-5)


def test_the_number_of_steps_does_not_depend_on_the_weight():
    design = HARD["all pairs"]()
    steps = []
    for heavy in (1e2, 1e3, 1e4):
        problem, at = problem_of(design, 1, heavy)
        cells = np.arange(design.n_inner)
        solved = solved_on(cells, problem, at, curvature=5.0, tolerance=1e-5)
        g = dense(design) @ (problem.weights * (problem.z - solved.z))
        assert np.abs(g - 0.1 * solved.y / problem.prior.variance).max() <= 1e-5
        steps.append(solved.steps)
    assert max(steps) <= 2 * min(steps) + 5


def test_a_matrix_that_has_no_factor_is_lifted_until_it_has():
    matrix = np.asfortranarray(np.ones((3, 3)) * 7)
    L = np.tril(_factor(matrix, np.full(3, 1e-30)))
    np.testing.assert_allclose(L @ L.T, matrix, atol=1e-9)
    np.testing.assert_array_equal(matrix, 7)
