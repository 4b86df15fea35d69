"""Perturbed deviations and realised means, against the formulas written out."""

import numpy as np
import pytest

import discreet as dc
from discreet.noise import allocate, blurred_deviations, pram, realised_bias, tridiagonal, two_stage

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


def guess(released, law, extra=None):
    """The likeliest count behind each value, all counts being as likely beforehand."""
    found = []
    for k, value in enumerate(released.tolist()):
        counts = np.arange(max(value - law.max_move, 0), value + law.max_move + 1)
        chance = law.law[law.row_of(counts), value - counts + law.max_move]
        chance = chance if extra is None else chance * extra(k, value - counts)
        found.append(counts[chance.argmax()])
    return np.array(found)


def test_deviations_with_frequencies_kept_tell_too_much_of_single_counts():
    """Why they are not offered: whoever knows the matrix doubles the counts that are guessed."""
    law, rng = dc.perturbation_table(D=5, V=3, js=2), np.random.default_rng(1)
    truth = rng.poisson(rng.gamma(0.8, 12.0, 1_200))
    truth = truth[truth > 0]
    released = truth + law.noise(truth, rng.integers(2**32, size=len(truth)), 2**32)
    truth, released = truth[released > 0], released[released > 0]
    d = released - truth
    shown = np.abs(blurred_deviations(d, rng=rng))
    occurring, state = np.unique(d, return_inverse=True)
    R = two_stage(tridiagonal(len(occurring), 0.15), np.bincount(state), 0.4)
    place = {int(v): k for k, v in enumerate(occurring)}

    def extra(k, moves):
        size = np.abs(occurring) == shown[k]
        return np.array([R[place[v], size].sum() if v in place else 0.0 for v in moves.tolist()])

    before, after = ((guess(released, law, e) == truth).mean() for e in (None, extra))
    assert before < 0.3
    assert after > before + 0.2
