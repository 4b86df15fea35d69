"""Discrete Laplace, post-randomisation and drop/add against Shlomo, Krenzke & Li (2019)."""

import math

import numpy as np
import pytest

from discreet.errors import DataError, ParameterError
from discreet.noise import (
    discrete_laplace,
    drop_add,
    invariant_pram,
    laplace_law,
    large_table,
    pram,
    small_table,
)

# Table 1: perturbations 0 to 7.
TABLE_1 = [0.76159, 0.10307, 0.013949, 0.001887804, 0.000255486, 3.4576e-5, 4.679e-6, 6.33e-7]

# Table 2: counts 1 to 6, targets 0 to 6.
TABLE_2 = [
    [0.11920, 0.76160, 0.10308, 0.01395, 0.00189, 0.00026, 3.46e-05],
    [0.01395, 0.10525, 0.76160, 0.10311, 0.01395, 0.00189, 0.00026],
    [0.00189, 0.01395, 0.10337, 0.76160, 0.10337, 0.01395, 0.00189],
    [0.00026, 0.00189, 0.01395, 0.10311, 0.76160, 0.10525, 0.01395],
    [3.46e-05, 0.00026, 0.00189, 0.01395, 0.10308, 0.76160, 0.11920],
    [5.31e-06, 3.46e-05, 0.00026, 0.00189, 0.01395, 0.22227, 0.76160],
]

# Table 3: residues 0 to 7 (the table is unchanged when turned by 180 degrees), values 0 to 14.
TAIL = [0.01395, 0.00189, 0.00026, 3.46e-05, 4.68e-06, 6.33e-07]
TABLE_3 = [
    [0.76160, 0.22227, *TAIL],
    [0.11920, 0.76160, 0.10307, *TAIL],
    [0.01395, 0.10525, 0.76160, 0.10307, *TAIL],
    [0.00189, 0.01395, 0.10337, 0.76160, 0.10307, *TAIL],
    [0.00026, 0.00189, 0.01395, 0.10311, 0.76160, 0.10307, *TAIL],
    [3.46e-05, 0.00026, 0.00189, 0.01395, 0.10308, 0.76160, 0.10307, *TAIL],
    [4.68e-06, 3.46e-05, 0.00026, 0.00189, 0.01395, 0.10307, 0.76160, 0.10307, *TAIL],
    [*TAIL[::-1], 0.10307, 0.76160, 0.10307, *TAIL],
]


def printed_equal(found, printed):
    """Equal to the printed digits: five decimals, or three significant ones when smaller."""
    half = np.where(np.asarray(printed) < 1e-4, 6e-3 * np.asarray(printed), 6e-6)
    return np.all(np.abs(np.asarray(found) - printed) <= half)


def test_table_1():
    law = laplace_law(2, 7)
    digits = [5e-6, 5e-6, 5e-7, 5e-10, 5e-10, 5e-10, 5e-10, 5e-10]
    assert np.all(np.abs(law[7:] - TABLE_1) <= np.array(digits) * 1.01)
    np.testing.assert_allclose(law, law[::-1])
    u = np.arange(-7, 8)
    assert law @ u**2 == pytest.approx(0.362018, abs=1e-6)
    more = [0.7615943, 0.1030706, 0.01394909, 0.001887804, 0.0002554864, 3.457633e-5]
    np.testing.assert_allclose(law[7:13], more, rtol=3e-7)


def test_table_2():
    small = small_table()
    assert small[0].tolist() == [1, 0, 0, 0, 0, 0, 0]
    assert printed_equal(small[1:], TABLE_2)
    np.testing.assert_allclose(small.sum(axis=1), 1, atol=1e-15)


def test_table_3():
    large = large_table()
    printed = np.array([row + [0.0] * (15 - len(row)) for row in TABLE_3])
    assert printed_equal(large[:8], printed)
    assert printed_equal(large[7:], printed[::-1, ::-1])
    np.testing.assert_allclose(large.sum(axis=1), 1, atol=1e-15)


def test_a_wrong_table_is_noticed():
    wrong = small_table(1.99)
    assert not printed_equal(wrong[1:], TABLE_2)


def test_bias_of_post_randomisation():
    """Means +0.0187, +0.0046, 0, -0.0045, -0.0186, -0.257 at counts 1 to 6; ∓0.257 at the ends."""
    mean = pram().audit().mean
    expected = [0.0187, 0.0046, 0, -0.0045, -0.0186, -0.257]
    np.testing.assert_allclose(mean[1:7], expected, atol=1.5e-4)
    assert mean[15] == pytest.approx(-0.257, abs=1e-3)
    assert mean[14] == pytest.approx(+0.257, abs=1e-3)


def test_noise_of_large_counts_is_a_function_of_the_residue():
    table = pram()
    counts = np.arange(7, 400)
    keys = np.full(counts.size, 990)
    noise = table.noise(counts, keys, 1000)
    assert all(len(set(noise[counts % 15 == m].tolist())) == 1 for m in range(15))
    assert table.probabilities(30)[table.max_move + 1 :].sum() == 0
    assert table.probabilities(29)[: table.max_move].sum() == 0


def test_a_laplace_cell_is_private_at_its_epsilon():
    """δ = Pr(u = 7) = 6.33e-7 at ε = 2, clipped negatives and count 0 included."""
    audit = discrete_laplace(2, 7).audit(epsilon=2)
    delta = laplace_law(2, 7)[0]
    assert delta == pytest.approx(6.332875e-7, rel=1e-6)
    assert audit.delta == pytest.approx(delta, rel=1e-6)
    assert {(p.first, p.second) for p in audit.neighbours} >= {(0, 1), (1, 0), (7, 8), (8, 7)}
    assert discrete_laplace(2, 7).audit(epsilon=1.9).delta > 1e-3


def test_sensitivity_divides_the_budget():
    np.testing.assert_allclose(laplace_law(2, 5, 7), laplace_law(2 / 7, 5))


def test_laplace_below_zero_becomes_zero():
    table = discrete_laplace(1, 3)
    law = laplace_law(1, 3)
    assert table.dense(2)[0, 0] == pytest.approx(law[:4].sum())
    assert table.dense(2)[1, 0] == pytest.approx(law[:3].sum())
    np.testing.assert_allclose(table.probabilities(3), law)
    assert not table.keeps_zeros


def test_drop_add_reach_and_variance():
    table = drop_add()
    audit = table.audit()
    q = np.arange(8)
    np.testing.assert_allclose(audit.variance, q * (q + 1) / 3, atol=1e-12)
    np.testing.assert_allclose(1 - audit.stay[1:3], [2 / 3, 0.8])
    for count in (1, 99, 100, 101, 599, 600, 601, 700, 10**7):
        reach = min(7, -(-count // 100))
        assert np.count_nonzero(table.probabilities(count)) == 2 * reach + 1


@pytest.mark.parametrize("share", [0.01, 0.02, 0.07, 0.1, 0.3, 1.0])
def test_drop_add_takes_decimal_shares_exactly(share):
    table, hundredths = drop_add(share, 9), round(share * 100)
    for count in range(400):
        reach = min(9, -(-hundredths * count // 100))
        assert np.count_nonzero(table.probabilities(count)) == 2 * reach + 1


def test_distances_between_neighbours_of_drop_add():
    """δ = 1/3 at q = 1, 1/15 at q = 7; across 100/101 the log-ratio is ln(5/3)."""
    pairs = {(p.first, p.second): p for p in drop_add().audit().neighbours}
    assert pairs[1, 2].delta == pytest.approx(1 / 3)
    assert pairs[601, 602].delta == pytest.approx(1 / 15)
    assert pairs[100, 101].epsilon == pytest.approx(math.log(5 / 3))


def test_invariant_post_randomisation_keeps_expected_frequencies():
    rng = np.random.default_rng(2)
    counts = rng.poisson(rng.gamma(1.2, 12, 3000))
    assert invariant_pram(counts).keeps_zeros
    assert not invariant_pram(counts).dense(30)[1:7, 0].any()
    table = invariant_pram(counts, alpha=0.8, zeros=True)
    small = np.bincount(counts[counts < 7], minlength=7)
    np.testing.assert_allclose(small @ table.dense(7)[:7], small, rtol=1e-12)
    large = counts[counts >= 7]
    residues = np.bincount(large % 15, minlength=15)
    expected = np.zeros(15)
    for count in range(7, 22):
        for v, p in zip(table.deviations, table.probabilities(count), strict=True):
            expected[(count + v) % 15] += residues[count % 15] * p
    np.testing.assert_allclose(expected, residues, rtol=1e-12)
    assert np.all(table.audit().stay >= 0.2)


def test_plain_post_randomisation_does_not_keep_them():
    rng = np.random.default_rng(2)
    counts = rng.poisson(3, 3000)
    small = np.bincount(counts[counts < 7], minlength=7)
    assert np.abs(small @ small_table() - small).max() > 5


def test_bad_options_are_refused():
    for bad in ((0, 7), (-1, 7), (math.inf, 7), (2, 0), (2, 7, 0), (2, 1.5)):
        with pytest.raises(ParameterError):
            discrete_laplace(*bad)
    for bad in ((0, 7), (1.5, 7), (0.01, 0)):
        with pytest.raises(ParameterError):
            drop_add(*bad)
    with pytest.raises(ParameterError, match="at least 3"):
        pram(2, 2)
    with pytest.raises(DataError, match="at least 0"):
        invariant_pram([3, -1])
    with pytest.raises(ParameterError, match="alpha"):
        invariant_pram([3, 1], alpha=0)
