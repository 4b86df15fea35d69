r"""Cells that margins settle by themselves, found before an iteration begins.

Under a published zero every inner cell is zero. An inner cell that is the only one left in a
published cell has that cell's value; it is subtracted everywhere and taken out. Each step may
settle further cells.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.design.membership import Membership
from discreet.solve.likelihood.schedule import SWEEPS

Vector = NDArray[np.float64]
Positions = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Stage:
    """Inner cells settled in one step, the published cell that settled each, and their values."""

    inner: Positions
    by: Positions
    values: Vector


@dataclass(frozen=True, eq=False)
class Reduction:
    """What is left of a table after the settled cells have been taken out.

    Attributes:
      left: Positions of the inner cells that are still open.
      rest: What remains of each published cell for the open cells.
      stages: The settled cells, in the order in which they were found.
      conflict: A vector that refutes what remains, if a published cell is out of reach.
    """

    left: Positions
    rest: Vector
    stages: list[Stage]
    conflict: Vector | None

    def multipliers(self, members: Membership, log_start: Vector, nu: Vector) -> Vector:
        r"""Multipliers under which :math:`s\,e^{X\nu}` takes the settled values too.

        Zeros are met up to :math:`e^{-100}`. `nu` has a zero at the end for "no cell".
        """
        return self._extended(members, log_start, nu, SWEEPS.floor, np.log)

    def refutation(self, members: Membership, u: Vector) -> Vector:
        r"""A `u` that refutes the remaining table, extended so that it refutes the given one.

        :math:`(Xu)_i` becomes zero for settled cells with a value and at most zero for the others,
        which leaves :math:`z^\top u` at its value in what remains.
        """
        return self._extended(members, np.zeros(members.n_inner), u, 0.0, np.zeros_like)

    def _extended(
        self,
        members: Membership,
        base: Vector,
        v: Vector,
        floor: float,
        wanted: Callable[[Vector], Vector],
    ) -> Vector:
        """Change `v` so that `base + Xv` is as wanted on the settled cells.

        Cells are taken last found first: the published cell that settled a cell holds, besides
        it, only cells that were settled before, whose turn comes later.
        """
        v = v.copy()
        for stage in reversed(self.stages):
            reached = base[stage.inner]
            for row in members.index:
                reached = reached + v[row[stage.inner]]
            if (stage.values > 0).all():
                v[stage.by] += wanted(stage.values) - reached
            else:
                highest = np.full(len(v), -np.inf)
                np.maximum.at(highest, stage.by, reached)
                v -= np.maximum(highest - floor, 0.0)
        return v


def reduce_table(members: Membership, z: Vector, open_cells: Positions, slack: float) -> Reduction:
    """Settle what zeros and lone cells settle.

    Args:
      members: Published cells of the inner cells, those in use only.
      z: Published values.
      open_cells: Inner cells that may be positive.
      slack: Deviation that is not yet a contradiction.
    """
    rest, left, stages = np.append(z, 0.0), open_cells, []
    current = members.restricted(left)
    used = np.zeros(len(z), dtype=bool)
    used[members.ordered] = True
    while len(left):
        zero = used & (rest[:-1] <= SWEEPS.remainder * np.abs(z))
        stage = _settle(current, left, zero, np.zeros_like(z))
        if stage is None:
            stage = _settle(current, left, used & (current.sizes() == 1), rest)
        if stage is None:
            break
        place = np.searchsorted(left, stage.inner)
        for row in current.index:
            np.subtract.at(rest, row[place], stage.values)
        stages.append(stage)
        keep = np.ones(len(left), dtype=bool)
        keep[place] = False
        left, current = left[keep], current.restricted(np.flatnonzero(keep))
    return Reduction(left, rest[:-1], stages, _conflict(current, rest[:-1], used, slack))


def _settle(
    current: Membership, left: Positions, marked: NDArray[np.bool_], values: Vector
) -> Stage | None:
    """The open cells that count in a marked published cell, with that cell's value."""
    if not marked.any():
        return None
    lookup = np.append(marked, False)
    by = np.full(current.n_inner, current.n_published, dtype=np.int64)
    for row in current.index[::-1]:
        by = np.where(lookup[row], row, by)
    hit = np.flatnonzero(by < current.n_published)
    return Stage(left[hit], by[hit], values[by[hit]]) if len(hit) else None


def _conflict(
    current: Membership, rest: Vector, used: NDArray[np.bool_], slack: float
) -> Vector | None:
    """Refutes a published cell with less than nothing left, or with something left for no cell."""
    empty = current.sizes() == 0
    wrong = np.flatnonzero(used & ((rest < -slack) | (empty & (rest > slack))))
    if not len(wrong):
        return None
    u = np.zeros(len(rest) + 1)
    u[wrong[0]] = np.sign(rest[wrong[0]])
    return u
