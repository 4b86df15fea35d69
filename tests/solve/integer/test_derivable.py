"""Cells that published cells give away, against linear algebra."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.solve.integer.small_counts import by_elimination, by_leverage
from tests.strategies import designs


@given(designs(), st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_what_is_given_away_is_the_same_in_every_table_with_these_published_cells(design, seed):
    y = np.random.default_rng(seed).poisson(1.0, design.n_inner)
    z = design.aggregate(y)
    easy, all_of_them = by_elimination(design, z), by_leverage(design, z)
    assert (all_of_them | ~easy).all()
    X = design.matrix().toarray().astype(float)
    zero = (X @ (z == 0).astype(float)) > 0
    rest = np.flatnonzero(~zero)
    hat = np.zeros(design.n_inner)
    if len(rest):
        hat[rest] = np.diag(X[rest] @ np.linalg.pinv(X[rest]))
    np.testing.assert_array_equal(all_of_them, zero | (hat > 1 - 1e-6))


def test_the_last_unknown_cell_of_a_row_is_known():
    design = dc.Design.product({"a": 2, "b": 2}, [("a",), ("b",)])
    np.testing.assert_array_equal(by_elimination(design, np.array([0, 5, 2, 3])), [True] * 4)
    np.testing.assert_array_equal(by_elimination(design, np.array([1, 4, 2, 3])), [False] * 4)
