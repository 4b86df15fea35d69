"""Elimination and selection against slow references in fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csc_array

from discreet.solve.linear.elimination import (
    EliminationError,
    SpanChoice,
    find_spanned,
    rank,
    select,
)
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


def is_safe(taken, choice):
    """Whether no protected column follows, for everybody or for one who knows a lone column."""
    protected, lone = choice.protected.toarray(), choice.lone.toarray()
    for p, owner in zip(protected.T, choice.owner, strict=True):
        if in_span(taken, p):
            return False
        for known, attacker in zip(lone.T, choice.attacker, strict=True):
            if attacker != owner and in_span(np.column_stack([taken, known]), p):
                return False
    return True


def slow_selection(choice):
    """Candidates one after another, each tried by itself."""
    columns = choice.columns.toarray()
    taken, rejected = columns[:, :0], []
    for k in range(columns.shape[1]):
        more = np.column_stack([taken, columns[:, k]])
        rejected.append(not is_safe(more, choice))
        if not rejected[-1]:
            taken = more
        elif k < choice.n_must:
            return None
    return rejected


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_selection_is_that_of_trying_one_column_after_another(data):
    rows = data.draw(st.integers(1, 5))
    values = (0, 0, 1)
    columns = data.draw(matrices(rows, 9, values))
    protected, lone = data.draw(matrices(rows, 3, values)), data.draw(matrices(rows, 2, values))
    owner = data.draw(
        st.lists(st.integers(-1, 2), min_size=protected.shape[1], max_size=protected.shape[1])
    )
    choice = SpanChoice(
        csc_array(columns),
        csc_array(protected),
        np.array(owner, dtype=np.int64),
        csc_array(lone),
        np.arange(lone.shape[1]),
        data.draw(st.integers(0, min(2, columns.shape[1]))),
    )
    expected = slow_selection(choice) if is_safe(columns[:, :0], choice) else None
    found = select(choice)
    assert (found.conflict is None) == (expected is not None)
    if expected is not None:
        assert found.rejected.tolist() == expected


def test_a_conflict_names_the_column_that_follows_and_what_makes_it_follow():
    columns = csc_array(np.array([[1, 0, 1], [0, 1, 1]]))
    protected = csc_array(np.array([[2, 1], [1, 1]]))
    nothing = csc_array((2, 0), dtype=np.int64)
    choice = SpanChoice(columns, protected, np.array([-1, -1]), nothing, np.empty(0, np.int64), 2)
    found = select(choice).conflict
    assert (found.protected, found.candidate) == (0, 1)


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
