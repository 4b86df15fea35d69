"""Standard errors and intervals: against dense algebra, exact laws, and coverage."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.errors import DesignError, ParameterError
from discreet.noise import laplace_law
from discreet.solve.least_squares import basis as module
from discreet.solve.least_squares.basis import fitted_variances
from discreet.tables import Bounds, CellValues, DataSet
from discreet.testing import sample_table
from tests.strategies import designs

PRIVATE = [
    dc.Laplace(2.0),
    dc.DiscreteLaplace(2.0, nonnegative=False),
    dc.DiscreteLaplace(2.0, cap=14, nonnegative=False, accept_delta=1.0),
    dc.DiscreteGaussian(0.3, nonnegative=False),
    dc.DiscreteGaussian(3.0, nonnegative=False),
]
NAMES = ["laplace", "discrete laplace", "capped", "gaussian", "small gaussian"]


def cube(shape=(3, 4, 2), margins="a*b + b*c", size=60):
    design = dc.Design.product(dict(zip("abc", shape, strict=True)), margins)
    return dc.Table.from_inner(design, np.random.default_rng(1).poisson(size, design.n_inner))


def by_definition(design, weights, variances):
    """The covariance of the fit from the pseudo-inverse of the design, cell by cell."""
    X = design.matrix().toarray().astype(float)
    root = np.sqrt(weights)
    hat = X.T @ np.linalg.pinv((X * root).T, rcond=1e-10) * root
    same = (design.duplicates()[:, None] == np.arange(len(weights))).astype(float)
    return ((hat @ same) ** 2) @ variances


@settings(max_examples=60, deadline=None)
@given(designs(), st.integers(0, 2**20))
def test_variances_of_fits_are_those_of_dense_algebra(design, seed):
    rng = np.random.default_rng(seed)
    first = design.duplicates()
    for weights in (rng.uniform(0.3, 3.0, design.n_published), np.ones(design.n_published)):
        variances = rng.uniform(0.5, 4.0, design.n_published)[first]
        found = fitted_variances(design, weights, variances)
        np.testing.assert_allclose(found, by_definition(design, weights, variances), rtol=1e-6)


@pytest.mark.parametrize("margins", ["a*b*c", "a*b + b*c", "a + b + c", "a*b"])
def test_the_closed_form_is_the_dense_one(margins, monkeypatch):
    table = cube(margins=margins)
    block = table.design.block_of_cell()
    weights, variances = 1.0 + block, 1 / (2.0 + block)
    closed = module._variances_by_blocks(table.design, weights, variances)
    dense = by_definition(table.design, weights, variances)
    np.testing.assert_allclose(closed, dense, rtol=1e-9)
    monkeypatch.setattr(module, "MOST_DENSE", 0)
    np.testing.assert_array_equal(fitted_variances(table.design, weights, variances), closed)
    uneven = np.arange(1.0, len(block) + 1)
    assert fitted_variances(table.design, uneven, variances) is None


@pytest.mark.parametrize("method", PRIVATE, ids=NAMES)
def test_standard_errors_are_those_of_the_draws(method):
    table = cube()
    trials = [table.simulate(method, seed=s) for s in range(600)]
    moves = np.array([t.z - table.z for t in trials])
    np.testing.assert_allclose(moves.std(axis=0), trials[0].standard_errors(), rtol=0.2)
    assert moves.std() == pytest.approx(trials[0].standard_errors()[0], rel=0.03)


@pytest.mark.parametrize("level", [0.5, 0.95])
@pytest.mark.parametrize("method", PRIVATE, ids=NAMES)
def test_intervals_hold_the_truth_as_often_as_they_say(method, level):
    """Exactly so: never less, and with one step less no longer."""
    table, inside, shorter = cube(), 0, 0
    trials = [table.simulate(method, seed=s) for s in range(400)]
    for trial in trials:
        low, high = trial.intervals(level)
        inside += ((low <= table.z) & (table.z <= high)).sum()
        shorter += ((low + 1 <= table.z) & (table.z <= high - 1)).sum()
    n = len(trials) * len(table.z)
    slack = 4 * np.sqrt(level * (1 - level) / n)
    assert inside / n > level - slack
    assert shorter / n < level + slack


def test_the_reach_is_the_quantile_of_the_law():
    table = cube(margins=[("a", "b", "c")])
    for cap in (None, 6):
        method = dc.DiscreteLaplace(0.7, cap=cap, accept_delta=1.0)
        release = table.protect(method)
        reach = release.intervals(0.9)[1] - release.z
        law = laplace_law(0.7, cap or 200)
        k = next(
            k for k in range(99) if law[abs(np.arange(len(law)) - len(law) // 2) <= k].sum() >= 0.9
        )
        np.testing.assert_array_equal(reach, k)


def test_where_nothing_has_noise_nothing_is_uncertain():
    release = cube().protect(dc.Laplace(1.0, known=["b", "1"]))
    total = release.design.position({})
    low, high = release.intervals()
    assert release.standard_errors()[total] == 0
    assert low[total] == high[total] == release.z[total]
    fitted = release.fit(dc.LeastSquares())
    assert fitted.standard_errors()[total] < 1e-2
    assert (fitted.standard_errors() <= release.standard_errors() + 1e-2).all()


@pytest.mark.parametrize(
    ("method", "margins"),
    [*((method, "a*b + b*c") for method in PRIVATE[1:4]), (PRIVATE[0], "a*b*c")],
    ids=[*NAMES[1:4], NAMES[0]],
)
def test_after_a_linear_fit_errors_and_coverage_are_as_stated(method, margins):
    table = cube(margins=margins)
    fits = [table.simulate(method, seed=s).fit(dc.LeastSquares()) for s in range(120)]
    moves, error = np.array([f.z - table.z for f in fits]), fits[0].standard_errors()
    np.testing.assert_allclose(moves.std(axis=0), error, rtol=0.35)
    assert ((moves / error) ** 2).mean() == pytest.approx(1, rel=0.1)
    held = [(f.intervals()[0] <= table.z) & (table.z <= f.intervals()[1]) for f in fits]
    assert 0.92 < np.mean(held) < 0.98
    assert (error <= table.simulate(method, seed=1).standard_errors() + 1e-9).all()


def test_with_a_split_budget_and_a_hierarchy_the_fit_is_stated_too():
    """Cells that occur twice share their noise, so they count once."""
    table = sample_table()
    terms = ["region:age:sex", "region:age", "region:sex", "age:sex", "region", "age", "sex", "1"]
    split = dict(zip(terms, [0.3, *[0.1] * 7], strict=True))
    method = dc.Laplace(8.0, split=split)
    fits = [table.simulate(method, seed=s).fit(dc.LeastSquares()) for s in range(120)]
    moves, error = np.array([f.z - table.z for f in fits]), fits[0].standard_errors()
    assert ((moves / error) ** 2).mean() == pytest.approx(1, rel=0.1)
    np.testing.assert_allclose(moves.std(axis=0), error, rtol=0.45)


def test_sums_of_noisy_inner_cells_have_the_errors_of_sums():
    table = cube(margins="a*b*c")
    method = dc.DiscreteLaplace(1.0, margins="summed", nonnegative=False)
    trials = [table.simulate(method, seed=s) for s in range(400)]
    moves, error = np.array([t.z - table.z for t in trials]), trials[0].standard_errors()
    np.testing.assert_allclose(moves.std(axis=0), error, rtol=0.2)
    refitted = trials[0].fit(dc.LeastSquares())
    np.testing.assert_allclose(refitted.z, trials[0].z, atol=1e-6)
    np.testing.assert_array_equal(refitted.standard_errors(), error)


def test_cut_at_zero_intervals_still_hold():
    table = cube(size=1)
    inside = []
    for seed in range(300):
        trial = table.simulate(dc.DiscreteLaplace(1.0), seed=seed)
        low, high = trial.intervals(0.9)
        assert low.min() >= 0
        inside.append((low <= table.z) & (table.z <= high))
    assert np.mean(inside) > 0.9 - 4 * np.sqrt(0.09 / np.size(inside))


def test_weighted_counts_allow_for_their_rounding():
    design = dc.Design.product({"a": 6}, "a")
    values = CellValues(np.full(6, 9), np.full(6, 100.5))
    table = dc.Table.from_inner(design, values)
    table = replace(table, data_set=DataSet("survey", bounds=Bounds(weight=30)))
    low, high = table.protect(dc.Laplace(1.0), unit="weight").intervals()
    reach = 2 * 31 * np.log(20) + 0.5
    np.testing.assert_allclose((high - low)[low > 0], 2 * reach)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (lambda r: r.fit(dc.NonNegative(), decimals=True), "after the step 'fit:non-negative'"),
        (
            lambda r: r.fit(dc.NonNegative(), decimals=True).round(seed=1),
            "after the step 'round:margins'",
        ),
        (lambda r: r.fit(dc.LeastSquares()).tabulate("a"), "after the step 'tabulate'"),
        (lambda r: r.fit(dc.LeastSquares(start=np.ones(24))), "after the step 'fit:least-squares'"),
    ],
)
def test_what_is_not_linear_in_the_noise_says_so(changed, words):
    release = cube().protect(dc.Laplace(1.0))
    with pytest.raises(DesignError, match=words):
        changed(release).standard_errors()
    with pytest.raises(DesignError, match="Protect with nonnegative=False"):
        cube().protect(dc.DiscreteLaplace(1.0)).fit(dc.LeastSquares()).standard_errors()
    with pytest.raises(DesignError, match="Protect with nonnegative=False"):
        cube().protect(dc.DiscreteGaussian(1.0, margins="summed")).intervals()


def test_methods_without_a_public_variance_have_none_and_levels_are_probabilities():
    trial = sample_table().simulate(dc.Pram(), seed=1)
    with pytest.raises(DesignError, match="does not tell the variance"):
        trial.standard_errors()
    for level in (0, 1, -0.5, "95 %", np.nan):
        with pytest.raises(ParameterError, match="level"):
            cube().protect(dc.Laplace(1.0)).intervals(level)


def test_errors_survive_a_file(tmp_path):
    release = cube().protect(dc.Laplace(1.0)).fit(dc.LeastSquares())
    again = dc.facade.read_release(release.save(tmp_path / "release.parquet"))
    np.testing.assert_array_equal(again.standard_errors(), release.standard_errors())
    direct = cube().protect(dc.DiscreteGaussian(1.0))
    again = dc.facade.read_release(direct.save(tmp_path / "direct.parquet"))
    np.testing.assert_array_equal(again.intervals(), direct.intervals())
