r"""A primal-dual iteration for losses of the published cells with non-negative inner cells.

.. math:: \min_{y\ge0} \max_u\; y^\top(-Xu) - \sum_k \phi_k^*(-u_k) + \tfrac{\rho}{2}\|y\|^2

A step moves each side against the other and needs one compiled pass over the inner cells. Steps
are averaged with the point of the last restart (Halpern), which makes the distance to a solution
fall as one over the steps; restarts make it fall geometrically. Inner cells that are zero and
whose slope :math:`(Xu)_i` is clearly negative are left out of the passes and looked at again
from time to time, and with them the published zeros that hold no other cell. While most take part
in a large full crossing, their published cells are computed; those of fewer are listed.

Steps of inner cells may be of any lengths :math:`a_i` when those of published cells are in
proportion to :math:`1/(X^\top a)_k`. A Poisson loss bends as :math:`1/\mu_k`, so there `a` is the
table of the last restart, and large and small cells move alike.

See Chambolle & Pock (2011), Pock & Chambolle (2011) for the step sizes, Lu & Yang (2024) for the
restarts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from discreet.arrays import Mask, Real, Whole
from discreet.design.incidence import Incidence, add_to_coarser
from discreet.solve.absolute.certificate import Inner
from discreet.solve.absolute.kernels import POISSON, add_margins, advance, repair

EVERY = slice(None)

# Factor by which the balance of primal and dual steps may change at a restart; what moved since the
# last one is a rough guide only.
_LARGEST_TURN = 2.0
# Steps after which cells that were left out are looked at again. A look costs as much as thirty
# steps on a sparse table.
_LOOK_EVERY = 200
# Zero cells are left out if their slope is below minus this share of the largest weight; less lets
# cells in and out all the time.
_INACTIVE = 0.005
# Shares of inner cells, and of published ones, above which leaving out the others saves nothing.
_WORTHWHILE, _COMPACT = 0.7, 0.9
# Published cells of inner cells that are listed rather than computed in each step: 64 MiB.
_LISTED = 2**24
# Step of an empty cell under a Poisson loss, as a share of the mean positive one's: with a step in
# proportion to its own size, zero, it would never move again.
_SHORTEST = 0.01
# Classes of published cells by what they cost when a dual vector is made feasible at least cost; a
# class takes one pass over the cells that make it infeasible.
_COST_LEVELS = 16


class PrimalDual:
    """The state of one run.

    Args:
      members: Published cells of the inner cells.
      z: Published values.
      weights: Weights of the loss; zero leaves a published cell out.
      loss: `ABSOLUTE` or `POISSON`.
      lengths: Relative lengths of the steps of inner cells, for tables of several scales.
      top: What slopes are measured against, where prices stand among the weights: the largest
        weight without them.

    Attributes:
      cells: Positions of the inner cells that are worked on; all others are zero.
    """

    def __init__(
        self,
        members: Incidence,
        z: Real,
        weights: Real,
        loss: int,
        lengths: Callable[[Incidence], Real] | None = None,
        top: float | None = None,
    ) -> None:
        self.members, self.loss = members, loss
        self._top = float(weights.max(initial=0.0)) if top is None else top
        self.z, self.weights = np.append(z, 0.0), np.append(weights, 0.0)
        # The first table is constant, with the published total.
        covered = max((len(c) and float(z[c].sum()) for c in members.cells), default=0.0)
        self._lengths, mean = lengths, max(covered, 0.0) / max(members.n_inner, 1)
        sums = members.adjoint(np.sign(weights))
        self._row_sum = float(sums[0]) if len(sums) and sums.min() == sums.max() else 0.0
        self._unit = mean or 1.0
        self.u = np.zeros(len(z) + 1)
        self._slopes: Real | None = None
        self._since: tuple[int, float, float] = (0, 0.0, math.inf)
        self.ridge, self.steps = 0.0, 0
        self.omega = (self._top or 1.0) / self._unit
        self._move_to(mean * (np.ones(members.n_inner) if lengths is None else lengths(members)))
        self._restart()

    def _move_to(self, y: Real) -> None:
        """Take a table as the current point."""
        self.cells: Whole | slice = EVERY
        self._primal = (y, y, y)

    @property
    def point(self) -> Real:
        """The inner cells that are worked on."""
        return self._primal[2]

    @property
    def y(self) -> Real:
        """The inner cells of the current point."""
        if isinstance(self.cells, slice):
            return self.point
        y = np.zeros(self.members.n_inner)
        y[self.cells] = self.point
        return y

    @property
    def current_slopes(self) -> Real:
        """The slopes :math:`Xu` at the current point; kept until it moves."""
        if self._slopes is None:
            self._slopes = self.members.adjoint(self.u[:-1])
        return self._slopes

    def forget_slopes(self) -> None:
        """Give back the memory of the slopes."""
        self._slopes = None

    def current_margins(self) -> Real:
        """The published cells of the current point, from the cells that are worked on alone."""
        sums, margins = np.zeros(len(self._kept)), np.zeros(len(self.z))
        add_margins(self._head, self._tail, self.point, sums)
        add_to_coarser(*self._edges, sums)
        margins[self._kept] = sums
        return margins[:-1]

    def positive(self) -> tuple[Whole, Real]:
        """The inner cells that are positive, and their values."""
        is_positive = self.point > 0
        if isinstance(self.cells, slice):
            return np.flatnonzero(is_positive), self.point[is_positive]
        return self.cells[is_positive], self.point[is_positive]

    def active(self) -> Inner:
        """The inner cells that are positive or have a positive slope."""
        y, slopes = self.y, self.current_slopes
        cells = np.flatnonzero((y > 0) | (slopes > 0))
        return Inner(cells, y[cells], slopes[cells])

    def feasible_dual(self, upper: Real) -> Real:
        r"""A vector near `u` with :math:`Xu \le 0` and :math:`-w \le u \le` `upper`.

        Positive slopes are taken off the published cells as far as these bounds allow, those first
        that cost least of the dual value; what is left is taken off regardless, and the result
        shrunk into the bounds.
        """
        n_groups, u = len(self.members.cells), self.u.copy()
        # Lowering dual values never makes a slope positive: only cells that are bad now matter.
        bad = np.flatnonzero(self.current_slopes > 0.0)
        rows = [self.members.row(g, bad) for g in range(n_groups + len(self.members.nested))]
        slopes, lowered = self.current_slopes[bad], np.zeros(len(u))
        # How low dual values may go; only halfway there where the bound itself is worthless.
        halfway = (self.z > 0) & (self.loss == POISSON)
        lowest = np.where(halfway, 0.5 * (self.u - self.weights), -self.weights)
        cost = self._cost()
        levels, positive = np.zeros(1), cost[cost > 0]
        if len(positive):  # classes with equally many published cells, after those that are free
            shares = np.linspace(0.0, 1.0, _COST_LEVELS)
            levels = np.append(0.0, np.quantile(positive, shares))
        for limit in levels:
            down_to = np.where(cost <= limit, lowest, np.inf)
            for row in rows:
                repair(row, down_to, lowered, slopes, u)
        unbounded = np.where(self.weights > 0, -np.inf, u)
        for row in rows:
            repair(row, unbounded, lowered, slopes, u)
        v, lower = u[:-1], self.weights[:-1]
        low, high = v < -lower, v > upper
        by = min((-lower[low] / v[low]).min(initial=1.0), (upper[high] / v[high]).min(initial=1.0))
        return np.asarray(by * v)

    def _cost(self) -> Real:
        """By how much the dual value falls with each entry."""
        cost = np.maximum(self.z, 0.0)
        if self.loss == POISSON:
            total = np.maximum(self.weights + self.u, np.finfo(float).tiny)
            cost *= np.divide(self.weights, total, out=np.zeros_like(cost), where=cost > 0)
        return np.asarray(cost)

    def set_ridge(self, ridge: float) -> None:
        """Go on from the current point with another ridge."""
        self.ridge, self.steps = ridge, 0
        self._restart()

    def without_ridge(self) -> PrimalDual:
        """Another run that begins at the current point and has no ridge."""
        other = copy(self)
        other.u = self.u.copy()
        other._move_to(self.y.copy())
        other.set_ridge(0.0)
        return other

    def iterate(self, steps: int) -> int:
        """Take so many steps, restarting where it pays."""
        end = self.steps + steps
        while self.steps < end:
            kept, limit = self._kept, min(_LOOK_EVERY, end - self.steps)
            lists, scales = (self._head, self._tail, self._edges), (self._rows, self._columns)
            data = (self.loss, self.z[kept], self.weights[kept])
            run = (self.omega, self.ridge, self._primal, self._dual, self._since, self.steps)
            given: tuple[Any, ...] = (*lists, *data, *scales, *run, limit)
            age, first, last, due = advance(*given)
            self.steps += age - self._since[0]
            self._since = (age, first, last)
            self.u[kept] = self._dual[2]
            self.forget_slopes()
            if due:
                self._balance_steps()
                self._fill_empty_margins()
                self._restart()
            elif not isinstance(self.cells, slice):
                self._let_in(self.cells)
        return steps

    def _balance_steps(self) -> None:
        """Balance the step sizes by how far each side has moved since the last restart."""
        _, y0, y = self._primal
        _, u0, u = self._dual
        moved_y = math.sqrt(float(((y - y0) ** 2 * self._rows).sum()))
        moved_u = math.sqrt(float(((u - u0) ** 2 * self._columns).sum()))
        if moved_y > 0 and moved_u > 0:
            wanted = math.sqrt(moved_u / moved_y / self.omega)
            self.omega *= min(max(wanted, 1 / _LARGEST_TURN), _LARGEST_TURN)

    def _fill_empty_margins(self) -> None:
        """Leave no positive count without an inner cell, if that costs an infinite loss."""
        if self.loss != POISSON:
            return
        counts = self.weights * self.z
        is_empty = np.append((counts[:-1] > 0) & (self.current_margins() <= 0), False)
        if is_empty.any():
            y, slopes = self.y, self.current_slopes
            fill_empty_margins(self.members, is_empty, counts, self.weights, y, self.u, slopes)
            self._move_to(y)

    def _restart(self) -> None:
        """Choose the inner cells to work on, and begin anew at the current point."""
        lowest = -_INACTIVE * self._top
        y = self.y
        wanted = (y > 0) | (self.current_slopes > lowest)
        is_partial = np.count_nonzero(wanted) < _WORTHWHILE * len(wanted)
        cells = np.flatnonzero(wanted) if is_partial else EVERY
        y = y[cells]
        self._move_to(y)
        self._take(cells)
        self._primal = (y, y.copy(), y.copy())
        u = self.u[self._kept]
        self._dual = (u.copy(), u.copy(), u.copy())
        self._since = (0, 0.0, math.inf)

    def _let_in(self, cells: Whole) -> None:
        """Let in the cells whose slope has become positive; they begin at zero."""
        is_new = self.current_slopes > 0
        is_new[cells] = False
        new = np.flatnonzero(is_new)
        if len(new):
            before = self._kept
            y, anchor, point = (np.append(part, np.zeros(len(new))) for part in self._primal)
            self._primal = (y, anchor, point)
            self._take(np.concatenate([cells, new]))

            def keep(part: Real) -> Real:
                """Dual values of the cells kept now; those not kept before have not moved."""
                u = self.u.copy()
                u[before] = part
                return np.asarray(u[self._kept])

            self._dual = (keep(self._dual[0]), keep(self._dual[1]), keep(self._dual[2]))

    def _step_lengths(self, members: Incidence) -> Real | None:
        """Relative step lengths of the inner cells that are worked on, if they differ."""
        if self.loss != POISSON:
            return self._lengths and self._lengths(members)
        y = self._primal[1]
        mean = float(y.sum()) / max(int(np.count_nonzero(y)), 1)
        return np.maximum(y, _SHORTEST * mean) / self._unit if mean else None

    def _take(self, cells: Whole | slice) -> None:
        """Work on some of the inner cells, and on the published cells that they can change."""
        self._tail = np.empty((0, 0), dtype=np.uint32)  # the last list goes before the next comes
        members = self.members if isinstance(cells, slice) else self.members.restrict(cells)
        self.cells, self._rows = cells, np.array([self._row_sum])
        if not self._row_sum:  # the numbers of published cells of inner cells differ
            self._rows = np.maximum(members.adjoint(np.sign(self.weights[:-1])), 1.0)
        lengths = self._step_lengths(members)
        if lengths is None:
            lengths = np.ones(members.n_inner)
        else:
            self._rows = self._rows / lengths
        reached = np.append(members.aggregate(lengths), 0.0)
        live = reached[:-1] > 0
        keep = live | (self.z[:-1] != 0)
        if np.count_nonzero(keep) > _COMPACT * len(keep):
            keep[:] = True
        members = members.compact(keep, live)
        self._kept = np.append(np.flatnonzero(keep), len(keep))
        self._columns = np.where(reached > 0, reached, 1.0)[self._kept]
        self._edges = members.edges
        self._head = members.head.T.astype(np.uint32, order="C")
        self._tail = members.tail.T.astype(np.uint32, order="C")
        if len(self._head) > 1 and self._head.size * len(self._tail) <= _LISTED:
            none = np.uint32(len(self._kept) - 1)
            lists = np.minimum(self._head[:, None] + self._tail[None], none)
            self._tail = lists.reshape(-1, lists.shape[2])
            self._head = np.zeros((1, lists.shape[2]), dtype=np.uint32)


def fill_empty_margins(
    members: Incidence, is_empty: Mask, counts: Real, weights: Real, y: Real, u: Real, slopes: Real
) -> None:
    r"""Give published counts that have lost all their inner cells one back, in place.

    A Poisson loss is infinite where a positive count has an empty margin. Its dual value would rise
    by a little in every step until an inner cell pays; here it rises at once, to where the largest
    slope of its cells is zero, and that inner cell takes the value that goes with it,
    :math:`wz/(w + u)`.

    `is_empty` says which positive published counts have no inner cell; `counts` are weights times
    published values. These, `weights` and `u` have "no cell" at the end.
    """
    for block in range(len(members.cells) + len(members.nested)):
        row = members.row(block)
        inside = np.flatnonzero(is_empty[row])
        if not len(inside):
            continue
        inside = inside[np.lexsort((-slopes[inside], row[inside]))]
        k, first, place = np.unique(row[inside], return_index=True, return_inverse=True)
        steepest = inside[first]
        # A cell that was filled for an earlier block may fill this one, too.
        still_empty = np.bincount(place, weights=y[inside]) <= 0
        raised = np.where(still_empty, np.maximum(-slopes[steepest], 0.0), 0.0)
        u[k] += raised
        slopes[inside] += raised[place]
        k = k[still_empty]
        y[steepest[still_empty]] = counts[k] / (weights[k] + u[k])
