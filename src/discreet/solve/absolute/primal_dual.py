r"""A primal-dual iteration for losses of the published cells with non-negative inner cells.

.. math:: \min_{y\ge0} \max_u\; y^\top(-Xu) - \sum_k \phi_k^*(-u_k) + \tfrac{\rho}{2}\|y\|^2

A step moves each side against the other and needs one compiled pass over the inner cells. Steps
are averaged with the point of the last restart (Halpern), which makes the distance to a solution
fall as one over the steps; restarts make it fall geometrically. Inner cells that are zero and
whose slope :math:`(Xu)_i` is clearly negative are left out of the passes and looked at again
from time to time, and with them the published zeros that hold no other cell. While most take part
in a full crossing, their published cells are computed; those of a few are listed.

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

import numpy as np

from discreet.arrays import Mask, Real, Whole
from discreet.design.incidence import Incidence, lift
from discreet.solve.absolute.certificate import Inner
from discreet.solve.absolute.kernels import POISSON, add_margins, advance, repair
from discreet.solve.absolute.schedule import SCHEDULE

EVERY = slice(None)


class PrimalDual:
    """The state of one run.

    Args:
      members: Published cells of the inner cells.
      z: Published values.
      weights: Weights of the loss; zero leaves a published cell out.
      loss: `ABSOLUTE` or `POISSON`.
      lengths: Relative lengths of the steps of inner cells, for tables of several scales.

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
    ) -> None:
        self.members, self.loss = members, loss
        self.z, self.weights = np.append(z, 0.0), np.append(weights, 0.0)
        self._lengths, mean = lengths, _mean_cell(members, z)
        sums = members.adjoint(np.sign(weights))
        self._row_sum = float(sums[0]) if len(sums) and sums.min() == sums.max() else 0.0
        self._unit = mean or 1.0
        self.u = np.zeros(len(z) + 1)
        self._slopes: Real | None = None
        self.ridge, self.steps = 0.0, 0
        self.omega = (float(weights.max(initial=0.0)) or 1.0) / self._unit
        self._age, self._first, self._last = 0, 0.0, math.inf
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
        lift(*self._edges, sums)
        margins[self._kept] = sums
        return margins[:-1]

    def positive(self) -> tuple[Whole, Real]:
        """The inner cells that are positive, and their values."""
        is_positive = self.point > 0
        if isinstance(self.cells, slice):
            return np.flatnonzero(is_positive), self.point[is_positive]
        return self.cells[is_positive], self.point[is_positive]

    def touched(self) -> Inner:
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
        bad = np.flatnonzero(self.current_slopes > 0.0)
        rows = [self.members.row(g, bad) for g in range(n_groups + len(self.members.nested))]
        slopes, lowered = self.current_slopes[bad], np.zeros(len(u))
        lowest, cost = self._lowest(), self._cost()
        for limit in _levels(cost):
            down_to = np.where(cost <= limit, lowest, np.inf)
            for row in rows:
                repair(row, down_to, lowered, slopes, u)
        unbounded = np.where(self.weights > 0, -np.inf, u)
        for row in rows:
            repair(row, unbounded, lowered, slopes, u)
        return _shrink(u[:-1], self.weights[:-1], upper)

    def _lowest(self) -> Real:
        """How low dual values may go; only halfway there where the bound itself is worthless."""
        halfway = (self.z > 0) & (self.loss == POISSON)
        return np.where(halfway, 0.5 * (self.u - self.weights), -self.weights)

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
            due = self._advance(min(SCHEDULE.look_every, end - self.steps))
            self._store()
            if due:
                self._tune()
                self._fill_empty_margins()
                self._restart()
            elif not isinstance(self.cells, slice):
                self._let_in(self.cells)
        return steps

    def _advance(self, limit: int) -> bool:
        before = self._age
        self._age, self._first, self._last, due = advance(
            self._head,
            self._tail,
            *self._edges,
            self.loss,
            self.z[self._kept],
            self.weights[self._kept],
            self._rows,
            self._columns,
            self.omega,
            self.ridge,
            *self._primal,
            *self._dual,
            self._age,
            self._first,
            self._last,
            self.steps,
            limit,
        )
        self.steps += self._age - before
        return due

    def _store(self) -> None:
        """Copy the current point to `u`."""
        self.u[self._kept] = self._dual[2]
        self.forget_slopes()

    def _tune(self) -> None:
        """Balance the step sizes by how far each side has moved since the last restart."""
        _, y0, y = self._primal
        _, u0, u = self._dual
        moved_y = math.sqrt(float(((y - y0) ** 2 * self._rows).sum()))
        moved_u = math.sqrt(float(((u - u0) ** 2 * self._columns).sum()))
        if moved_y > 0 and moved_u > 0:
            wanted = math.sqrt(moved_u / moved_y / self.omega)
            self.omega *= min(max(wanted, 1 / SCHEDULE.largest_turn), SCHEDULE.largest_turn)

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
        lowest = -SCHEDULE.inactive * self.weights.max(initial=0.0)
        y = self.y
        wanted = (y > 0) | (self.current_slopes > lowest)
        is_partial = np.count_nonzero(wanted) < SCHEDULE.worthwhile * len(wanted)
        cells = np.flatnonzero(wanted) if is_partial else EVERY
        y = y[cells]
        self._move_to(y)
        self._take(cells)
        self._primal = (y, y.copy(), y.copy())
        u = self.u[self._kept]
        self._dual = (u.copy(), u.copy(), u.copy())
        self._age, self._first, self._last = 0, 0.0, math.inf

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
            u, anchor, point = (self._kept_of(before, part) for part in self._dual)
            self._dual = (u, anchor, point)

    def _kept_of(self, before: Whole, part: Real) -> Real:
        """Dual values of the cells kept now; those that were not kept before have not moved."""
        u = self.u.copy()
        u[before] = part
        return np.asarray(u[self._kept])

    def _step_lengths(self, members: Incidence) -> Real | None:
        """Relative step lengths of the inner cells that are worked on, if they differ."""
        if self.loss != POISSON:
            return self._lengths and self._lengths(members)
        y = self._primal[1]
        mean = float(y.sum()) / max(int(np.count_nonzero(y)), 1)
        return np.maximum(y, SCHEDULE.shortest * mean) / self._unit if mean else None

    def _row_sums(self, members: Incidence) -> Real:
        """How many published cells count each inner cell; one entry where all are the same."""
        if self._row_sum:
            return np.array([self._row_sum])
        return np.maximum(members.adjoint(np.sign(self.weights[:-1])), 1.0)

    def _take(self, cells: Whole | slice) -> None:
        """Work on some of the inner cells, and on the published cells that they can change."""
        self._tail = np.empty((0, 0), dtype=np.uint32)  # the last list goes before the next comes
        members = self.members if isinstance(cells, slice) else self.members.restricted(cells)
        self.cells, self._rows = cells, self._row_sums(members)
        lengths = self._step_lengths(members)
        if lengths is None:
            lengths = np.ones(members.n_inner)
        else:
            self._rows = self._rows / lengths
        reached = np.append(members.aggregate(lengths), 0.0)
        live = reached[:-1] > 0
        keep = live | (self.z[:-1] != 0)
        if np.count_nonzero(keep) > SCHEDULE.compact * len(keep):
            keep[:] = True
        members = members.compact(keep, live)
        self._kept = np.append(np.flatnonzero(keep), len(keep))
        self._columns = np.where(reached > 0, reached, 1.0)[self._kept]
        self._edges = members.edges
        self._head = members.head.T.astype(np.uint32, order="C")
        self._tail = members.tail.T.astype(np.uint32, order="C")


def _shrink(v: Real, lower: Real, upper: Real) -> Real:
    """`v` times the largest factor up to one that keeps it between `-lower` and `upper`."""
    low, high = v < -lower, v > upper
    by = min((-lower[low] / v[low]).min(initial=1.0), (upper[high] / v[high]).min(initial=1.0))
    return np.asarray(by * v)


def _levels(cost: Real) -> Real:
    """Zero, and values between which there are equally many positive costs."""
    positive = cost[cost > 0]
    if not len(positive):
        return np.zeros(1)
    return np.append(0.0, np.quantile(positive, np.linspace(0.0, 1.0, SCHEDULE.cost_levels)))


def _mean_cell(members: Incidence, z: Real) -> float:
    """The inner cell of a constant table with the published total."""
    covered = max((len(c) and float(z[c].sum()) for c in members.cells), default=0.0)
    return max(covered, 0.0) / max(members.n_inner, 1)


def fill_empty_margins(
    members: Incidence,
    is_empty: Mask,
    counts: Real,
    weights: Real,
    y: Real,
    u: Real,
    slopes: Real,
) -> None:
    """Change `y`, `u` and `slopes` in place, going through the published cells block by block.

    Args:
      members: Published cells of the inner cells.
      is_empty: Positive published counts without an inner cell, and "no cell" at the end.
      counts: Weights times published values, with the same end.
      weights: Weights, with the same end.
      y: Inner cells.
      u: Dual values, with the same end as the weights.
      slopes: The slopes `Xu`.
    """
    for block in range(len(members.cells) + len(members.nested)):
        row = members.row(block)
        inside = np.flatnonzero(is_empty[row])
        if not len(inside):
            continue
        inside = inside[np.lexsort((-slopes[inside], row[inside]))]
        k, first, place = np.unique(row[inside], return_index=True, return_inverse=True)
        steepest = inside[first]
        still_empty = np.bincount(place, weights=y[inside]) <= 0
        raised = np.where(still_empty, np.maximum(-slopes[steepest], 0.0), 0.0)
        u[k] += raised
        slopes[inside] += raised[place]
        k = k[still_empty]
        y[steepest[still_empty]] = counts[k] / (weights[k] + u[k])
