"""Memory beside the data, as NumPy takes it."""

import tracemalloc

import numpy as np
import pytest

from discreet.randomness import stream
from discreet.synthesis import ipso


@pytest.mark.parametrize("is_collinear", [False, True])
def test_ipso_takes_less_than_twice_the_data_beside_them(is_collinear):
    rng = stream(1, "memory")
    Y, X = rng.normal(size=(200_000, 10)), rng.normal(size=(200_000, 20))
    if is_collinear:
        X[:, 7] = X[:, 3] - X[:, 5]
    tracemalloc.start()
    made = ipso(Y, X, rng=rng)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert made.details["rank_X"] == 20 - is_collinear
    assert peak < 2 * (Y.nbytes + X.nbytes)
    assert peak > made.Y.nbytes


def test_the_result_takes_no_more_than_itself():
    rng = stream(2, "memory")
    Y, X = rng.normal(size=(50_000, 5)), np.ones((50_000, 1))
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    made = ipso(Y, X, rng=rng)
    held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert held < 1.05 * made.Y.nbytes
