"""Least absolute deviation with exact margins, against linear programs; proofs and refusals."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

import discreet as dc
from discreet import registry
from discreet.errors import ParameterError
from discreet.solve import Accuracy, Status
from discreet.solve.absolute import least_absolute
from discreet.solve.absolute.certificate import ProvenTable, certify
from tests.solve.slow import HARD, counts, dense, noisy, some_weights


def least_loss(X, z, w, exact):
    """The least weighted sum of absolute deviations of tables with exact margins; none if none."""
    m, w = len(z), np.sqrt(w)
    slack = np.where(np.isin(np.arange(m), exact), 0.0, np.inf)
    A = np.hstack([X.T, -np.eye(m), np.eye(m)])
    cost = np.concatenate([np.zeros(len(X)), w, w])
    bounds = [(0, None)] * len(X) + [(0, s) for s in slack] * 2
    program = linprog(cost, A_eq=A, b_eq=z, bounds=bounds, method="highs")
    return program.fun if program.status == 0 else None


def case(name, seed):
    """A design, noisy values with three true ones among them, weights, and these three."""
    design, rng = HARD[name](), np.random.default_rng(seed)
    truth, z = design.aggregate(counts(design, seed, mean=6)), noisy(design, seed).astype(float)
    held = np.sort(rng.choice(design.n_published, min(3, design.n_published), replace=False))
    z = z - design.aggregate(counts(design, seed)) + truth
    z[held] = truth[held]
    return design, z, some_weights(design, seed), held


@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("way", ["program", "steps"])
def test_the_loss_is_that_of_a_linear_program(name, way, monkeypatch):
    if way == "steps":
        monkeypatch.setattr(least_absolute, "_MOST_ENTRIES", 0)
    for seed in range(2 if way == "program" else 1):
        design, z, w, held = case(name, seed)
        fit = dc.LeastAbsolute(exact=held)(design, z, weights=w).require()
        least = least_loss(dense(design), z, w, held)
        assert least is not None
        np.testing.assert_allclose(fit.z[held], z[held], atol=1e-3)
        free = np.setdiff1d(np.arange(len(z)), held)
        loss = np.sqrt(w[free]) @ np.abs(fit.z - z)[free]
        assert loss <= least + 1e-4 * max(least, 1e-4 * np.sqrt(w) @ np.abs(z)) + 1e-2
        u = fit.notes["dual"]
        assert design.adjoint(u).max() <= 1e-6
        assert (np.abs(u) <= np.sqrt(w) + 1e-9)[free].all()
        assert z @ u <= least * (1 + 1e-6) + 1e-6


def test_margins_by_name_and_in_whole_numbers():
    design = dc.Design.product({"a": 4, "b": 5}, "a*b")
    truth = design.aggregate(np.random.default_rng(3).poisson(4, 20))
    z = truth + np.random.default_rng(4).integers(-4, 5, len(truth))
    exact = design.slice_of(next(k for k, b in enumerate(design.blocks) if b.shape == (4, 1)))
    z[exact] = truth[exact]
    fitter = registry.build("fitter", "least-absolute", {"exact": ["a"]})
    np.testing.assert_allclose(fitter(design, z).require().z[exact], truth[exact], atol=1e-6)
    whole = dc.solve.WholeNumber(fitter)(design, z)
    np.testing.assert_array_equal(whole.z[exact], truth[exact])
    assert dc.LeastAbsolute(exact="a").exact == "a"


@pytest.mark.parametrize("way", ["program", "steps"])
def test_margins_that_no_table_has_are_refuted(way, monkeypatch):
    if way == "steps":
        monkeypatch.setattr(least_absolute, "_MOST_ENTRIES", 0)
    design = dc.Design.product({"a": 2, "b": 3}, "a + b")
    z = np.array([20.0, 9, 12, 8, 7, 5])
    z = z[: design.n_published]
    total = design.aggregate(np.ones(6))
    exact = np.flatnonzero(total < 6)
    fit = dc.LeastAbsolute(exact=exact, max_steps=3_000)(design, z)
    assert fit.status is Status.infeasible
    u = fit.notes["conflict"]
    assert design.adjoint(u).max() <= 1e-12
    assert z @ u > 0
    assert not u[total == 6].any()


def test_a_table_that_misses_an_exact_margin_does_not_pass():
    design, z, w, held = case("all pairs", 5)
    fit = dc.LeastAbsolute(exact=held)(design, z, weights=w).require()
    soft = np.sqrt(w)
    soft[held] = 0.0
    priced = np.where(np.isin(np.arange(len(z)), held), 30 * soft.max(), soft)
    notes = fit.notes
    answer = ProvenTable(fit.y.copy(), notes["dual"], notes["ridge"], notes["ridge_dual"])
    assert certify(design, z, priced, soft, answer, Accuracy(1e-4)).holds
    first = np.flatnonzero(dense(design)[:, held[0]])[0]
    y = fit.y.copy()
    y[first] += 0.01
    judged = certify(design, z, priced, soft, replace(answer, y=y), Accuracy(1e-4))
    assert judged.feasibility > 1e-4
    # A price that is measured against would hide a slope that is positive.
    dual = notes["dual"] + np.where(soft > 0, 0.0, 1e-3)
    judged = certify(design, z, priced, soft, replace(answer, dual=dual), Accuracy(1e-4))
    assert judged.feasibility > 1e-4


def test_wrong_margins_are_refused():
    design = dc.Design.product({"a": 2, "b": 2}, "a + b")
    with pytest.raises(ParameterError, match=r"published positions, got 1\.5"):
        dc.LeastAbsolute(exact=[1.5])
    with pytest.raises(ParameterError, match="numbered 0 to"):
        dc.LeastAbsolute(exact=[99])(design, np.ones(design.n_published))
