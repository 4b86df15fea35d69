r"""Proofs that sensitive cells keep their intervals: other tables with the same published cells.

A proof is a change :math:`\Delta` of the inner cells. It moves no cell that is shown, makes nothing
negative, and moves sensitive cells as far up or down as their rules ask. Against a contributor only
as much of it counts as he cannot rule out: nothing where it moves a cell that he knows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csc_array, hstack

from discreet.arrays import Array, Index, Mask, Real
from discreet.suppress.attackers import attackers, cells_in_doubt

if TYPE_CHECKING:
    from discreet.suppress.pattern import Pattern


# Sums that differ by less, relative to their size, are the same: changes come from linear programs
# in floating point, which keep equations to about 1e-7.
CLOSE = 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class Proofs:
    """**Confidential.** Changes of the inner cells, a sparse column each.

    Attributes:
      changes: Inner cells × changes.
      lone: Whether contributors who are alone in a cell are met as well.
    """

    changes: csc_array
    lone: bool = True

    def __len__(self) -> int:
        return int(self.changes.shape[1])

    def put_back(self, place: Array) -> Proofs:
        """The same changes for inner cells in another order, `place[i]` being where `i` goes."""
        found = self.changes.tocoo()
        entries = (found.data, (np.asarray(place)[found.row], found.col))
        return Proofs(csc_array(entries, shape=self.changes.shape), self.lone)

    def valid(self, pattern: Pattern) -> Mask:
        """Which changes move no shown cell, nothing known, and make nothing negative."""
        slack = CLOSE * np.maximum(1.0, _largest(self.changes))
        X = pattern.design.matrix().tocsc()
        is_valid = _largest(X[:, ~pattern.suppressed].T @ self.changes) <= slack
        if pattern.known is not None:
            is_valid &= _largest(self.changes.tocsr()[pattern.known]) == 0
        if pattern.bounds is not None:
            low, high = pattern.bounds
            bounded = np.flatnonzero(pattern.suppressed & (np.isfinite(low) | np.isfinite(high)))
            moved = (X[:, bounded].T @ self.changes).tocoo()
            down, up = (pattern.z - low)[bounded], (high - pattern.z)[bounded]
            beyond = np.maximum(moved.data - up[moved.row], -moved.data - down[moved.row])
            is_valid[moved.col[beyond > slack[moved.col]]] = False
        # Signs bound nothing where some value is negative: cells may then go below zero.
        if not pattern.is_signed:
            y = np.asarray(pattern.y, dtype=np.float64)
            moved = self.changes.tocoo()
            is_valid[moved.col[-moved.data - y[moved.row] > slack[moved.col]]] = False
        return np.asarray(is_valid)

    def unproven(self, pattern: Pattern) -> Index:
        """Sensitive cells without a proof for one of their sides, or against some contributor.

        Sensitive differences follow behind the last published cell.
        """
        changes = csc_array(self.changes[:, self.valid(pattern)])
        targets, places, below, above = sensitive_sums(pattern)
        views = attackers(pattern, contributors=self.lone)
        exempt = views.exempt(targets, cells_in_doubt(pattern), pattern.differences)
        rest = views.rest(targets)
        moves = (targets.T @ changes).tocsr()
        parts = (slice(*changes.indptr[k : k + 2]) for k in range(changes.shape[1]))
        rooms = [views.rooms(changes.indices[part], changes.data[part]) for part in parts]
        found = []
        for k in range(len(places)):
            moved = list(zip(*_row(moves, k), strict=True))
            not_met = set(_row(exempt, k)[0])
            down = [(rooms[change], -move) for change, move in moved if move < 0]
            up = [(rooms[change], move) for change, move in moved if move > 0]
            # A contributor's own part stays where it is: a cell can only lose what others have.
            limits = dict(zip(*_row(rest, k), strict=True))
            is_proven = _is_proven(down, below[k], not_met, limits)
            if not (is_proven and _is_proven(up, above[k], not_met, {})):
                found.append(k)
        return places[np.array(found, dtype=np.intp)]


def _row(matrix: Any, k: int) -> tuple[list[int], list[float]]:
    """Columns and values of one row."""
    part = slice(matrix.indptr[k], matrix.indptr[k + 1])
    return matrix.indices[part].tolist(), matrix.data[part].tolist()


def _is_proven(
    moves: list[tuple[dict[int, float], float]],
    need: float,
    exempt: set[int],
    limits: dict[int, float],
) -> bool:
    """Whether changes reach as far as needed, against every contributor who is not exempt.

    Each move is how often contributors can make the change, and how far it reaches. Limits are what
    is possible at all against contributors who are in the cell themselves.
    """
    if need <= 0:
        return True
    slack = CLOSE * max(1.0, need)
    far = [rooms for rooms, reach in moves if reach >= need - slack]
    if not far:
        return False
    # One change that goes far enough in a contributor's eyes is enough against him.
    doubtful = set.intersection(*(set(rooms) for rooms in far)) - exempt
    for who in doubtful:
        least = min(limits.get(who, need), need)
        reached = max(min(1.0, rooms.get(who, 1.0)) * reach for rooms, reach in moves)
        if least > slack and reached < least - slack:
            return False
    return True


def sensitive_sums(pattern: Pattern) -> tuple[Any, Index, Real, Real]:
    """Columns of sensitive cells and behind them of differences, their places, and needs."""
    n, m = len(pattern.z), len(pattern.differences)
    primary = np.flatnonzero(pattern.primary)
    columns = [pattern.design.matrix().tocsc()[:, primary], pattern.difference_columns()]
    needs = np.array([each.need for each in pattern.differences], dtype=np.float64)
    below = np.zeros(n) if pattern.lower is None else pattern.lower
    above = np.zeros(n) if pattern.upper is None else pattern.upper
    return (
        csc_array(hstack(columns, format="csc").astype(np.float64)),
        np.concatenate([primary, np.arange(n, n + m)]),
        np.concatenate([below[primary], np.zeros(m)]),
        np.concatenate([above[primary], needs]),
    )


def _largest(matrix: Any) -> Real:
    """The largest absolute entry of each column."""
    if not matrix.shape[0]:
        return np.zeros(matrix.shape[1])
    return np.asarray(abs(matrix).max(axis=0).toarray()).ravel()
