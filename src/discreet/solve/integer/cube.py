"""The cube method: random moves that keep sums until cells are whole (Deville & Tillé, 2004).

The ways in which the cells of a block can be moved without changing a held sum are a vector space,
given by a basis. A move goes along one of its vectors until a cell or a sum is whole. From then on
that stays as it is, so the space has one dimension less.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit

from discreet.arrays import Index, Real, Unsigned64, Whole
from discreet.design.base import Design
from discreet.errors import DataError
from discreet.solve.integer.kernels import uniform
from discreet.solve.integer.remainders import Remainders
from discreet.solve.integer.schedule import SCHEDULE

_EPS = 1e-9
_OPEN = 1e-7  # fractions this far from 0 and 1 are still to be decided


def rounded_up(
    design: Design, left: Remainders, blocks: Sequence[int], rng: np.random.Generator
) -> Whole:
    """One for the inner cells that the cube method rounds up, zero for the others.

    Args:
      design: The design.
      left: What there is to round.
      blocks: How many cells are moved together, in one pass after another.
      rng: Source of randomness.
    """
    rows = _nearby_first(design, np.flatnonzero(left.over))
    if len(rows) > SCHEDULE.cube_cells:
        raise DataError(
            f"the cube method holds up to {SCHEDULE.cube_cells:,} fractional cells, got "
            f"{len(rows):,}. Round with method='margins' or 'total'."
        )
    flight = _Flight(design, left, rows, rng)
    for size in blocks:
        before = 2 * len(rows)
        while (waiting := flight.undecided()).size < SCHEDULE.worthwhile * before:
            before = waiting.size
            flight.fly(waiting, size)
    while (waiting := flight.undecided()).size:
        flight.let_go(waiting)
        flight.fly(waiting, size)
    up = np.zeros(design.n_inner, dtype=np.int64)
    up[rows] = rng.random(len(rows)) < flight.part
    return up


def _nearby_first(design: Design, rows: Index) -> Index:
    """Inner cells in an order in which neighbours share many sums.

    The binary digits of the codes are interleaved, so that blocks of cells in a row are cubes.
    """
    codes = [code[rows].astype(np.int64) for code in design.inner_codes()]
    digits = max((int(code.max(initial=0)).bit_length() for code in codes), default=0)
    keys = [code >> bit & 1 for bit in range(digits) for code in codes]
    return rows[np.lexsort(keys)] if keys else rows


class _Flight:
    """Fractional cells on their way: fractions of the inner cells, sums, and which were let go."""

    def __init__(
        self, design: Design, left: Remainders, rows: Index, rng: np.random.Generator
    ) -> None:
        low, _, sums = left.sums(design)
        self.members = design.matrix()[rows]
        self.part, self.sums = left.fraction[rows], sums - low
        self.loose = np.zeros(design.n_published, dtype=np.bool_)
        self.size = np.bincount(self.members.indices, minlength=design.n_published)
        self.random = rng.integers(2**63, size=1).astype(np.uint64)

    def undecided(self) -> Index:
        """The cells that are not whole yet."""
        return np.flatnonzero((self.part > _OPEN) & (self.part < 1 - _OPEN))

    def fly(self, waiting: Index, size: int) -> None:
        """Move cells, block by block."""
        members = self.members[waiting]
        owner = np.repeat(np.arange(len(waiting)), np.diff(members.indptr))
        for begin in range(0, len(waiting), size):
            chosen = waiting[begin : begin + size]
            entries = slice(*members.indptr[[begin, begin + len(chosen)]])
            cells, place = np.unique(members.indices[entries], return_inverse=True)
            counted = np.zeros((len(chosen), len(cells)))
            counted[owner[entries] - begin, place] = 1.0
            held = ~self.loose[cells]
            values = np.concatenate([self.part[chosen], self.sums[cells[held]]])
            _fly(values, np.hstack([np.eye(len(chosen)), counted[:, held]]), self.random)
            self.part[chosen], self.sums[cells[held]] = np.split(values, [len(chosen)])

    def let_go(self, waiting: Index) -> None:
        """Hold fewer of the sums of some cells, those of the fewest inner cells first."""
        cells = self.members[waiting].indices
        held = np.unique(cells[~self.loose[cells]])
        order = held[np.argsort(self.size[held], kind="stable")]
        self.loose[order[: int(np.ceil(SCHEDULE.let_go * len(order)))]] = True


@njit(cache=True)
def _fly(values: Real, ways: Real, random: Unsigned64) -> None:
    """Move values in [0, 1] at random until no way is left along which those that are whole stay.

    Args:
      values: Fractions of inner cells, and what sums are above the whole number below them.
      ways: A basis of the ways to move, changed as well.
      random: The generator.
    """
    left, is_open = len(ways), (values > _EPS) & (values < 1 - _EPS)
    for k in range(len(values)):
        if not is_open[k]:
            left = _held(ways, left, k)
    moving, ways = values[is_open], ways[:left][:, is_open]
    while left > 0:
        way = ways[left - 1] / np.abs(ways[left - 1]).max()
        length = _length(moving, way, random)
        for k in range(len(moving)):
            if abs(way[k]) > _EPS:
                moving[k] = _snapped(moving[k] + length * way[k])
                if moving[k] in (0.0, 1.0):
                    left = _held(ways, left, k)
    values[is_open] = moving


@njit(cache=True)
def _held(ways: Real, left: int, k: int) -> int:
    """Make the first ways a basis of those along which value `k` stays; how many are left."""
    change = ways[:left, k].copy()
    pivot = np.argmax(np.abs(change)) if left else 0
    if left == 0 or abs(change[pivot]) < _EPS:
        return left
    for b in range(left):
        if b != pivot and change[b] != 0.0:
            share = change[b] / change[pivot]
            for c in range(ways.shape[1]):
                ways[b, c] -= share * ways[pivot, c]
    ways[pivot] = ways[left - 1]
    return left - 1


@njit(cache=True)
def _length(values: Real, way: Real, random: Unsigned64) -> float:
    """How far to go one way or the other until something is whole, each as likely as is fair."""
    up, down = np.inf, np.inf
    for k in range(len(values)):
        value, slope = values[k], way[k]
        if slope > _EPS:
            up, down = min(up, (1 - value) / slope), min(down, value / slope)
        elif slope < -_EPS:
            up, down = min(up, -value / slope), min(down, (value - 1) / slope)
    return up if uniform(random) * (up + down) < down else -down


@njit(cache=True)
def _snapped(value: float) -> float:
    if value < _EPS:
        return 0.0
    return 1.0 if value > 1 - _EPS else value
