"""Non-negative least squares against slow references, laws, and the papers' examples."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

import discreet as dc
from discreet.design import MatrixDesign
from discreet.errors import DataError, DesignError, ParameterError
from discreet.solve import Status
from tests.strategies import designs

TWO_WAY = dc.Design.product({"a": 3, "b": 3}, [("a",), ("b",), ()])


def dense(design):
    return design.matrix().toarray().astype(float)


def slow_ridge(X, z, w, ridge):
    """The stacked system of the paper: `[W X'; ridge I] y = [W z; 0]`, y >= 0."""
    root = np.sqrt(w)
    A = np.vstack([root[:, None] * X.T, ridge * np.eye(X.shape[0])])
    return nnls(A, np.concatenate([root * z, np.zeros(X.shape[0])]))[0]


def noisy(design, seed, scale=4.0):
    rng = np.random.default_rng(seed)
    y = rng.poisson(3, design.n_inner) * rng.integers(0, 2, design.n_inner)
    return design.aggregate(y) + rng.laplace(0, scale, design.n_published)


@given(designs(), st.integers(0, 2**32 - 1))
@settings(max_examples=100)
def test_the_fit_is_the_limit_of_the_stacked_system(design, seed):
    z = noisy(design, seed)
    fit = dc.NonNegative(tolerance=1e-9)(design, z).require()
    slow = slow_ridge(dense(design), z, np.ones(len(z)), 1e-4)
    np.testing.assert_allclose(fit.y, slow, atol=1e-3)
    np.testing.assert_allclose(fit.z, design.aggregate(fit.y))


@given(designs(), st.integers(0, 2**32 - 1), st.floats(0.1, 3))
@settings(max_examples=60)
def test_a_ridge_that_matters_is_part_of_the_objective(design, seed, ridge):
    z = noisy(design, seed)
    fit = dc.NonNegative(ridge=ridge, tolerance=1e-9)(design, z).require()
    np.testing.assert_allclose(
        fit.y, slow_ridge(dense(design), z, np.ones(len(z)), ridge), atol=1e-5
    )


@given(designs(), st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_weights_multiply_the_loss_and_zero_leaves_a_cell_out(design, seed):
    z = noisy(design, seed)
    w = np.random.default_rng(seed).integers(0, 4, design.n_published).astype(float)
    z[w == 0] = np.nan
    fit = dc.NonNegative(tolerance=1e-9)(design, z, weights=w).require()
    slow = slow_ridge(dense(design), np.where(w > 0, z, 0.0), w, 1e-4)
    np.testing.assert_allclose(fit.y, slow, atol=1e-3)


@given(designs(), st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_the_smallest_norm_is_proven_by_its_dual_vector(design, seed):
    fit = dc.NonNegative(tolerance=1e-6)(design, noisy(design, seed)).require()
    dual = fit.notes["dual"]
    if dual is not None:
        proof = np.maximum(0.0, dense(design) @ dual)
        np.testing.assert_allclose(proof, fit.y, atol=1e-5 * max(1.0, fit.y.max()))


@given(designs(), st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_a_table_that_adds_up_is_met_and_scaling_scales(design, seed):
    y = np.random.default_rng(seed).integers(0, 9, design.n_inner)
    z = design.aggregate(y).astype(float)
    once = dc.NonNegative(tolerance=1e-9)(design, z).require()
    np.testing.assert_allclose(once.z, z, atol=1e-5)
    assert (once.y >= 0).all()
    assert np.linalg.norm(once.y) <= np.linalg.norm(y) * (1 + 1e-6) + 1e-9
    tenfold = dc.NonNegative(tolerance=1e-9)(design, 10 * z).require()
    np.testing.assert_allclose(tenfold.y, 10 * once.y, atol=1e-4)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_exact_margins_are_the_limit_of_heavy_weights(seed):
    design = dc.Design.product({"a": 3, "b": 4, "c": 2}, "a:b + b:c + a:c + a + 1")
    rng = np.random.default_rng(seed)
    y = rng.poisson(2, design.n_inner) * rng.integers(0, 2, design.n_inner)
    z = design.aggregate(y) + rng.laplace(0, 3, design.n_published)
    exact = [design.slice_of(k) for k, b in enumerate(design.blocks) if b.size in (1, 3)]
    at = np.concatenate([np.arange(s.start, s.stop) for s in exact])
    z[at] = design.aggregate(y)[at]
    fit = dc.NonNegative(exact="a + 1", tolerance=1e-7)(design, z).require()
    np.testing.assert_allclose(fit.z[at], z[at], atol=1e-6 * max(1.0, z.max()))
    w = np.ones(len(z))
    w[at] = 1e8
    slow = slow_ridge(dense(design), z, w, 1e-3)
    np.testing.assert_allclose(fit.y, slow, atol=5e-3)
    heavy = dc.NonNegative(tolerance=1e-5)(design, z, weights=w).require()
    np.testing.assert_allclose(heavy.y, fit.y, atol=1e-4)


def sparse_and_noisy(seed, n_cells=220, scale=20.0):
    """A table of few cells, its pairs true and its triples with more noise than they have counts.

    Many pairs are of one to three people, and at first no cell that could hold them is positive.
    """
    rng, sizes = np.random.default_rng(seed), {"a": 6, "b": 7, "c": 8, "d": 5}
    pairs, triples = (list(itertools.combinations(sizes, k)) for k in (2, 3))
    cells = np.sort(rng.choice(int(np.prod(list(sizes.values()))), n_cells, replace=False))
    codes = np.unravel_index(cells, tuple(sizes.values()))
    design = dc.Design.sparse(sizes, [*pairs, *triples], codes)
    is_pair = np.array([block.order == 2 for block in design.blocks])[design.block_of_cell()]
    z = design.aggregate(rng.geometric(0.3, n_cells)).astype(float)
    z[~is_pair] += rng.laplace(0, scale, int((~is_pair).sum()))
    return design, z, is_pair, pairs


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shape", [(220, 20.0), (120, 100.0), (600, 50.0)])
def test_exact_margins_are_met_where_only_large_forces_can(seed, shape):
    design, z, is_pair, pairs = sparse_and_noisy(seed, *shape)
    fit = dc.NonNegative(exact=pairs, tolerance=1e-4)(design, z).require()
    assert np.abs(fit.z - z)[is_pair].max() <= 1e-4
    soft = dc.NonNegative()(design, z).require()
    assert np.abs(soft.z - z)[is_pair].max() > 1


@pytest.mark.parametrize("heavy", [1e2, 1e3, 1e5])
@pytest.mark.parametrize("seed", range(3))
def test_heavy_margins_of_sparse_tables_are_fitted_as_the_stacked_system_fits_them(heavy, seed):
    design, z, is_pair, _ = sparse_and_noisy(seed, 120)
    w = np.where(is_pair, heavy, 1.0)
    fit = dc.NonNegative(tolerance=1e-4)(design, z, weights=w).require()
    np.testing.assert_allclose(fit.y, slow_ridge(dense(design), z, w, 1e-4), atol=2e-3)


@pytest.mark.parametrize("seed", range(3))
def test_exact_margins_that_nearly_fit_together_are_still_said_to_be_infeasible(seed):
    design, z, is_pair, pairs = sparse_and_noisy(seed)
    one, other = np.random.default_rng(seed).choice(np.flatnonzero(is_pair), 2, replace=False)
    z[one], z[other] = z[one] + 1, z[other] - 1
    assert dc.NonNegative(exact=pairs)(design, z).status is Status.infeasible


@pytest.mark.parametrize("heavy", [40.0, 1e3])
@pytest.mark.parametrize("seed", range(3))
def test_exact_margins_are_met_beside_heavy_ones_that_contradict_them(heavy, seed):
    design, z, is_pair, pairs = sparse_and_noisy(seed, 60, 100.0)
    is_heavy = ~is_pair & (np.random.default_rng(seed).random(len(z)) < 0.3)
    w = np.where(is_heavy, heavy, 1.0)
    fit = dc.NonNegative(exact=pairs, tolerance=1e-4)(design, z, weights=w).require()
    assert np.abs(fit.z - z)[is_pair].max() <= 1e-4
    slow = slow_ridge(dense(design), z, np.where(is_pair, 1e9, w), 1e-4)
    np.testing.assert_allclose(fit.z, design.aggregate(slow), atol=0.05)


def test_a_starting_table_does_not_end_the_fit_before_it_began():
    design = dc.Design.product({"a": 8, "b": 9, "c": 7}, "a*b + b*c + a*c")
    rng = np.random.default_rng(1)
    y = rng.poisson(3.0, design.n_inner).astype(float)
    z = design.aggregate(y) + rng.normal(0, 1, design.n_published)
    assert dc.NonNegative(start=y)(design, z).require().iterations < 80


def test_an_exact_margin_without_a_cell_that_may_move_is_infeasible():
    design = dc.Design.product({"a": 3, "b": 3}, [("a", "b"), ("a",), ("b",), ()])
    start = np.array([2.0, 4, 2, 4, 0, 4, 3, 2, 3])
    z = design.aggregate(np.array([5.0, 2, 2, 1, 3, 2, 5, 2, 3]))
    fit = dc.NonNegative(exact="a*b", start=start)(design, z)
    assert fit.status is Status.infeasible


def test_a_design_without_inner_cells_has_no_exact_margins_but_zeros():
    design = MatrixDesign(np.zeros((0, 2), dtype=int))
    assert dc.NonNegative(exact=[1])(design, np.array([3.0, 0.0])).is_converged
    fit = dc.NonNegative(exact=[1])(design, np.array([3.0, 1.0]))
    assert fit.status is Status.infeasible


def test_the_grand_total_alone_may_be_exact():
    z = np.array([11, 13, 45, 11, 18, 38, 60.0])
    fit = dc.NonNegative(exact=[()], tolerance=1e-4)(TWO_WAY, z).require()
    assert fit.y.sum() == pytest.approx(60, abs=1e-4)
    by_number = dc.NonNegative(exact=[6], tolerance=1e-4)(TWO_WAY, z).require()
    np.testing.assert_allclose(by_number.y, fit.y, atol=1e-4)


def test_exact_margins_that_no_table_has_are_called_infeasible():
    z = np.array([10, 10, 10, 5, 5, 5, 30.0])
    fit = dc.NonNegative(exact="a + b")(TWO_WAY, z)
    assert fit.status is Status.infeasible
    with pytest.raises(dc.DiscreetError, match="exact"):
        fit.require()


def test_a_negative_exact_margin_is_infeasible():
    fit = dc.NonNegative(exact=["a"])(TWO_WAY, np.array([-3, 5, 5, 4, 4, 4, 12.0]))
    assert fit.status is Status.infeasible


@pytest.mark.parametrize(
    ("z", "options", "expected"),
    [
        ([11, 12, 40, 9, 18, 36, 63], {}, [0, 2.5, 8.5, 0, 3, 9, 9, 12.5, 18.5]),
        (
            [11, 13, 45, 11, 18, 38, 61],
            {},
            [0, 1.3, 7.967, 0, 2.3, 8.967, 9.933, 13.333, 20.0],
        ),
        (
            [11, 12, 40, 3.286, 21.633, 35.433, 63],
            {"exact": "a + 1"},
            [0, 3.2, 7.8, 0, 3.7, 8.3, 4.168, 15.616, 20.216],
        ),
    ],
    ids=["Table 3", "Table 5", "Table 7"],
)
def test_the_tables_of_langsrud_to_three_decimals(z, options, expected):
    fit = dc.NonNegative(**options)(TWO_WAY, np.array(z, dtype=float)).require()
    np.testing.assert_allclose(fit.y, expected, atol=1.1e-3 if options else 6e-4)


def test_table_7_by_the_weight_of_the_paper():
    z = np.array([11, 12, 40, 3.286, 21.633, 35.433, 63])
    w = np.array([1e6, 1e6, 1e6, 1, 1, 1, 1e6])
    fit = dc.NonNegative()(TWO_WAY, z, weights=w).require()
    expected = [0, 3.2, 7.8, 0, 3.7, 8.3, 4.168, 15.616, 20.216]
    np.testing.assert_allclose(fit.y, expected, atol=1.1e-3)


def test_table_6_from_margins_without_the_total():
    design = dc.Design.product({"a": 3, "b": 3}, [("a",), ("b",)])
    z = np.array([19.757, 14.542, 40.470, -2.429, 25.266, 34.867])
    fit = dc.NonNegative()(design, z).require()
    expected = [0, 6.856, 10.056, 0, 4.249, 7.449, 0.415, 17.005, 20.205]
    np.testing.assert_allclose(fit.y, expected, atol=1.1e-3)


def test_starting_weights_give_linear_calibration_with_a_lower_bound():
    design = dc.Design.product({"a": 2, "b": 2}, [("a",), ("b",)])
    s = np.array([4.0, 1.0, 2.0, 3.0])
    z = np.array([7.0, 3.0, 6.5, 3.5])
    fit = dc.NonNegative(start=s, tolerance=1e-10)(design, z).require()
    X = dense(design)
    unbounded = s + s * (X @ np.linalg.pinv((X * s[:, None]).T @ X) @ (z - X.T @ s))
    assert (unbounded > 0).all()
    np.testing.assert_allclose(fit.y, unbounded, atol=1e-6)
    np.testing.assert_allclose(
        dc.LeastSquares(start=s)(design, z).require().y, unbounded, atol=1e-6
    )


def test_structural_zeros_stay_zero():
    s = np.array([0, 1, 1, 1, 0, 1, 1, 1, 0.0])
    fit = dc.NonNegative(start=s * 5, variance=s)(TWO_WAY, np.array([9, 9, 9, 9, 9, 9, 27.0]))
    np.testing.assert_allclose(fit.require().y, s * 4.5, atol=1e-4)


def hard_designs():
    """Rank-deficient, duplicate, empty and linked designs, as matrices."""
    rng = np.random.default_rng(5)
    for n, m in itertools.product((1, 4, 9), (1, 5, 12)):
        X = rng.integers(0, 2, (n, m))
        yield np.hstack([X, X[:, :2], np.zeros((n, 1), dtype=int)])
        yield np.vstack([X, X[:1], np.zeros((1, m), dtype=int)])


@pytest.mark.parametrize("X", list(hard_designs()), ids=lambda X: f"{X.shape[0]}x{X.shape[1]}")
@pytest.mark.parametrize("seed", range(3))
def test_hard_designs_against_the_stacked_system(X, seed):
    from scipy.sparse import csr_array

    design = MatrixDesign(csr_array(X))
    z = np.random.default_rng(seed).normal(2, 6, X.shape[1])
    fit = dc.NonNegative(tolerance=1e-9)(design, z).require()
    np.testing.assert_allclose(fit.y, slow_ridge(X, z, np.ones(len(z)), 1e-4), atol=1e-3)


def test_multipliers_of_bounds_and_active_sets_agree_where_every_inner_cell_is_published():
    variables = {"a": 30, "b": 30, "c": 30}
    design = dc.Design.product(variables, "a:b:c + a:b + a:c + b:c + a + b + c + 1")
    z = noisy(design, 3, scale=2.0)
    fit = dc.NonNegative(tolerance=1e-6)(design, z).require()
    assert fit.notes["solver"] == "multipliers of the bounds"
    matrix = MatrixDesign(design.matrix())
    other = dc.NonNegative(tolerance=1e-6)(matrix, z).require()
    assert other.notes["solver"] != "multipliers of the bounds"
    np.testing.assert_allclose(other.y, fit.y, atol=1e-3)


def test_structural_zeros_are_only_a_bound_to_multipliers():
    variables = {"a": 30, "b": 30, "c": 30}
    margins = "a:b:c + a:b + a:c + b:c + a + b + c + 1"
    allowed = np.random.default_rng(4).random(27_000) < 0.8
    codes = np.unravel_index(np.flatnonzero(allowed), (30, 30, 30))
    design = dc.Design.sparse(variables, margins, codes)
    z = noisy(design, 3, scale=2.0)
    fit = dc.NonNegative(tolerance=1e-6)(design, z).require()
    assert fit.notes["solver"] == "multipliers of the bounds"
    other = dc.NonNegative(tolerance=1e-6)(MatrixDesign(design.matrix()), z).require()
    np.testing.assert_allclose(other.y, fit.y, atol=1e-3)
    free = dc.LeastSquares()(design, z).require()
    assert free.notes["solver"] == "preconditioned by the complete table"
    np.testing.assert_allclose(
        free.y, dc.LeastSquares()(MatrixDesign(design.matrix()), z).require().y, atol=1e-5
    )


def test_multipliers_of_bounds_meet_exact_margins():
    variables = {"a": 30, "b": 30, "c": 30}
    design = dc.Design.product(variables, "a:b:c + a:b + a + 1")
    z = noisy(design, 3, scale=2.0)
    z[design.position({})] = 20_000
    fit = dc.NonNegative(tolerance=1e-4, exact=[()])(design, z).require()
    assert fit.notes["solver"] == "multipliers of the bounds"
    assert fit.y.sum() == pytest.approx(20_000, abs=1e-2)


def test_one_design_serves_many_right_hand_sides():
    prepared = dc.NonNegative().prepare(TWO_WAY)
    for seed in range(3):
        z = noisy(TWO_WAY, seed)
        np.testing.assert_array_equal(prepared(z).y, dc.NonNegative()(TWO_WAY, z).y)


def test_a_fit_that_stops_early_says_so():
    fit = dc.NonNegative(max_steps=1)(TWO_WAY, np.array([11, 13, 45, 11, 18, 38, 61.0]))
    assert fit.status is Status.max_steps
    assert fit.certificate.worst > fit.certificate.tolerance


def test_bad_options_and_input_are_refused():
    with pytest.raises(ParameterError, match="ridge"):
        dc.NonNegative(ridge=-1)
    with pytest.raises(ParameterError, match="tolerance"):
        dc.NonNegative(tolerance=0)
    with pytest.raises(ParameterError, match="not published"):
        dc.NonNegative(exact=[("a", "b")])(TWO_WAY, np.ones(7))
    with pytest.raises(ParameterError, match="numbered"):
        dc.NonNegative(exact=[99])(TWO_WAY, np.ones(7))
    with pytest.raises(DataError, match="no value"):
        dc.NonNegative()(TWO_WAY, np.array([1, 2, 3, np.nan, 1, 1, 6]))
    with pytest.raises(DesignError, match="shape"):
        dc.NonNegative()(TWO_WAY, np.ones(3))
    with pytest.raises(ParameterError, match="starting table"):
        dc.NonNegative(start=np.ones(4))(TWO_WAY, np.ones(7))


def test_heavy_margins_that_contradict_each_other_do_no_harm():
    design = dc.Design.product({"a": 1, "b": 2}, "a*b")
    z = np.array([-2, -3, -1, 3, 1, 4.0])
    w = np.array([1, 1, 100, 100, 100, 100.0])
    fit = dc.NonNegative(tolerance=1e-8)(design, z, weights=w)
    np.testing.assert_allclose(fit.y, slow_ridge(dense(design), z, w, 1e-5), atol=1e-4)


@pytest.mark.parametrize("heavy", [1e2, 1e4, 1e6])
@pytest.mark.parametrize("seed", range(4))
def test_noisy_heavy_margins_are_fitted_as_the_stacked_system_fits_them(heavy, seed):
    design = dc.Design.product({"a": 2, "b": 3}, "a*b")
    z = noisy(design, seed, scale=3.0)
    w = np.where(design.column_sizes == 1, 1.0, heavy)
    fit = dc.NonNegative()(design, z, weights=w)
    np.testing.assert_allclose(fit.y, slow_ridge(dense(design), z, w, 1e-4), atol=1e-3)


@pytest.mark.parametrize("z", [-1e5, -1e3, 0.0])
def test_nothing_to_fit_is_zero(z):
    design = dc.Design.product({"a": 2, "b": 2}, "a*b")
    fit = dc.NonNegative()(design, np.full(9, z)).require()
    np.testing.assert_array_equal(fit.y, np.zeros(4))


def test_a_design_without_inner_cells_has_an_empty_fit():
    design = dc.Design.sparse({"a": 2, "b": 2}, "a + b", [[], []])
    assert len(dc.NonNegative()(design, np.zeros(design.n_published)).require().y) == 0
