"""Exact sparse elimination: which columns are linear combinations of which others.

The question of suppression is one of spans: a hidden cell is disclosed when its column of `X` is a
linear combination of the columns of published cells.

Columns are combined in whole numbers without division and made primitive after each step, so
nothing is rounded; a number that would leave 31 bits is an error, never a wrong answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Mask, Whole
from discreet.errors import DiscreetError
from discreet.solve.linear.elimination_kernels import eliminate

if TYPE_CHECKING:
    from scipy.sparse import csc_array


class EliminationError(DiscreetError):
    """Numbers became too large for exact elimination in machine words."""


def rank(columns: csc_array) -> int:
    """The rank of a sparse matrix of whole numbers, exactly."""
    return _take_all(columns, columns[:, :0])[0]


def find_spanned(columns: csc_array, targets: csc_array) -> Mask:
    """Which targets are linear combinations of the columns, exactly."""
    return np.equal(_take_all(columns, targets)[1], 0)


def _take_all(columns: csc_array, targets: csc_array) -> tuple[int, Whole]:
    """The rank of the columns, and how many rows are left of each target without them."""
    from scipy.sparse import csc_array, hstack

    both = csc_array(hstack([columns, targets], format="csc"))
    # Short columns come first: that keeps others short.
    order = np.argsort(np.diff(both.indptr)[: columns.shape[1]], kind="stable")
    both.sort_indices()
    entries = np.column_stack([both.indices, both.data]).astype(np.int64)
    try:
        found, left = eliminate(both.indptr.astype(np.int64), entries, both.shape[0], order)
    except OverflowError:
        raise EliminationError(
            "numbers beyond 31 bits arose in an exact elimination. Publish fewer tables at once, "
            "or fewer levels."
        ) from None
    return int(found), left[columns.shape[1] :]
