"""Poisson fits against a general minimiser, against the log-linear fit, laws, and wrong input."""

import numpy as np
import pytest

import discreet as dc
from discreet import registry
from discreet.design import Incidence
from discreet.errors import DataError, ParameterError
from discreet.solve import Status
from discreet.solve.absolute.primal_dual import fill_empty_margins
from discreet.solve.likelihood import log_linear, poisson
from discreet.solve.likelihood.poisson import PoissonLoss, certify_poisson
from tests.solve.slow import (
    HARD,
    counts,
    dense,
    flat,
    naive_ipf,
    noisy,
    overlap,
    poisson_minimum,
    some_weights,
    tree,
)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", HARD)
def test_contradicting_margins_give_the_likelihood_optimum(name, weighted):
    design = HARD[name]()
    z = np.maximum(noisy(design, 1), 0)
    z = np.where(dense(design).any(axis=0), z, 0)
    w = some_weights(design, 1) if weighted else np.ones(design.n_published)
    fit = dc.solve.Poisson(tolerance=1e-8)(design, z, weights=w).require()
    least, mu, used = poisson_minimum(dense(design), z, w)
    size = max(least, w @ z, 1.0)
    assert abs(PoissonLoss(z, np.where(used, w, 0.0))(fit.z) - least) <= 1e-6 * size
    counted = z[used] > 0
    np.testing.assert_allclose(fit.z[used][counted], mu[counted], atol=2e-3 * max(z.max(), 1))


@pytest.mark.parametrize("name", ["dependent margins", "tree linked", "overlap", "wide matrix"])
def test_of_all_optima_the_log_linear_one_is_taken(name):
    design = HARD[name]()
    w = some_weights(design, 2)
    z = np.where(dense(design).any(axis=0), np.maximum(noisy(design, 2), 1), 0)
    start = np.random.default_rng(2).gamma(2.0, size=design.n_inner)
    fit = dc.solve.Poisson(tolerance=1e-8, start=start)(design, z, weights=w).require()
    expected = naive_ipf(dense(design), fit.z, np.where(fit.y > 0, start, 0), w > 0, sweeps=3_000)
    np.testing.assert_allclose(fit.y, expected, atol=1e-3)


@pytest.mark.parametrize("name", HARD)
def test_margins_that_add_up_give_the_log_linear_fit(name):
    design = HARD[name]()
    z = design.aggregate(counts(design, 4, mean=4))
    weights = np.random.default_rng(4).integers(1, 4, design.n_published)
    fit = dc.solve.Poisson()(design, z, weights=weights).require()
    assert fit.certificate.gap <= 1e-6
    np.testing.assert_allclose(fit.y, dc.LogLinear()(design, z).require().y, atol=0.02)


@pytest.mark.parametrize("name", ["all pairs", "tree linked"])
def test_large_tables_that_add_up_are_fitted_as_log_linear_ones(monkeypatch, name):
    monkeypatch.setattr(log_linear, "NEVER_STORED", 0)
    monkeypatch.setattr(log_linear, "MOST_PUBLISHED", np.inf)
    design = HARD[name]()
    z = design.aggregate(counts(design, 2, mean=5))
    fit = dc.solve.Poisson()(design, z).require()
    assert fit.notes["solver"] == "Newton on the dual"
    monkeypatch.setattr(log_linear, "NEVER_STORED", 10**9)
    np.testing.assert_allclose(fit.y, dc.LogLinear()(design, z).require().y, atol=1e-4)
    noisy = z + np.random.default_rng(1).integers(0, 3, len(z))
    monkeypatch.setattr(log_linear, "NEVER_STORED", 0)
    assert dc.solve.Poisson()(design, noisy).require().notes["solver"] == "primal-dual steps"


def small_census(margins):
    """A hierarchical table of small and large counts, whole noise on cells that are not zero."""
    design = dc.Design.product([tree(), overlap("r"), flat("x", 5)], margins)
    rng = np.random.default_rng(8)
    z = design.aggregate(np.floor(rng.pareto(0.8, design.n_inner)))
    return design, np.where(z > 0, np.maximum(z + rng.integers(-2, 3, len(z)), 0), 0).astype(float)


@pytest.mark.parametrize("margins", ["t*r + t*x + r*x", "t*r*x"])
def test_hierarchies_of_small_and_large_counts(margins):
    """Large cells move as fast as small ones: a few hundred steps, not ten thousand."""
    design, z = small_census(margins)
    w = np.ones(len(z))
    fit = dc.solve.Poisson(max_steps=2_000)(design, z).require()
    least, mu, _ = poisson_minimum(dense(design), z, w)
    assert PoissonLoss(z, w)(fit.z) <= least * (1 + 1e-6)
    np.testing.assert_allclose(fit.z[z > 0], mu[z > 0], rtol=5e-3)


@pytest.mark.parametrize("tolerance", [1e-3, 1e-6])
def test_a_rough_fit_is_log_linear_too(tolerance):
    design, z = small_census("t*r + t*x + r*x")
    fit = dc.solve.Poisson(tolerance=tolerance)(design, z).require()
    model = np.exp(design.adjoint(fit.notes["multipliers"]))
    np.testing.assert_allclose(fit.y[fit.y > 0], model[fit.y > 0], rtol=1e-9)
    assert not fit.notes["multipliers"][(z == 0) & (fit.z > 0)].any()
    exact = naive_ipf(dense(design), fit.z, (fit.y > 0).astype(float), z > 0, sweeps=1_000)
    np.testing.assert_allclose(fit.y, exact, atol=1e-3)


def test_values_far_below_one_have_margins_too():
    """A published sliver against which all other margins speak still makes a zero margin wrong."""
    design, z = small_census("t*r + t*x + r*x")
    rng = np.random.default_rng(9)
    z = np.maximum(z + rng.laplace(0, 3, len(z)), 0.0)
    z[rng.choice(np.flatnonzero(z), 8, replace=False)] = 1e-4
    w = 10.0 ** rng.uniform(-1, 1, len(z))
    fit = dc.solve.Poisson(max_steps=5_000)(design, z, weights=w).require()
    assert (fit.z[z > 0] > 0).all()
    least, _, _ = poisson_minimum(dense(design), z, w)
    assert PoissonLoss(z, w)(fit.z) <= least * (1 + 1e-6)


@pytest.mark.parametrize("name", HARD)
def test_counts_that_lost_all_inner_cells_get_one_back(name):
    design, rng = HARD[name](), np.random.default_rng(3)
    X, w = dense(design), some_weights(design, 3)
    z = np.where(X.any(axis=0), rng.integers(0, 3, design.n_published), 0)
    y = rng.poisson(1.0, design.n_inner) * (rng.random(design.n_inner) < 0.2)
    y, u = y.astype(float), np.append(rng.uniform(-w, w), 0.0)
    before, slopes = u.copy(), X @ u[:-1]
    empty = (X.T @ y == 0) & (z * w > 0)
    weights = np.append(w, 0.0)
    counts, members = weights * np.append(z, 0), Incidence.of(design)
    fill_empty_margins(members, np.append(empty, False), counts, weights, y, u, slopes)
    assert (X.T @ y > 0)[z * w > 0].all()
    np.testing.assert_allclose(slopes, X @ u[:-1], atol=1e-12)
    assert (u >= before).all()
    assert not (u > before)[:-1][~empty].any()
    for k in np.flatnonzero(u[:-1] > before[:-1]):
        assert slopes[X[:, k] > 0].max() >= -1e-12


def test_one_total_and_one_row_have_a_closed_form():
    """Two weighted observations of the same sum: the optimum is their weighted mean."""
    design = dc.Design.from_matrix(np.ones((3, 2), dtype=int))
    fit = dc.solve.Poisson(tolerance=1e-9)(design, [6.0, 12.0], weights=[2.0, 1.0]).require()
    np.testing.assert_allclose(fit.y, np.full(3, 8 / 3), atol=1e-5)


def test_scale_of_values_and_of_weights():
    design = HARD["all pairs"]()
    z, w = np.maximum(noisy(design, 6), 0), some_weights(design, 6)
    fit = dc.solve.Poisson(tolerance=1e-8)(design, z, weights=w).require()
    larger = dc.solve.Poisson(tolerance=1e-8)(design, 5 * z, weights=w).require()
    np.testing.assert_allclose(larger.z, 5 * fit.z, atol=1e-2)
    heavier = dc.solve.Poisson(tolerance=1e-8)(design, z, weights=3 * w).require()
    np.testing.assert_allclose(heavier.z, fit.z, atol=1e-2)


def test_structural_zeros_stay_and_what_they_make_impossible_is_reported():
    design = dc.Design.product({"a": 2, "b": 2}, "a + b")
    start = np.array([1.0, 2.0, 0.0, 1.0])
    possible = dc.solve.Poisson(start=start)(design, [5, 3, 2, 7, 8]).require()
    assert possible.y[2] == 0
    blocked = dc.solve.Poisson(start=[0, 0, 1, 1])(design, [5, 3, 2, 7, 8])
    assert blocked.status is Status.inconsistent
    assert np.isfinite(blocked.y).all()


def test_the_certificate_proves_the_optimum_and_refuses_others():
    design = HARD["dependent margins"]()
    z, w = np.maximum(noisy(design, 7), 0), np.ones(design.n_published)
    fit = dc.solve.Poisson()(design, z).require()
    u = fit.notes["dual"]
    assert (design.adjoint(u) <= 1e-9).all()
    assert (u >= -1).all()
    assert certify_poisson(design, PoissonLoss(z, w), fit, u, 1e-6).holds
    other = dc.LogLinear()(design, design.aggregate(fit.y + 0.2))
    assert not certify_poisson(design, PoissonLoss(z, w), other, u, 1e-6).holds
    assert not certify_poisson(design, PoissonLoss(z, w), fit, u + 0.01, 1e-6).holds


def test_few_steps_are_reported():
    design = HARD["dependent margins"]()
    fit = dc.solve.Poisson(max_steps=1)(design, np.maximum(noisy(design, 7), 0))
    assert fit.status is Status.max_steps


def test_one_preparation_serves_many_right_hand_sides():
    design = HARD["tree linked"]()
    prepared = dc.solve.Poisson().prepare(design)
    for seed in range(3):
        z = np.maximum(noisy(design, seed), 0)
        np.testing.assert_array_equal(prepared(z).y, dc.solve.Poisson()(design, z).y)


def test_wrong_input_is_refused():
    design = dc.Design.product({"a": 2, "b": 2}, "a + b")
    with pytest.raises(ParameterError, match="tolerance must lie"):
        dc.solve.Poisson(tolerance=1)
    with pytest.raises(ParameterError, match="max_steps"):
        dc.solve.Poisson(max_steps=0)
    with pytest.raises(DataError, match="not negative"):
        dc.solve.Poisson()(design, [5, -3, 2, 7, 8])
    with pytest.raises(ParameterError, match="not negative"):
        dc.solve.Poisson()(design, [5, 3, 2, 7, 8], weights=[-1, 1, 1, 1, 1])


def test_it_is_in_the_registry():
    assert registry.build("fitter", "poisson", {"tolerance": 1e-3}).name == "poisson"


def test_margins_that_fall_short_are_sharpened_before_a_table_is_made(monkeypatch):
    """Slopes that nobody waits for: making a table of them took as long as finding them."""
    made, fit_stored = [], poisson.fit_stored

    def counted(*given, **options):
        made.append(1)
        return fit_stored(*given, **options)

    monkeypatch.setattr(poisson, "fit_stored", counted)
    monkeypatch.setattr(poisson, "_SURE", 1e9)
    rng = np.random.default_rng(0)
    design = dc.Design.product({"a": 40, "b": 30, "c": 4}, "a*b*c")
    z = design.aggregate(rng.poisson(rng.gamma(0.3, 3.0, design.n_inner)))
    z = np.where(z > 0, np.maximum(z + rng.integers(-2, 3, len(z)), 0), 0)
    dc.solve.Poisson(tolerance=1e-3)(design, z).require()
    assert len(made) == 1
