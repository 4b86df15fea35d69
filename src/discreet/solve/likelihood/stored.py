r"""Passes over the open inner cells of a stored table, with the published cells of each listed.

They do what `FusedPass` does for complete tables: margins of :math:`y = s\,e^{X\nu}`, and of its
change along a direction.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numba import njit

from discreet.arrays import Real, Whole32
from discreet.design.base import dot
from discreet.design.fused.links import EXPONENTIAL
from discreet.design.fused.passes import Sums
from discreet.design.incidence import Incidence
from discreet.solve.dual_newton import DualNewton
from discreet.solve.likelihood.schedule import LOG_LINEAR


class StoredPass:
    """Margins of a table that is kept, one compiled pass each.

    Args:
      members: Published cells of the open inner cells, in groups.
      start: Starting table, positive.
    """

    link = EXPONENTIAL

    def __init__(self, members: Incidence, start: Real) -> None:
        self._members, self._log_start, self.y = members, np.log(start), start.copy()
        self._at: Real | None = None

    def newton(self, z: Real, max_steps: int) -> DualNewton:
        """Newton's method towards margins, from where one sweep leads."""
        start, nothing = sweep(self._members, z, np.exp(self._log_start)), np.zeros_like(z)
        schedule = replace(LOG_LINEAR.newton(max_steps), forcing=LOG_LINEAR.forcing)
        return DualNewton(self, z, nothing, None, start, schedule=schedule)

    def at(self, nu: Real) -> Real:
        """The table at a point."""
        if self._at is not nu:
            self.table(nu)
        return self.y

    def dot(self, a: Real, b: Real) -> float:
        """A scalar product."""
        return dot(a, b)

    def table(self, nu: Real) -> Sums:
        """Margins and sum of the table at a point; `y` holds the table."""
        sums, self._at = np.zeros_like(nu), nu
        total = _table(self._members.index, nu, self._log_start, self.y, sums)
        return Sums(sums, total)

    def change(self, nu: Real, direction: Real) -> Real:
        """Margins of the change along a direction."""
        sums = np.zeros_like(nu)
        _change(self._members.index, direction, self.at(nu), sums)
        return sums

    def slope(self, nu: Real) -> Real:
        """Margins of the derivative: an exponential is its own."""
        return self.table(nu).margins


def sweep(members: Incidence, z: Real, y: Real) -> Real:
    """Scale a table to one group of margins after the other; returns what the multipliers gain."""
    gain, targets = np.zeros(len(z) + 1), np.append(z, 0.0)
    for row in members.index:
        sums = np.bincount(row, weights=y, minlength=len(targets))
        met = (sums > 0) & (targets > 0)
        step = np.log(np.divide(targets, sums, out=np.ones_like(targets), where=met))
        gain += step
        y *= np.exp(step)[row]
    return gain[:-1]


@njit(cache=True)
def _table(index: Whole32, nu: Real, log_start: Real, y: Real, sums: Real) -> float:
    """Set `y = start·exp(Xν)`, add it to `sums` and return its total."""
    total = 0.0
    for i in range(index.shape[1]):
        y[i] = math.exp(log_start[i] + _gathered(index, i, nu))
        total += y[i]
        _scatter(index, i, y[i], sums)
    return total


@njit(cache=True)
def _change(index: Whole32, direction: Real, y: Real, sums: Real) -> None:
    """Add `y∘Xδ` to `sums`."""
    for i in range(index.shape[1]):
        _scatter(index, i, y[i] * _gathered(index, i, direction), sums)


@njit(inline="always")
def _gathered(index: Whole32, i: int, values: Real) -> float:
    """The sum over the published cells of an inner cell; positions beyond them stand for none."""
    total = 0.0
    for g in range(index.shape[0]):
        if index[g, i] < len(values):
            total += values[index[g, i]]
    return total


@njit(inline="always")
def _scatter(index: Whole32, i: int, value: float, sums: Real) -> None:
    """Add a value to the published cells of an inner cell."""
    for g in range(index.shape[0]):
        if index[g, i] < len(sums):
            sums[index[g, i]] += value
