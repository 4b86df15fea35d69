"""Least absolute deviation against linear and quadratic programs, laws, and wrong input."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet import registry
from discreet.design import Incidence
from discreet.errors import DataError, DesignError, MissingDependencyError, ParameterError
from discreet.solve import Accuracy, Status
from discreet.solve.absolute.certificate import ProvenTable, certify
from discreet.solve.absolute.kernels import ABSOLUTE
from discreet.solve.absolute.least_absolute import solve_exactly, solve_iteratively
from discreet.solve.absolute.primal_dual import PrimalDual
from tests.solve.slow import (
    HARD,
    counts,
    dense,
    least_absolute_loss,
    noisy,
    smallest_minimiser,
    some_weights,
)
from tests.strategies import designs


def loss_of(design, fit, z, w):
    return w @ np.abs(design.aggregate(fit.y) - z)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", HARD)
def test_the_loss_is_that_of_the_linear_program(name, seed, weighted):
    design = HARD[name]()
    z = noisy(design, seed)
    w = some_weights(design, seed) if weighted else np.ones(design.n_published)
    fit = dc.LeastAbsolute(tolerance=1e-7)(design, z, weights=w**2).require()
    best = least_absolute_loss(dense(design), z, w)
    assert (fit.y >= 0).all()
    assert loss_of(design, fit, z, w) == pytest.approx(best, rel=1e-6, abs=1e-6)


@given(designs(kinds=("product",)), st.integers(0, 999))
@settings(max_examples=40)
def test_the_loss_on_random_designs(design, seed):
    z, w = noisy(design, seed), some_weights(design, seed)
    fit = dc.LeastAbsolute(tolerance=1e-6)(design, z, weights=w**2).require()
    best = least_absolute_loss(dense(design), z, w)
    assert loss_of(design, fit, z, w) == pytest.approx(best, rel=1e-5, abs=1e-5)


def test_of_all_minimisers_the_one_of_smallest_norm_is_taken():
    compared = 0
    for name, make in HARD.items():
        design = make()
        z, w = noisy(design, 3), some_weights(design, 3)
        expected = smallest_minimiser(dense(design), z, w)
        if expected is None:  # the quadratic solver gives up on some degenerate programs
            continue
        fit = dc.LeastAbsolute(tolerance=1e-9)(design, z, weights=w**2).require()
        np.testing.assert_allclose(fit.y, expected, atol=2e-4, err_msg=name)
        compared += 1
    assert compared >= 12


def test_the_example_whose_vertex_solution_is_useless():
    """Perturbed totals of table 5 of Langsrud (2019b): the loss is 8, the table is spread out."""
    design = dc.Design.product({"row": 3, "col": 3}, [("row",), ("col",), ()])
    z = np.empty(7)
    for variable, values in {"row": [11, 13, 45], "col": [11, 18, 38]}.items():
        for code, value in enumerate(values, start=1):
            z[design.position({variable: code})] = value
    z[design.position({})] = 61
    fit = dc.LeastAbsolute(tolerance=1e-8)(design, z).require()
    assert loss_of(design, fit, z, np.ones(7)) == pytest.approx(8, abs=1e-6)
    expected = smallest_minimiser(dense(design), z, np.ones(7))
    np.testing.assert_allclose(fit.y, expected, atol=1e-4)
    assert (fit.y > 0).sum() >= 7


@pytest.mark.parametrize("name", ["all pairs", "tree by flat", "structural zeros"])
def test_margins_that_add_up_are_met(name):
    design = HARD[name]()
    z = design.aggregate(counts(design, 5, mean=4))
    fit = dc.LeastAbsolute(tolerance=1e-8)(design, z).require()
    np.testing.assert_allclose(fit.z, z, atol=1e-5)


def test_a_median_in_each_cell():
    """One cell seen several times: the weighted median, and zero for negative medians."""
    design = dc.Design.from_matrix(np.ones((1, 5), dtype=int))
    fit = dc.LeastAbsolute(tolerance=1e-8)(design, [1.0, 2, 9, 30, 40]).require()
    np.testing.assert_allclose(fit.y, [9], atol=1e-5)
    heavy = dc.LeastAbsolute(tolerance=1e-8)(design, [1.0, 2, 9, 30, 40], weights=[81, 1, 1, 1, 1])
    np.testing.assert_allclose(heavy.require().y, [1], atol=1e-5)
    below = dc.LeastAbsolute()(design, [-5.0, -4, -3, 2, 2]).require()
    np.testing.assert_allclose(below.y, [0], atol=1e-6)


@pytest.mark.parametrize("name", ["dependent margins", "tree linked", "general matrix"])
def test_laws_of_scale_fixed_point_and_order(name):
    design = HARD[name]()
    z = noisy(design, 6).astype(float)
    tight = dc.LeastAbsolute(tolerance=1e-9)
    fit = tight(design, z).require()
    np.testing.assert_allclose(tight(design, 10 * z).require().y, 10 * fit.y, atol=1e-2)
    np.testing.assert_allclose(tight(design, fit.z).require().z, fit.z, atol=1e-4)
    order = np.random.default_rng(1).permutation(design.n_published)
    shuffled = dc.Design.from_matrix(design.matrix()[:, order])
    np.testing.assert_allclose(tight(shuffled, z[order]).require().y, fit.y, atol=1e-3)


def test_suppressed_cells_need_no_value():
    design = dc.Design.product({"a": 3, "b": 3}, "a*b")
    y = counts(design, 8, mean=6)
    z, w = design.aggregate(y).astype(float), np.ones(design.n_published)
    hidden = [design.position({"a": 1, "b": 1}), design.position({"a": 2, "b": 2})]
    z[hidden], w[hidden] = np.nan, 0
    fit = dc.LeastAbsolute(tolerance=1e-8)(design, z, weights=w**2).require()
    np.testing.assert_allclose(fit.y, y, atol=1e-4)


def test_the_certificate_proves_the_optimum_and_refuses_others():
    design = HARD["dependent margins"]()
    z, w = noisy(design, 7).astype(float), np.ones(design.n_published)
    fit = dc.LeastAbsolute(tolerance=1e-6)(design, z).require()
    u, rho, v = (fit.notes[n] for n in ("dual", "ridge", "ridge_dual"))
    assert (np.abs(u) <= 1).all()
    assert (design.adjoint(u) <= 1e-12).all()

    def certificate(*answer):
        return certify(design, z, w, w, ProvenTable(*answer), Accuracy(1e-6))

    assert certificate(fit.y, u, rho, v).holds
    assert certificate(fit.y + 0.1, u, rho, v).gap > 1e-3
    assert certificate(fit.y, u, 0.0, v).selection == 1.0
    assert certificate(fit.y, 1.1 * u, rho, v).feasibility > 1e-3
    vertex = smallest_minimiser(dense(design), z, w)
    moved = vertex + np.where(np.arange(len(vertex)) % 2, 1e-2, 0.0)
    assert certificate(moved, u, rho, v).selection > 1e-6


def test_few_steps_are_reported():
    design = HARD["dependent margins"]()
    fit = dc.LeastAbsolute(max_steps=2)(design, noisy(design, 7))
    assert fit.status is Status.max_steps
    assert not fit.certificate.holds
    assert fit.y.any()


def test_one_preparation_serves_many_right_hand_sides():
    design = HARD["tree linked"]()
    prepared = dc.LeastAbsolute().prepare(design)
    for seed in range(3):
        z = noisy(design, seed)
        np.testing.assert_array_equal(prepared(z).y, dc.LeastAbsolute()(design, z).y)


def test_wrong_input_is_refused():
    design = dc.Design.product({"a": 2, "b": 2}, "a + b")
    with pytest.raises(ParameterError, match="tolerance must lie"):
        dc.LeastAbsolute(tolerance=0)
    with pytest.raises(ParameterError, match="max_steps"):
        dc.LeastAbsolute(max_steps=0)
    with pytest.raises(DesignError, match="published cells"):
        dc.LeastAbsolute()(design, [5, 3])
    with pytest.raises(DataError, match="has no value"):
        dc.LeastAbsolute()(design, [5, np.inf, 2, 7, 8])


def test_it_is_in_the_registry():
    assert registry.build("fitter", "least-absolute", {"tolerance": 1e-3}).name == "least-absolute"


def searched(design, z, tolerance=1e-4):
    """What the search for large tables finds, and its certificate."""
    w, accuracy = np.ones(design.n_published), Accuracy(tolerance)
    answer = solve_iteratively(Incidence.of(design), z, w, w, accuracy, 100_000)
    return answer, certify(design, z, w, w, answer, accuracy)


@pytest.mark.parametrize("name", ["all pairs", "tree linked", "structural zeros", "general matrix"])
def test_both_ways_lead_to_the_same_table(name):
    design = HARD[name]()
    z = noisy(design, 4).astype(float)
    exact = solve_exactly(design, z, np.ones(design.n_published), 1.0, 1000)
    answer, certificate = searched(design, z, 1e-9)
    assert certificate.holds
    np.testing.assert_allclose(answer.y, exact.y, atol=1e-4)


@pytest.mark.parametrize("digits", [3, 6, 9])
@pytest.mark.parametrize("seed", range(3))
def test_the_search_settles_each_block_on_its_own_scale(seed, digits):
    X = dense(dc.Design.product({"a": 3, "b": 4}, "a + b"))
    rng = np.random.default_rng(seed)
    small, large = (X.T @ rng.poisson(5, 12) + rng.laplace(0, 3, X.shape[1]) for _ in range(2))
    both = np.kron(np.eye(2), X).astype(int)
    z = np.append(small, 10.0**digits * large)
    answer, certificate = searched(dc.Design.from_matrix(both), z)
    assert certificate.holds
    loss = np.abs(X.T @ answer.y[:12] - small).sum()
    assert loss <= least_absolute_loss(X, small, np.ones(X.shape[1])) + 0.5


@pytest.mark.parametrize("margins", ["a*b*c", "a*b + a*c + b*c"])
@pytest.mark.parametrize("seed", range(4))
def test_noise_of_some_counts_on_a_billion_is_fitted(margins, seed):
    rng = np.random.default_rng(seed)
    design = dc.Design.product({"a": 4, "b": 3, "c": 4}, margins)
    truth = design.aggregate(np.floor(rng.gamma(0.5, 1, design.n_inner) * 4e7)).astype(float)
    noise = 5 * np.round(rng.laplace(size=len(truth)))
    fit = dc.LeastAbsolute()(design, truth + noise).require()
    w = np.ones(len(truth))
    best = least_absolute_loss(dense(design), noise + truth, w)
    assert loss_of(design, fit, truth + noise, w) <= min(best + 1, np.abs(noise).sum() + 1e-3)


@pytest.mark.parametrize("name", HARD)
def test_dual_vectors_are_made_feasible(name):
    design = HARD[name]()
    z, w = noisy(design, 2).astype(float), some_weights(design, 2)
    run = PrimalDual(Incidence.of(design), z, w, ABSOLUTE)
    for _ in range(3):
        run.iterate(7)
        u = run.feasible_dual(w)
        assert (np.abs(u) <= w).all()
        assert (design.adjoint(u) <= 1e-12 * w.max()).all()


def test_without_highs_a_small_fit_names_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "highspy", None)
    design = dc.Design.product({"a": 2, "b": 2}, "a*b")
    with pytest.raises(MissingDependencyError, match="needs highspy: `pip install highspy`"):
        dc.LeastAbsolute()(design, design.aggregate(np.arange(4.0)))
