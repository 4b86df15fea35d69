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
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from discreet.design.membership import Membership
from discreet.design.membership_kernels import add_sums, lift, lower, spread
from discreet.solve.absolute.saddle_kernels import POISSON, advance, repair
from discreet.solve.absolute.saddle_waking import Waking

Vector = NDArray[np.float64]
Positions = NDArray[np.int64]

_LOOK_EVERY = 50
_MARGIN = 0.005  # slopes below minus this share of the largest weight keep a zero cell out
_SHORTEST = 0.01  # step of an empty cell, as a share of the mean positive one's
_LARGEST_TURN = 2.0  # factor by which the balance of the steps may change at a restart
_FAR_BELOW = 1e-3  # share of the mean size below which cells take shorter steps
_WORTHWHILE = 0.7  # share of cells above which leaving some out saves nothing


class SaddlePoint:
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
        members: Membership,
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
        self.ridge, self.steps = 0.0, 0
        self.omega = (float(weights.max(initial=0.0)) or 1.0) / (mean or 1.0)
        self._age, self._first, self._last = 0, 0.0, math.inf
        self._restart()

    def slopes(self, u: Vector) -> Vector:
        """The slopes :math:`Xu` of all inner cells."""
        out = np.empty(self.members.n_inner)
        v = u.copy()
        lower(*self.members.edges, v)
        spread(self.members.index, v, out)
        return out

    def margins(self, y: Vector) -> Vector:
        """The published cells of a table."""
        sums = np.zeros(len(self.z))
        for row in self.members.index:
            add_sums(row, y, sums)
        lift(*self.members.edges, sums)
        return sums[:-1]

    def feasible_duals(self, upper: Vector) -> Iterator[Vector]:
        r"""Vectors near `u` with :math:`Xu \le 0` and :math:`-w \le u \le` `upper`.

        Positive slopes are taken off the published cells of one group as far as its bounds allow,
        then off those of the next, coarser blocks last; what is left is taken off regardless, and
        the result shrunk into the bounds. Each group has its turn to be first, with and without
        regard to its bounds.
        """
        u, all_slopes = self.u, self.slopes(self.u)
        bad = np.flatnonzero(all_slopes > 0.0)
        groups = range(len(self.members.cells))
        blocks = range(len(groups), len(groups) + len(self.members.nested))
        rows = [self.members.row(g, bad) for g in (*groups, *blocks)]
        lowest, unbounded = self._lowest(u), np.full(len(u), -np.inf)
        lowered = np.zeros(len(u))
        for first in groups:
            order = [(first + g) % len(groups) for g in groups]
            for careful in ([], [*order, *blocks]):
                slopes, v = all_slopes[bad], u.copy()
                for g in careful:
                    repair(rows[g], lowest, lowered, slopes, v)
                for g in order:
                    repair(rows[g], unbounded, lowered, slopes, v)
                if slopes.max(initial=0.0) <= 0.0:
                    yield _shrunk(v[:-1], self.weights[:-1], upper)

    def _lowest(self, u: Vector) -> Vector:
        """How low dual values may go; only halfway there where the bound itself is worthless."""
        halfway = (self.z > 0) & (self.loss == POISSON)
        return np.where(halfway, 0.5 * (u - self.weights), -self.weights)

    def set_ridge(self, ridge: float) -> None:
        """Go on from the current point with another ridge."""
        self.ridge, self.steps = ridge, 0
        self._restart()

    def iterate(self, steps: int) -> int:
        """Take so many steps, restarting where it pays; `y` and `u` hold the result."""
        end = self.steps + steps
        while self.steps < end:
            due = self._advance(min(_LOOK_EVERY, end - self.steps))
            self._store()
            if due:
                self._tune()
                self._wake()
                self._restart()
            elif self._is_partial:
                self._let_in()
        return steps

    def _advance(self, limit: int) -> bool:
        before = self._age
        self._age, self._first, self._last, due = advance(
            self._members.index,
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

    def _tune(self) -> None:
        """Balance the step sizes by how far each side has moved since the last restart."""
        _, y0, y = self._primal
        _, u0, u = self._dual
        moved_y = math.sqrt(float(((y - y0) ** 2 * self._rows).sum()))
        moved_u = math.sqrt(float(((u - u0) ** 2 * self._columns).sum()))
        if moved_y > 0 and moved_u > 0:
            wanted = math.sqrt(moved_u / moved_y / self.omega)
            self.omega *= min(max(wanted, 1 / _LARGEST_TURN), _LARGEST_TURN)

    def _wake(self) -> None:
        """Leave no positive count without an inner cell, if that costs an infinite loss."""
        if self.loss == POISSON:
            counts, slopes = self.weights * self.z, self.slopes(self.u)
            point = Waking(self.members, counts, self.weights, self.y, self.u, slopes)
            point.wake(self.margins(self.y))

    def _restart(self) -> None:
        """Choose the inner cells to work on, and begin anew at the current point."""
        slopes = self.slopes(self.u)
        wanted = (self.y > 0) | (slopes > -_MARGIN * self.weights.max(initial=0.0))
        self._is_partial = np.count_nonzero(wanted) < _WORTHWHILE * len(wanted)
        self._lengths = self._step_lengths()
        self._take(np.flatnonzero(wanted) if self._is_partial else np.arange(len(wanted)))
        y, u = self.y[self._cells], self.u[self._kept]
        self._primal = (y.copy(), y.copy(), y.copy())
        self._dual = (u.copy(), u.copy(), u.copy())
        self._age, self._first, self._last = 0, 0.0, math.inf

    def _let_in(self) -> None:
        """Let in the cells whose slope has become positive; they begin at zero."""
        slopes = self.slopes(self.u)
        slopes[self._cells] = 0.0
        new = np.flatnonzero(slopes > 0)
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
        return np.asarray(np.maximum(self.y, _SHORTEST * mean) / self._unit)

    def _take(self, cells: Positions) -> None:
        """Work on some of the inner cells, and on the published cells that they can change."""
        members, lengths = self.members.restricted(cells), self._lengths[cells]
        reached = np.zeros(len(self.z))
        for row in members.index:
            add_sums(row, lengths, reached)
        lift(*self.members.edges, reached)
        live = reached[:-1] > 0
        keep = live | (self.z[:-1] != 0)
        self._cells, self._kept = cells, np.append(np.flatnonzero(keep), len(keep))
        self._members = members.compact(keep, live)
        self._rows = self.rows[cells] / lengths
        self._columns = np.where(reached > 0, reached, 1.0)[self._kept]


def _shrunk(v: Vector, lower: Vector, upper: Vector) -> Vector:
    """`v` times the largest factor up to one that keeps it between `-lower` and `upper`."""
    low, high = v < -lower, v > upper
    by = min((-lower[low] / v[low]).min(initial=1.0), (upper[high] / v[high]).min(initial=1.0))
    return np.asarray(by * v)


def _far_below(sizes: Vector) -> Vector:
    """Ones, less for cells far smaller than others; cells of size zero are not seen at all."""
    seen = sizes > 0
    mean = _FAR_BELOW * (float(sizes[seen].mean()) if seen.any() else 1.0)
    return np.where(seen, np.minimum(1.0, sizes / mean), 1.0)


def _mean_cell(members: Membership, z: Vector) -> float:
    """The inner cell of a constant table with the published total."""
    covered = max((len(c) and float(z[c].sum()) for c in members.cells), default=0.0)
    return max(covered, 0.0) / max(members.n_inner, 1)


def _mean_positive(y: Vector) -> float:
    return float(y.sum()) / max(int(np.count_nonzero(y)), 1)
