r"""Published counts that have lost all their inner cells get one back.

A Poisson loss is infinite where a positive count has an empty margin. Its dual value would rise by
a little in every step until an inner cell pays; here it rises at once, to where the largest slope
of its cells is zero, and that inner cell takes the value that goes with it, :math:`wz/(w + u)`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discreet.design.membership import Membership

Vector = NDArray[np.float64]
Index = NDArray[np.int32]
Positions = NDArray[np.int64]


class Waking:
    """The changes to one point, made in place.

    Args:
      members: Published cells of the inner cells.
      counts: Weights times published values, zero for "no cell" at the end.
      weights: Weights, with the same end.
      y: Inner cells.
      u: Dual values, with the same end.
      slopes: The slopes `Xu`.
    """

    def __init__(
        self,
        members: Membership,
        counts: Vector,
        weights: Vector,
        y: Vector,
        u: Vector,
        slopes: Vector,
    ) -> None:
        self._members, self._counts, self._weights = members, counts, weights
        self._y, self._u, self._slopes = y, u, slopes

    def wake(self, margins: Vector) -> None:
        """Go through the published cells that are positive while their margins are not."""
        asleep = np.append((self._counts[:-1] > 0) & (margins <= 0), False)
        if not asleep.any():
            return
        for block in range(len(self._members.cells) + len(self._members.nested)):
            row = self._members.row(block)
            inside = np.flatnonzero(asleep[row])
            if len(inside):
                self._wake_block(row[inside], inside)

    def _wake_block(self, row: Index, inside: Positions) -> None:
        """Wake the cells of one block that no block before it has woken."""
        y, u, slopes = self._y, self._u, self._slopes
        order = np.lexsort((-slopes[inside], row))
        row, inside = row[order], inside[order]
        k, first, place = np.unique(row, return_index=True, return_inverse=True)
        steepest = inside[first]
        empty = np.bincount(place, weights=y[inside]) <= 0
        raised = np.where(empty, np.maximum(-slopes[steepest], 0.0), 0.0)
        u[k] += raised
        slopes[inside] += raised[place]
        k = k[empty]
        y[steepest[empty]] = self._counts[k] / (self._weights[k] + u[k])
