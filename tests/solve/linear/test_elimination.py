"""Elimination against slow references in fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csc_array

from discreet.solve.linear.elimination import EliminationError, find_spanned, rank
from discreet.solve.linear.unknowns import solved_cells


def slow_rank(matrix):
    """Rank by elimination in fractions."""
    lines = [[Fraction(int(v)) for v in row] for row in np.atleast_2d(matrix)]
    found = 0
    for j in range(np.shape(matrix)[1]):
        pivot = next((i for i in range(found, len(lines)) if lines[i][j]), None)
        if pivot is None:
            continue
        lines[found], lines[pivot] = lines[pivot], lines[found]
        for i in range(found + 1, len(lines)):
            factor = lines[i][j] / lines[found][j]
            lines[i] = [a - factor * b for a, b in zip(lines[i], lines[found], strict=True)]
        found += 1
    return found


def in_span(columns, target):
    return slow_rank(np.column_stack([columns, target])) == slow_rank(columns)


@st.composite
def matrices(draw, rows, most=7, values=(-1, 0, 0, 1, 2)):
    n = draw(st.integers(0, most))
    flat = draw(st.lists(st.sampled_from(values), min_size=rows * n, max_size=rows * n))
    return np.array(flat, dtype=np.int64).reshape(rows, n)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_rank_and_spans_are_those_of_fractions(data):
    rows = data.draw(st.integers(1, 6))
    columns, targets = data.draw(matrices(rows, 9)), data.draw(matrices(rows, 4))
    assert rank(csc_array(columns)) == slow_rank(columns)
    found = find_spanned(csc_array(columns), csc_array(targets))
    assert found.tolist() == [in_span(columns, t) for t in targets.T]


def test_rows_are_known_one_after_another():
    columns = csc_array(np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [0, 0, 0, 1]])[:, :3])
    nothing = np.zeros(4)
    is_open, _ = solved_cells(columns, np.zeros(3), nothing > 0, nothing)
    assert is_open.tolist() == [False, False, False, True]


def test_memory_grows_as_columns_fill_up():
    rng = np.random.default_rng(1)
    columns = (rng.random((600, 600)) < 0.004).astype(np.int64)
    assert rank(csc_array(columns)) == np.linalg.matrix_rank(columns)


def test_numbers_that_grow_too_large_are_an_error_not_a_wrong_answer():
    rng = np.random.default_rng(2)
    columns = csc_array(rng.integers(-(10**6), 10**6, size=(30, 30)))
    with pytest.raises(EliminationError, match="beyond 31 bits"):
        rank(columns)
