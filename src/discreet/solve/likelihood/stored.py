r"""Log-linear tables whose cells are stored: passes, cells that margins settle, and refutations.

`StoredPass` does what `FusedPass` does for complete tables: margins of :math:`y = s\,e^{X\nu}`, and
of its change along a direction. `reduce_table` takes out the cells that margins settle by
themselves before an iteration begins. `find_refutation` proves that no table has given margins.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numba import njit
from scipy.sparse import csr_array

from discreet.arrays import Mask, Real, Whole, Whole32
from discreet.design.base import Design, dot
from discreet.design.fused.links import EXPONENTIAL
from discreet.design.fused.passes import MarginSums
from discreet.design.incidence import Incidence
from discreet.solve.dual_newton import DualNewton
from discreet.solve.least_squares.least_squares import LeastSquares
from discreet.solve.non_negative.non_negative import NonNegative
from discreet.solve.non_negative.ridge_path import solve_lifted

# Conjugate gradient steps of one Newton step.
MOST_GRADIENTS = 500
# Factor by which conjugate gradients reduce the residual in a Newton step on stored tables. A
# tighter one overshoots where a rough fit will do, as within `Poisson`.
_FORCING = 0.3
# Published cells up to which Newton systems are met by a factor where conjugate gradients fail.
MOST_DENSE = 2_000
# Lift of the unit diagonal of such a system: published cells that others imply make it singular.
_LIFT = 1e-14
_SMALLEST = 1e-300
# Newton steps with them: cells far from where they should be come nearer by that factor each time.
_DENSE_STEPS = 150
# Such steps change no exponent by more: the model of an exponential ends there.
_EXPONENT = 2.0
# Exponent that stands for a settled zero: exp(-100) is 4e-44.
_FLOOR = -100.0
# A remainder this small against the published value is rounding error.
_REMAINDER = 1e-11
# Sweeps of proportional fitting after which its drift may refute the margins.
_SWEEPS = 10
# Accuracy and steps of the least squares fits whose residuals may refute the margins.
_PROOF = 1e-9
_PROOF_STEPS = 10_000


class StoredPass:
    """Margins of a table that is stored, one compiled pass each; the starting table is positive."""

    link = EXPONENTIAL

    def __init__(self, members: Incidence, start: Real) -> None:
        self._members, self._log_start, self.y = members, np.log(start), start.copy()
        self._at: Real | None = None

    def newton(self, z: Real, max_steps: int, by_factors: bool) -> DualNewton:
        """Newton's method towards margins, from where one sweep leads."""
        start, nothing = sweep(self._members, z, np.exp(self._log_start)), np.zeros_like(z)
        newton = DualNewton(self, z, nothing, None, start, forcing=_FORCING)
        if by_factors:
            newton = DenseNewton(self, z, nothing, None, start, most_steps=_DENSE_STEPS)
        newton.most_gradients, newton.most_in_all = min(MOST_GRADIENTS, max_steps), max_steps - 1
        return newton

    def at(self, nu: Real) -> Real:
        """The table at a point."""
        if self._at is not nu:
            self.table(nu)
        return self.y

    def dot(self, a: Real, b: Real) -> float:
        """A scalar product."""
        return dot(a, b)

    def table(self, nu: Real) -> MarginSums:
        """Margins and sum of the table at a point; `y` holds the table."""
        sums, self._at = np.zeros_like(nu), nu
        total = _table(self._members.index, nu, self._log_start, self.y, sums)
        return MarginSums(sums, total)

    def change(self, nu: Real, direction: Real) -> Real:
        """Margins of the change along a direction."""
        sums = np.zeros_like(nu)
        _change(self._members.index, direction, self.at(nu), sums)
        return sums

    def curvature(self, nu: Real) -> Real:
        """The Hessian at a point, dense."""
        X = self._matrix
        return np.asarray((X.T @ (X * self.at(nu)[:, None])).toarray())

    def largest_exponent(self, direction: Real) -> float:
        """By how much the logarithm of a cell changes at most along a direction."""
        return float(np.abs(self._matrix @ direction).max(initial=0.0))

    @cached_property
    def _matrix(self) -> csr_array:
        index, n = self._members.index, self._members.n_published
        cells = np.broadcast_to(np.arange(index.shape[1]), index.shape)
        kept = index < n
        return csr_array((np.ones(kept.sum()), (cells[kept], index[kept])), (index.shape[1], n))

    def slope(self, nu: Real) -> Real:
        """Margins of the derivative: an exponential is its own."""
        return self.table(nu).margins


class DenseNewton(DualNewton):
    r"""Newton's method whose systems are met by a factor, for tables with cells of all sizes.

    With cells between 1 and 3·10⁹ beside each other, or many that margins draw to zero, the systems
    have condition 10⁹ and more, and conjugate gradients do not arrive.
    """

    passes: StoredPass

    def _direction(self, ridge: float, gradient: Real) -> Real | None:
        hessian = self.passes.curvature(self.nu)
        scale = 1.0 / np.sqrt(np.maximum(np.diag(hessian), _SMALLEST))
        lift = np.full(len(scale), _LIFT)
        step = scale * solve_lifted(hessian * np.outer(scale, scale), lift, -scale * gradient)
        self.gradients += 1
        largest = self.passes.largest_exponent(step)
        return step * (_EXPONENT / largest) if largest > _EXPONENT else step


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
        y[i] = math.exp(log_start[i] + _gather(index, i, nu))
        total += y[i]
        _scatter(index, i, y[i], sums)
    return total


@njit(cache=True)
def _change(index: Whole32, direction: Real, y: Real, sums: Real) -> None:
    """Add `y∘Xδ` to `sums`."""
    for i in range(index.shape[1]):
        _scatter(index, i, y[i] * _gather(index, i, direction), sums)


@njit(inline="always")
def _gather(index: Whole32, i: int, values: Real) -> float:
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


@dataclass(frozen=True, eq=False)
class SettledCells:
    """Inner cells settled in one step, the published cell that settled each, and their values."""

    inner: Whole
    by: Whole
    values: Real


@dataclass(frozen=True, eq=False)
class Reduction:
    """What is left of a table after the settled cells have been taken out."""

    left: Whole  # positions of the inner cells that are still open
    rest: Real  # what remains of each published cell for the open cells
    held: Mask  # which published cells hold an open cell
    stages: list[SettledCells]  # the settled cells, in the order in which they were found
    is_possible: bool  # whether what remains is not negative, and nothing where no cell is open

    def assemble(self, y: Real, n_inner: int) -> Real:
        """Open and settled cells together."""
        table = np.zeros(n_inner)
        table[self.left] = y
        for stage in self.stages:
            table[stage.inner] = stage.values
        return table

    def multipliers(self, members: Incidence, start: Real, held: Real) -> Real:
        r"""Multipliers under which :math:`s\,e^{X\nu}` takes the settled values too.

        Zeros are met up to :math:`e^{-100}`.
        """
        nu = np.zeros(members.n_published + 1)
        nu[:-1][self.held] = held
        # Last found first: the published cell that settled a cell holds, besides it, only cells
        # that were settled before, whose turn comes later.
        for stage in reversed(self.stages):
            reached = np.log(start[stage.inner])
            for row in members.index:
                reached = reached + nu[row[stage.inner]]
            if (stage.values > 0).all():
                nu[stage.by] += np.log(stage.values) - reached
            else:
                highest = np.full(len(nu), -np.inf)
                np.maximum.at(highest, stage.by, reached)
                nu -= np.maximum(highest - _FLOOR, 0.0)
        return nu[:-1]


def reduce_table(members: Incidence, z: Real, open_cells: Whole, slack: float) -> Reduction:
    """Remove cells fixed by zero margins and cells that are alone in a margin.

    Under a published zero every inner cell is zero. An inner cell that is the only one left in a
    published cell has that cell's value; it is subtracted everywhere and taken out. Each step may
    settle further cells.

    `members` lists published cells in use only; a deviation within `slack` is no contradiction.
    """
    rest, left, stages = np.append(z, 0.0), open_cells, []
    current = members.restrict(left)
    used = np.zeros(len(z), dtype=bool)
    used[members.group_cells] = True
    while len(left):
        zero = used & (rest[:-1] <= _REMAINDER * np.abs(z))
        # Zeros first: they settle many cells at once and leave others alone in their margins.
        stage = _cells_told_by(current, left, zero, np.zeros_like(z))
        if stage is None:
            stage = _cells_told_by(current, left, used & (current.sizes() == 1), rest)
        if stage is None:
            break
        place = np.searchsorted(left, stage.inner)
        for row in current.index:
            np.subtract.at(rest, row[place], stage.values)
        stages.append(stage)
        keep = np.ones(len(left), dtype=bool)
        keep[place] = False
        left, current = left[keep], current.restrict(np.flatnonzero(keep))
    held = current.sizes() > 0
    wrong = used & ((rest[:-1] < -slack) | (~held & (rest[:-1] > slack)))
    return Reduction(left, rest[:-1], held, stages, not wrong.any())


def _cells_told_by(
    current: Incidence, left: Whole, marked: Mask, values: Real
) -> SettledCells | None:
    """The open cells that count in a marked published cell, with that cell's value."""
    if not marked.any():
        return None
    lookup = np.append(marked, False)
    by = np.full(current.n_inner, current.n_published, dtype=np.int64)
    for row in current.index[::-1]:
        by = np.where(lookup[row], row, by)
    hit = np.flatnonzero(by < current.n_published)
    return SettledCells(left[hit], by[hit], values[by[hit]]) if len(hit) else None


def find_refutation(
    design: Design, members: Incidence, z: Real, used: Mask, possible: Mask, goal: float
) -> Real | None:
    r"""A proof that no table comes within the goal of the margins, where one is found.

    A table :math:`y \ge 0` with :math:`|X^\top y - z| \le g` has
    :math:`z^\top u - g\|u\|_1 \le y^\top Xu \le \max(Xu)_+ \sum_k (z_k + g)` for every `u`. One
    that breaks this is lowered until :math:`Xu \le 0`; under published zeros that costs nothing.

    Published values are zero for cells that are not used; `possible` inner cells may be
    positive, and a deviation within `goal` is no contradiction.
    """
    zero = (used & (z == 0)).astype(np.float64)
    closed = possible & (design.adjoint(zero) > 0)
    open_cells = possible & ~closed
    for u in _candidates(design, members, z, used, open_cells):
        highest = float(design.adjoint(u)[open_cells].max(initial=0.0))
        needed = float(z @ u - goal * np.abs(u).sum())
        if needed > highest * float(np.sum(z + goal, where=used)):
            proof = u - highest * used
            return np.asarray(proof - zero * float(design.adjoint(proof)[closed].max(initial=0.0)))
    return None


def _candidates(
    design: Design, members: Incidence, z: Real, used: Mask, open_cells: Mask
) -> Iterator[Real]:
    r"""Vectors that refute contradicting margins, cheap ones first.

    The residuals of least squares have :math:`Xu = 0 < z^\top u`, those of non-negative least
    squares :math:`Xu \le 0 < z^\top u`.
    """
    yield _drift(members.using(used, np.zeros(len(members.nested), dtype=bool)), z, open_cells)
    weights, variance = used.astype(np.float64), open_cells.astype(np.float64)
    for nearest in (
        LeastSquares(tolerance=_PROOF, max_steps=_PROOF_STEPS),
        NonNegative(tolerance=_PROOF, max_steps=_PROOF_STEPS, variance=variance),
    ):
        yield np.where(used, z - nearest(design, z, weights=weights).z, 0.0)


def _drift(groups: Incidence, z: Real, open_cells: Mask) -> Real:
    """What a sweep of proportional fitting adds to the multipliers where margins contradict.

    A published cell that no open cell counts in is a proof by itself.
    """
    members = groups.restrict(np.flatnonzero(open_cells))
    empty = np.zeros(len(z), dtype=bool)
    empty[groups.group_cells] = members.sizes()[groups.group_cells] == 0
    if (empty & (z > 0)).any():
        return (empty & (z > 0)).astype(np.float64)
    y, drift = np.ones(members.n_inner), np.zeros_like(z)
    for _ in range(_SWEEPS):
        drift = sweep(members, z, y)
    return drift
