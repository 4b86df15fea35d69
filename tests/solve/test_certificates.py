"""Fits of random designs against exact references; see `benchmarks.certificates`."""

import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import discreet as dc
from benchmarks import certificates as gate
from benchmarks._exact import LeastSquaresReference, log_linear, poisson_gap
from discreet.errors import DataError, MissingDependencyError, ParameterError
from discreet.solve import Accuracy, LeastSquaresProblem, Prior, Status
from discreet.solve.least_squares.dense import DenseFactors
from discreet.solve.likelihood.poisson import PoissonLoss, certify_poisson, follow_path
from discreet.solve.non_negative.active_set import ActiveSet
from tests.solve.slow import poisson_minimum

SMALL = dc.Design.product({"a": 2, "b": 2}, "a*b")


def test_the_reference_is_exact_on_a_sum_of_two():
    X, z = np.array([[1, 0, 1], [0, 1, 1]]), np.array([1.0, 1.0, 5.0])
    reference = LeastSquaresReference(X, z, np.ones(3), ())
    assert reference.without_bounds() == [Fraction(2), Fraction(2), Fraction(4)]
    assert LeastSquaresReference(X, z, np.ones(3), [2]).not_negative()[2] == 5
    bounded = LeastSquaresReference(X, np.array([-3.0, 1, 1]), np.ones(3), ()).not_negative()
    assert bounded == [Fraction(0), Fraction(1), Fraction(1)]


def test_the_reference_of_log_linear_fits_is_independence_on_two_margins():
    X = np.array([[1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1]])
    np.testing.assert_allclose(log_linear(X, np.array([3e9, 6, 2e9, 1e9 + 6])).sum(), 3e9 + 6)


@pytest.mark.parametrize(
    "name", ["least-squares", "log-linear, large", "auto, large", "chain", "poisson"]
)
def test_no_fit_of_random_designs_is_wrong(name):
    count = gate.judge(name, 24)
    assert count.outcomes["converged"] == 24
    assert count.outcomes["wrong"] == 0


@pytest.mark.parametrize(
    ("options", "seeds"),
    [
        (gate.NOISY, [4, 16, 104, 140, 228, 280]),
        (gate.EXACT, [4, 50, 219, 298, 412]),
        (gate.EXACT | {"noise": False}, [50, 219]),
    ],
)
def test_uneven_weights_and_exact_margins_are_met(options, seeds):
    for seed in seeds:
        case = gate.case_of(seed, **options)
        fit = dc.NonNegative(exact=case.exact)(case.design, case.z, weights=case.w).require()
        assert gate.judge_non_negative(case, fit) <= case.allowed


def test_margins_that_are_all_exact_are_met():
    """Ones beside 10⁸ and twelve independent margins of thirteen: a deviation of 2.5 stayed."""
    rows = "0000001001011 0000001000011 0000100100001 0010110001001 0000100010001 0000101100001 "
    rows += "0010010100001 0010101000111 0001011100001 0000000010101 0001110010101 0001001000111 "
    X = np.array([[int(v) for v in row] for row in (rows + "1111110000011").split()])
    y = [61916233, 1, 1, 73781986, 475740036, 18160255, 1, 431410200, 1, 1, 1, 1, 57511894]
    fit = dc.NonNegative(exact=range(13))(dc.Design.from_matrix(X), y @ X).require()
    assert np.abs(fit.z - y @ X).max() < 1e-3


def _uneven():
    design = dc.Design.from_matrix(np.array([[1, 1, 0], [1, 0, 1]]))
    z, w = np.array([10.0, 3, 6]), np.array([1e4, 1e-3, 1e-3])
    prior = Prior.of(design, None, None)
    none = np.zeros(0, dtype=np.int64)
    return LeastSquaresProblem.of(design, z, w, prior, Accuracy(1e-3), none)


def test_a_light_cell_that_is_off_does_not_pass():
    problem = _uneven()
    factors = DenseFactors(problem)
    y = factors.fit(problem.z)
    assert factors.certify(problem.z, y).holds
    off = factors.certify(problem.z, y + [1.0, -1.0])
    assert not off.holds
    assert off.deviation == pytest.approx(1.0, rel=1e-3)
    active = ActiveSet(problem, y)
    active.run(1_000)
    assert active.certify(active.y, 0.0).holds
    assert not active.certify(active.y + [1.0, -1.0], 0.0).holds


def test_a_light_count_does_not_hide_behind_heavy_ones_of_a_likelihood():
    """Two cells that only light margins tell apart: swapping a tenth costs next to nothing."""
    design = dc.Design.from_matrix(np.array([[1, 1, 0], [1, 0, 1]]))
    z, w = np.array([2e9, 1.2e9, 0.8e9]), np.array([1e4, 1e-3, 1e-3])
    loss = PoissonLoss(z, w)
    fit = dc.solve.Poisson()(design, z, weights=w).require()
    np.testing.assert_allclose(fit.y, z[1:], rtol=1e-6)
    assert certify_poisson(design, loss, fit, fit.notes["dual"], 1e-6).holds
    y = fit.y + [1e5, -1e5]
    moved = replace(fit, cells=y, z=design.aggregate(y))
    judged = certify_poisson(design, loss, moved, fit.notes["dual"], 1e-6)
    assert judged.gap <= 1e-6
    assert not judged.holds
    # A dual vector that lowers no slope of the light cells proves nothing either.
    judged = certify_poisson(design, loss, fit, np.array([0.0, 1e-4, 0.0]), 1e-6)
    assert judged.feasibility > 1e-2
    assert poisson_gap(design.matrix().toarray(), z, w, fit.y, fit.notes["dual"])[1] <= 1e-3
    assert poisson_gap(design.matrix().toarray(), z, w, y, fit.notes["dual"])[1] > 1e-3


def test_the_interior_path_ends_at_the_optimum():
    rng = np.random.default_rng(1)
    X = (rng.random((12, 9)) < 0.4).astype(float)
    X[np.arange(12), rng.integers(9, size=12)] = 1
    z, w = np.append(rng.poisson(30, 8), 0).astype(float), 10 ** rng.uniform(-1, 1, 9)
    found = follow_path(X, z, w, 1e-9)
    least, mu, _ = poisson_minimum(X, z, w)
    np.testing.assert_allclose((found.y @ X)[z > 0], mu[z > 0], rtol=1e-3)
    assert PoissonLoss(z, w)(found.y @ X) <= least * (1 + 1e-6)
    assert found.y[~found.is_open].max(initial=0.0) <= 1e-4
    assert (X @ found.score).max() <= 1e-9


def test_scales_beside_each_other_do_not_disturb_the_automatic_choice():
    X = np.array([[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 1, 0]])
    fit = dc.solve.Auto()(dc.Design.from_matrix(X), np.array([1e9, 4e8, 10, 20, 3]))
    np.testing.assert_allclose(fit.require().z, [1e9, 4e8, 15, 15, 0], atol=1e-3)


def test_a_fit_that_does_not_arrive_is_passed_on(monkeypatch):
    design = dc.Design.product({"a": 3, "b": 3}, "a + b")
    z = design.aggregate(np.arange(9.0))
    stalled = replace(dc.LogLinear()(design, z), status=Status.stalled)
    monkeypatch.setattr(dc.LogLinear, "prepare", lambda *_: lambda *_, **__: stalled)
    fit = dc.solve.Auto()(design, z).require()
    assert fit.notes["fitter"] == "non-negative"
    assert "log-linear ended as stalled" in fit.notes["why"]


def test_cells_that_no_table_can_fill_are_closed_in_a_chain():
    design = dc.Design.product({"a": 4, "b": 4, "c": 4}, "a*b + a*c + b*c")
    rng = np.random.default_rng(5)
    z = design.aggregate(rng.poisson(0.3, 64)) + rng.normal(0, 4, design.n_published)
    fit = dc.solve.Chain()(design, z).require()
    np.testing.assert_allclose(fit.z, dc.NonNegative()(design, z).z, atol=1e-4)


def test_bad_input_is_refused_in_words():
    z = SMALL.aggregate(np.ones(4))
    with pytest.raises(ParameterError, match="complex numbers"):
        dc.LeastSquares()(SMALL, z + 1j)
    for bad, kind in ((z.astype(str), "texts"), (z.astype("M8[D]"), "dates")):
        with pytest.raises(ParameterError, match=f"numbers in one vector: they are {kind}"):
            dc.NonNegative()(SMALL, bad)
    with pytest.raises(ParameterError, match=r"published positions, got 1\.5"):
        dc.NonNegative(exact=[1.5])
    with pytest.raises(ParameterError, match="published positions, got True"):
        dc.NonNegative(exact=[True])
    for bad in ([[1, 2]], [("a", 1)], b"a"):
        with pytest.raises(ParameterError, match=r"exact (lists|needs)"):
            dc.LeastAbsolute(exact=bad)
    for bad in (1j, "a", 0, True):
        with pytest.raises(ParameterError, match="ridge must be a positive number"):
            dc.NonNegative(ridge=bad)
    with pytest.raises(ParameterError, match="temperature must be zero or more"):
        dc.solve.FromMargins(temperature="hot")
    for bad in ([1.0, -1.0, 1.0, 1.0], [1.0, 2.0]):
        for fitter in (dc.LeastSquares(variance=bad), dc.NonNegative(variance=bad)):
            with pytest.raises(ParameterError, match="the variance "):
                fitter(SMALL, z)


@pytest.mark.parametrize(
    "fitter",
    [dc.LeastSquares(), dc.NonNegative(), dc.LogLinear(), dc.solve.Poisson(), dc.solve.Auto()],
    ids=lambda f: f.name,
)
def test_counts_that_doubles_do_not_hold_are_refused(fitter):
    """Fits of 10¹⁶ called themselves converged and were off by 128."""
    z = SMALL.aggregate(np.ones(4))
    assert fitter(SMALL, 2.0 ** (40 if fitter.name == "log-linear" else 50) * z).is_converged
    for large in (1e16 * z, 1e30 * z, SMALL.aggregate(np.array([1e17, 3, 4e17, 5]))):
        with pytest.raises(DataError, match=r"from 2\*\*53 on .* larger units"):
            fitter(SMALL, large)
    with pytest.raises(DataError, match=r"2\*\*53"):  # the double next to it is 2**53
        fitter(SMALL, np.full(SMALL.n_published, 2**53 + 1))
    with pytest.raises(ParameterError, match="numbers in one vector"):
        fitter(SMALL, [10**400] * SMALL.n_published)


@pytest.mark.parametrize("fitter", [dc.NonNegative(), dc.LogLinear(), dc.solve.Auto()])
@pytest.mark.parametrize("scale", [1e11, 1e13, 1e14, 8e15])
def test_small_counts_beside_large_ones_are_right_where_a_fit_says_so(fitter, scale):
    """Beside 10¹⁴ a fit that called itself converged made four of a three."""
    design = dc.Design.product({"a": 2, "b": 2, "c": 2}, "a*b + a*c + b*c")
    y = np.rint(scale * np.array([0.3, 0, 0.2, 0, 0, 0.1, 0, 0.05])) + [0, 3, 0, 5, 1, 0, 2, 0]
    z = design.aggregate(y)
    fit = fitter(design, z)
    assert fit.is_converged or scale > (1e13 if fitter.name == "log-linear" else 1e14)
    is_small = z < 100
    assert is_small.sum() == 2
    assert np.abs(fit.z - z)[is_small].max() <= 0.05 or not fit.is_converged


@pytest.mark.parametrize("fitter", [dc.LeastSquares, dc.NonNegative])
def test_no_fit_that_is_stopped_is_worse_than_its_start(fitter):
    """Tables of one or two steps were up to 850 times as far off as an empty one."""
    for seed in (0, 53, 64, 100):
        case = gate.case_of(seed, **gate.NOISY)
        moved = np.random.default_rng(seed).normal(0, 1 + 0.01 * case.truth)
        for start in (None, np.maximum(case.truth + np.round(moved), 1.0)):
            least = np.zeros(len(case.truth)) if start is None else start
            least = case.w @ (case.design.aggregate(least) - case.z) ** 2
            for steps in (1, 2, 5):
                fit = fitter(max_steps=steps, start=start)(case.design, case.z, weights=case.w)
                assert case.w @ (fit.z - case.z) ** 2 <= least * (1 + 1e-9)
                assert fit.is_converged or not fit.certificate.holds


def test_a_missing_solver_of_programs_is_named_with_its_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "highspy", None)
    z = SMALL.aggregate(np.ones(4)) + np.arange(SMALL.n_published)
    with pytest.raises(MissingDependencyError, match="pip install .*highspy"):
        dc.LeastAbsolute()(SMALL, z)


@pytest.mark.parametrize("scale", [1e10, 1e12, 9e13])
@pytest.mark.parametrize("margins", ["a*b + b*c + a*c", "a*b*c"])
def test_large_counts_are_fitted_as_well_as_double_precision_holds_them(scale, margins):
    """Tables of 10¹⁴ that add up were fitted with margins off by 10."""
    design = dc.Design.product({"a": 5, "b": 4, "c": 3}, margins)
    for seed in range(5):
        y = np.rint(scale * (1 + np.random.default_rng(seed).random(design.n_inner)))
        z = design.aggregate(y)
        fit = dc.LeastSquares()(design, z).require()
        np.testing.assert_allclose(fit.z, z, rtol=1e-15, atol=1e-6)
