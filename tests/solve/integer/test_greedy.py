"""The greedy choice against trying everything, and its laws."""

import itertools

import numpy as np
import pytest
from scipy import sparse

from discreet.solve.integer.small_counts import choose_cells


def loss(X, residual, height, chosen):
    return ((height * X.T @ chosen - residual) ** 2).sum()


def case(seed, n=8, m=6):
    rng = np.random.default_rng(seed)
    X = sparse.csr_array((rng.random((n, m)) < 0.4).astype(float))
    return X, rng.uniform(0, 6, m), rng


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("step", [0, 3])
def test_as_many_rows_as_asked_and_a_loss_near_the_least(seed, step):
    X, residual, rng = case(seed)
    for count in (0, 1, 4, 8):
        chosen = choose_cells(X, residual, 3.0, count, step=step, rng=rng)
        assert chosen.sum() == count
        sets = itertools.combinations(range(8), count)
        least = min(loss(X, residual, 3.0, np.isin(np.arange(8), s)) for s in sets)
        assert loss(X, residual, 3.0, chosen) <= 2.5 * least + 1e-9


def test_one_row_is_the_best_row():
    for seed in range(20):
        X, residual, rng = case(seed)
        columns = np.asarray(X.sum(axis=0)).ravel() > 0
        gain = X[:, np.flatnonzero(columns)] @ residual[columns]
        chosen = choose_cells(X, residual, 3.0, 1, rng=rng)
        assert gain[chosen][0] == pytest.approx(gain.max())


def test_equally_good_rows_are_taken_by_chance():
    X = sparse.csr_array(np.array([[1.0, 1, 0], [1, 1, 0], [0, 1, 1]]))
    residual = np.array([3.0, 3.0, 0.0])
    picked = [
        int(np.flatnonzero(choose_cells(X, residual, 3.0, 1, rng=np.random.default_rng(s)))[0])
        for s in range(200)
    ]
    counts = np.bincount(picked, minlength=3)
    assert counts[2] == 0
    assert 60 < counts[0] < 140
