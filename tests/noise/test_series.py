"""Exact likelihoods of a cell's series, against an enumeration of everybody who left and joined."""

import itertools
import math

import numpy as np
import pytest

from discreet import TransitionMatrix
from discreet.noise.series import LEAVERS, CellSeries, leaver_claims
from discreet.tables.editions import EditionMode, edition_number

LAW = TransitionMatrix.from_law(
    "narrow", [[0, 1, 0], [0, 0.75, 0.25], [0.25, 0.5, 0.25], [0.3, 0.4, 0.3]]
)
MEAN, CHURN = 1.5, 0.2


def poisson(k, rate):
    return math.exp(-rate) * rate**k / math.factorial(k)


def shown(value, count):
    move = value - count
    return LAW.probabilities(count)[move + 1] if abs(move) <= 1 else 0.0


def enumerated(values, mode, due, step):
    """P(series, k left before the step) / P(k left), by the slow obvious sum."""
    found = np.zeros(LEAVERS)
    for n in range(9):
        start = poisson(n, MEAN) * shown(values[0], n)
        for moves in itertools.product(range(6), repeat=2 * (len(values) - 1)):
            chance, count = start, n
            for t in range(1, len(values)):
                left, joined = moves[2 * t - 2 : 2 * t]
                if left > count:
                    chance = 0.0
                    break
                chance *= math.comb(count, left) * CHURN**left * (1 - CHURN) ** (count - left)
                chance *= poisson(joined, CHURN * MEAN)
                redrawn = 1 - (1 - (mode.share or 0)) ** count
                count += joined - left
                same = float(values[t] == values[t - 1])
                if mode.kind == "phased":
                    again = due[t]
                elif mode.kind == "fresh" or left or joined:
                    again = 1.0
                else:
                    again = redrawn
                chance *= again * shown(values[t], count) + (1 - again) * same
            if moves[2 * step - 2] < LEAVERS:
                found[moves[2 * step - 2]] += chance
    rate = CHURN * MEAN
    found /= [poisson(k, rate) for k in range(LEAVERS)]
    return found / found.max()


@pytest.mark.parametrize("text", ["kept", "fresh", "renewed:0.3", "phased:2"])
@pytest.mark.parametrize("values", [[2, 1, 1], [3, 3, 2]])
def test_likelihoods_match_an_enumeration(text, values):
    mode, due = EditionMode.parse(text), [1.0, 0.5, 1.0]
    series = CellSeries(
        np.array(values)[:, None],
        np.array([MEAN]),
        LAW,
        mode,
        CHURN,
        np.array(due)[:, None] if mode.kind == "phased" else None,
    )
    got = series.leave_likelihoods([1, 2])[:, 0]
    for k, step in enumerate((1, 2)):
        expected = enumerated(values, mode, due, step)
        np.testing.assert_allclose(got[k][:4], expected[:4], rtol=0.02, atol=1e-3)


def test_larger_variance_and_fewer_draws_tell_less():
    from discreet import perturbation_table

    small, large = perturbation_table(D=5, V=3, js=2), perturbation_table(D=8, V=5, js=2)
    modes = [EditionMode.parse(m) for m in ("kept", "renewed:0.05", "fresh", "phased:4")]
    claims = [leaver_claims(mode, small, 10, 0.01, 6)[0] for mode in modes]
    assert claims == sorted(claims, reverse=True)
    assert leaver_claims(modes[2], large, 10, 0.01, 6)[0] < claims[2]


def test_places_of_editions():
    assert [edition_number(t) for t in ("7", "2026", "2026-03", "2026Q2")] == [7, 2026, 24314, 8105]
    for unknown in ("final", "2026-13", "2026Q5"):
        with pytest.raises(ValueError, match="edition"):
            edition_number(unknown)
