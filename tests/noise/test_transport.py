"""Controlled rounding: whole numbers, exact row sums, column sums rounded down or up."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import DataError, DesignError
from discreet.noise.invariant import round_transport


@st.composite
def matrices(draw):
    """Non-negative matrices with whole row sums."""
    rows, columns = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    weights = draw(st.lists(st.integers(0, 9), min_size=rows * columns, max_size=rows * columns))
    w = np.array(weights, dtype=float).reshape(rows, columns)
    w[w.sum(axis=1) == 0, 0] = 1
    sums = np.array(draw(st.lists(st.integers(0, 40), min_size=rows, max_size=rows)))
    return w / w.sum(axis=1, keepdims=True) * sums[:, None], sums


@settings(deadline=None)
@given(matrices())
def test_sums_hold_and_nothing_moves_by_one(case):
    x, sums = case
    n = round_transport(x, row_sums=sums)
    assert n.dtype == np.int64
    np.testing.assert_array_equal(n.sum(axis=1), sums)
    assert np.all(np.abs(n - x) < 1)
    assert np.all(np.abs(n.sum(axis=0) - x.sum(axis=0)) < 1)
    assert n.min() >= 0


def brute_force(x, sums):
    """The least total distance over all controlled roundings, by trying them all."""
    low = np.floor(x + 1e-9).astype(int)
    best = np.inf
    for ups in itertools.product((0, 1), repeat=x.size):
        n = low + np.reshape(ups, x.shape)
        near = np.all(np.abs(n - x) < 1) and np.all(np.abs(n.sum(axis=0) - x.sum(axis=0)) < 1)
        if near and np.array_equal(n.sum(axis=1), sums):
            best = min(best, np.abs(n - x).sum())
    return best


@pytest.mark.parametrize("seed", range(8))
def test_the_rounding_is_the_nearest(seed):
    rng = np.random.default_rng(seed)
    x = rng.random((3, 4))
    sums = rng.integers(1, 6, 3)
    x *= (sums / x.sum(axis=1))[:, None]
    n = round_transport(x, row_sums=sums)
    assert np.abs(n - x).sum() == pytest.approx(brute_force(x, sums))


def test_whole_numbers_stay():
    x = np.array([[3.0, 0, 2], [1, 1, 1]])
    np.testing.assert_array_equal(round_transport(x, row_sums=[5, 3]), x)


def test_rounding_error_of_floats_is_not_a_fraction():
    x = np.array([[0.1 + 0.2, 2.7], [0.7, 1e6 + 0.3]])
    x[0] *= 3 / x[0].sum()
    x = np.vstack([x, [[3 - 1e-12, 1e-12]]])
    n = round_transport(x, row_sums=[3, 10**6 + 1, 3])
    assert n[2].tolist() == [3, 0]


@pytest.mark.parametrize(
    ("x", "sums", "error", "message"),
    [
        ([[0.5, 0.5]], [2], DesignError, "row 0 of the matrix sums to 1, not to 2"),
        ([[0.5, 0.5]], [1, 1], DesignError, "one sum per row"),
        ([[0.5, 0.5]], [1.0], DataError, "integer type"),
        ([[-0.5, 1.5]], [1], DataError, "non-negative"),
        ([[np.nan, 1.0]], [1], DataError, "finite"),
    ],
)
def test_bad_input_is_refused(x, sums, error, message):
    with pytest.raises(error, match=message):
        round_transport(x, row_sums=sums)
