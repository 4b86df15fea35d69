"""Exact sparse elimination: which columns are linear combinations of which others.

The question of suppression is one of spans: a hidden cell is disclosed when its column of `X` is a
linear combination of the columns of published cells. Columns are taken into the span one after
another; one that would put a protected column into it, or would let a protected column follow from
what one person knows, is left out.

Columns are combined in whole numbers without division and made primitive after each step, so
nothing is rounded; a number that would leave 31 bits is an error, never a wrong answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Mask, Whole
from discreet.errors import DiscreetError
from discreet.solve.linear.elimination_kernels import CANDIDATE, LONE, NONE, PRIMARY, eliminate

if TYPE_CHECKING:
    from scipy.sparse import csc_array


NOBODY = -1  # who knows a column that nobody knows; contributions use the same number


class EliminationError(DiscreetError):
    """Numbers became too large for exact elimination in machine words."""


@dataclass(frozen=True, eq=False)
class SpanChoice:
    """What can be taken, what must be, and what must not follow.

    Attributes:
      columns: Candidates by priority, rows × candidates, whole numbers.
      protected: Columns that must stay out of the span.
      owner: Who each protected column belongs to wholly, and may therefore know it.
      lone: Columns that one person knows.
      attacker: Who knows each of them.
      n_must: This many of the first candidates must be taken.
    """

    columns: csc_array
    protected: csc_array
    owner: Whole
    lone: csc_array
    attacker: Whole
    n_must: int = 0


@dataclass(frozen=True, eq=False)
class SpanConflict:
    """Why the columns that must be taken cannot be.

    Attributes:
      protected: The protected column that would follow.
      candidate: The candidate that it would follow with, once others of them are taken; `NONE`
        where it follows from nothing.
    """

    protected: int
    candidate: int


@dataclass(frozen=True, eq=False)
class SpanSelection:
    """What became of a choice.

    Attributes:
      rejected: Which candidates were left out.
      rank: How many were taken; others follow from these, or were left out.
      protected: What is left of the protected columns once the span is taken out.
      lone: What is left of the lone columns; nothing where they follow from candidates.
      conflict: Why candidates that must be taken cannot be; nothing else counts then.
    """

    rejected: Mask
    rank: int
    protected: csc_array
    lone: csc_array
    conflict: SpanConflict | None


def select(choice: SpanChoice) -> SpanSelection:
    """Take candidates by priority, each unless a protected column would follow.

    Those that must be taken come first, and short ones first of them: that keeps others short.
    """
    from scipy.sparse import csc_array, hstack

    parts = [choice.columns, choice.protected, choice.lone]
    columns = csc_array(hstack(parts, format="csc"))
    n, m, k = (part.shape[1] for part in parts)
    must, rest = np.split(np.arange(n), [choice.n_must])
    must = must[np.argsort(np.diff(columns.indptr)[must], kind="stable")]
    columns.sort_indices()
    entries = np.column_stack([columns.indices, columns.data]).astype(np.int64)
    try:
        rejected, rank, told, candidate, start, left = eliminate(
            columns.indptr.astype(np.int64),
            entries,
            columns.shape[0],
            np.repeat([CANDIDATE, PRIMARY, LONE], [n, m, k]),
            np.concatenate([np.full(n, NOBODY), choice.owner, np.full(k, NOBODY)]),
            np.concatenate([np.full(n + m, NOBODY), choice.attacker]),
            np.concatenate([must, rest]),
            choice.n_must,
        )
    except OverflowError:
        raise EliminationError(
            "numbers beyond 31 bits arose in an exact elimination. Publish fewer tables at once, "
            "or fewer levels."
        ) from None
    remainders = csc_array((left[:, 1], left[:, 0], start), shape=columns.shape)
    conflict = None if told == NONE else SpanConflict(told - n, candidate)
    own, lone = remainders[:, n : n + m], remainders[:, n + m :]
    return SpanSelection(rejected[:n], rank, own, lone, conflict)


def rank(columns: csc_array) -> int:
    """The rank of a sparse matrix of whole numbers, exactly."""
    return _take_all(columns, columns[:, :0]).rank


def find_spanned(columns: csc_array, targets: csc_array) -> Mask:
    """Which targets are linear combinations of the columns, exactly."""
    return np.equal(np.diff(_take_all(columns, targets).lone.indptr), 0)


def _take_all(columns: csc_array, targets: csc_array) -> SpanSelection:
    """All columns taken, and what is left of targets."""
    none, nobody = np.empty(0, np.int64), np.full(targets.shape[1], NOBODY)
    return select(SpanChoice(columns, columns[:, :0], none, targets, nobody, columns.shape[1]))
