"""Weighted counts: published on a grid or with noise for the largest weight, never as count times
mean weight."""

from dataclasses import replace

import numpy as np
import pytest

import discreet as dc
from discreet.errors import ParameterError
from discreet.noise import discrete_laplace, laplace_law
from discreet.protect import by_cell, by_mean
from discreet.tables import Bounds, CellValues, DataSet
from discreet.testing import sample_table
from tests.protect.tables import SECRET, keyed_party, square

PTABLE = dc.perturbation_table(D=5, V=3, js=2)
N = np.array([0, 1, 2, 10])
W = np.array([0.0, 30.0, 50.0, 333.0])
P = np.array([0, -1, 1, -3])
WEIGHTED = sample_table(weights=True).with_secret(SECRET)


def test_equation_4_uses_the_mean_weight_of_the_survey():
    np.testing.assert_allclose(by_mean(W, P, 31.0), [0, 0, 81, 240])


def test_equation_5_uses_the_mean_weight_of_the_cell():
    np.testing.assert_allclose(by_cell(W, N, P, 31.0), [0, 0, 75, 333 - 3 * 33.3])
    np.testing.assert_allclose(by_cell(W, N, np.array([2, 0, 0, 0]), 31.0)[0], 62)


METHODS = {
    "cell-key": lambda **options: dc.CellKey(PTABLE, **options),
    "pram": dc.Pram,
    "drop-add": lambda **options: dc.DropAdd(0.05, **options),
}


@pytest.mark.parametrize("grid", [70, 150.0])
@pytest.mark.parametrize("kind", METHODS)
def test_weighted_counts_are_whole_steps_of_the_grid(kind, grid):
    release = WEIGHTED.protect(METHODS[kind](grid=grid), unit="weight")
    assert release.unit == "weight"
    steps = release.z / grid
    np.testing.assert_allclose(steps, np.rint(steps))
    assert release.to_arrow().column_names[-1] == "weight"
    assert "Numbers of sampled records are not published" in release.statement.text
    assert f"in steps of {grid:g}" in release.statement.plain
    reach = METHODS[kind]().claims.max_move
    assert np.abs(release.z - WEIGHTED.weights).max() <= (reach + 0.5) * grid + 1e-9
    assert f"No weighted count moved by more than {(reach + 0.5) * grid:g}." in (
        release.statement.text
    )


STEPPED = {
    "discrete-laplace": dc.DiscreteLaplace(1.0, grid=12.5, nonnegative=False),
    "laplace": dc.Laplace(1.0, grid=12.5),
    "discrete-gaussian": dc.DiscreteGaussian(0.5, grid=12.5, nonnegative=False),
}


@pytest.mark.parametrize("method", STEPPED.values(), ids=STEPPED)
def test_private_noise_is_drawn_for_the_steps_that_one_weight_can_move(method):
    """A weight of 30 moves a sum by three steps of 12.5: the noise is that of three records."""
    bounded = replace(WEIGHTED, data_set=DataSet("w", bounds=Bounds(weight=30.0)))
    release = bounded.protect(method, unit="weight")
    counts = replace(WEIGHTED, data_set=DataSet("n", bounds=Bounds(person="p", max_records=3)))
    plain = replace(method, grid=None)
    as_counts = counts.protect(plain, unit="count")
    np.testing.assert_allclose(release.precision * 12.5**2, as_counts.precision)
    assert release.statement.privacy.sensitivity == as_counts.statement.privacy.sensitivity
    assert release.statement.privacy.relation["weight"] == 30.0
    assert "at most 3 steps" in release.statement.text
    if method.name != "laplace":
        np.testing.assert_allclose(release.z % 12.5, 0)
    moves = np.concatenate(
        [bounded.simulate(method, seed=s, unit="weight").z - bounded.weights for s in range(60)]
    )
    spread = np.tile(release.precision**-0.5, 60)
    assert abs(np.mean((moves / spread) ** 2) - 1) < 0.2
    with pytest.raises(ParameterError, match="unit='count' with grid="):
        counts.protect(method, unit="count")
    with pytest.raises(ParameterError, match="weight_bound=200"):
        replace(WEIGHTED, data_set=DataSet("u")).protect(method, unit="weight")


def test_the_steps_of_the_weighted_count_are_looked_up_by_a_hash_of_their_own():
    method = dc.CellKey(PTABLE, grid=70)
    release = WEIGHTED.protect(method, unit="weight")
    whole = np.floor(WEIGHTED.weights / 70 + 0.5).astype(int)
    keys = SECRET.mix_keys(WEIGHTED.cell_keys, method.purpose)
    np.testing.assert_array_equal(release.z, 70 * (whole + PTABLE.noise(whole, keys, 2**32)))


def test_tables_on_two_grids_share_no_noise():
    """With the same noise u they would differ by u times the difference of the grids."""
    rng = np.random.default_rng(3)
    count = np.full((50, 50), 100)
    table = square(count, 40.0 * count).rekeyed(rng).with_secret(SECRET)
    steps = [
        (table.protect(dc.CellKey(PTABLE, grid=g), unit="weight").z - table.weights) / g
        for g in (50, 100)
    ]
    assert abs(np.corrcoef(steps)[0, 1]) < 5 / 50


def test_sums_of_weighted_cells_add_up():
    method = dc.CellKey(PTABLE, margins="summed", grid=70)
    release = WEIGHTED.protect(method, unit="weight")
    np.testing.assert_allclose(release.design.aggregate(release.y), release.z)


def candidates(shown, weights, count, step):
    """Counts for which a published value leaves a sum of whole weights of the cell's size."""
    return [
        p
        for p in range(-5, 6)
        if (w := shown - p * step) >= 0 and abs(w - np.rint(w)) < 1e-6 and count + p >= 0
    ]


def test_noise_times_a_mean_weight_can_be_read_off_and_steps_of_a_grid_cannot():
    """Whole weights and a mean weight with decimals: only one noise leaves a whole sum."""
    rng = np.random.default_rng(7)
    count = rng.integers(6, 60, 400)
    weight = np.array([rng.integers(20, 41, n).sum() for n in count]).astype(float)
    table = square(count.reshape(20, 20), weight.reshape(20, 20)).rekeyed(rng)
    moves = PTABLE.noise(table.z, table.cell_keys, 2**32)
    mean = float(weight.sum() / count.sum())
    leaking = by_mean(weight, moves, mean)
    found = [candidates(z, weight, n, mean) for z, n in zip(leaking, count, strict=True)]
    assert np.mean([c == [m] for c, m in zip(found, moves, strict=True)]) > 0.95
    release = table.with_secret(SECRET).protect(dc.CellKey(PTABLE, grid=30), unit="weight")
    found = [candidates(z, weight, n, 30) for z, n in zip(release.z, count, strict=True)]
    assert min(map(len, found)) > 5


def test_a_table_with_weights_says_what_is_published_or_is_refused():
    method = dc.CellKey(PTABLE)
    with pytest.raises(ParameterError, match=r"unit='count'.*unit='weight'.*grid="):
        WEIGHTED.protect(method)
    release = WEIGHTED.protect(method, unit="count")
    assert (release.unit, release.z.dtype) == ("count", np.int64)
    with pytest.raises(ParameterError, match="cannot publish unit='weight'"):
        WEIGHTED.protect(method, unit="weight")
    with pytest.raises(ParameterError, match="cannot publish unit='count'"):
        WEIGHTED.protect(dc.CellKey(PTABLE, grid=30), unit="count")
    with pytest.raises(ParameterError, match="table with weights"):
        keyed_party().protect(dc.CellKey(PTABLE, grid=30), unit="weight")
    with pytest.raises(ParameterError, match="'count' or 'weight', got 'people'"):
        WEIGHTED.protect(method, unit="people")


@pytest.mark.parametrize("grid", [0.0, -30, float("nan"), "30"])
def test_a_grid_is_a_positive_number(grid):
    with pytest.raises(ParameterError, match="grid"):
        dc.CellKey(PTABLE, grid=grid)


def one_way(counts, weights, bound=None, records=1):
    counts = np.array(counts)
    design = dc.Design.product({"a": len(counts)}, [("a",)])
    table = dc.Table.from_inner(design, CellValues(counts, np.array(weights, float)))
    return replace(table, data_set=DataSet("survey", bounds=Bounds(bound, None, records)))


PRIVATE = [dc.DiscreteLaplace(1.0), dc.Laplace(1.0), dc.DiscreteGaussian(1.0)]


@pytest.mark.parametrize("method", PRIVATE, ids=lambda m: m.name)
def test_weights_without_a_bound_are_refused_whatever_they_are(method):
    with pytest.raises(ParameterError, match=r"weight_bound=200"):
        one_way([2, 1], [40, 20]).protect(method, unit="weight")
    assert one_way([2, 1], [40, 20]).protect(method, unit="count").unit == "count"


@pytest.mark.parametrize("method", PRIVATE, ids=lambda m: m.name)
@pytest.mark.parametrize(("bound", "most"), [(40.0, 41), (39.5, 40)])
def test_one_record_moves_a_weighted_count_by_its_bound_and_the_rounding(method, bound, most):
    """Rounded to whole numbers a sum can change by the bound rounded up, or by one more."""
    table = one_way([2, 1], [30 + 10, 20], bound)
    release = table.protect(method, unit="weight")
    assert release.statement.privacy.sensitivity == most
    square_ = 1 / release.precision[0]
    scale = {"laplace": 2 * most**2, "discrete-gaussian": most**2 / 2}.get(method.name)
    if scale is not None:
        assert square_ == pytest.approx(scale, rel=1e-6)
    assert not release.statement.says("mean-zero")


def test_records_of_one_person_multiply_what_a_weight_can_do():
    table = one_way([2, 1], [40, 20], 19.5, records=3)
    release = table.protect(dc.DiscreteLaplace(1.0), unit="weight")
    assert release.statement.privacy.sensitivity == 20 * 3


def test_the_cap_and_the_weight_of_a_record_share_delta():
    table = one_way([2, 1], [40, 20], 20)
    method = dc.DiscreteLaplace(2.0, cap=200, accept_delta=1e-3)
    expected = laplace_law(2.0, 200, 21)[:21].sum()
    privacy = table.protect(method, unit="weight").statement.privacy
    assert privacy.delta == pytest.approx(expected)


def test_empty_cells_get_noise_in_steps_of_the_grid_too():
    method = dc.CellKey(discrete_laplace(0.05, 60), grid=30)
    release = WEIGHTED.protect(method, unit="weight")
    empty = WEIGHTED.z == 0
    assert (release.z[empty] % 30 == 0).all()
    assert release.z[empty].any()


def simulated_survey(rng, dependence=0.2):
    """A 7 by 7 survey as in section 3.4 of Shlomo, Krenzke & Li (2019), effects in (-1, 1)."""
    rows, columns, both = (rng.uniform(-1, 1, shape) for shape in ((7, 1), (1, 7), (7, 7)))
    population = rng.poisson(np.exp(6.5 + rows + columns + dependence * both))
    count = np.rint(population / rng.uniform(20, 40, (7, 7))).astype(int)
    return square(count, population).rekeyed(rng)


def distance(a, b):
    return np.sqrt(0.5 * np.sum((np.sqrt(a) - np.sqrt(b)) ** 2))


@pytest.fixture(scope="module")
def study():
    """Means over replicates: share of cells changed, distances, by method and weighting."""
    rng, found = np.random.default_rng(1), []
    methods = {
        "DP": dc.DiscreteLaplace(2.0, cap=7, accept_delta=1e-6),
        "PRAM": dc.Pram(invariant=True),
        "Q": dc.DropAdd(),
    }
    for r in range(800):
        table = simulated_survey(rng)
        mean = float(np.mean(table.weights / np.maximum(table.z, 1)))
        row = {}
        for name, method in methods.items():
            z = table.simulate(method, seed=r, unit="count").z
            row[name, "changed"] = 100 * np.mean(z != table.z)
            row[name, "distance"] = distance(table.z, z)
            weighted = by_mean(table.weights, z - table.z, mean)
            row[name, "weighted"] = distance(table.weights, weighted)
            weighted = by_cell(table.weights, table.z, z - table.z, mean)
            row[name, "by cell"] = distance(table.weights, weighted)
        found.append(row)
    return {key: np.mean([row[key] for row in found]) for key in found[0]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "figures"),
    [
        ("changed", {"DP": 23.8, "PRAM": 27.7, "Q": 66.8}),
        ("distance", {"DP": 0.352, "PRAM": 0.404, "Q": 0.491}),
        ("weighted", {"DP": 1.931, "PRAM": 2.224, "Q": 2.696}),
        ("by cell", {"PRAM": 2.245, "Q": 2.739}),
    ],
)
def test_the_simulation_study_of_the_paper_comes_out_again(study, what, figures):
    """Shlomo, Krenzke & Li (2019), Tables 4 and 5, dependent attributes."""
    for name, figure in figures.items():
        assert study[name, what] == pytest.approx(figure, rel=0.05), name
