r"""Cells that margins settle by themselves, found before an iteration begins.

Under a published zero every inner cell is zero. An inner cell that is the only one left in a
published cell has that cell's value; it is subtracted everywhere and taken out. Each step may
settle further cells.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.arrays import Mask, Real, Whole
from discreet.design.incidence import Incidence
from discreet.solve.likelihood.schedule import LOG_LINEAR


@dataclass(frozen=True, eq=False)
class Stage:
    """Inner cells settled in one step, the published cell that settled each, and their values."""

    inner: Whole
    by: Whole
    values: Real


@dataclass(frozen=True, eq=False)
class Reduction:
    """What is left of a table after the settled cells have been taken out.

    Attributes:
      left: Positions of the inner cells that are still open.
      rest: What remains of each published cell for the open cells.
      held: Which published cells hold an open cell.
      stages: The settled cells, in the order in which they were found.
      is_possible: Whether what remains is not negative, and nothing where no cell is open.
    """

    left: Whole
    rest: Real
    held: Mask
    stages: list[Stage]
    is_possible: bool

    def assembled(self, y: Real, n_inner: int) -> Real:
        """Open and settled cells together."""
        table = np.zeros(n_inner)
        table[self.left] = y
        for stage in self.stages:
            table[stage.inner] = stage.values
        return table

    def multipliers(self, members: Incidence, start: Real, held: Real) -> Real:
        r"""Multipliers under which :math:`s\,e^{X\nu}` takes the settled values too.

        Cells are taken last found first: the published cell that settled a cell holds, besides it,
        only cells that were settled before, whose turn comes later. Zeros are met up to
        :math:`e^{-100}`.
        """
        nu = np.zeros(members.n_published + 1)
        nu[:-1][self.held] = held
        for stage in reversed(self.stages):
            reached = np.log(start[stage.inner])
            for row in members.index:
                reached = reached + nu[row[stage.inner]]
            if (stage.values > 0).all():
                nu[stage.by] += np.log(stage.values) - reached
            else:
                highest = np.full(len(nu), -np.inf)
                np.maximum.at(highest, stage.by, reached)
                nu -= np.maximum(highest - LOG_LINEAR.floor, 0.0)
        return nu[:-1]


def reduce_table(members: Incidence, z: Real, open_cells: Whole, slack: float) -> Reduction:
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
        zero = used & (rest[:-1] <= LOG_LINEAR.remainder * np.abs(z))
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
    held = current.sizes() > 0
    wrong = used & ((rest[:-1] < -slack) | (~held & (rest[:-1] > slack)))
    return Reduction(left, rest[:-1], held, stages, not wrong.any())


def _settle(current: Incidence, left: Whole, marked: Mask, values: Real) -> Stage | None:
    """The open cells that count in a marked published cell, with that cell's value."""
    if not marked.any():
        return None
    lookup = np.append(marked, False)
    by = np.full(current.n_inner, current.n_published, dtype=np.int64)
    for row in current.index[::-1]:
        by = np.where(lookup[row], row, by)
    hit = np.flatnonzero(by < current.n_published)
    return Stage(left[hit], by[hit], values[by[hit]]) if len(hit) else None
