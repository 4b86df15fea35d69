"""Non-negative fits through the multipliers of the bounds, against dense matrices."""

import numpy as np
import pytest
from scipy.optimize import nnls

import discreet as dc
from discreet.solve import Status
from discreet.solve.least_squares.least_squares import analyse
from discreet.solve.non_negative import multipliers, non_negative
from discreet.solve.non_negative.multipliers import Fibres, HeldSums

METHOD = "multipliers of the bounds"
TREE = {"all": {"north": ["n1", "n2", "n3"], "south": ["s1", "s2"], "sea": ["sea1"]}}


def census():
    """Two hierarchies of unequal groups and a flat variable, every level published."""
    ages = {"any age": {"young": ["0", "1"], "old": ["2", "3", "4"]}}
    axes = [
        dc.design.Axis.flat("sex", ["f", "m"]),
        dc.design.Axis.from_hierarchies("region", [dc.Hierarchy.from_dict(TREE)]),
        dc.design.Axis.from_hierarchies("age", [dc.Hierarchy.from_dict(ages)]),
    ]
    return dc.Design.product(axes, "region*age*sex")


def dense(design):
    return design.matrix().toarray().astype(float)


def noisy(design, seed, scale=3.0):
    rng = np.random.default_rng(seed)
    truth = design.aggregate(rng.poisson(rng.gamma(0.3, 4.0, design.n_inner)))
    return truth, truth + rng.laplace(0.0, scale, design.n_published)


@pytest.fixture
def any_size(monkeypatch):
    """The method for tables of any size."""
    monkeypatch.setattr(non_negative, "LARGE", 0)


def optimum(design, z, w, exact=()):
    root = np.sqrt(w)
    root[list(exact)] = 1e4
    return nnls(root[:, None] * dense(design).T, root * z)[0]


def operator(f, n):
    return np.array([f(row) for row in np.eye(n)])


def test_fibres_are_exact_where_all_cells_are_zero():
    design = dc.Design.product({"a": 3, "b": 4, "c": 2}, "a*b*c")
    everywhere = np.ones(design.n_inner, dtype=bool)
    P = operator(Fibres(design, np.ones(design.n_published)).on(everywhere), design.n_inner)
    X = dense(design)
    np.testing.assert_allclose(P, X @ X.T, atol=1e-4)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_fibres_are_a_good_preconditioner_for_any_cells_at_zero(share):
    design = census()
    zero = np.random.default_rng(3).random(design.n_inner) < share
    P = operator(Fibres(design, np.ones(design.n_published)).on(zero), design.n_inner)[zero][
        :, zero
    ]
    np.testing.assert_allclose(P, P.T, atol=1e-5)
    X = dense(design)
    M = np.linalg.inv(X @ X.T)[zero][:, zero]
    found = np.sort(np.linalg.eigvals(P @ M).real)
    assert found[0] > 0
    plain = np.linalg.eigvalsh(M)
    assert found[-1] / found[0] < max(10.0, plain[-1] / plain[0])


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_the_inverse_of_a_crossing_is_that_of_its_matrix(precision):
    design = census()
    X = dense(design)
    inverse = analyse(design).basis(np.ones(design.n_published)).inverse()
    r = np.random.default_rng(1).normal(size=design.n_inner).astype(precision)
    found = inverse(r)
    assert found.dtype == precision
    np.testing.assert_allclose(found, np.linalg.solve(X @ X.T, r), atol=1e-5)


def test_held_margins_are_sums_of_the_design():
    design, rng = census(), np.random.default_rng(2)
    at = np.array([0, 5, 6, design.position({}), design.position({"region": "north"})])
    held, y, forces = HeldSums(design, at), rng.random(design.n_inner), rng.random(len(at))
    np.testing.assert_allclose(held.up(y), design.aggregate(y)[at])
    everywhere = np.zeros(design.n_published)
    everywhere[at] = forces
    np.testing.assert_allclose(held.down(forces), design.adjoint(everywhere))


CASES = {"plain": [], "total": [()], "one margin": ["region"], "two margins": ["sex", "age"]}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", range(4))
def test_hierarchies_are_fitted_as_the_dense_problem_is(any_size, case, seed):
    design = census()
    truth, z = noisy(design, seed)
    fitter = dc.NonNegative(exact=CASES[case])
    exact = non_negative.positions_of(design, CASES[case])
    z[exact] = truth[exact]
    fit = fitter(design, z).require()
    assert fit.notes["solver"] == METHOD or (truth[exact] == 0).any()
    expected = optimum(design, z, np.ones(len(z)), exact)
    np.testing.assert_allclose(fit.y, expected, atol=0.02)


@pytest.mark.parametrize("heavy", [100.0, 1e6])
def test_heavy_margins_are_held_by_forces_that_their_weights_allow(any_size, heavy):
    design = census()
    _, z = noisy(design, 1)
    w = np.where(np.arange(len(z)) == design.position({}), heavy, 1.0)
    fit = dc.NonNegative()(design, z, weights=w).require()
    assert fit.notes["solver"] == METHOD
    np.testing.assert_allclose(fit.y, optimum(design, z, w), atol=0.02)


def test_weights_that_are_products_of_levels_keep_the_method(any_size):
    design = census()
    _, z = noisy(design, 2)
    by_sex = np.array([0.5 if block.levels[0] is None else 2.0 for block in design.blocks])
    w = by_sex[design.block_of_cell()]
    fit = dc.NonNegative()(design, z, weights=w).require()
    assert fit.notes["solver"] == METHOD
    np.testing.assert_allclose(fit.y, optimum(design, z, w), atol=0.02)


def test_a_method_that_gives_up_leaves_the_fit_to_another(any_size, monkeypatch):
    design = census()
    _, z = noisy(design, 3)
    monkeypatch.setattr(multipliers, "_ROUNDS", 1)
    fit = dc.NonNegative()(design, z)
    assert fit.status is Status.converged
    assert fit.notes["solver"] != METHOD
