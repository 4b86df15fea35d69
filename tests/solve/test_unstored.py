"""Fits by passes: with starting tables, with cells that are not used, their proofs and notes."""

import itertools

import numpy as np
import pytest

import discreet as dc
from discreet.design import ModelTable
from discreet.design.fused import links as devices
from discreet.design.fused.null_space import NullSpace
from discreet.errors import MissingDependencyError, ParameterError
from discreet.solve.dual_newton import DualNewton
from discreet.solve.least_squares import dual_fit
from discreet.solve.likelihood import log_linear
from discreet.solve.non_negative import non_negative
from tests.solve.slow import dense

SIZES = {"a": 4, "b": 5, "c": 6}
PAIRS = list(itertools.combinations(SIZES, 2))
NEWTON = "Newton on the dual"


def cut(monkeypatch, n):
    """Passes for tables of `n` cells or more, even where few cells are positive."""
    monkeypatch.setattr(non_negative, "NEVER_STORED", n)
    monkeypatch.setattr(log_linear, "NEVER_STORED", n)
    monkeypatch.setattr(log_linear, "MOST_PUBLISHED", np.inf)
    monkeypatch.setattr(dual_fit, "MOST_GRADIENTS", 3_000)
    monkeypatch.setattr(dual_fit, "MOST_DEGENERATE", 3_000)
    monkeypatch.setattr(dual_fit, "MOST_WITH_LEVELS", np.inf)


@pytest.fixture
def unstored(monkeypatch):
    cut(monkeypatch, 0)


def stored(fitter, design, z, weights=None):
    """The same fit on stored cells."""
    with pytest.MonkeyPatch.context() as patch:
        cut(patch, 10**9)
        return fitter(design, z, weights=weights).require()


def hierarchical():
    tree = dc.Hierarchy.from_dict({"All": {"north": ["n1", "n2", "n3"], "south": ["s1", "s2"]}})
    axes = [dc.design.Axis.from_hierarchies("region", [tree])]
    axes += [dc.design.Axis.flat("sex", ["f", "m"]), dc.design.Axis.flat("age", list("0123"))]
    return dc.Design.product(axes, "region*sex + region*age + sex*age")


def with_zeros():
    return dc.Design.product(SIZES, PAIRS, structural_zeros=[{"a": 1, "b": [2, 3]}])


DESIGNS = {
    "flat": lambda: dc.Design.product(SIZES, PAIRS),
    "hierarchy": hierarchical,
    "structural zeros": with_zeros,
}


def noisy(design, seed=5):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(rng.gamma(0.5, 9.0, design.n_inner)).astype(float)
    truth = design.aggregate(counts)
    return counts, truth, truth + rng.laplace(scale=4.0, size=design.n_published)


def priors(design):
    rng = np.random.default_rng(6)
    s = rng.gamma(1.0, 4.0, design.n_inner)
    q = rng.gamma(2.0, 3.0, design.n_inner)
    some = rng.random(design.n_inner) < 0.85
    return {
        "start": {"start": s},
        "start with zeros": {"start": s * some},
        "variance": {"variance": q},
        "both": {"start": s, "variance": q},
        "cells that may not move": {"start": s, "variance": q * some},
    }


@pytest.mark.parametrize("options", [{}, {"ridge": 0.5}, {"exact": [()]}], ids=str)
@pytest.mark.parametrize("prior", list(priors(DESIGNS["flat"]())))
@pytest.mark.parametrize("name", DESIGNS)
def test_a_starting_table_gives_the_fit_of_stored_cells(unstored, name, prior, options):
    design = DESIGNS[name]()
    _, _, z = noisy(design)
    if "exact" in options:
        design = design.with_margins([*design.terms, ()])
        _, truth, z = noisy(design)
        z[design.position({})] = truth[design.position({})]
    fitter = dc.NonNegative(**priors(design)[prior], **options)
    found = fitter(design, z).require()
    assert found.notes["solver"] == NEWTON
    other = stored(fitter, design, z)
    assert other.notes["solver"] != NEWTON
    np.testing.assert_allclose(found.z, other.z, atol=0.01)
    np.testing.assert_allclose(found.y, other.y, atol=0.05, rtol=1e-3)
    np.testing.assert_allclose(design.aggregate(found.y), found.z, rtol=1e-9, atol=1e-9)
    if not options:
        s = fitter.start if fitter.start is not None else np.zeros(design.n_inner)
        q = fitter.variance if fitter.variance is not None else s
        model = np.maximum(0.0, s + q * design.adjoint(found.notes["dual"]))
        np.testing.assert_allclose(found.y, model, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("name", DESIGNS)
def test_raking_gives_the_table_of_sweeps(unstored, name, zeros):
    design = DESIGNS[name]()
    counts, *_ = noisy(design)
    start = np.random.default_rng(3).gamma(1.0, size=design.n_inner)
    if zeros:
        start[::7] = 0.0
        counts[::7] = 0.0
    z = design.aggregate(counts)
    fitter = dc.LogLinear(start=start, tolerance=1e-8)
    found = fitter(design, z).require()
    assert found.notes["solver"] == NEWTON
    other = stored(fitter, design, z)
    np.testing.assert_allclose(found.y, other.y, atol=1e-5)
    assert not found.y[start == 0].any()
    model = start * np.exp(design.adjoint(found.notes["multipliers"]))
    np.testing.assert_allclose(found.y, model, rtol=1e-9, atol=1e-9)


def test_a_poisson_fit_that_adds_up_has_a_start_and_unused_cells_too(unstored):
    design = dc.Design.product(SIZES, PAIRS)
    _, z, _ = noisy(design)
    w = suppressed(design, "cells")
    start = np.random.default_rng(3).gamma(1.0, size=design.n_inner)
    found = dc.solve.Poisson(start=start)(design, z, weights=w).require()
    assert found.notes["solver"] == NEWTON
    other = stored(dc.solve.Poisson(start=start, tolerance=1e-9), design, z, w)
    np.testing.assert_allclose(found.y, other.y, rtol=1e-3, atol=1e-3)


def test_some_cells_of_a_fit_with_a_start_are_those_of_the_whole(unstored):
    design = with_zeros()
    counts, truth, _ = noisy(design)
    start = np.random.default_rng(3).gamma(1.0, size=design.n_inner)
    fit = dc.LogLinear(start=start)(design, truth).require()
    some = fit.inner({"a": ["1", "2"], "c": "3"})
    a, _, c = design.inner_codes()
    np.testing.assert_allclose(some, fit.y[(a <= 1) & (c == 2)])
    np.testing.assert_allclose(fit.cells[np.arange(7)], fit.y[:7])


def suppressed(design, kind):
    """Weights with zeros: a few cells, or a whole margin, the finest of its variables."""
    w = np.random.default_rng(8).uniform(0.5, 2.0, design.n_published)
    if kind == "cells":
        w[::6] = 0.0
    else:
        w[design.slice_of(max(range(len(design.blocks)), key=lambda k: design.blocks[k].size))] = 0
    return w


@pytest.mark.parametrize("kind", ["cells", "a margin"])
@pytest.mark.parametrize("name", DESIGNS)
def test_a_cell_of_weight_zero_has_no_multiplier(unstored, name, kind):
    design = DESIGNS[name]()
    _, _, z = noisy(design)
    w = suppressed(design, kind)
    z[w == 0] = np.nan
    found = dc.NonNegative()(design, z, weights=w).require()
    assert found.notes["solver"] == NEWTON
    assert not found.notes["dual"][w == 0].any()
    other = stored(dc.NonNegative(), design, z, w)
    np.testing.assert_allclose(found.z[w > 0], other.z[w > 0], atol=0.01)
    np.testing.assert_allclose(found.y, other.y, atol=0.05, rtol=1e-3)


@pytest.mark.parametrize("kind", ["cells", "a margin"])
@pytest.mark.parametrize("name", DESIGNS)
def test_a_log_linear_fit_does_not_look_at_unused_cells(unstored, name, kind):
    design = DESIGNS[name]()
    _, z, _ = noisy(design)
    w = suppressed(design, kind)
    z[w == 0] = np.nan
    fitter = dc.LogLinear(tolerance=1e-8)
    found = fitter(design, z, weights=w).require()
    assert found.notes["solver"] == NEWTON
    assert not found.notes["multipliers"][w == 0].any()
    np.testing.assert_allclose(found.y, stored(fitter, design, z, w).y, atol=1e-5)


def test_inner_cells_that_no_used_margin_counts_keep_their_start(unstored):
    design = dc.Design.product(SIZES, PAIRS)
    _, truth, z = noisy(design)
    w = (dense(design)[0] == 0).astype(float)
    start = np.random.default_rng(3).gamma(1.0, size=design.n_inner)
    for fitter, values in ((dc.NonNegative(start=start), z), (dc.LogLinear(start=start), truth)):
        fit = fitter(design, values, weights=w).require()
        assert fit.notes["solver"] == NEWTON
        assert fit.y[0] == pytest.approx(start[0])


@pytest.mark.parametrize("name", ["flat", "hierarchy"])
def test_the_preconditioner_of_used_cells_is_symmetric_and_positive(name):
    design = DESIGNS[name]()
    rng = np.random.default_rng(1)
    unused = np.array([0, 7, 11])
    null = NullSpace(design.crossing, (1.0,) * len(design.blocks), unused)
    inverse = rng.uniform(0.01, 0.1, design.n_published)
    used = np.delete(np.arange(design.n_published), unused)
    columns = [null.precondition(e, inverse, 0.01) for e in np.eye(design.n_published)]
    matrix = np.array(columns)[np.ix_(used, used)]
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-8 * np.abs(matrix).max())
    assert np.linalg.eigvalsh(matrix).min() > -1e-9 * np.abs(matrix).max()


def test_unused_cells_cost_few_steps(unstored):
    """The preconditioner knows that they contradict nobody."""
    sizes = {"a": 4, "b": 9, "c": 12, "d": 5}
    design = dc.Design.product(sizes, list(itertools.combinations(sizes, 2)))
    _, _, z = noisy(design)
    w = np.ones(design.n_published)
    w[::15] = 0.0
    plain = dc.NonNegative()(design, z).require()
    fewer = dc.NonNegative()(design, z, weights=w).require()
    assert fewer.iterations < 2 * plain.iterations


@pytest.mark.parametrize("fitter", [dc.NonNegative(), dc.LogLinear()], ids=["non", "log"])
def test_a_certificate_does_not_trust_the_margins_of_the_solver(unstored, monkeypatch, fitter):
    """The solver is led to believe that it has arrived; new passes say that it has not."""
    design = dc.Design.product(SIZES, PAIRS)
    _, truth, z = noisy(design)
    target = truth if isinstance(fitter, dc.LogLinear) else z

    def pretend(self, ridge, within):
        self.at = self.at._replace(margins=self.z.copy())
        return True

    monkeypatch.setattr(DualNewton, "solve", pretend)
    monkeypatch.setattr("discreet.solve.least_squares.dual_fit.LARGEST_DENSE", 0)
    monkeypatch.setattr(log_linear, "LARGEST_DENSE", 0)
    fit = fitter(design, target)
    assert not fit.certificate.holds
    assert not fit.is_converged
    np.testing.assert_allclose(fit.z, design.aggregate(fit.y), rtol=1e-9)


def test_the_certificate_names_the_cell_that_deviates_most(unstored):
    design = dc.Design.product(SIZES, PAIRS)
    _, _, z = noisy(design)
    fit = dc.NonNegative()(design, z).require()
    residuals = z - fit.z
    inner = design.adjoint(residuals)
    worst = np.where(fit.y > 0, np.abs(inner), np.maximum(inner, 0.0))
    assert fit.certificate.deviation == pytest.approx(worst.max(), rel=1e-3, abs=1e-9)
    assert dense(design)[worst.argmax(), fit.certificate.cell] == 1
    assert fit.notes["passes"] > 2


def test_a_card_that_is_not_there_is_a_clear_error(monkeypatch):
    design, fitters = dc.Design.product({"a": 2}, "a"), (dc.NonNegative, dc.LogLinear)
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    for make in fitters:
        with pytest.raises(MissingDependencyError, match=r"discreet\[gpu\]"):
            make(device="gpu")(design, np.ones(2))

    def none():
        raise RuntimeError("no CUDA-capable device is detected")

    class Cupy:
        class cuda:
            class runtime:
                getDeviceCount = staticmethod(none)

    monkeypatch.setattr(devices, "cupy", lambda: Cupy)
    for make in fitters:
        with pytest.raises(ParameterError, match="no CUDA-capable device.*device='auto'"):
            make(device="gpu")(design, np.ones(2))
    monkeypatch.setattr(Cupy.cuda.runtime, "getDeviceCount", staticmethod(lambda: 0))
    with pytest.raises(ParameterError, match="it finds none"):
        dc.NonNegative(device="gpu")(design, np.ones(2))


@pytest.mark.parametrize("make", [dc.NonNegative, dc.LogLinear])
def test_a_card_that_is_not_used_is_said_with_the_reason(monkeypatch, make):
    monkeypatch.setattr(f"{make.__module__}.require_gpu", lambda: None)
    small = dc.Design.product({"a": 2, "b": 3}, "a + b")
    fit = make(device="gpu")(small, small.aggregate(np.ones(6)))
    assert fit.notes["device"].startswith("cpu, because the table has 6 inner cells, fewer than")
    assert make()(small, small.aggregate(np.ones(6))).notes["device"] == "cpu"
    cut(monkeypatch, 0)
    cells = np.ones((3, 3, 3, 3), dtype=bool)
    cells[1, 1, 1, 1] = False
    design = dc.Design.sparse(dict.fromkeys("abcd", 3), "a*b + c*d", np.nonzero(cells))
    fit = make(device="gpu")(design, design.aggregate(np.ones(80)))
    assert fit.notes["device"].startswith("cpu, because")


@pytest.mark.parametrize(
    "make",
    [
        dc.NonNegative,
        dc.LogLinear,
        dc.solve.Poisson,
        dc.Additive,
        dc.LeastAbsolute,
        dc.LeastSquares,
    ],
)
def test_every_fit_says_how_it_was_found(make):
    design = dc.Design.product({"a": 2, "b": 3}, "a + b")
    fit = make()(design, design.aggregate(np.arange(6.0)))
    assert isinstance(fit.notes["solver"], str)


@pytest.mark.parametrize("share", [1.0, 0.8])
def test_linear_calibration_of_a_large_table_stores_no_fitted_cells(share):
    design = dc.Design.product({"a": 40, "b": 40, "c": 40}, "a*b + a*c + b*c")
    rng = np.random.default_rng(5)
    start = rng.gamma(0.5, 4.0, design.n_inner) * (rng.random(design.n_inner) < share)
    z = design.aggregate(rng.poisson(start)) + rng.laplace(0, 3, design.n_published)
    fit = dc.LeastSquares(start=start)(design, z).require()
    assert isinstance(fit.cells, ModelTable)
    stored = dc.LeastSquares(start=start)(dc.Design.from_matrix(design.matrix()), z).require()
    np.testing.assert_allclose(fit.y, stored.y, atol=1e-4)
    np.testing.assert_allclose(fit.z, stored.z, atol=1e-5)
