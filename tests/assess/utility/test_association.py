"""Chi-square: against scipy, and the size of the test that allows for noise."""

import numpy as np
import pytest
from scipy import stats

import discreet as dc
from discreet.assessment import NotApplicableError
from discreet.assessment.cells import toy
from discreet.assessment.utility.association import (
    AdjustedChiSquare,
    ChangedDecisions,
    ChiSquareShift,
    CramersVShift,
)
from discreet.errors import DataError, ParameterError
from discreet.noise import discrete_laplace, drop_add, perturbation_table, pram
from discreet.randomness import stream
from discreet.release.inference import chi_square_test
from discreet.release.inference.chi_square import noise_variance
from discreet.release.inference.law import step_size
from tests.assess.helpers import TEST, identity, weighted_table

MODULUS = 2**32


@pytest.mark.parametrize("shape", [(2, 2), (3, 5), (7, 7)])
def test_the_plain_test_against_scipy(shape):
    counts = stream(1, "chi").integers(1, 30, shape)
    ours, theirs = chi_square_test(counts), stats.chi2_contingency(counts, correction=False)
    assert ours.statistic == pytest.approx(theirs.statistic)
    assert ours.freedom == theirs.dof
    assert ours.p_value == pytest.approx(theirs.pvalue)
    assert ours.cramers_v == pytest.approx(stats.contingency.association(counts, "cramer"))


def test_empty_rows_and_columns_are_left_out():
    counts = np.array([[5, 0, 9], [0, 0, 0], [7, 0, 2]])
    assert chi_square_test(counts) == chi_square_test(counts[[0, 2]][:, [0, 2]])
    assert chi_square_test([[1, 2]]).freedom == 0
    assert chi_square_test([[-3, 5], [4, 6]]) == chi_square_test([[0, 5], [4, 6]])


def test_what_is_not_a_two_way_table_is_refused():
    with pytest.raises(DataError, match="two-way"):
        chi_square_test([1, 2, 3])
    with pytest.raises(ParameterError, match="weight"):
        chi_square_test([[1, 2], [3, 4]], drop_add(), weight=0)


def test_noise_of_no_size_changes_nothing():
    counts = stream(2, "chi").integers(5, 30, (4, 5))
    still = drop_add(0.01, 1)
    none = type(still).from_law("none", [[0, 1, 0], [0, 1, 0]])
    plain, adjusted = chi_square_test(counts), chi_square_test(counts, none)
    assert adjusted.inflation == pytest.approx(1)
    assert adjusted.p_value == pytest.approx(plain.p_value)


@pytest.mark.parametrize("expected", [0.5, 4.0, 30.0, 99.5, 2000.0])
@pytest.mark.parametrize("matrix", [drop_add(), pram(), discrete_laplace(0.5, 15)], ids=str)
def test_the_variance_of_noise_on_poisson_counts_by_simulation(matrix, expected):
    rng = stream(3, f"variance {expected}")
    n = rng.poisson(expected, 400_000)
    noisy = n + matrix.noise(n, rng.integers(MODULUS, size=n.size), MODULUS)
    added = noisy.var() - n.var()
    tolerance = 4 * np.sqrt(2 / n.size) * noisy.var() + 0.02
    assert noise_variance(matrix, np.array([expected]))[0] == pytest.approx(added, abs=tolerance)


MECHANISMS = {
    "discrete Laplace": (discrete_laplace(0.5, 20), 15),
    "perturbation table": (perturbation_table(D=5, V=3, js=2), 10),
    "drop/add": (drop_add(), 5),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISMS)
def test_the_adjusted_test_keeps_its_level_and_the_naive_one_does_not(name):
    matrix, mean = MECHANISMS[name]
    rng, draws = stream(4, name), 800
    p, q = rng.dirichlet(np.full(6, 8.0)), rng.dirichlet(np.full(7, 8.0))
    truth, naive, adjusted = 0, 0, 0
    for _ in range(draws):
        n = rng.poisson(42 * mean * np.outer(p, q))
        noise = matrix.noise(n.ravel(), rng.integers(MODULUS, size=n.size), MODULUS)
        noisy = n + noise.reshape(n.shape)
        truth += chi_square_test(n).p_value < 0.05
        naive += chi_square_test(noisy).p_value < 0.05
        adjusted += chi_square_test(noisy, matrix).p_value < 0.05
    assert 0.03 < truth / draws < 0.075
    assert naive / draws > 0.14
    assert 0.025 < adjusted / draws < 0.08


def test_weighted_counts_take_the_noise_times_the_average_weight():
    # Shlomo, Krenzke & Li (2019): perturbed weighted tables of independent attributes.
    rng, matrix, weight, draws = stream(5, "weighted"), drop_add(), 30.0, 400
    naive, adjusted = 0, 0
    for _ in range(draws):
        population = rng.poisson(np.exp(6.5 + rng.uniform(-1, 1, (7, 1)) + rng.uniform(-1, 1, 7)))
        sample = np.rint(population / weight).astype(np.int64)
        noise = matrix.noise(sample.ravel(), rng.integers(MODULUS, size=49), MODULUS)
        released = population + weight * noise.reshape(7, 7)
        naive += chi_square_test(released).p_value < 0.05
        adjusted += chi_square_test(released, matrix, weight).p_value < 0.05
    assert naive / draws > 0.9
    assert 0.02 < adjusted / draws < 0.09


def test_the_step_of_the_noise_is_read_from_the_statement():
    table = weighted_table()
    release = table.simulate(dc.DropAdd(grid=10.0), seed=1)
    row = AdjustedChiSquare(mechanism=drop_add())(table, release).breakdown.to_pylist()[0]
    shown = release.z[release.design.slice_of(0)].reshape(2, 2)
    assert row["adjusted_p"] == chi_square_test(shown, drop_add(), 10.0).p_value
    assert step_size(table.simulate(dc.DropAdd(), seed=1, unit="count")) == 1.0
    private = table.simulate(dc.Laplace(epsilon=1.0), seed=1, unit="weight")
    with pytest.raises(NotApplicableError, match="in which steps"):
        AdjustedChiSquare(mechanism=drop_add())(table, private)


def test_the_adjusted_test_still_finds_association():
    rng, matrix = stream(6, "power"), discrete_laplace(1, 10)
    found = 0
    for _ in range(100):
        n = rng.poisson([[60, 30, 30], [30, 60, 30], [30, 30, 60]])
        noise = matrix.noise(n.ravel(), rng.integers(MODULUS, size=9), MODULUS).reshape(3, 3)
        found += chi_square_test(n + noise, matrix).p_value < 0.05
    assert found > 95


def test_shifts_of_every_two_way_table():
    design = dc.Design.product({"a": 2, "b": 2, "c": 2}, "a*b*c")
    table = dc.Table.from_inner(design, np.array([20, 21, 8, 8, 9, 7, 20, 22]))
    rows = ChiSquareShift()(table, identity(table)).breakdown.to_pylist()
    assert [r["table"] for r in rows] == ["a×b", "a×c", "b×c"]
    assert all(r["true_p_value"] == r["released_p_value"] for r in rows)
    flattened = dc.Release(design, design.aggregate(np.full(8, 11)), TEST)
    score = ChiSquareShift()(table, flattened)
    expected = [r["true_statistic"] / r["true_freedom"] for r in score.breakdown.to_pylist()]
    assert score.value == pytest.approx(np.mean(expected))
    v = [r["true_cramers_v"] for r in score.breakdown.to_pylist()]
    assert CramersVShift()(table, flattened).value == pytest.approx(np.mean(v))
    decided = [r["true_p_value"] < 0.05 for r in score.breakdown.to_pylist()]
    assert ChangedDecisions()(table, flattened).value == pytest.approx(np.mean(decided))
    assert 0 < sum(decided) < 3


def test_a_shift_is_per_degree_of_freedom():
    true, shown = [[20, 10, 5], [10, 20, 9]], [[15, 15, 7], [15, 15, 7]]
    before, after = (stats.chi2_contingency(t, correction=False).statistic for t in (true, shown))
    assert ChiSquareShift()(*toy(true, shown)).value == pytest.approx(abs(after - before) / 2)


def test_a_table_without_two_way_margins_has_no_association():
    with pytest.raises(NotApplicableError, match="two-way"):
        ChiSquareShift()(*toy([1, 2, 3], [1, 2, 3]))
    with pytest.raises(NotApplicableError, match="mechanism"):
        AdjustedChiSquare()(*toy([[1, 2], [2, 3]], [[1, 2], [3, 3]]))


def test_structural_zeros_are_zeros_of_the_two_way_table():
    frame = {"a": list("xxy"), "b": list("uvu"), "n": [4, 5, 6]}
    zeros = [{"a": "y", "b": "v"}]
    table = dc.Table.from_counts(frame, count="n", margins="a*b", structural_zeros=zeros)
    rows = ChiSquareShift()(table, identity(table)).breakdown.to_pylist()
    assert rows[0]["true_statistic"] == pytest.approx(chi_square_test([[4, 5], [6, 0]]).statistic)
