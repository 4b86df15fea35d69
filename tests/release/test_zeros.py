"""Fits that keep released zeros: against brute force on designs where cells are fixed to zero."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import optimize

import discreet as dc
from discreet.errors import ParameterError
from discreet.tables import CellStatus, Statement
from tests.strategies import designs

FORMULA = "a*b + b*c"


def release_of(design, z, **parts):
    return dc.Release(design, np.asarray(z), Statement(), **parts)


def noisy_release(seed=1, formula=FORMULA, shape=(4, 3, 3)):
    """Margins with noise of their own; zeros stay zero, and others become zero."""
    rng = np.random.default_rng(seed)
    design = dc.Design.product(dict(zip("abc", shape, strict=True)), formula)
    y = rng.poisson(1.2, design.n_inner) * (rng.random(design.n_inner) < 0.5)
    z = design.aggregate(y)
    return release_of(design, np.where(z > 0, np.maximum(z + rng.integers(-2, 3, len(z)), 0), 0))


def under_a_zero(release):
    """Inner cells in a published zero, by looking at every one of them."""
    X = release.design.matrix().toarray()
    return np.array([any(release.z[k] == 0 for k in np.flatnonzero(row)) for row in X])


def fixed_to_zero(release):
    """The whole design with the rows of those cells set to zero."""
    X = release.design.matrix().toarray().astype(float)
    X[under_a_zero(release)] = 0.0
    return X


@pytest.mark.parametrize("seed", range(5))
def test_least_squares_is_the_pseudo_inverse_with_those_cells_fixed_to_zero(seed):
    release = noisy_release(seed)
    fitted = release.fit("least-squares", zeros="margins")
    expected = np.linalg.pinv(fixed_to_zero(release).T) @ release.z
    np.testing.assert_allclose(fitted.y, expected, atol=1e-8)
    assert (fitted.y[under_a_zero(release)] == 0).all()
    np.testing.assert_allclose(fitted.z, release.design.aggregate(fitted.y))


@pytest.mark.parametrize("seed", range(5))
def test_non_negative_least_squares_with_those_cells_fixed_to_zero(seed):
    release = noisy_release(seed)
    X = fixed_to_zero(release)
    fitted = release.fit("non-negative", zeros="margins", decimals=True)
    best, _ = optimize.nnls(X.T, release.z.astype(float))
    assert fitted.y.min() >= 0
    assert (fitted.y[under_a_zero(release)] == 0).all()
    np.testing.assert_allclose(X.T @ fitted.y, X.T @ best, atol=2e-3)


@settings(max_examples=40, deadline=None)
@given(designs(), st.integers(0, 2**20))
def test_on_every_kind_of_design_it_is_a_variance_of_zero_on_those_cells(design, seed):
    assume(design.support != "occurring")
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 4, design.n_published).astype(float)
    release = release_of(design, z)
    closed = under_a_zero(release)
    fitted = release.fit(dc.LeastSquares(), zeros="margins")
    weighted = dc.LeastSquares(variance=np.where(closed, 0.0, 1.0))
    if closed.all():
        assert not fitted.y.any()
        assert not fitted.z.any()
    else:
        np.testing.assert_allclose(fitted.y, release.fit(weighted).y, atol=1e-6)


@settings(max_examples=40, deadline=None)
@given(designs(), st.integers(0, 2**20))
def test_a_design_on_some_inner_cells_is_that_part_of_the_matrix(design, seed):
    rng = np.random.default_rng(seed)
    kept = np.flatnonzero(rng.random(design.n_inner) < 0.6)
    if not len(kept):
        kept = np.array([0])
    sub, cells = design.restricted(kept)
    X = design.matrix().toarray()[kept]
    np.testing.assert_array_equal(sub.matrix().toarray(), X[:, cells])
    assert not np.delete(X, cells, axis=1).any()


@pytest.mark.parametrize("fitter", ["auto", "log-linear", "poisson", "least-absolute", "chain"])
def test_every_fitter_leaves_those_cells_empty(fitter):
    design = dc.Design.product({"a": 4, "b": 3, "c": 3}, FORMULA)
    y = np.random.default_rng(3).poisson(4.0, design.n_inner)
    y[design.inner_codes()[0] == 2] = 0
    release = release_of(design, design.aggregate(y))
    fitted = release.fit(fitter, zeros="margins", decimals=True)
    assert not fitted.y[under_a_zero(release)].any()
    np.testing.assert_allclose(fitted.z, release.z, atol=1e-2)


def test_without_zeros_in_the_margins_both_treatments_agree():
    release = noisy_release()
    full = replace(release, z=release.z + 1)
    both = [full.fit("non-negative", zeros=zeros, decimals=True).y for zeros in ("all", "margins")]
    np.testing.assert_allclose(*both, atol=1e-5)


def test_the_treatments_differ_where_margins_contradict_each_other():
    release = noisy_release(2)
    everywhere = release.fit("non-negative", decimals=True)
    assert everywhere.y[under_a_zero(release)].any()
    assert "zeros-kept" not in [s.kind for s in everywhere.statement.sentences]
    kept = release.fit("non-negative", zeros="margins", decimals=True)
    assert kept.statement.says("zeros-kept")
    assert kept.statement.steps[-1].parameters == {"zeros": "margins"}
    assert kept.fit_result.notes["zeros"] == under_a_zero(release).sum()
    assert kept.precision is None


def test_cells_that_are_not_shown_say_nothing_about_zeros():
    design = dc.Design.product({"a": 3, "b": 3}, "a + b")
    z = np.array([0, 5, 6, 4, 4, 3, 11])
    status = np.zeros(7, dtype=np.int8)
    status[0] = CellStatus.below_threshold
    hidden = release_of(design, z, status=status).fit("non-negative", zeros="margins")
    assert hidden.fit_result.notes["zeros"] == 0
    shown = release_of(design, z).fit("non-negative", zeros="margins")
    assert shown.fit_result.notes["zeros"] == 3
    assert not shown.y[:3].any()


def test_a_table_of_zeros_stays_one():
    design = dc.Design.product({"a": 3, "b": 3}, "a + b")
    fitted = release_of(design, np.zeros(7, dtype=int)).fit(zeros="margins")
    assert not fitted.y.any()
    assert not fitted.z.any()
    assert fitted.fit_result.is_converged


def test_what_cannot_be_combined_is_refused():
    release = noisy_release()
    with pytest.raises(ParameterError, match="zeros must be 'all' or 'margins'"):
        release.fit(zeros="inner")
    start = dc.LogLinear(start=np.ones(release.design.n_inner))
    for fitter in (start, dc.solve.Chain([dc.NonNegative(), start])):
        with pytest.raises(
            ParameterError, match="start= and variance= have a value for each inner cell"
        ):
            release.fit(fitter, zeros="margins")


def test_exact_margins_are_those_of_the_same_name():
    release = noisy_release(4)
    fitted = release.fit(dc.NonNegative(exact=["1"]), zeros="margins")
    total = release.design.position({})
    assert fitted.z[total] == pytest.approx(release.z[total], rel=1e-6)
