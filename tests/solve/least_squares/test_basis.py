"""Bases of complete designs against dense matrices."""

import numpy as np
import pytest

import discreet as dc
from discreet.solve.least_squares import dense as dense_factors
from discreet.solve.least_squares.basis import Effects, crossing_basis, is_crossing, pseudo_inverse
from discreet.solve.least_squares.least_squares import Kind, analyse

EVEN = {"all": {"north": ["n1", "n2"], "south": ["s1", "s2"], "sea": ["x1", "x2"]}}
UNEVEN = {"all": {"north": ["n1", "n2", "n3"], "south": ["s1", "s2"], "sea": ["x1"]}}


def tree(spec):
    return dc.design.Axis.from_hierarchies("region", [dc.Hierarchy.from_dict(spec)])


def design(spec, margins):
    axes = [
        tree(spec),
        dc.design.Axis.flat("sex", ["f", "m"]),
        dc.design.Axis.flat("age", list("abcd")),
    ]
    return dc.Design.product(axes, margins)


def sums_of_squares(made, block_weights):
    X = made.matrix().toarray().astype(float)
    return (X * block_weights[made.block_of_cell()]) @ X.T


def dense(operator, n):
    return np.array([operator(row) for row in np.eye(n)]).T


@pytest.mark.parametrize("margins", ["region*age + sex", "region*sex*age", "region[1]*sex + age"])
def test_effects_diagonalise_designs_with_groups_of_equal_size(margins):
    made = design(EVEN, margins)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(made.blocks))
    effects = Effects.of(made)
    basis, M = effects.basis(weights), sums_of_squares(made, weights)
    np.testing.assert_allclose(dense(basis.function(np.copy), made.n_inner), M, atol=1e-12)
    inverse = dense(basis.function(pseudo_inverse), made.n_inner)
    np.testing.assert_allclose(inverse, np.linalg.pinv(M, rcond=1e-10), atol=1e-10)
    assert effects.ranks.sum() == made.n_inner
    np.testing.assert_allclose((effects.gains @ effects.ranks.ravel()) @ weights, np.trace(M))


def test_groups_of_unequal_size_have_no_effects_in_common():
    assert Effects.of(design(UNEVEN, "region*age + sex")) is None
    assert analyse(design(UNEVEN, "region*age + sex")).kind is Kind.complete


def test_crossings_are_diagonal_with_any_groups_where_weights_are_products():
    made = design(UNEVEN, "region*sex*age")
    assert is_crossing(made)
    of_region = {level: w for w, level in enumerate([None, *made.axes[0].levels], start=2)}
    weights = np.array([of_region[b.levels[0]] * 1.5**b.order for b in made.blocks])
    basis, M = crossing_basis(made, weights), sums_of_squares(made, weights)
    assert basis.is_exact
    np.testing.assert_allclose(dense(basis.function(np.copy), made.n_inner), M, atol=1e-10)
    inverse = np.linalg.inv(M)
    for operator in (basis.inverse(), basis.function(pseudo_inverse)):
        np.testing.assert_allclose(dense(operator, made.n_inner), inverse, atol=1e-12)
    single = basis.inverse()(np.ones(made.n_inner, dtype=np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, inverse.sum(axis=1), rtol=1e-4)
    assert basis.smallest == pytest.approx(np.linalg.eigvalsh(M).min())


def test_other_weights_leave_a_crossing_a_good_preconditioner(monkeypatch):
    monkeypatch.setattr(dense_factors, "MOST_ENTRIES", 0)
    made = design(UNEVEN, "region*sex*age")
    rng = np.random.default_rng(2)
    weights = rng.uniform(0.3, 3.0, len(made.blocks))
    basis, M = crossing_basis(made, weights), sums_of_squares(made, weights)
    assert not basis.is_exact
    eigenvalues = np.linalg.eigvals(dense(basis.inverse(), made.n_inner) @ M).real
    assert eigenvalues.max() / eigenvalues.min() < 0.1 * np.linalg.cond(M)
    z = rng.normal(5.0, 2.0, made.n_published)
    fit = dc.LeastSquares()(made, z, weights=rng.uniform(0.3, 3.0, len(z))).require()
    assert fit.notes["solver"] == "preconditioned conjugate gradients"
    assert crossing_basis(made, np.where(np.arange(len(weights)), weights, 0.0)) is None
