"""Certificates that scale cannot fool: every cell is judged on its own, in counts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

import discreet as dc
from benchmarks._exact import LeastSquaresReference
from benchmarks.certificates import case_of
from discreet.errors import NotConvergedError, ParameterError
from discreet.solve import Accuracy, LeastSquaresProblem, Prior, Status
from discreet.solve.least_squares.problem import certify_non_negative
from discreet.solve.non_negative.active_set import ActiveSet
from tests.solve.slow import least_absolute_loss


def dense(design):
    return design.matrix().toarray().astype(float)


def recomputed(X, z, w, fit, *, exact=(), tolerance=1e-3, count=1.0):
    """The certificate of a non-negative fit, from its cells, multipliers and dual vector alone."""
    y, held, force = fit.y, fit.notes["held"], fit.notes["multipliers"]
    fitted, allowed = X.T @ y, tolerance * min(count, np.abs(z).max())
    soft = np.where(np.isin(np.arange(len(z)), held), 0.0, w)
    f = w * (z - fitted)
    f[held] = force
    everywhere = geometric(soft)
    stationarity = 0.0
    for i in range(len(y)):
        near = soft[X[i] > 0]
        seen = near.any()
        limit = allowed * (geometric(near) if seen else everywhere)
        limit = max(limit, 1e-13 * (X[i] * soft) @ np.abs(z))
        g = min(-X[i] @ f, (near.sum() if seen else everywhere) * y[i])
        stationarity = max(stationarity, tolerance * abs(g) / limit)
    slack = np.where(np.isin(held, exact), 0.0, 1 / w[held])
    off = np.abs(z[held] - fitted[held] - slack * force)
    feasibility = tolerance * (off / np.maximum(allowed, 1e-12 * np.abs(z[held]))).max(initial=0.0)
    selection = 0.0
    if fit.notes["dual"] is not None:
        counted = X @ ((w > 0) / np.maximum(np.abs(z), count))
        smallest = np.divide(1.0, counted, out=np.zeros_like(counted), where=counted > 0)
        apart = np.abs(y - np.maximum(X @ fit.notes["dual"], 0.0))
        selection = (apart / np.maximum(allowed, 1e-12 * smallest)).max() / 100
    return stationarity, feasibility, tolerance * selection


def geometric(w):
    """Between the mean weight and the mean variance."""
    w = w[w > 0]
    return np.sqrt(w.sum() / (1 / w).sum()) if len(w) else 1.0


def assert_proven_by(forces, X, z, w, fit, exact):
    """Forces are those of the residuals, raise no cell, and hold down none that is positive."""
    slack = np.where(w > 0, 1 / np.where(w > 0, w, 1), 0.0)
    slack[exact] = 0.0
    off = np.where(w > 0, np.abs(z - fit.y @ X - slack * forces), 0.0)
    assert off.max() == pytest.approx(fit.certificate.deviation, rel=1e-3, abs=1e-9)
    assert off.max() <= max(1e-3, 1e-11 * np.abs(z).max())
    rise = X @ forces
    assert (rise <= 1e-6 * (1 + X @ np.abs(forces))).all()
    assert np.abs(rise[fit.y > 1e-3 * (1 + np.abs(z).max())]).max(initial=0.0) <= 1e-6 * (
        1 + np.abs(forces).max(initial=0.0)
    )


def assert_recomputed(X, z, w, fit, **options):
    c = fit.certificate
    if (forces := fit.notes["forces"]) is not None:
        assert_proven_by(forces, X, z, w, fit, options.get("exact", []))
        return
    seen = (c.stationarity, c.feasibility, c.selection)
    np.testing.assert_allclose(seen, recomputed(X, z, w, fit, **options), rtol=1e-3, atol=1e-4)


def optimum(X, z, w, exact=()):
    """Published cells of non-negative least squares, with exact margins by weight."""
    root, size = np.sqrt(w), np.abs(z).max()
    root[list(exact)] = 1e5 * root.max()
    return size * (X.T @ nnls(root[:, None] * X.T, root * z / size, maxiter=10_000)[0])


def population(seed, margins, total=6.7e7):
    """A table as large as a country, with noise of rms 7 and its total known."""
    rng = np.random.default_rng(seed)
    design = dc.Design.product({"a": 8, "b": 6, "c": 2}, margins)
    y = rng.gamma(0.5, 1, design.n_inner)
    truth = design.aggregate(np.round(y * total / y.sum())).astype(float)
    z = truth + rng.laplace(0, 5, len(truth))
    top = design.position({})
    z[top] = truth[top]
    return design, z, top


@pytest.mark.parametrize("margins", ["a*b*c", "a*b + b*c + a*c"])
@pytest.mark.parametrize("seed", range(4))
def test_a_large_known_total_spoils_no_cell(margins, seed):
    design, z, top = population(seed, margins)
    X, ones = dense(design), np.ones(len(z))
    heavy = np.where(np.arange(len(z)) == top, 1e6, 1.0)
    exact = dc.NonNegative(exact=[()])(design, z).require()
    np.testing.assert_allclose(exact.z, optimum(X, z, ones, [top]), rtol=0, atol=0.2)
    assert_recomputed(X, z, ones, exact, exact=[top])
    for fitter in (dc.NonNegative(), dc.solve.Auto(), dc.solve.Chain()):
        fit = fitter(design, z, weights=heavy).require()
        np.testing.assert_allclose(fit.z, optimum(X, z, heavy), rtol=0, atol=0.2)


def test_two_scales_in_one_matrix_do_not_disturb_each_other():
    X = np.array([[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 1, 0]])
    z = np.array([1e9, 4e8, 10, 20, 3])
    fit = dc.NonNegative()(dc.Design.from_matrix(X), z).require()
    np.testing.assert_allclose(fit.z, [1e9, 4e8, 15, 15, 0], rtol=1e-7, atol=1e-3)
    assert_recomputed(X, z, np.ones(5), fit)


@pytest.mark.parametrize("off", [1, 40])
def test_exact_margins_of_a_population_that_contradict_each_other_do_not_pass(off):
    design, z, top = population(1, "a + b + 1")
    truth = design.aggregate(np.arange(design.n_inner) * 1_000.0)
    truth[top] += off
    fit = dc.NonNegative(exact="a + b + 1")(design, truth)
    assert fit.status in (Status.infeasible, Status.stalled)
    assert fit.certificate.deviation > 0.05 * off
    with pytest.raises(NotConvergedError, match="counts, at published cell"):
        fit.require()


@pytest.mark.parametrize("seed", range(6))
def test_a_table_that_adds_up_is_met_whatever_the_weights(seed):
    rng = np.random.default_rng(seed)
    design = dc.Design.product({"a": 5, "b": 4, "c": 3}, "a*b + b*c")
    y = rng.gamma(0.3, 1, design.n_inner)
    z = design.aggregate(np.round(y * 2e6 / y.sum())).astype(float)
    w = 10 ** rng.uniform(-1, 2, len(z))
    fit = dc.NonNegative()(design, z, weights=w).require()
    np.testing.assert_allclose(fit.z, z, rtol=1e-6, atol=0.1)
    assert_recomputed(dense(design), z, w, fit)


def test_a_heavy_margin_that_is_held_hides_no_error():
    design = dc.Design.product({"a": 3, "b": 3}, "a*b")
    z = design.aggregate(np.full(9, 22_000.0))
    w = np.where(np.arange(len(z)) == design.position({}), 1e6, 1.0)
    problem = LeastSquaresProblem.of(
        design, z, w, Prior(), Accuracy(1e-3), np.empty(0, dtype=np.int64)
    )
    assert problem.held.tolist() == [design.position({})]
    y = np.full(9, 22_000.0)
    assert certify_non_negative(problem, y, np.zeros(1), dual=None, ridge=0.0).holds
    y[:3] += [13_500, -13_500, 0]
    wrong = certify_non_negative(problem, y, np.zeros(1), dual=None, ridge=0.0)
    assert not wrong.holds
    assert wrong.deviation > 13_500


@pytest.mark.parametrize("total", [1e3, 6.7e7, 1.4e9])
def test_a_converged_table_with_one_small_cell_moved_by_counts_is_refused(total):
    design, z, top = population(2, "a*b + b*c", total)
    fit = dc.NonNegative(exact=[top])(design, z).require()
    exact = np.array([top])
    problem = LeastSquaresProblem.of(design, z, None, Prior(), Accuracy(1e-3), exact)
    forces = fit.notes["multipliers"]
    assert certify_non_negative(problem, fit.y, forces, dual=None, ridge=0.0).holds
    moved, smallest = fit.y.copy(), np.flatnonzero(fit.y > 0)[fit.y[fit.y > 0].argmin()]
    moved[smallest] += 3
    moved[fit.y.argmax()] -= 3
    wrong = certify_non_negative(problem, moved, forces, dual=None, ridge=0.0)
    assert not wrong.holds
    assert wrong.deviation > 2


def small(seed):
    rng = np.random.default_rng(seed)
    design = dc.Design.product({"a": 3, "b": 4}, "a + b")
    z = design.aggregate(rng.poisson(5, 12)) + rng.laplace(0, 3, design.n_published)
    return dense(design), z


@given(st.integers(0, 2**32 - 1), st.floats(1, 12))
@settings(max_examples=40)
def test_an_unrelated_block_of_any_size_changes_nothing(seed, digits):
    (X, z), (other, large) = small(seed), small(seed + 1)
    n, m = X.shape
    both = np.block([[X, np.zeros((n, m))], [np.zeros((n, m)), other]]).astype(int)
    alone = dc.NonNegative()(dc.Design.from_matrix(X.astype(int)), z).require()
    fit = dc.NonNegative()(dc.Design.from_matrix(both), np.append(z, 10**digits * large)).require()
    np.testing.assert_allclose(fit.z[:m], alone.z, rtol=0, atol=0.05)
    wrong = np.append(alone.y + 0.5, fit.y[n:])
    problem = LeastSquaresProblem.of(
        dc.Design.from_matrix(both), np.append(z, 10**digits * large), None, Prior(), Accuracy(1e-3)
    )
    assert not certify_non_negative(problem, wrong, np.zeros(0), dual=None, ridge=0.0).holds


@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-6, 1e6]), st.booleans())
@settings(max_examples=40)
def test_counts_noise_and_the_size_of_one_count_in_other_units_are_the_same_fit(seed, unit, exact):
    X, z = small(seed)
    design, held = dc.Design.from_matrix(X.astype(int)), [7] if exact else []
    z[7] = abs(z[7])
    plain = dc.NonNegative(exact=held)(design, z)
    other = dc.NonNegative(exact=held, count=unit)(design, unit * z)
    assert other.status is plain.status
    np.testing.assert_allclose(other.y / unit, plain.y, rtol=1e-6, atol=1e-6)
    assert other.certificate.worst == pytest.approx(plain.certificate.worst, rel=0.05, abs=1e-8)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_a_certificate_is_recomputed_from_the_result_alone(seed):
    X, z = small(seed)
    w = np.random.default_rng(seed).choice([0.0, 0.3, 1.0, 5.0, 1e4], len(z))
    w[-1] = 1.0
    fit = dc.NonNegative()(dc.Design.from_matrix(X.astype(int)), np.where(w > 0, z, 0), weights=w)
    assert_recomputed(X, np.where(w > 0, z, 0), w, fit)


@pytest.mark.parametrize("digits", [3, 6, 9])
@pytest.mark.parametrize("seed", range(4))
def test_least_absolute_deviations_are_small_beside_a_large_block_too(seed, digits):
    (X, z), (other, large) = small(seed), small(seed + 1)
    n, m = X.shape
    both = np.block([[X, np.zeros((n, m))], [np.zeros((n, m)), other]]).astype(int)
    values = np.append(z, 10.0**digits * large)
    fit = dc.LeastAbsolute()(dc.Design.from_matrix(both), values).require()
    best = least_absolute_loss(X, z, np.ones(m))
    assert np.abs(fit.z[:m] - z).sum() <= best + 0.5


def test_a_fit_says_what_it_reached_in_counts():
    X, z = small(1)
    fit = dc.NonNegative(max_steps=1)(dc.Design.from_matrix(X.astype(int)), z)
    assert f"at published cell {fit.certificate.cell}" in repr(fit)
    with pytest.raises(
        NotConvergedError, match=f"counts, at published cell {fit.certificate.cell}"
    ):
        fit.require()


def test_the_size_of_one_count_must_make_sense():
    with pytest.raises(ParameterError, match="count, the size of one count"):
        dc.NonNegative(count=0)


_NEARLY_ALIKE = {
    # Tables that sums hardly tell apart: small gradients of heavy margins hid 0.12 and 0.15 counts.
    "a light margin of 1.0e-2": (21436, False),
    "a light margin of 1.2e-3": (21464, False),
    # Forces of heavy margins so large that their rounding errors move light ones.
    "large forces": (22426, True),
    "large forces, exact margins": (22930, True),
    # A cell that is zero in the optimum, and comes out a rounding error below it.
    "a cell at its bound": (20811, True),
}


@pytest.mark.parametrize(("seed", "noise"), _NEARLY_ALIKE.values(), ids=_NEARLY_ALIKE)
def test_light_margins_of_designs_that_hardly_tell_tables_apart_are_met(seed, noise):
    case = case_of(seed, noise=noise, weigh=True, exact=True)
    fit = dc.NonNegative(exact=case.exact)(case.design, case.z, weights=case.w).require()
    reference = LeastSquaresReference(case.X, case.z, case.w, case.exact).not_negative()
    wanted = np.array([float(v) for v in reference])
    np.testing.assert_allclose(fit.z, wanted, rtol=1e-12, atol=1e-3)
    assert fit.certificate.deviation == pytest.approx(np.abs(fit.z - wanted).max(), abs=1e-5)


def test_what_active_sets_do_not_prove_is_not_converged_among_uneven_weights(monkeypatch):
    case = case_of(21464, noise=False, weigh=True, exact=True)
    monkeypatch.setattr(ActiveSet, "meet", lambda _, y, dual: (y, dual))
    fit = dc.NonNegative(exact=case.exact)(case.design, case.z, weights=case.w)
    assert fit.status is Status.stalled
    assert fit.certificate.deviation > fit.certificate.tolerance
