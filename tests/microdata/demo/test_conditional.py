from __future__ import annotations

import numpy as np
import pytest

from discreet.demo.households import Conditional
from discreet.randomness import stream


def implied(table: Conditional) -> np.ndarray:
    """Probability of each outcome that the thresholds and aliases stand for."""
    k = table.shape[-1]
    kept = table.threshold.reshape(-1, k) / 2**32
    result = kept.copy()
    for row, column in np.ndindex(kept.shape):
        result[row, table.alias.reshape(-1, k)[row, column]] += 1 - kept[row, column]
    return (result / k).reshape(table.shape)


WEIGHTS = {
    "even": np.ones((2, 7)),
    "one certain outcome": np.eye(5),
    "zeros and a long tail": np.array([[0.0, 1e-6, 3.0, 0.0, 1e3, 0.2]]),
    "two conditions": stream(0, "weights").random((3, 4, 11)),
    "single outcome": np.ones((3, 1)),
}


@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
def test_tables_stand_for_the_weights(weights):
    expected = weights / weights.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(implied(Conditional.of(weights)), expected, atol=1e-9)


def test_draws_follow_their_own_context():
    table = Conditional.of(np.array([[[1.0, 0, 0], [0, 1, 0]], [[0, 0, 1], [1, 0, 1]]]))
    first = np.repeat([0, 0, 1, 1], 20_000)
    second = np.tile(np.repeat([0, 1], 20_000), 2)
    drawn = table.draw(stream(1, "draw"), first, second).reshape(4, -1)
    assert set(drawn[0]) == {0}
    assert set(drawn[1]) == {1}
    assert set(drawn[2]) == {2}
    assert set(drawn[3]) == {0, 2}
    assert abs((drawn[3] == 0).mean() - 0.5) < 0.02


def test_frequencies_pass_a_chi_square_that_wrong_weights_fail():
    weights = np.array([[5.0, 1, 3, 0, 0.5]])
    drawn = Conditional.of(weights).draw(stream(2, "draw"), np.zeros(200_000, dtype=np.int64))
    counts = np.bincount(drawn, minlength=5)
    assert counts[3] == 0
    limit = 16.3  # 0.999 quantile of chi-square on 3 degrees of freedom
    assert chi_square(counts, weights[0]) < limit
    assert chi_square(counts, np.array([5.0, 1.1, 3, 0, 0.5])) > limit


def chi_square(counts: np.ndarray, weights: np.ndarray) -> float:
    expected = counts.sum() * weights / weights.sum()
    seen = expected > 0
    return float(((counts - expected)[seen] ** 2 / expected[seen]).sum())
