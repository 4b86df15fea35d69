"""Who looks at a suppressed table, and what each of them knows beside it.

One enumeration feeds the search for patterns, their proofs and the audit, so that none of them
knows less than another. Everybody knows what is shown, that values are not negative where none is,
and public bounds; shown zeros say that nothing is in them. A contributor knows, besides, the cells
that he is alone in, at any level, and that a cell is not less than his own part of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csc_array, csr_array, eye_array, hstack

from discreet.arrays import Array, Index, Mask, Real, Whole
from discreet.tables.magnitude import NOBODY

if TYPE_CHECKING:
    from discreet.rules.counts import Difference
    from discreet.suppress.pattern import Pattern

_ALL_OF_IT = 1e-9  # share of a cell that may be missing where several are all who are in it


@dataclass(frozen=True, eq=False)
class Attacker:
    """**Confidential.** What one of them knows that not everybody does.

    Attributes:
      kind: `"public"`, `"lone"` (alone in some cell), `"contributor"` or `"coalition"`.
      known: Inner cells that he knows wholly: all those of cells that he is alone in.
      cells: Inner cells that he is in.
      shares: What he has in each of them; no cell is less.
    """

    kind: str
    known: Index
    cells: Index
    shares: Real


PUBLIC = Attacker("public", np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0))
"""Somebody who contributes to nothing."""


@dataclass(frozen=True, eq=False)
class Attackers:
    """**Confidential.** All who contribute to cells that are in doubt.

    Attributes:
      known: Inner cells × attackers: the cells each knows wholly, if they are in doubt.
      shares: Inner cells × attackers: what each has in the cells that he is in.
      y: True values of the inner cells.
      numbers: Who each is, as owners are numbered, in order; coalitions follow behind them.
      coalitions: Who pool what they know, by number.
    """

    known: csc_array
    shares: csc_array
    y: Real
    numbers: Whole
    coalitions: tuple[tuple[int, ...], ...] = ()

    @classmethod
    def nobody(cls, n: int = 0, y: Real | None = None) -> Attackers:
        """No contributors: the public alone."""
        none = csc_array((n, 0))
        return cls(none, none, np.zeros(n) if y is None else y, np.empty(0, np.int64))

    def __len__(self) -> int:
        return int(self.known.shape[1])

    def __getitem__(self, k: int) -> Attacker:
        own, part = (slice(*each.indptr[k : k + 2]) for each in (self.known, self.shares))
        known, cells = self.known.indices[own], self.shares.indices[part]
        is_one = k < len(self.numbers)
        kind = "coalition" if not is_one else "lone" if len(known) else "contributor"
        places = (known.astype(np.intp), cells.astype(np.intp))
        return Attacker(kind, *places, self.shares.data[part])

    @cached_property
    def _by_cell(self) -> tuple[csr_array, csr_array]:
        return csr_array(self.known), csr_array(self.shares)

    def rooms(self, cells: Array, moves: Array) -> dict[int, float]:
        """How often a change can be made in the eyes of each who sees a limit to it."""
        known, shares = self._by_cell
        found: dict[int, float] = {}
        for cell, move in zip(cells.tolist(), moves.tolist(), strict=True):
            if not move:
                continue
            for who in known.indices[known.indptr[cell] : known.indptr[cell + 1]].tolist():
                found[who] = 0.0
            if move > 0:
                continue
            part = slice(shares.indptr[cell], shares.indptr[cell + 1])
            for who, own in zip(
                shares.indices[part].tolist(), shares.data[part].tolist(), strict=True
            ):
                room = max(float(self.y[cell]) - own, 0.0) / -move
                found[who] = min(found.get(who, np.inf), room)
        return found

    def exempt(self, targets: Any, in_doubt: Mask, sums: Sequence[Difference]) -> csr_array:
        """Targets × attackers: where all cells in doubt of a target are known to him anyway.

        A sum that protects a contributor is kept from the public and from one attacker, and others
        have sums of their own. Coalitions attack nothing else. Sums are the last targets.
        """
        inside = abs(targets).T
        found = csr_array(inside @ self.known)
        size = inside @ in_doubt.astype(np.float64)
        found.data = (found.data == np.repeat(size, np.diff(found.indptr))).astype(np.float64)
        first, one = found.shape[0] - len(sums), len(self.numbers)
        pairs = [(row, np.arange(one, len(self))) for row in range(first) if one < len(self)]
        for row, each in enumerate(sums, first):
            left_out = self._place_of(each.against) if each.owners else np.arange(one)
            pairs.append((row, np.delete(np.arange(len(self)), left_out)))
        rows = np.repeat([row for row, _ in pairs], [len(each) for _, each in pairs])
        columns = np.concatenate([np.empty(0, np.intp), *(each for _, each in pairs)])
        more = csr_array((np.ones(len(rows)), (rows.astype(np.intp), columns)), found.shape)
        both = csr_array(found + more)
        both.eliminate_zeros()
        return both

    def _place_of(self, members: tuple[int, ...]) -> list[int]:
        """The place of an attacker or of a coalition; none of the public."""
        if len(members) > 1:
            return [len(self.numbers) + self.coalitions.index(members)]
        return np.flatnonzero(np.isin(self.numbers, members)).tolist()

    def pool(self, pattern: Pattern, members: Sequence[tuple[int, ...]]) -> Attackers:
        """Coalitions as further attackers: they know what each does, and cells that are all theirs.

        Who are together the only ones in a cell know that nobody else is, as one alone does.
        """
        groups = tuple(dict.fromkeys(members))
        places = [np.searchsorted(self.numbers, one).tolist() for one in groups]
        column = np.repeat(np.arange(len(groups)), [len(one) for one in places])
        entries = (np.ones(len(column)), (np.array(sum(places, []), dtype=np.intp), column))
        joined = csc_array(entries, shape=(len(self.numbers), len(groups)))
        shares = csc_array(self.shares[:, : len(self.numbers)] @ joined)
        known = csr_array(self.known[:, : len(self.numbers)] @ joined)
        known = known + _cells_of_theirs(pattern, shares, self.y)
        known.data[:] = 1.0
        return Attackers(
            csc_array(hstack([self.known, known], format="csc")),
            csc_array(hstack([self.shares, shares], format="csc")),
            self.y,
            self.numbers,
            (*self.coalitions, *groups),
        )

    def rest(self, targets: Any) -> csr_array:
        """Targets × attackers, where they are in a target: what others have in it."""
        inside = abs(targets).T
        found = csr_array(inside @ self.shares)
        total = np.repeat(inside @ np.abs(self.y), np.diff(found.indptr))
        found.data = np.maximum(total - found.data, 0.0)
        return found


def attackers(pattern: Pattern, *, contributors: bool = True) -> Attackers:
    """Everybody who knows more than the public, and the coalitions that sums are kept from.

    Args:
      pattern: The table with what is suppressed.
      contributors: Whether contributors attack at all; the public alone if not.
    """
    n = pattern.design.n_inner
    y = np.zeros(n) if pattern.y is None else np.asarray(pattern.y, dtype=np.float64)
    if not contributors or pattern.y is None or pattern.lone is None:
        return Attackers.nobody(n, y)
    cells, whose = _known_cells(pattern)
    inside, owners, amounts = _own_parts(pattern, y)
    numbers = np.unique(np.concatenate([whose, owners]))
    known = _indicator(cells, np.searchsorted(numbers, whose), np.ones(len(cells)), n, len(numbers))
    known.data[:] = 1.0
    shares = _indicator(inside, np.searchsorted(numbers, owners), amounts, n, len(numbers))
    found = Attackers(known, shares, y, numbers)
    pooling = [each.against for each in pattern.differences if len(each.against) > 1]
    return found.pool(pattern, pooling) if pooling else found


def cells_in_doubt(pattern: Pattern) -> Mask:
    """Inner cells that somebody could doubt: neither known nor in a shown cell that is empty."""
    known = np.zeros(pattern.design.n_inner, dtype=bool)
    if pattern.known is not None:
        known |= pattern.known
    if not pattern.is_signed:
        empty = ~pattern.suppressed & (pattern.z == 0)
        known |= pattern.design.adjoint(empty.astype(np.int64)) > 0
    return ~known


def lone_owners(pattern: Pattern) -> Whole:
    """For each inner cell who is alone in it, or nobody."""
    n = pattern.design.n_inner
    if pattern.lone is None:
        return np.full(n, NOBODY)
    who = np.arange(n)
    # A lone cell whose contributor has no number gets one of its own, beyond all others.
    if pattern.owner is not None:
        stranger = who + pattern.owner.max(initial=0) + 1
        who = np.where(pattern.owner == NOBODY, stranger, pattern.owner)
    return np.where(pattern.lone, who, NOBODY)


def owners_of_sums(pattern: Pattern, columns: Any) -> Whole:
    """For each column, inner cells × columns, who alone contributes to it, or nobody."""
    who = lone_owners(pattern)
    is_lone = who != NOBODY
    if pattern.y is None or not is_lone.any():
        return np.full(columns.shape[1], NOBODY)
    # Numbers are all equal when the square of their sum is their count times the sum of squares, by
    # Cauchy and Schwarz: three products with the columns in place of a loop over them.
    occupied = columns.T @ (pattern.y != 0).astype(np.int64)
    n = columns.T @ is_lone.astype(np.int64)
    total = columns.T @ np.where(is_lone, who, 0)
    squares = columns.T @ np.where(is_lone, who, 0) ** 2
    alone = (n > 0) & (n == occupied) & (n * squares == total**2)
    return np.where(alone, total // np.maximum(n, 1), NOBODY)


def _known_cells(pattern: Pattern) -> tuple[Whole, Whole]:
    """Pairs of an inner cell in doubt and somebody who knows it."""
    who, in_doubt = lone_owners(pattern), cells_in_doubt(pattern)
    alone = np.flatnonzero((who != NOBODY) & in_doubt)
    cells, whose = [alone], [who[alone]]
    # Whoever is alone in a published cell knows that nothing else is in it: where values are not
    # negative, all its other inner cells are empty.
    if not pattern.is_signed:
        X = pattern.design.matrix().astype(np.int64).tocsc()
        owner = owners_of_sums(pattern, X)
        inside = X[:, owner != NOBODY].tocoo()
        chosen = in_doubt[inside.row]
        cells.append(inside.row[chosen])
        whose.append(owner[owner != NOBODY][inside.col[chosen]])
    return np.concatenate(cells), np.concatenate(whose)


def _own_parts(pattern: Pattern, y: Real) -> tuple[Whole, Whole, Real]:
    """Inner cells, contributors and what each has in them."""
    who = lone_owners(pattern)
    alone = np.flatnonzero(who != NOBODY)
    parts, given = [(alone, who[alone], np.abs(y[alone]))], pattern.contributions
    # Each of several people counts as one in his cell.
    if given is None and pattern.owner is None and np.asarray(pattern.y).dtype.kind in "iu":
        several = np.flatnonzero((y > 1) & cells_in_doubt(pattern))
        parts.append((several, several, np.ones(len(several))))
    # Where values can be negative a part of a cell says nothing about the rest of it.
    if given is not None and not pattern.is_signed:
        several = np.flatnonzero((given.count > 1) & cells_in_doubt(pattern))
        for place in range(given.owner.shape[1]):
            cells = several[given.owner[several, place] != NOBODY]
            parts.append((cells, given.owner[cells, place], given.largest[cells, place]))
    inside, owners, amounts = (np.concatenate(each) for each in zip(*parts, strict=True))
    return inside, owners, amounts


def _indicator(cells: Array, who: Array, data: Real, n: int, m: int) -> csc_array:
    found = csc_array((data, (cells, who)), shape=(n, m))
    found.sum_duplicates()
    return found


def _cells_of_theirs(pattern: Pattern, shares: csc_array, y: Real) -> csr_array:
    """Inner cells in doubt × coalitions: those of cells that nobody else is in, at any level."""
    X = pattern.design.matrix().astype(np.float64).tocsc()
    found = csr_array((X.shape[0], shares.shape[1]))
    for columns, values in ((eye_array(len(y), format="csc"), y), (X, np.abs(pattern.z))):
        own = csc_array(columns.T @ shares)
        own.data = (own.data >= (1 - _ALL_OF_IT) * values[own.indices]).astype(np.float64)
        own.eliminate_zeros()
        found = found + csr_array(columns @ own)
    return csr_array(found.multiply(cells_in_doubt(pattern)[:, None].astype(np.float64)))
