"""Margins without a table: closed forms against dense algebra, records against their own books."""

import itertools

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import minimize

import discreet as dc
from benchmarks import certificates as gate
from discreet.errors import DesignError, ParameterError
from discreet.progress import listening
from discreet.solve import FromMargins
from discreet.solve.margins import dense as dense_margins
from discreet.solve.margins import records
from discreet.solve.margins.effects import EffectSpace, estimate, variances
from discreet.solve.margins.non_negative import fit_non_negative
from discreet.solve.margins.pairs import PairMatrix
from discreet.solve.margins.records import Search, draw_records

TREE = dc.Hierarchy.from_dict({"x": ["x1", "x2", "x3"], "y": ["y1", "y2"]}, root="all")
NAMES = ("a", "b", "c", "d")
FLAT = dc.Design.product(
    dict(zip(NAMES, (3, 4, 2, 3), strict=True)), [*itertools.combinations(NAMES, 2), ("a",)]
)
TREES = dc.Design.product({"a": TREE, "b": 3, "c": 2}, "a*b + b*c")
TRIPLES = dc.Design.product({"a": 2, "b": 3, "c": 2, "d": 2}, "a*b*c + c*d")


def noisy(design, seed=1, scale=3.0, records=200):
    rng = np.random.default_rng(seed)
    y = rng.multinomial(records, rng.dirichlet(np.full(design.n_inner, 0.3)))
    blocks = rng.uniform(0.2, 2.0, len(design.blocks))[design.block_of_cell()]
    truth = design.aggregate(y)
    return truth, truth + scale * rng.standard_normal(len(truth)) / np.sqrt(blocks), blocks


def dense(design, z, w):
    """Weighted least squares over all tables, negative cells included."""
    X = design.matrix().toarray().T.astype(float)
    root = np.sqrt(w)
    return X @ np.linalg.lstsq(X * root[:, None], z * root, rcond=1e-10)[0]


@pytest.mark.parametrize("design", [FLAT, TREES, TRIPLES], ids=["flat", "trees", "triples"])
@pytest.mark.parametrize("uneven", [False, True])
@pytest.mark.parametrize("is_small", [False, True])
def test_the_estimate_is_that_of_dense_least_squares(monkeypatch, design, uneven, is_small):
    if not is_small:
        monkeypatch.setattr(dense_margins, "_MOST_EFFECTS", 1)
    _, z, w = noisy(design)
    if uneven:
        w = w * np.random.default_rng(2).uniform(0.5, 2.0, len(w))
        w[3] = 0.0
    found = estimate(EffectSpace(design), z, w)
    np.testing.assert_allclose(found.fitted_cells(), dense(design, z, w), atol=1e-7)
    assert (found.steps == 0) == (is_small or (design is not TREES and not uneven))


def test_light_cells_do_not_hide_behind_heavy_ones():
    """Weights over seven powers of ten, with a structural zero beside them."""
    for seed in (4_000_018, 4_000_021, 4_000_022):
        options = gate.FITTERS["from-margins"][1]
        (case,) = gate.cases("from-margins", range(seed, seed + 1), options)
        fit = FromMargins(n_records=gate.RECORDS, temperature=0)(
            case.design, case.z, weights=case.w
        )
        assert gate.judge_from_margins(case, fit.require()) <= 1e-3


@pytest.mark.parametrize("tolerance", [1.0, 1e-3])
def test_steps_say_how_far_a_cell_can_be_off(monkeypatch, tolerance):
    """In standard errors of its own: under weights of seven powers light cells converge last."""
    design = dc.Design.product({"a": TREE, "b": 4, "c": 5, "d": 3}, "a*b + b*c + c*d")
    rng, space = np.random.default_rng(9), EffectSpace(design)
    w = 10 ** rng.uniform(-3, 4, design.n_published)
    truth = design.aggregate(rng.poisson(0.5, design.n_inner))
    z = truth + rng.standard_normal(len(truth)) / np.sqrt(w)
    best = estimate(space, z, w)
    bounded = fit_non_negative(best, z, w, tolerance=1e-6)
    assert bounded.off <= 1e-6
    assert bounded.steps == 1  # dense factors
    errors = np.sqrt(space.dense(w).variances())
    monkeypatch.setattr(dense_margins, "_MOST_EFFECTS", 1)
    space = EffectSpace(design)
    found = estimate(space, z, w, tolerance=tolerance)
    off = np.abs(found.fitted_cells() - best.fitted_cells()) / errors
    assert off.max() <= found.off <= 2 * tolerance  # `conjugate_gradients` may leave as much
    for most_steps in (1, 100):
        near = fit_non_negative(found, z, w, tolerance=tolerance, most_steps=most_steps)
        cells = (space.aggregate(c.effects) for c in (near, bounded))
        assert (np.abs(np.subtract(*cells)) / errors).max() <= near.off


@pytest.mark.parametrize("used", [1.0, 0.6])
@pytest.mark.parametrize("seed", range(4))
def test_true_margins_with_empty_cells_are_their_own_estimates(used, seed):
    """Rounding errors of sums beside cells of zero are no forces; some cells may be left out."""
    design = dc.Design.product({"a": 3, "b": 4, "c": 4}, "a*b*c")
    rng = np.random.default_rng(seed)
    truth = design.aggregate(np.round(rng.gamma(0.3, 1e5, 48)) * (rng.random(48) < 0.7))
    w = 10 ** rng.uniform(-3, 4, len(truth)) * (rng.random(len(truth)) < used)
    fit = FromMargins(n_records=50)(design, truth.astype(float), weights=w)
    assert fit.notes["unit_variance"] is None
    for cells in (fit.unbiased, fit.require().non_negative):
        np.testing.assert_allclose(cells[w > 0], truth[w > 0], atol=0.02)


def test_standard_errors_are_those_of_dense_least_squares():
    _, z, w = noisy(FLAT)
    space = EffectSpace(FLAT)
    X = FLAT.matrix().toarray().T.astype(float)
    covariance = X @ np.linalg.pinv(X.T @ (w[:, None] * X)) @ X.T
    found = variances(space, estimate(space, z, w).precisions)
    np.testing.assert_allclose(found, np.diag(covariance), rtol=1e-8)


@pytest.mark.parametrize("is_small", [False, True])
def test_standard_errors_of_trees_are_near_those_of_dense_least_squares(monkeypatch, is_small):
    """Drawn, where there is no formula: 64 draws tell a variance to about a sixth."""
    if not is_small:
        monkeypatch.setattr(dense_margins, "_MOST_EFFECTS", 1)
    _, z, w = noisy(TREES)
    X = TREES.matrix().toarray().T.astype(float)
    covariance = X @ np.linalg.pinv(X.T @ (w[:, None] * X)) @ X.T
    fit = FromMargins(unit_variance=9.0)(TREES, z, weights=w)
    ratio = fit.standard_errors / (3.0 * np.sqrt(np.diag(covariance)))
    assert 0.9 < ratio.mean() < 1.1
    assert np.abs(ratio - 1).max() < (1e-8 if is_small else 0.5)


@pytest.mark.parametrize("unit", [1e-8, 1e4, 1e12])
def test_precisions_in_other_units_give_the_same_margins(unit):
    """Also where few cells are in use, so that others stay where they are, nearly for free."""
    rng = np.random.default_rng(1)
    cells, margins, z = (rng.standard_normal(shape) for shape in ((12, 5), (6, 5), 12))
    w = (np.arange(12) < 4).astype(float)
    (effects, forces), (same, scaled) = (
        dense_margins.DenseMargins(cells, np.eye(5), w * by).non_negative(3 * z, margins)
        for by in (1.0, unit)
    )
    np.testing.assert_allclose(same, effects, atol=1e-9)
    np.testing.assert_allclose(scaled / unit, forces, atol=1e-9)
    assert forces.max() > 0.1


@pytest.mark.parametrize("uneven", [False, True])
def test_non_negative_margins_are_the_nearest_ones(uneven):
    design = dc.Design.product({"a": 3, "b": 2, "c": 2}, "a:b + a:c + b:c")
    _, z, w = noisy(design, seed=3, scale=8.0, records=40)
    if uneven:
        w = w * np.random.default_rng(2).uniform(0.1, 10.0, len(w))
    space = EffectSpace(design)
    start = estimate(space, z, w)
    assert start.fitted_cells().min() < -1
    found = space.aggregate(fit_non_negative(start, z, w, tolerance=1e-8).effects)
    X = design.matrix().toarray().T.astype(float)
    best = minimize(
        lambda y: 0.5 * float(w @ (X @ y - z) ** 2),
        np.full(design.n_inner, z.sum() / X.sum()),
        jac=lambda y: X.T @ (w * (X @ y - z)),
        constraints={"type": "ineq", "fun": lambda y: X @ y, "jac": lambda y: X},
        options={"maxiter": 500, "ftol": 1e-14},
    )
    np.testing.assert_allclose(found, X @ best.x, atol=1e-4)
    assert found.min() >= -1e-9


@pytest.mark.parametrize("temperature", [0.0, 0.5])
@pytest.mark.parametrize("held", [(), (("a", "b"),)])
def test_the_search_keeps_its_books(temperature, held):
    """Errors are those of the records at any time, and held margins stay what they are."""
    truth, z, w = noisy(FLAT)
    rng = np.random.default_rng(4)
    shares = [np.full(n, 1 / n) for n in FLAT.shape]
    x = draw_records(FLAT, shares, 200, rng)
    places = [tuple(NAMES.index(name) for name in margin) for margin in held]
    by_axis = [[margin for margin in places if a in margin] for a in range(4)]
    search = Search(FLAT, z, w, x, rng, shares, by_axis)
    before = np.bincount(x[:, 0] * 4 + x[:, 1], minlength=12)
    for _ in range(3):
        search.sweep(temperature)
    y = np.bincount(np.ravel_multi_index(tuple(x.T), FLAT.shape), minlength=FLAT.n_inner)
    np.testing.assert_allclose(search.error, FLAT.aggregate(y) - z, atol=1e-9)
    assert np.array_equal(before, np.bincount(x[:, 0] * 4 + x[:, 1], minlength=12)) == bool(held)


@pytest.mark.parametrize("temperature", [0.0, 0.5])
def test_rows_of_costs_are_those_of_cells_that_are_looked_up(temperature):
    """The same chance leads to the same records; margins of three variables have no rows."""
    _, z, w = noisy(FLAT)
    shares = [np.full(n, 1 / n) for n in FLAT.shape]
    x = draw_records(FLAT, shares, 200, np.random.default_rng(4))
    made = [Search(FLAT, z, w, x.copy(), np.random.default_rng(5), shares) for _ in range(2)]
    assert made[0]._pairs is not None
    assert PairMatrix.of(TRIPLES, np.ones(TRIPLES.n_published)) is None
    assert PairMatrix.of(TREES, np.ones(TREES.n_published)) is None
    assert PairMatrix.of(FLAT, np.append(1e6, w[1:])) is None
    made[1]._pairs = None
    for search in made:
        search.sweep(temperature)
        search.sweep(temperature)
    np.testing.assert_array_equal(made[0].x, made[1].x)
    np.testing.assert_allclose(made[0].error, made[1].error, atol=1e-9)


def test_sweeps_without_chance_never_raise_the_loss():
    _, z, w = noisy(TRIPLES)
    rng = np.random.default_rng(5)
    shares = [np.full(n, 1 / n) for n in TRIPLES.shape]
    search = Search(TRIPLES, z, w, draw_records(TRIPLES, shares, 200, rng), rng, shares)
    losses = [search.loss]
    for _ in range(6):
        search.sweep()
        losses.append(search.loss)
    assert all(later <= earlier + 1e-9 for earlier, later in itertools.pairwise(losses))
    assert losses[-1] < losses[0] / 5


def test_true_margins_are_nearly_met():
    truth, _, w = noisy(TREES)
    fit = FromMargins(temperature=0)(TREES, truth, weights=np.ones(len(w)))
    assert np.abs(fit.z - truth).mean() < 0.25
    assert fit.z.sum() == TREES.aggregate(fit.y).sum()


def world(k=8, n=4_000, seed=6):
    """Records of several columns that hang together in a chain."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, 4, n)]
    for _ in range(k - 1):
        fresh = rng.integers(0, 4, n)
        columns.append(np.where(rng.random(n) < 0.6, columns[-1], fresh))
    names = [f"v{i}" for i in range(k)]
    design = dc.Design.product(dict.fromkeys(names, 4), dc.margins(names, order=2, lower=False))
    flat = np.stack(columns, axis=1)
    truth = np.zeros(design.n_published)
    for block in range(len(design.blocks)):
        where, _ = design.locate(block, list(flat.T))
        truth += np.bincount(design.published_at(block, where), minlength=len(truth))
    return design, truth, rng


def test_the_temperature_is_chosen_without_the_truth_and_helps():
    design, truth, rng = world()
    z = truth + rng.normal(0, 30, len(truth))
    w = np.ones(len(z))
    chosen = FromMargins(unit_variance=900.0)(design, z, weights=w)
    cold = FromMargins(unit_variance=900.0, temperature=0)(design, z, weights=w)
    errors = [float(np.abs(v - truth).mean()) for v in (chosen.z, cold.z, chosen.unbiased)]
    assert errors[0] < 0.93 * errors[1] < 0.93 * errors[2]
    assert chosen.notes["temperature"] > 0


def test_the_variance_of_the_noise_shows_in_contradictions():
    design, truth, rng = world()
    z = truth + rng.normal(0, 15, len(truth))
    fit = FromMargins(temperature=0)(design, z)
    assert fit.notes["unit_variance"] == pytest.approx(225, rel=0.2)
    inside = np.abs(fit.unbiased - truth) < 1.96 * fit.standard_errors
    assert 0.92 < inside.mean() < 0.98


def test_known_margins_are_met_and_structural_zeros_stay_empty():
    names = ["a", "b", "c", "d"]
    full = dc.Design.product(dict.fromkeys(names, 3), dc.margins(names, order=2))
    design = dc.Design.product(
        dict.fromkeys(names, 3),
        dc.margins(names, order=2),
        structural_zeros=[{"a": "1", "b": "1"}, {"b": "2", "c": "3", "d": "1"}],
    )
    rng = np.random.default_rng(7)
    x = rng.integers(0, 3, (600, 4))
    x = x[~((x[:, 0] == 0) & (x[:, 1] == 0)) & ~((x[:, 1] == 1) & (x[:, 2] == 2) & (x[:, 3] == 0))]
    y = np.bincount(np.ravel_multi_index(tuple(x.T), (3,) * 4), minlength=81)
    truth = full.aggregate(y)[design.crossing.published]
    known = np.isin([str(sorted(design.cell(k))) for k in range(len(truth))], ["['a', 'c']"])
    z = np.where(known, truth, truth + rng.normal(0, 6, len(truth)))
    fit = FromMargins()(design, z, weights=np.where(known, 1e6, 1.0))
    np.testing.assert_array_equal(fit.z[known], truth[known])
    found = fit.records
    assert not ((found[:, 0] == 0) & (found[:, 1] == 0)).any()
    assert not ((found[:, 1] == 1) & (found[:, 2] == 2) & (found[:, 3] == 0)).any()


def test_known_margins_are_met_where_most_values_are_known():
    """The weights of the few noisy values tell which ones are known, not those of most."""
    zeros = [{"b": ["1", "2"], "c": ["2"]}]
    variables = {"a": 6, "b": 4, "c": 3, "d": 5}
    design = dc.Design.product(variables, "a*b + b*c + a*c + c*d", structural_zeros=zeros)
    names = [block.name for block in design.blocks]
    cells = [design.slice_of(names.index(name)) for name in ("a×b", "b×c", "a×c")]
    for seed in (5, 7):
        rng = np.random.default_rng(seed)
        truth = design.aggregate(rng.multinomial(2000, rng.dirichlet(np.full(design.n_inner, 0.1))))
        z, w = truth + rng.normal(0, 5, len(truth)), np.full(len(truth), 1 / 25)
        for own in cells:
            z[own], w[own] = truth[own], 1e6
        fit = FromMargins(unit_variance=1.0)(design, z, weights=w).require()
        for own in cells:
            np.testing.assert_array_equal(fit.z[own], truth[own])


def test_a_private_release_of_thirty_columns_becomes_records():
    names = [f"v{i}" for i in range(30)]
    rng = np.random.default_rng(8)
    codes = ["x", "y", "z"]
    frame = {name: rng.choice(codes, 500) for name in names}
    flat = dict.fromkeys(names, dc.Hierarchy.flat(codes))
    margins = dc.margins(names[:6], order=2) + [(name,) for name in names[6:]]
    table = dc.open(pa.table(frame), name="wide").tabulate(margins, hierarchies=flat)
    fitted = table.protect(dc.DiscreteGaussian(rho=2.0)).fit()
    assert fitted.fit_result.notes["fitter"] == "from-margins"
    with pytest.raises(DesignError, match="nonnegative=False"):  # small values are too high
        _ = fitted.fit_result.standard_errors
    records = fitted.to_microdata()
    assert records.num_columns == 30
    assert records.num_rows == fitted.z[fitted.design.position({})]
    again = fitted.tabulate("v0*v7")
    assert again.z[again.design.position({"v0": "x"})] == records["v0"].to_pylist().count("x")
    assert fitted.statement.says("adds-up")
    assert fitted.statement.says("whole-numbers")
    plain = table.protect(dc.DiscreteGaussian(rho=2.0, nonnegative=False)).fit()
    assert (plain.fit_result.standard_errors > 0).all()


@pytest.mark.parametrize("temperature", [None, 0.1, 0.0])
def test_every_sweep_says_how_far_the_work_is(monkeypatch, temperature):
    """The search for a temperature too, and a sweep in parts gives the same records."""
    _, z, w = noisy(FLAT)
    shares, fitter = [], FromMargins(temperature=temperature, unit_variance=9.0)

    def hear(task, share):
        shares.extend([share] if task == records.TASK else [])

    with listening(hear):
        whole = fitter(FLAT, z, weights=w)
    sweeps = len(shares)
    assert sweeps >= {None: 25, 0.1: 15, 0.0: 3}[temperature]
    assert shares == sorted(shares)
    assert shares[-1] <= 1.0
    monkeypatch.setattr(records, "_AT_ONCE", 64)  # of 200 records
    with listening(hear):
        parts = fitter(FLAT, z, weights=w)
    assert len(shares) == 5 * sweeps
    np.testing.assert_array_equal(parts.records, whole.records)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ParameterError, match="temperature must be zero or more"):
        FromMargins(temperature=-1)
    with pytest.raises(DesignError, match="no records to draw"):
        FromMargins()(FLAT, np.zeros(FLAT.n_published))
    with pytest.raises(DesignError, match="matrix has no margins to draw"):
        FromMargins()(dc.Design.from_matrix(np.eye(2)), np.ones(2))
