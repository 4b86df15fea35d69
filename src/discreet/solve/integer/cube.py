"""The cube method: random moves that keep sums until cells are whole (Deville & Tillé, 2004).

The ways in which the cells of a block can be moved without changing a held sum are a vector space,
given by a basis. A move goes along one of its vectors until a cell or a sum is whole. From then on
that stays as it is, so the space has one dimension less.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from discreet.design.base import Design
from discreet.errors import DataError
from discreet.solve.integer.domain import Whole
from discreet.solve.integer.kernels import Random, uniform
from discreet.solve.integer.remainders import Remainders
from discreet.solve.integer.schedule import SCHEDULE

Index = NDArray[np.int64]
Real = NDArray[np.float64]
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


def _nearby_first(design: Design, rows: NDArray[np.intp]) -> NDArray[np.intp]:
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
        self, design: Design, left: Remainders, rows: NDArray[np.intp], rng: np.random.Generator
    ) -> None:
        low, _, sums = left.sums(design)
        self.members = design.matrix()[rows]
        self.part, self.sums = left.fraction[rows], sums - low
        self.loose = np.zeros(design.n_published, dtype=np.bool_)
        self.size = np.bincount(self.members.indices, minlength=design.n_published)
        self.random = rng.integers(2**63, size=1).astype(np.uint64)

    def undecided(self) -> NDArray[np.intp]:
        """The cells that are not whole yet."""
        return np.flatnonzero((self.part > _OPEN) & (self.part < 1 - _OPEN))

    def fly(self, waiting: NDArray[np.intp], size: int) -> None:
        """Move cells, block by block."""
        members = self.members[waiting]
        for begin in range(0, len(waiting), size):
            chosen = waiting[begin : begin + size]
            starts = members.indptr[begin : begin + size + 1].astype(np.int64)
            cells, place = np.unique(members.indices[starts[0] : starts[-1]], return_inverse=True)
            part, sums = self.part[chosen], self.sums[cells]
            _fly(_Block(starts - starts[0], place, part, sums, self.loose[cells]), self.random)
            self.part[chosen], self.sums[cells] = part, sums

    def let_go(self, waiting: NDArray[np.intp]) -> None:
        """Hold fewer of the sums of some cells, those of the fewest inner cells first."""
        cells = self.members[waiting].indices
        held = np.unique(cells[~self.loose[cells]])
        order = held[np.argsort(self.size[held], kind="stable")]
        self.loose[order[: int(np.ceil(SCHEDULE.let_go * len(order)))]] = True


class _Block(NamedTuple):
    """Some inner cells and the published cells they count in.

    `cells[starts[j] : starts[j + 1]]` are the published cells of an inner cell. `part` are the
    fractions of the inner cells, `sums` what published cells are above the whole number below
    their target: kept in [0, 1], held once it is 0 or 1, free where `loose`.
    """

    starts: Index
    cells: Index
    part: Real
    sums: Real
    loose: NDArray[np.bool_]


@njit(cache=True)
def _fly(block: _Block, random: Random) -> None:
    """Move cells at random until no move is left that keeps the held sums."""
    part, sums, loose = block.part, block.sums, block.loose
    basis, left = np.eye(len(part)), len(part)
    for k in range(len(sums)):
        if not loose[k] and not _is_open(sums[k]):
            left = _held(basis, left, _sum_along(block, basis, left, k))
    while left > 0:
        way = basis[left - 1] / np.abs(basis[left - 1]).max()
        drift = _drift(block, way)
        length = _length(block, way, drift, random)
        for j in range(len(part)):
            if abs(way[j]) > _EPS:
                part[j] = _snapped(part[j] + length * way[j])
                if not _is_open(part[j]):
                    left = _held(basis, left, basis[:left, j].copy())
        for k in range(len(sums)):
            if drift[k] != 0.0:
                sums[k] = _snapped(sums[k] + length * drift[k])
                if not _is_open(sums[k]):
                    left = _held(basis, left, _sum_along(block, basis, left, k))


@njit(cache=True)
def _held(basis: Real, left: int, change: Real) -> int:
    """Make the basis one of vectors along which something stays that changes by `change` now.

    Returns:
      How many vectors are left.
    """
    pivot = np.argmax(np.abs(change)) if left else 0
    if left == 0 or abs(change[pivot]) < _EPS:
        return left
    for b in range(left):
        if b != pivot and change[b] != 0.0:
            basis[b] -= change[b] / change[pivot] * basis[pivot]
    basis[pivot] = basis[left - 1]
    return left - 1


@njit(cache=True)
def _sum_along(block: _Block, basis: Real, left: int, k: int) -> Real:
    """How a sum changes along each vector of a basis."""
    change = np.zeros(left)
    for j in range(len(block.part)):
        for e in range(block.starts[j], block.starts[j + 1]):
            if block.cells[e] == k:
                change += basis[:left, j]
    return change


@njit(cache=True)
def _drift(block: _Block, way: Real) -> Real:
    """How the sums that are neither held nor free change along a way; zero for the others."""
    drift = np.zeros(len(block.sums))
    for j in range(len(way)):
        if abs(way[j]) > _EPS:
            for k in block.cells[block.starts[j] : block.starts[j + 1]]:
                drift[k] += way[j]
    for k in range(len(drift)):
        if block.loose[k] or not _is_open(block.sums[k]) or abs(drift[k]) < _EPS:
            drift[k] = 0.0
    return drift


@njit(cache=True)
def _length(block: _Block, way: Real, drift: Real, random: Random) -> float:
    """How far to go one way or the other until something is whole, each as likely as is fair."""
    up, down = np.inf, np.inf
    for j in range(len(way)):
        up, down = _room(up, down, block.part[j], way[j])
    for k in range(len(drift)):
        up, down = _room(up, down, block.sums[k], drift[k])
    return up if uniform(random) * (up + down) < down else -down


@njit(cache=True)
def _room(up: float, down: float, value: float, slope: float) -> Any:
    """How far both ways can be gone before a value in [0, 1] reaches an end."""
    if slope > _EPS:
        return min(up, (1 - value) / slope), min(down, value / slope)
    if slope < -_EPS:
        return min(up, -value / slope), min(down, (value - 1) / slope)
    return up, down


@njit(cache=True)
def _snapped(value: float) -> float:
    if value < _EPS:
        return 0.0
    return 1.0 if value > 1 - _EPS else value


@njit(cache=True)
def _is_open(value: float) -> Any:
    return _EPS < value < 1 - _EPS
