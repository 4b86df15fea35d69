"""Perturbed deviations and realised means, against the formulas written out."""

import numpy as np
import pytest

from discreet.noise import allocate, blurred_deviations, pram, realised_bias

VALUES, FREQUENCIES = (-1, 0, 2), np.array([4_000, 10_000, 6_000])


def flow(i, j, q, alpha):
    """Expected number of cells from state `i` to state `j`: both stages, sum by sum."""
    P, t = [[1 - q, q, 0], [q, 1 - 2 * q, q], [0, q, 1 - q]], FREQUENCIES
    both = sum(P[i][k] * t[j] * P[j][k] / sum(t[r] * P[r][k] for r in range(3)) for k in range(3))
    return t[i] * (alpha * both + (1 - alpha) * (i == j))


@pytest.mark.parametrize("options", [{}, {"q": 0.3}, {"alpha": 0.8}])
def test_flows_between_deviations(options):
    d = np.repeat(VALUES, FREQUENCIES)
    new = blurred_deviations(d, rng=np.random.default_rng(1), **options)
    q, alpha = options.get("q", 0.15), options.get("alpha", 0.4)
    for i, a in enumerate(VALUES):
        for j, b in enumerate(VALUES):
            seen = np.sum((d == a) & (new == b))
            assert seen == pytest.approx(flow(i, j, q, alpha), abs=1)


def test_cells_take_their_targets_in_the_order_of_their_keys():
    states, flows = np.array([0, 0, 0, 1]), [[1, 2], [0, 1]]
    assert allocate(states, flows, keys=[5, 9, 1, 0]).tolist() == [1, 1, 0, 1]
    assert allocate(states, flows, keys=[1, 9, 5, 0]).tolist() == [0, 1, 1, 1]


def test_another_generator_moves_other_cells():
    d = np.repeat(VALUES, FREQUENCIES)
    first, second = (blurred_deviations(d, rng=np.random.default_rng(k)) for k in (1, 2))
    assert (first != second).any()
    moved = np.flatnonzero(first != d)
    assert np.median(moved) == pytest.approx(len(d) / 2, rel=0.2)


def test_the_spread_of_a_realised_mean_where_noise_is_biased():
    matrix, count, n = pram(), 6, 50
    found = realised_bias(matrix, np.full(n, count), np.zeros(n, dtype=int)).to_pylist()[0]
    p, v = matrix.probabilities(count), matrix.deviations
    mean = float(p @ v)
    assert abs(mean) > 0.01
    assert found["mean"] == pytest.approx(mean)
    assert found["sd"] == pytest.approx(np.sqrt(p @ (v - mean) ** 2 / n))
