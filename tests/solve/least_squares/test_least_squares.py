"""Least squares against the pseudo-inverse, laws, and the papers' examples."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.errors import DesignError, ParameterError
from discreet.solve.least_squares import dense as dense_factors
from tests.references import minimum_norm
from tests.strategies import designs

MARGINS = {"a": 3, "b": 3}


def dense(design):
    return design.matrix().toarray()


@given(designs(), st.integers(0, 2**32 - 1))
@settings(max_examples=80)
def test_the_fit_is_the_pseudo_inverse(design, seed):
    z = np.random.default_rng(seed).normal(0, 5, design.n_published)
    fit = dc.LeastSquares()(design, z).require()
    np.testing.assert_allclose(fit.y, minimum_norm(dense(design), z), atol=1e-6)
    np.testing.assert_allclose(fit.z, design.aggregate(fit.y))


@given(designs(), st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_weights_multiply_the_loss_and_zero_leaves_a_cell_out(design, seed):
    rng = np.random.default_rng(seed)
    z, w = rng.normal(0, 5, design.n_published), rng.integers(0, 4, design.n_published)
    fit = dc.LeastSquares()(design, z, weights=w).require()
    root = np.sqrt(w)
    expected = np.linalg.pinv((dense(design) * root).T) @ (root * z)
    np.testing.assert_allclose(fit.y, expected, atol=1e-6)


@given(designs(), st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_an_additive_table_is_met_and_fitting_twice_is_fitting_once(design, seed):
    y = np.random.default_rng(seed).integers(0, 9, design.n_inner)
    z = design.aggregate(y)
    once = dc.LeastSquares()(design, z).require()
    np.testing.assert_allclose(once.z, z, atol=1e-6)
    again = dc.LeastSquares()(design, once.z).require()
    np.testing.assert_allclose(again.y, once.y, atol=1e-6)


def test_the_three_by_three_example_of_langsrud():
    """Table 3 of Langsrud (2019b): the inner cells from exact margins, to three decimals."""
    design = dc.Design.product(MARGINS, [("a",), ("b",), ()])
    y = np.array([3, 6, 2, 1, 4, 7, 5, 8, 27])
    fit = dc.LeastSquares()(design, design.aggregate(y))
    expected = [-0.333, 2.667, 8.667, 0, 3, 9, 9.333, 12.333, 18.333]
    np.testing.assert_allclose(fit.y, expected, atol=5e-4)


def test_suppressed_cells_are_recovered_from_the_safe_ones():
    """Table 2 of Langsrud (2019b): four suppressed inner cells, to three decimals."""
    design = dc.Design.product(MARGINS, "a*b")
    y = np.array([3, 6, 2, 1, 4, 7, 5, 8, 27])
    weights = np.ones(design.n_published)
    hidden = [{"a": 1, "b": 1}, {"a": 1, "b": 3}, {"a": 2, "b": 1}, {"a": 2, "b": 3}]
    weights[[design.position(cell) for cell in hidden]] = 0
    fit = dc.LeastSquares()(design, design.aggregate(y), weights=weights)
    shown = [fit.y[design.inner_position(cell)] for cell in hidden]
    np.testing.assert_allclose(shown, [1.25, 3.75, 2.75, 5.25], atol=5e-4)


def test_half_a_million_cells_have_a_closed_form():
    variables = {"a": 7, "b": 19, "c": 12, "d": 52, "e": 6}
    design = dc.Design.product(variables, dc.margins(list(variables), 3, lower=False))
    z = np.random.default_rng(1).normal(20, 5, design.n_published)
    fit = dc.LeastSquares()(design, z).require()
    assert fit.iterations == 0
    assert fit.certificate.deviation < 1e-10


def test_one_design_serves_many_right_hand_sides():
    design = dc.Design.product(MARGINS, "a + b")
    prepared = dc.LeastSquares().prepare(design)
    for seed in range(3):
        z = np.random.default_rng(seed).normal(size=design.n_published)
        np.testing.assert_array_equal(prepared(z).y, dc.LeastSquares()(design, z).y)


def test_a_fit_that_stops_early_says_so(monkeypatch):
    monkeypatch.setattr(dense_factors, "MOST_ENTRIES", 0)
    design = dc.Design.sparse({"a": 4, "b": 4}, "a + b", [[0, 1, 2, 3, 0], [0, 0, 1, 2, 3]])
    fit = dc.LeastSquares(max_steps=1)(design, np.arange(design.n_published))
    assert not fit.is_converged
    with pytest.raises(dc.DiscreetError, match="max_steps"):
        fit.require()


def test_bad_options_and_input_are_refused():
    with pytest.raises(ParameterError, match="tolerance"):
        dc.LeastSquares(tolerance=0)
    with pytest.raises(ParameterError, match="max_steps"):
        dc.LeastSquares(max_steps=0)
    design = dc.Design.product(MARGINS, "a + b")
    with pytest.raises(DesignError):
        dc.LeastSquares()(design, np.ones(3))


def test_the_four_by_four_example_of_the_regression_paper():
    """Fitted values of suppressed cells from the publishable ones, to ten decimals."""
    counts = np.array([[3, 11, 32, 30], [1, 9, 13, 8], [12, 22, 2, 2], [18, 19, 16, 3]])
    design = dc.Design.product({"a": 4, "b": 4}, "a*b")
    weights = np.ones(design.n_published)
    hidden = [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (3, 3), (3, 4), (4, 1), (4, 4)]
    weights[[design.position({"a": a, "b": b}) for a, b in hidden]] = 0
    fit = dc.LeastSquares(tolerance=1e-13)(
        design, design.aggregate(counts.ravel()), weights=weights
    )
    expected = [
        [4.17391304347826, 9.82608695652174, 32, 30],
        [4.52173913043478, 10.1739130434783, 8.30434782608696, 8],
        [12, 22, 6.69565217391304, -2.69565217391304],
        [13.304347826087, 19, 16, 7.69565217391304],
    ]
    np.testing.assert_allclose(fit.y.reshape(4, 4), expected, atol=1e-10)
