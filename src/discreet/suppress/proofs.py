r"""Proofs that sensitive cells keep their intervals: other tables with the same published cells.

A proof is a change :math:`\Delta` of the inner cells. It moves no cell that is shown, makes nothing
negative, and moves sensitive cells as far up or down as their rules ask. Whoever is alone in inner
cells knows them; against him only proofs count that leave these cells as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Array, Index, Mask, Real, Whole
from discreet.tables.magnitude import NOBODY

if TYPE_CHECKING:
    from scipy.sparse import csc_array

    from discreet.suppress.pattern import Pattern


CLOSE = 1e-6
"""Sums that differ by less, relative to their size, are the same."""
DIFFERENCE_NEED = 1.0
"""How far a sensitive difference must be able to rise."""


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

    def placed(self, place: Array) -> Proofs:
        """The same changes for inner cells in another order, `place[i]` being where `i` goes."""
        from scipy.sparse import csc_array

        found = self.changes.tocoo()
        entries = (found.data, (np.asarray(place)[found.row], found.col))
        return Proofs(csc_array(entries, shape=self.changes.shape), self.lone)

    def valid(self, pattern: Pattern) -> Mask:
        """Which changes move no shown cell, nothing known, and make nothing negative."""
        size = CLOSE * np.maximum(1.0, _largest(self.changes))
        X = pattern.design.matrix().tocsc()
        shown = _largest(X[:, ~pattern.suppressed].T @ self.changes)
        fine = shown <= size
        if pattern.known is not None:
            fine &= _largest(self.changes.tocsr()[pattern.known]) == 0
        if pattern.bounds is not None:
            fine &= self._within(pattern, X, size, *pattern.bounds)
        y = np.asarray(pattern.y, dtype=np.float64)
        if (y >= 0).all():
            entries = self.changes.tocoo()
            short = -entries.data - y[entries.row] > size[entries.col]
            fine &= np.bincount(entries.col[short], minlength=len(self)) == 0
        return np.asarray(fine)

    def _within(self, pattern: Pattern, X: Any, size: Real, low: Real, high: Real) -> Mask:
        """Which changes leave the suppressed cells within their public bounds."""
        bounded = np.flatnonzero(pattern.suppressed & (np.isfinite(low) | np.isfinite(high)))
        moved = (X[:, bounded].T @ self.changes).tocoo()
        down, up = (pattern.z - low)[bounded], (high - pattern.z)[bounded]
        beyond = np.maximum(moved.data - up[moved.row], -moved.data - down[moved.row])
        outside = beyond > size[moved.col]
        return np.asarray(np.bincount(moved.col[outside], minlength=len(self)) == 0)

    def unproven(self, pattern: Pattern) -> Index:
        """Sensitive cells without a proof for one of their sides, or against some contributor.

        Sensitive differences follow behind the last published cell.
        """
        changes = self.changes[:, self.valid(pattern)]
        targets, places, below, above = sensitive(pattern)
        views = views_of(pattern, targets, lone=self.lone)
        moves = (targets.T @ changes).tocsr()
        touched = _rows_of((views.cells.T @ abs(changes)).tocsc())
        found = [
            k
            for k in range(len(places))
            if not _is_met(_row(moves, k, -1), below[k], views.limits(k), touched, views, k)
            or not _is_met(_row(moves, k, 1), above[k], {}, touched, views, k)
        ]
        return places[np.array(found, dtype=np.intp)]


@dataclass(frozen=True, eq=False)
class Views:
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
        found: Array = self.exempt.indices[
            self.exempt.indptr[target] : self.exempt.indptr[target + 1]
        ]
        return found

    def limits(self, target: int) -> dict[int, float]:
        """How far down a target can go for contributors who are in it."""
        part = slice(self.rest.indptr[target], self.rest.indptr[target + 1])
        return dict(zip(self.rest.indices[part].tolist(), self.rest.data[part], strict=True))


def sensitive(pattern: Pattern) -> tuple[Any, Index, Real, Real]:
    """Columns of sensitive cells and differences, their places, and what they need."""
    from scipy.sparse import csc_array, hstack

    n, m = len(pattern.z), len(pattern.differences)
    primary = np.flatnonzero(pattern.primary)
    columns = [pattern.design.matrix().tocsc()[:, primary], pattern.difference_columns()]
    none = np.zeros(n)
    below = (none if pattern.lower is None else pattern.lower)[primary]
    above = (none if pattern.upper is None else pattern.upper)[primary]
    return (
        csc_array(hstack(columns, format="csc").astype(np.float64)),
        np.concatenate([primary, np.arange(n, n + m)]),
        np.concatenate([below, np.zeros(m)]),
        np.concatenate([above, np.full(m, DIFFERENCE_NEED)]),
    )


def views_of(pattern: Pattern, targets: Any, *, lone: bool = True) -> Views:
    """The views of all contributors who are alone in an inner cell that is not known anyway."""
    from scipy.sparse import csc_array, csr_array

    n = pattern.design.n_inner
    who = attackers(pattern) if lone else np.full(n, NOBODY)
    in_doubt = ~_known(pattern)
    alone = np.flatnonzero((who != NOBODY) & in_doubt)
    names, number = np.unique(who[alone], return_inverse=True)
    cells = csc_array((np.ones(len(alone)), (alone, number)), shape=(n, len(names)))
    weight = np.ones(n) if pattern.y is None else np.abs(pattern.y).astype(np.float64)
    size = abs(targets).T @ in_doubt.astype(np.float64)
    held = (abs(targets).T @ cells).tocsr()
    exempt = csr_array(held)
    exempt.data = (held.data == np.repeat(size, np.diff(held.indptr))).astype(np.float64)
    exempt.eliminate_zeros()
    amounts = csc_array((weight[alone], (alone, number)), shape=cells.shape)
    own = (abs(targets).T @ amounts).tocsr()
    total = abs(targets).T @ weight
    rest = own.copy()
    rest.data = np.maximum(np.repeat(total, np.diff(own.indptr)) - own.data, 0.0)
    return Views(cells, exempt, rest)


def _known(pattern: Pattern) -> Mask:
    """Inner cells that everybody knows: known ones, and those in a shown cell that is empty."""
    known = np.zeros(pattern.design.n_inner, dtype=bool)
    if pattern.known is not None:
        known |= pattern.known
    if (pattern.z >= 0).all():
        empty = ~pattern.suppressed & (pattern.z == 0)
        known |= pattern.design.adjoint(empty.astype(np.int64)) > 0
    return known


def _rows_of(matrix: Any) -> list[set[int]]:
    """The rows with an entry in each column."""
    ends = matrix.indptr.tolist()
    return [set(matrix.indices[a:b].tolist()) for a, b in zip(ends[:-1], ends[1:], strict=True)]


def _row(matrix: Any, k: int, sign: int) -> list[tuple[int, float]]:
    """The entries of a row with one sign, by column."""
    part = slice(matrix.indptr[k], matrix.indptr[k + 1])
    pairs = zip(matrix.indices[part].tolist(), matrix.data[part].tolist(), strict=True)
    return [(column, sign * value) for column, value in pairs if sign * value > 0]


def _is_met(
    moves: list[tuple[int, float]],
    need: float,
    limits: dict[int, float],
    touched: list[set[int]],
    views: Views,
    target: int,
) -> bool:
    """Whether changes reach as far as needed, against every contributor."""
    if need <= 0:
        return True
    slack = CLOSE * max(1.0, need)
    far = [touched[change] for change, reach in moves if reach >= need - slack]
    if not far:
        return False
    open_still = set.intersection(*far).difference(views.exempt_of(target).tolist())
    return all(
        a in limits
        and limits[a] < need
        and (
            limits[a] <= slack
            or any(a not in touched[c] and reach >= limits[a] - slack for c, reach in moves)
        )
        for a in open_still
    )


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
    if pattern.owner is not None:
        stranger = who + pattern.owner.max(initial=0) + 1
        who = np.where(pattern.owner == NOBODY, stranger, pattern.owner)
    return np.where(pattern.lone, who, NOBODY)
