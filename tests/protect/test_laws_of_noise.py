"""Moments and guarantees of noise, against sums written out and draws."""

import math

import numpy as np
import pytest

from discreet.noise import pram
from discreet.protect import LaplaceShare
from discreet.protect.budget import GaussianShare, Unit
from discreet.protect.draws import seeded_gaussian, seeded_laplace
from discreet.protect.keyed_noise import moments
from discreet.protect.privacy import laplace_privacy

CELLS = np.arange(4)
DRAWS = 200_000


def discrete(weight, reach=400):
    """Variance of a law on whole numbers with these weights."""
    u = np.arange(-reach, reach + 1)
    p = weight(u) / weight(u).sum()
    return float(p @ u**2)


def test_moments_of_a_biased_law():
    matrix = pram()
    mean, variance = moments(matrix)
    row = int(matrix.row_of(6))
    p, v = matrix.probabilities(6), matrix.deviations
    assert abs(mean[row]) > 0.01
    assert mean[row] == pytest.approx(p @ v)
    assert variance[row] == pytest.approx(p @ (v - p @ v) ** 2)


def test_the_variance_of_discrete_laplace_noise():
    share = LaplaceShare(CELLS, 0.5, 3)
    assert share.scale == 6
    assert share.variance(None) == pytest.approx(discrete(lambda u: np.exp(-np.abs(u) / 6)))


def test_the_scale_of_gaussian_noise_for_several_records():
    share = GaussianShare(CELLS, 0.5, 3, Unit(records=2))
    assert share.scale == pytest.approx(math.sqrt(3 * 2**2 / (2 * 0.5)))


def check_variance(drawn, expected, kurtosis):
    """Within four standard errors of a variance estimated from the draws."""
    error = expected * math.sqrt((kurtosis - 1) / len(drawn))
    assert float(np.mean(drawn.astype(float) ** 2)) == pytest.approx(expected, abs=4 * error)


def test_seeded_laplace_noise_has_its_law():
    drawn = seeded_laplace(np.random.default_rng(1), DRAWS, 2.5)
    check_variance(drawn, discrete(lambda u: np.exp(-np.abs(u) / 2.5)), 6)
    assert np.mean(drawn == 0) == pytest.approx(math.tanh(1 / 5), abs=0.005)


def test_seeded_gaussian_noise_has_its_law():
    drawn = seeded_gaussian(np.random.default_rng(1), DRAWS, 2.5)
    check_variance(drawn, discrete(lambda u: np.exp(-(u**2) / 12.5)), 3)


def test_replacing_a_unit_costs_both_sides_of_delta():
    share = LaplaceShare(CELLS, 2.0, 1)
    found = laplace_privacy([share], 7, Unit())
    assert found.epsilon == 2
    assert found.epsilon_replace == 4
    assert found.delta > 0
    assert found.delta_replace == pytest.approx(2 * found.delta)
