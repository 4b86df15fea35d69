r"""A primal-dual iteration for losses of the published cells with non-negative inner cells.

.. math:: \min_{y\ge0} \max_u\; y^\top(-Xu) - \sum_k \phi_k^*(-u_k) + \tfrac{\rho}{2}\|y\|^2

A step moves each side against the other and needs one compiled pass over the inner cells. Steps
are averaged with the point of the last restart (Halpern), which makes the distance to a solution
fall as one over the steps; restarts make it fall geometrically. Inner cells that are zero and
whose slope :math:`(Xu)_i` is clearly negative are left out of the passes and looked at again
from time to time, and with them the published zeros that hold no other cell.

Steps of inner cells may be of any lengths :math:`a_i` when those of published cells are in
proportion to :math:`1/(X^\top a)_k`. A Poisson loss bends as :math:`1/\mu_k`, so there `a` is the
table of the last restart, and large and small cells move alike.

See Chambolle & Pock (2011), Pock & Chambolle (2011) for the step sizes, Lu & Yang (2024) for the
restarts.
"""

from __future__ import annotations

import math
from copy import copy

import numpy as np
from numpy.typing import NDArray

from discreet.design.incidence import Incidence
from discreet.solve.absolute.empty_margins import fill_empty_margins
from discreet.solve.absolute.kernels import POISSON, advance, repair
from discreet.solve.absolute.schedule import SCHEDULE

Vector = NDArray[np.float64]
Positions = NDArray[np.int64]


class PrimalDual:
    """The state of one run.

    Args:
      members: Published cells of the inner cells.
      z: Published values.
      weights: Weights of the loss; zero leaves a published cell out.
      loss: `ABSOLUTE` or `POISSON`.
      sizes: Sizes of the smallest published cells of the inner ones, for tables of several scales.
    """

    def __init__(
        self,
        members: Incidence,
        z: Vector,
        weights: Vector,
        loss: int,
        sizes: Vector | None = None,
    ) -> None:
        self.members, self.loss = members, loss
        self.z, self.weights = np.append(z, 0.0), np.append(weights, 0.0)
        self.rows = np.maximum(self.slopes(np.append(np.ones(len(z)), 0.0)), 1.0)
        mean = _mean_cell(members, z)
        self._unit = mean or 1.0
        self._sizes = np.ones(members.n_inner) if sizes is None else _far_below(sizes)
        self.y = mean * self._sizes
        self.u = np.zeros(len(z) + 1)
        self._slopes: Vector | None = None
        self._places = np.empty((0, 0), dtype=np.uint32)
        self.ridge, self.steps = 0.0, 0
        self.omega = (float(weights.max(initial=0.0)) or 1.0) / (mean or 1.0)
        self._age, self._first, self._last = 0, 0.0, math.inf
        self._restart()

    def slopes(self, u: Vector) -> Vector:
        """The slopes :math:`Xu` of all inner cells."""
        return self.members.adjoint(u[:-1])

    def margins(self, y: Vector) -> Vector:
        """The published cells of a table."""
        return self.members.aggregate(y)

    @property
    def current_slopes(self) -> Vector:
        """The slopes at the current point; kept until it moves."""
        if self._slopes is None:
            self._slopes = self.slopes(self.u)
        return self._slopes

    def current_margins(self) -> Vector:
        """The published cells of the current point, from the cells that are worked on alone."""
        margins = np.zeros(self.members.n_published)
        margins[self._members.position] = self._members.aggregate(self.y[self._cells])
        return margins

    def feasible_dual(self, upper: Vector) -> Vector:
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
        unbounded = np.full(len(u), -np.inf)
        for row in rows[:n_groups]:
            repair(row, unbounded, lowered, slopes, u)
        return _shrunk(u[:-1], self.weights[:-1], upper)

    def _lowest(self) -> Vector:
        """How low dual values may go; only halfway there where the bound itself is worthless."""
        halfway = (self.z > 0) & (self.loss == POISSON)
        return np.where(halfway, 0.5 * (self.u - self.weights), -self.weights)

    def _cost(self) -> Vector:
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
        other.y, other.u = self.y.copy(), self.u.copy()
        other.set_ridge(0.0)
        return other

    def iterate(self, steps: int) -> int:
        """Take so many steps, restarting where it pays; `y` and `u` hold the result."""
        end = self.steps + steps
        while self.steps < end:
            due = self._advance(min(SCHEDULE.look_every, end - self.steps))
            self._store()
            if due:
                self._tune()
                self._fill_empty_margins()
                self._restart()
            elif self._is_partial:
                self._let_in()
        return steps

    def _advance(self, limit: int) -> bool:
        before = self._age
        self._age, self._first, self._last, due = advance(
            self._places,
            *self._members.edges,
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
        """Copy the current point to `y` and `u`."""
        self.y[self._cells] = self._primal[2]
        self.u[self._kept] = self._dual[2]
        self._slopes = None

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
        if self.loss == POISSON:
            counts, margins = self.weights * self.z, self.margins(self.y)
            fill_empty_margins(
                self.members, counts, self.weights, margins, self.y, self.u, self.current_slopes
            )

    def _restart(self) -> None:
        """Choose the inner cells to work on, and begin anew at the current point."""
        lowest = -SCHEDULE.inactive * self.weights.max(initial=0.0)
        wanted = (self.y > 0) | (self.current_slopes > lowest)
        self._is_partial = np.count_nonzero(wanted) < SCHEDULE.worthwhile * len(wanted)
        self._lengths = self._step_lengths()
        self._take(np.flatnonzero(wanted) if self._is_partial else np.arange(len(wanted)))
        y, u = self.y[self._cells], self.u[self._kept]
        self._primal = (y.copy(), y.copy(), y.copy())
        self._dual = (u.copy(), u.copy(), u.copy())
        self._age, self._first, self._last = 0, 0.0, math.inf

    def _let_in(self) -> None:
        """Let in the cells whose slope has become positive; they begin at zero."""
        is_new = self.current_slopes > 0
        is_new[self._cells] = False
        new = np.flatnonzero(is_new)
        if len(new):
            before = self._kept
            self._take(np.concatenate([self._cells, new]))
            y, anchor, point = (np.append(part, np.zeros(len(new))) for part in self._primal)
            self._primal = (y, anchor, point)
            u, anchor, point = (self._kept_of(before, part) for part in self._dual)
            self._dual = (u, anchor, point)

    def _kept_of(self, before: Positions, part: Vector) -> Vector:
        """Dual values of the cells kept now; those that were not kept before have not moved."""
        u = self.u.copy()
        u[before] = part
        return np.asarray(u[self._kept])

    def _step_lengths(self) -> Vector:
        """Relative step lengths of the inner cells."""
        mean = _mean_positive(self.y)
        if self.loss != POISSON:
            return self._sizes
        if not mean:
            return np.ones(len(self.y))
        return np.asarray(np.maximum(self.y, SCHEDULE.shortest * mean) / self._unit)

    def _take(self, cells: Positions) -> None:
        """Work on some of the inner cells, and on the published cells that they can change."""
        members, lengths = self.members.restricted(cells), self._lengths[cells]
        reached = np.append(members.aggregate(lengths), 0.0)
        live = reached[:-1] > 0
        keep = live | (self.z[:-1] != 0)
        self._cells, self._kept = cells, np.append(np.flatnonzero(keep), len(keep))
        self._members = members.compact(keep, live)
        is_whole = self._members is self.members
        if not is_whole or self._places.shape != self.members.index.shape[::-1]:
            self._places = self._members.index.T.astype(np.uint32, order="C")
        self._rows = self.rows[cells] / lengths
        self._columns = np.where(reached > 0, reached, 1.0)[self._kept]


def _shrunk(v: Vector, lower: Vector, upper: Vector) -> Vector:
    """`v` times the largest factor up to one that keeps it between `-lower` and `upper`."""
    low, high = v < -lower, v > upper
    by = min((-lower[low] / v[low]).min(initial=1.0), (upper[high] / v[high]).min(initial=1.0))
    return np.asarray(by * v)


def _levels(cost: Vector) -> Vector:
    """Zero, and values between which there are equally many positive costs."""
    positive = cost[cost > 0]
    if not len(positive):
        return np.zeros(1)
    return np.append(0.0, np.quantile(positive, np.linspace(0.0, 1.0, SCHEDULE.cost_levels)))


def _far_below(sizes: Vector) -> Vector:
    """Ones, less for cells far smaller than others; cells of size zero are not seen at all."""
    seen = sizes > 0
    mean = SCHEDULE.far_below * (float(sizes[seen].mean()) if seen.any() else 1.0)
    return np.where(seen, np.minimum(1.0, sizes / mean), 1.0)


def _mean_cell(members: Incidence, z: Vector) -> float:
    """The inner cell of a constant table with the published total."""
    covered = max((len(c) and float(z[c].sum()) for c in members.cells), default=0.0)
    return max(covered, 0.0) / max(members.n_inner, 1)


def _mean_positive(y: Vector) -> float:
    return float(y.sum()) / max(int(np.count_nonzero(y)), 1)
