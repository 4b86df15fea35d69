from functools import partial

import numpy as np
import pytest

import discreet as dc
from discreet.design.values import CellValues
from discreet.errors import DataError, DesignError, ParameterError
from discreet.microdata.secret import Secret
from discreet.noise import laplace_law
from discreet.protect.weights import by_cell, by_mean, mean_weight_of, relative_variance
from discreet.testing.draws import sample_table
from tests.protect.tables import keyed_party, square

PTABLE = dc.perturbation_table(D=5, V=3, js=2)
N = np.array([0, 1, 2, 10])
W = np.array([0.0, 30.0, 50.0, 333.0])
P = np.array([0, -1, 1, -3])


def test_equation_4_uses_the_mean_weight_of_the_survey():
    np.testing.assert_allclose(by_mean(W, P, 31.0), [0, 0, 81, 240])


def test_equation_5_uses_the_mean_weight_of_the_cell():
    np.testing.assert_allclose(by_cell(W, N, P, 31.0), [0, 0, 75, 333 - 3 * 33.3])
    np.testing.assert_allclose(by_cell(W, N, np.array([2, 0, 0, 0]), 31.0)[0], 62)


@pytest.mark.parametrize("weighting", ["mean", "cell", "scale"])
@pytest.mark.parametrize("kind", ["keys", "seed", "drop-add"])
def test_every_method_carries_its_noise_over(kind, weighting):
    table = sample_table(weights=True)
    make = {
        "keys": lambda **o: dc.CellKey(PTABLE, **o),
        "seed": dc.Pram,
        "drop-add": lambda **o: dc.DropAdd(0.05, **o),
    }[kind]
    seed = 4 if kind == "seed" else None
    release = table.protect(make(weighting=weighting, mean_weight=30.0), seed=seed)
    np.testing.assert_array_equal(release.z, release.weighted)
    assert "Sample counts are not published" in release.statement.text
    if weighting == "scale":
        assert (release.z == np.rint(release.z)).all()
        return
    p = table.protect(make(), seed=seed).z - table.z
    expected = {
        "mean": np.maximum(table.weights + 30 * p, 0),
        "cell": table.weights * (table.z + p) / np.maximum(table.z, 1),
    }[weighting]
    np.testing.assert_allclose(release.weighted, expected)


def test_on_the_weighted_scale_the_weighted_count_is_looked_up():
    table = sample_table(weights=True)
    release = table.protect(dc.CellKey(PTABLE, weighting="scale"))
    whole = np.floor(table.weights + 0.5).astype(int)
    expected = whole + PTABLE.noise(whole, table.cell_keys, 2**32)
    np.testing.assert_array_equal(release.weighted, expected)


def test_sums_of_weighted_cells_add_up():
    table = sample_table(weights=True)
    for weighting in ("mean", "cell", "scale"):
        release = table.protect(dc.CellKey(PTABLE, margins="summed", weighting=weighting))
        np.testing.assert_allclose(release.design.aggregate(release.y), release.weighted)


def test_counts_are_published_unless_weights_are_asked_for():
    release = sample_table(weights=True).protect(dc.CellKey(PTABLE))
    assert release.weighted is None
    assert release.z.dtype == np.int64
    with pytest.raises(DesignError, match="no weights"):
        keyed_party().protect(dc.CellKey(PTABLE, weighting="mean", mean_weight=3.0))
    with pytest.raises(DesignError, match="mean_weight="):
        keyed_party().protect(dc.CellKey(PTABLE, weighting="mean"))


def test_the_mean_weight_comes_from_the_records_or_the_total():
    table = sample_table(weights=True)
    expected = table.inner.weight.sum() / table.inner.count.sum()
    assert mean_weight_of(table) == pytest.approx(expected)
    assert mean_weight_of(dc.Table(table.design, table.published)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"weighting": "median"}, "weighting must be"),
        ({"mean_weight": 20.0}, "no effect"),
        ({"weighting": "mean", "mean_weight": 0.0}, "positive"),
        ({"weighting": "mean", "mean_weight": float("nan")}, "positive"),
    ],
)
def test_wrong_options_are_refused(given, words):
    with pytest.raises(ParameterError, match=words):
        dc.CellKey(PTABLE, **given)


def one_way(counts, weights, squares):
    counts = np.array(counts)
    design = dc.Design.product({"a": len(counts)}, [("a",)])
    values = CellValues(counts, np.array(weights, float), np.array(squares, float))
    return dc.Table.from_inner(design, values)


def test_the_relative_variance_is_that_of_the_records():
    table = one_way([2, 1], [30 + 10, 20], [30**2 + 10**2, 20**2])
    assert relative_variance(table) == pytest.approx(np.var([30, 10, 20]) / 20**2)
    assert relative_variance(square([[1]], [[2]])) is None


def test_uneven_weights_need_a_bound():
    table = one_way([2, 1], [30 + 10, 20], [30**2 + 10**2, 20**2])
    for weighting in ("mean", "scale"):
        with pytest.raises(DataError, match="coefficient of variation"):
            table.protect(dc.DiscreteLaplace(1.0, weighting=weighting))
    bounded = table.protect(dc.DiscreteLaplace(1.0, weighting="scale", weight_bound=40.0))
    assert bounded.statement.privacy.sensitivity == 41
    assert "mean" not in bounded.statement.privacy.text
    assert bounded.z.dtype == np.float64


def test_even_weights_may_use_their_mean_and_the_statement_says_what_that_means():
    table = one_way([2, 1], [20 + 20.2, 20], [20**2 + 20.2**2, 20**2])
    scale = table.protect(dc.DiscreteLaplace(1.0, weighting="scale")).statement.privacy
    assert scale.sensitivity == 21
    assert "ε grows with its weight" in scale.text
    mean = table.protect(dc.DiscreteLaplace(1.0, weighting="mean")).statement.privacy
    assert mean.sensitivity == 1
    assert "only as far as all records have the mean weight" in mean.text
    laplace = table.protect(dc.Laplace(1.0, weighting="scale", weight_bound=50)).statement
    assert laplace.privacy.sensitivity == 51
    assert "weighted counts" in laplace.text


def test_the_cap_and_the_weight_of_a_record_share_delta():
    table = one_way([2, 1], [40, 20], [800, 400])
    method = dc.DiscreteLaplace(2.0, cap=200, weighting="scale", weight_bound=20)
    expected = laplace_law(2.0, 200, 21)[:21].sum()
    assert table.protect(method).statement.privacy.delta == pytest.approx(expected)


def simulated_survey(rng, dependence=0.2):
    """A 7 by 7 survey as in section 3.4 of Shlomo, Krenzke & Li (2019), effects in (-1, 1)."""
    rows, columns, both = (rng.uniform(-1, 1, shape) for shape in ((7, 1), (1, 7), (7, 7)))
    population = rng.poisson(np.exp(6.5 + rows + columns + dependence * both))
    count = np.rint(population / rng.uniform(20, 40, (7, 7))).astype(int)
    return square(count, population)


def distance(a, b):
    return np.sqrt(0.5 * np.sum((np.sqrt(a) - np.sqrt(b)) ** 2))


@pytest.fixture(scope="module")
def study():
    """Means over replicates: share of cells changed, distances, by method and weighting."""
    rng, found = np.random.default_rng(1), []
    dp, pram, q = dc.DiscreteLaplace(2.0, cap=7), dc.Pram(), dc.DropAdd(source="seed")
    for r in range(800):
        table = simulated_survey(rng)
        mean = float(np.mean(table.weights / np.maximum(table.z, 1)))
        row = {}
        shown = {
            "DP": dp.simulate(table, rng),
            "PRAM": table.protect(pram, seed=r).z,
            "Q": table.protect(q, seed=r).z,
        }
        for name, z in shown.items():
            row[name, "changed"] = 100 * np.mean(z != table.z)
            row[name, "distance"] = distance(table.z, z)
            weighted = by_mean(table.weights, z - table.z, mean)
            row[name, "weighted"] = distance(table.weights, weighted)
            weighted = by_cell(table.weights, table.z, z - table.z, mean)
            row[name, "by cell"] = distance(table.weights, weighted)
        found.append(row)
    return {key: np.mean([row[key] for row in found]) for key in found[0]}


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


def test_keyed_noise_reaches_weighted_counts_of_empty_cells():
    table = sample_table(weights=True)
    secret = Secret(b"a secret of at least thirty-two bytes for tests")
    table = table.with_zero_key(partial(secret.zero_key, rule=table.convention))
    method = dc.DiscreteLaplace(4.0, keyed=True, weighting="mean", mean_weight=30.0)
    release = table.protect(method)
    empty = table.z == 0
    assert (release.weighted[empty] % 30 == 0).all()
    assert release.weighted[empty].any()
