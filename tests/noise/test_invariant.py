"""Invariant matrices against Giessing & Höhne (2011), Tables 2, 3 and 6, and their laws."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import DataError, DesignError, InfeasibleError, ParameterError
from discreet.noise import (
    allocate,
    blurred_deviations,
    controlled_flows,
    invariant_matrix,
    moment_estimate,
    no_small_cells,
    perturbation_table,
    tridiagonal,
    two_stage,
)

# Counts 1 to 8; the paper prints the first five, the others follow from its flows.
FREQUENCIES = [96, 32, 20, 16, 15, 13, 9, 6]

# Table 2: states 0-3, 4, 5, 6 to states 0-3, 4, ..., 8.
TABLE_2 = [
    [144.62403, 2.9690406, 0.4069246, 0, 0, 0],
    [2.9690406, 11.81552, 1.0893785, 0.1260606, 0, 0],
    [0.4069246, 1.0893785, 12.211631, 1.196397, 0.0956693, 0],
    [0, 0.1260606, 1.196397, 10.676843, 0.9239783, 0.0767213],
]

# Table 3: counts 1 to 6 to counts 0, 3, 4, 5, 6.
TABLE_3 = [
    [60.531974, 35.468026, 0, 0, 0],
    [9.510658, 22.489342, 0, 0, 0],
    [4.6240348, 12, 2.9690406, 0.4069246, 0],
    [0, 2.9690406, 11.81552, 1.0893785, 0.1260606],
    [0, 0.4069246, 1.0893785, 12.211631, 1.196397],
    [0, 0, 0.1260606, 1.196397, 10.676843],
]

# Table 6: deviations -13 to 13 and how often they occur.
TABLE_6 = [
    *[1, 5, 30, 110, 310, 836, 1872, 8203, 34859, 162116, 369234, 622462, 1226831],
    739905,
    *[783760, 778735, 393652, 170659, 37674, 9230, 2141, 878, 372, 108, 44, 7, 0],
]


def test_table_2():
    t = np.array([148.0, *FREQUENCIES[3:]])
    flows = t[:, None] * two_stage(tridiagonal(6, 0.15, 0.075), t, 0.40)
    np.testing.assert_allclose(flows[:4], TABLE_2, atol=1e-5)
    np.testing.assert_allclose(flows, flows.T, atol=1e-12)


def test_table_3():
    t = np.array([0, *FREQUENCIES])
    flows = t[:, None] * no_small_cells(FREQUENCIES).dense(9)
    np.testing.assert_allclose(flows[1:7][:, [0, 3, 4, 5, 6]], TABLE_3, atol=1e-6)
    after = flows.sum(axis=0)
    assert after[[0, 3]].sum() == pytest.approx(148, abs=1e-12)
    assert after[3] == pytest.approx(220 / 3, abs=1e-12)
    assert 3 * after[3] == pytest.approx(96 + 2 * 32 + 3 * 20, abs=1e-12)
    np.testing.assert_allclose(after[4:], t[4:], atol=1e-12)
    assert after[[1, 2]].tolist() == [0, 0]


def test_no_small_cells_are_published():
    table = no_small_cells(FREQUENCIES)
    assert table.blocked == 2
    assert table.keeps_zeros
    assert table.probabilities(50)[table.max_move] == 1


def test_leaving_is_lowered_until_the_threes_can_bear_it():
    with pytest.raises(InfeasibleError, match="Lower q"):
        no_small_cells([96, 32, 4, 16, 15, 13], first=0.075)
    t = np.array([0, 300, 60, 9, 6, 5, 4])
    after = t @ no_small_cells(t[1:], q=0.15).dense(7)
    np.testing.assert_allclose(after[4:], t[4:], atol=1e-12)


def test_balance_that_cannot_be_struck_is_named():
    with pytest.raises(InfeasibleError, match="Lower alpha"):
        no_small_cells([1, 1, 50, 5, 5, 5], alpha=1.0)
    with pytest.raises(InfeasibleError, match="Lower q"):
        no_small_cells([96, 32, 0, 16, 15, 13])
    with pytest.raises(DataError):
        no_small_cells([1, 2, 3])


@st.composite
def chains(draw):
    n = draw(st.integers(2, 7))
    weights = draw(st.lists(st.integers(0, 5), min_size=n * n, max_size=n * n))
    P = np.array(weights, dtype=float).reshape(n, n) + np.eye(n)
    t = np.array(draw(st.lists(st.integers(0, 50), min_size=n, max_size=n)))
    return P / P.sum(axis=1, keepdims=True), t, draw(st.floats(0.05, 1.0))


@given(chains())
def test_frequencies_are_invariant(chain):
    P, t, alpha = chain
    R = two_stage(P, t, alpha)
    np.testing.assert_allclose(t @ R, t, atol=1e-12 * max(1, t.sum()))
    np.testing.assert_allclose(R.sum(axis=1), 1, atol=1e-12)
    assert R.min() >= 0
    flows = t[:, None] * R
    np.testing.assert_allclose(flows, flows.T, atol=1e-10)


def test_the_test_of_invariance_can_fail():
    t = np.array([50, 20, 5])
    assert np.abs(t @ tridiagonal(3, 0.2) - t).max() > 1


@settings(max_examples=40, deadline=None)
@given(chains(), st.integers(0, 2**32 - 1))
def test_allocation_keeps_the_frequencies_of_the_table_at_hand(chain, seed):
    P, t, alpha = chain
    flows = controlled_flows(two_stage(P, t, alpha), t)
    np.testing.assert_array_equal(flows.sum(axis=1), t)
    np.testing.assert_array_equal(flows.sum(axis=0), t)
    rng = np.random.default_rng(seed)
    states = rng.permutation(np.repeat(np.arange(len(t)), t))
    new = allocate(states, flows, rng=rng)
    seen = np.zeros_like(flows)
    np.add.at(seen, (states, new), 1)
    np.testing.assert_array_equal(seen, flows)


def test_independent_draws_would_not_keep_them():
    t = np.array([5000, 3000, 2000])
    R = two_stage(tridiagonal(3, 0.3), t)
    rng = np.random.default_rng(3)
    drawn = sum(rng.multinomial(n, row) for n, row in zip(t, R, strict=True))
    assert np.abs(drawn - t).max() > 2


def test_allocation_by_keys_is_a_function_of_the_keys():
    states = np.repeat([0, 1, 2], [50, 30, 20])
    R = two_stage(tridiagonal(3, 0.3), np.bincount(states))
    flows = controlled_flows(R, np.bincount(states))
    rng = np.random.default_rng(8)
    keys, order = rng.permutation(100), rng.permutation(100)
    new = allocate(states, flows, keys=keys)
    np.testing.assert_array_equal(new[order], allocate(states[order], flows, keys=keys[order]))
    moved = (states == 0) & (new != 0)
    assert keys[moved].min() > keys[(states == 0) & (new == 0)].max()


def test_allocation_refuses_what_does_not_fit():
    flows = np.array([[2, 1], [1, 0]])
    with pytest.raises(ParameterError, match="either keys or rng"):
        allocate([0, 0, 0, 1], flows)
    with pytest.raises(DesignError, match="frequencies"):
        allocate([0, 0, 1, 1], flows, keys=[1, 2, 3, 4])
    with pytest.raises(DataError, match="3 keys"):
        allocate([0, 0, 0, 1], flows, keys=[1, 2, 3])


def test_table_6_frequencies_of_perturbed_perturbations():
    """5,344,034 cells; the paper's own differences reach 2, ours are nought."""
    t = np.array(TABLE_6)
    d = np.arange(-13, 14)
    assert t.sum() == 5_344_034
    assert d @ t == 60
    flows = controlled_flows(two_stage(tridiagonal(27, 0.15), t, 0.4), t)
    np.testing.assert_array_equal(flows.sum(axis=0), t)
    assert np.trace(flows) < 0.95 * t.sum()


def test_blurred_deviations_keep_their_distribution():
    t = np.array(TABLE_6) // 100
    deviations = np.repeat(np.arange(-13, 14), t)
    blurred = blurred_deviations(deviations, rng=np.random.default_rng(1))
    np.testing.assert_array_equal(np.bincount(blurred + 13, minlength=27), t)
    changed = np.mean(blurred != deviations)
    assert 0.05 < changed < 0.4
    assert np.abs(blurred - deviations).max() <= 2
    still = np.zeros(5, dtype=int)
    np.testing.assert_array_equal(blurred_deviations(still, rng=np.random.default_rng(1)), still)


def test_a_designed_matrix_can_be_made_invariant():
    rng = np.random.default_rng(6)
    counts = rng.poisson(4, 2000)
    t = np.bincount(counts)
    for zeros in (True, False):
        table = invariant_matrix(perturbation_table(3, 1), counts, alpha=0.5, zeros=zeros)
        np.testing.assert_allclose(t @ table.dense(len(t)), t, atol=1e-10)
        assert table.keeps_zeros is not zeros
        assert bool(table.dense(len(t))[1:, 0].any()) is zeros
    assert table.probabilities(10**6)[table.max_move] == 1
    with pytest.raises(ParameterError, match="residues"):
        invariant_matrix(perturbation_table(3, 1), [5000])
    with pytest.raises(DataError):
        invariant_matrix(perturbation_table(3, 1), np.zeros(0, dtype=int))


def test_moment_estimate_undoes_the_perturbation_on_average():
    t = np.array([50.0, 20, 10, 5])
    M = tridiagonal(4, 0.2)
    np.testing.assert_allclose(moment_estimate(t @ M, M), t)
    rng = np.random.default_rng(9)
    draws = [
        sum(rng.multinomial(int(n), row) for n, row in zip(t, M, strict=True)) for _ in range(4000)
    ]
    estimates = np.array([moment_estimate(draw, M) for draw in draws])
    error = np.abs(estimates.mean(axis=0) - t) / (estimates.std(axis=0) / np.sqrt(4000))
    assert error.max() < 4.5


def test_a_matrix_that_forgets_cannot_be_undone():
    with pytest.raises(ParameterError, match="cannot be inverted"):
        moment_estimate([5, 5], [[0.5, 0.5], [0.5, 0.5]])
    with pytest.raises(DesignError):
        moment_estimate([5, 5, 5], np.eye(2))


@pytest.mark.parametrize(
    ("P", "t", "alpha", "error"),
    [
        (np.eye(3), [1, 2], 0.5, DesignError),
        (np.eye(2), [1, 2], 0.0, ParameterError),
        (np.eye(2), [1, -2], 0.5, DataError),
        ([[0.5, 0.4], [0, 1]], [1, 2], 0.5, ParameterError),
    ],
)
def test_bad_input_is_refused(P, t, alpha, error):
    with pytest.raises(error):
        two_stage(P, t, alpha)
    with pytest.raises(ParameterError):
        tridiagonal(1, 0.1)
