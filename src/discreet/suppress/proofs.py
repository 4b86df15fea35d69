r"""Proofs that sensitive cells keep their intervals: other tables with the same published cells.

A proof is a change :math:`\Delta` of the inner cells. It moves no cell that is shown, makes nothing
negative, and moves sensitive cells as far up or down as their rules ask. Whoever is alone in inner
cells knows them; against him only proofs count that leave these cells as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csc_array, csr_array, hstack

from discreet.arrays import Array, Index, Mask, Real, Whole
from discreet.tables.magnitude import NOBODY

if TYPE_CHECKING:
    from discreet.suppress.pattern import Pattern


# Sums that differ by less, relative to their size, are the same: changes come from linear programs
# in floating point, which keep equations to about 1e-7.
CLOSE = 1e-6
# How far a sensitive difference must be able to rise: differences of counts are whole numbers, so
# one more is the nearest other value.
DIFFERENCE_NEED = 1.0


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
        y = np.asarray(pattern.y, dtype=np.float64)
        # Signs bound nothing where some value is negative: cells may then go below zero.
        if (y >= 0).all():
            moved = self.changes.tocoo()
            is_valid[moved.col[-moved.data - y[moved.row] > slack[moved.col]]] = False
        return np.asarray(is_valid)

    def unproven(self, pattern: Pattern) -> Index:
        """Sensitive cells without a proof for one of their sides, or against some contributor.

        Sensitive differences follow behind the last published cell.
        """
        changes = self.changes[:, self.valid(pattern)]
        targets, places, below, above = sensitive_sums(pattern)
        views = lone_views(pattern, targets, lone=self.lone)
        moves = (targets.T @ changes).tocsr()
        seen = (views.cells.T @ abs(changes)).tocsc()
        touched = [set(part.tolist()) for part in np.split(seen.indices, seen.indptr[1:-1])]
        found = []
        for k in range(len(places)):
            part = slice(moves.indptr[k], moves.indptr[k + 1])
            moved = zip(moves.indices[part].tolist(), moves.data[part].tolist(), strict=True)
            moved_by, exempt = list(moved), set(views.exempt_of(k).tolist())
            down = [(touched[change], -move) for change, move in moved_by if move < 0]
            up = [(touched[change], move) for change, move in moved_by if move > 0]
            # A contributor's own part stays where it is: a cell can only lose what others have.
            is_proven = _is_proven(down, below[k], exempt, views.limits(k))
            if not (is_proven and _is_proven(up, above[k], exempt, {})):
                found.append(k)
        return places[np.array(found, dtype=np.intp)]


def _is_proven(
    moves: list[tuple[set[int], float]], need: float, exempt: set[int], limits: dict[int, float]
) -> bool:
    """Whether changes reach as far as needed, against every contributor who is not exempt.

    Each move is who knows a cell that the change moves, and how far it reaches. Limits are what is
    possible at all against contributors who are in the cell themselves.
    """
    if need <= 0:
        return True
    slack = CLOSE * max(1.0, need)
    far = [touched for touched, reach in moves if reach >= need - slack]
    if not far:
        return False
    # One proof that leaves a contributor's cells alone is enough against him.
    return all(
        limits.get(who, need) < need
        and (
            limits[who] <= slack
            or any(who not in touched and reach >= limits[who] - slack for touched, reach in moves)
        )
        for who in set.intersection(*far) - exempt
    )


@dataclass(frozen=True, eq=False)
class LoneViews:
    """What contributors who are alone in inner cells know of sensitive cells.

    Attributes:
      cells: Inner cells × contributors: the cells each is alone in.
      exempt: Targets × contributors, sparse: where the target holds nothing but his own.
      rest: Targets × contributors, sparse: what others contribute where he contributes.
    """

    cells: csc_array
    exempt: Any
    rest: Any

    def exempt_of(self, target: int) -> Array:
        """The contributors to whom nothing needs to be proven of a target."""
        start, end = self.exempt.indptr[target : target + 2]
        found: Array = self.exempt.indices[start:end]
        return found

    def limits(self, target: int) -> dict[int, float]:
        """How far down a target can go for contributors who are in it."""
        part = slice(self.rest.indptr[target], self.rest.indptr[target + 1])
        return dict(zip(self.rest.indices[part].tolist(), self.rest.data[part], strict=True))


def sensitive_sums(pattern: Pattern) -> tuple[Any, Index, Real, Real]:
    """Columns of sensitive cells and differences, their places, and what they need."""
    n, m = len(pattern.z), len(pattern.differences)
    primary = np.flatnonzero(pattern.primary)
    columns = [pattern.design.matrix().tocsc()[:, primary], pattern.difference_columns()]
    below = np.zeros(n) if pattern.lower is None else pattern.lower
    above = np.zeros(n) if pattern.upper is None else pattern.upper
    return (
        csc_array(hstack(columns, format="csc").astype(np.float64)),
        np.concatenate([primary, np.arange(n, n + m)]),
        np.concatenate([below[primary], np.zeros(m)]),
        np.concatenate([above[primary], np.full(m, DIFFERENCE_NEED)]),
    )


def lone_views(pattern: Pattern, targets: Any, *, lone: bool = True) -> LoneViews:
    """The views of all contributors who are alone in an inner cell that is not known anyway."""
    n = pattern.design.n_inner
    who = attackers(pattern) if lone else np.full(n, NOBODY)
    in_doubt = ~_public_cells(pattern)
    alone = np.flatnonzero((who != NOBODY) & in_doubt)
    names, number = np.unique(who[alone], return_inverse=True)
    cells = csc_array((np.ones(len(alone)), (alone, number)), shape=(n, len(names)))
    weight = np.ones(n) if pattern.y is None else np.abs(pattern.y).astype(np.float64)
    inside = abs(targets).T
    exempt = csr_array(inside @ cells)
    # A target all of whose cells in doubt are one contributor's own is no secret from him.
    size = inside @ in_doubt.astype(np.float64)
    exempt.data = (exempt.data == np.repeat(size, np.diff(exempt.indptr))).astype(np.float64)
    exempt.eliminate_zeros()
    rest = csr_array(inside @ csc_array((weight[alone], (alone, number)), shape=cells.shape))
    total = np.repeat(inside @ weight, np.diff(rest.indptr))
    rest.data = np.maximum(total - rest.data, 0.0)
    return LoneViews(cells, exempt, rest)


def _public_cells(pattern: Pattern) -> Mask:
    """Inner cells that everybody knows: known ones, and those in a shown cell that is empty."""
    known = np.zeros(pattern.design.n_inner, dtype=bool)
    if pattern.known is not None:
        known |= pattern.known
    if (pattern.z >= 0).all():
        empty = ~pattern.suppressed & (pattern.z == 0)
        known |= pattern.design.adjoint(empty.astype(np.int64)) > 0
    return known


def _largest(matrix: Any) -> Real:
    """The largest absolute entry of each column."""
    if not matrix.shape[0]:
        return np.zeros(matrix.shape[1])
    return np.asarray(abs(matrix).max(axis=0).toarray()).ravel()


def attackers(pattern: Pattern) -> Whole:
    """For each inner cell who is alone in it, or nobody."""
    if pattern.lone is None:
        return np.full(pattern.design.n_inner, NOBODY)
    who = np.arange(pattern.design.n_inner)
    # A lone cell whose contributor has no number gets one of its own, beyond all others.
    if pattern.owner is not None:
        stranger = who + pattern.owner.max(initial=0) + 1
        who = np.where(pattern.owner == NOBODY, stranger, pattern.owner)
    return np.where(pattern.lone, who, NOBODY)
