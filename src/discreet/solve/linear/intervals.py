r"""What can be said of sums of inner cells when other sums are known: feasibility intervals.

.. math:: \min_y, \max_y\; t^\top y \quad\text{subject to}\quad x_k^\top y = z_k,\; y \ge 0

for many targets `t`. Known cells are taken out first, and parts that share no sum are dealt with
one by one. One solution bounds the intervals of all targets from inside; where such a bound meets
one from outside, no program is solved. The others start from the last solution, which stays
feasible.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from discreet.arrays import Array, Index, Mask, Real
from discreet.progress import available_cores, in_processes, report
from discreet.solve.linear.program import Program
from discreet.solve.linear.unknowns import Unknowns, connected_parts, unknowns

# Bounds this near to each other, relative to their size, are the same.
_CLOSE = 1e-7
# Targets that are tried before other processes are started, to see how long one takes; and seconds
# of work from which on they are, since each loads the library anew.
_FIRST, _WORTH_STARTING = 16, 10.0

Enough = tuple[Real, Real]
Done = Callable[[int], None]


@dataclass(frozen=True, eq=False)
class Intervals:
    """What is known of each target."""

    low: Real  # smallest possible value
    high: Real  # largest possible value
    # Whether both are exact; where `enough` was asked for, an interval may be wider.
    is_proven: Mask
    programs: int = 0  # linear programs that were solved

    @property
    def width(self) -> Real:
        """Length of each interval."""
        return self.high - self.low


class Limits(NamedTuple):
    """Bounds of sums of cells."""

    columns: Any  # the cells of each sum, a sparse column each
    low: Real  # smallest possible value of each
    high: Real  # largest possible value of each

    def part(self, cells: Array, sums: Array) -> Limits:
        """Some of the sums on some of the cells."""
        columns = self.columns[:, sums].tocsr()[cells].tocsc()
        return Limits(columns, self.low[sums], self.high[sums])


def feasible_intervals(
    X: Any,
    values: Array,
    targets: Any,
    *,
    signs: bool = True,
    limits: Limits | None = None,
    enough: Enough | None = None,
    known: Mask | None = None,
    y: Any = None,
    workers: int | None = None,
) -> Intervals:
    """Intervals of targets, given the values of other sums of the same inner cells.

    Args:
      X: Inner cells × known sums, 0/1, sparse.
      values: The known sums.
      targets: Inner cells × targets, sparse; whole coefficients.
      signs: Whether inner cells are known not to be negative.
      limits: Bounds of further sums that are public, 0/1.
      enough: For each target a low and a high value; an interval that reaches both is not followed
        further.
      known: Inner cells that are known beforehand.
      y: Their values.
      workers: Processes to use; by default those that are worth starting.
    """
    system = unknowns(X, values, signs=signs, known=known, y=y)
    constant, n = system.constant(targets), targets.shape[1]
    low, high = constant.copy(), constant.copy()
    proven, programs, done = np.ones(n, dtype=bool), 0, 0
    wanted = (np.full(n, -np.inf), np.full(n, np.inf)) if enough is None else enough
    wanted = (wanted[0] - constant, wanted[1] - constant)
    tasks = list(_tasks(system, system.restrict(targets), signs, limits, wanted))
    of = sum(len(task.chosen) for task in tasks)

    def progress(targets: int) -> None:
        nonlocal done
        done += targets
        report("intervals", done / of)

    for task in tasks:
        found = _in_parallel(task, workers, progress)
        low[task.chosen] += found.low
        high[task.chosen] += found.high
        proven[task.chosen] &= found.is_proven
        programs += found.programs
    return Intervals(low, high, proven, programs)


@dataclass(frozen=True, eq=False)
class _Task:
    """Targets on cells that share no sum with others."""

    chosen: Index  # which of all targets these are
    targets: Any  # cells × targets
    sums: Limits  # sums of the cells, equations among them
    floor: Real  # smallest value of each cell
    ceiling: Real  # largest value of each cell
    enough: Enough  # how far down and up an interval has to reach, at most

    def part(self, which: Array) -> _Task:
        """The task for some of its targets."""
        enough = (self.enough[0][which], self.enough[1][which])
        targets = self.targets[:, which]
        return replace(self, chosen=self.chosen[which], targets=targets, enough=enough)

    def outside(self) -> tuple[Real, Real]:
        """Bounds of the targets that follow from those of each cell."""
        plus, minus = self.targets.maximum(0), (-self.targets).maximum(0)
        low = plus.T @ self.floor - minus.T @ self.ceiling
        return low, plus.T @ self.ceiling - minus.T @ self.floor


def _tasks(
    system: Unknowns, targets: Any, signs: bool, limits: Limits | None, wanted: Enough
) -> Iterator[_Task]:
    """The targets by parts of the cells that share no sum; only whole ones can stop early."""
    from scipy import sparse

    # Equations and public bounds alike are rows within bounds, of what is unknown of each sum.
    sums = Limits(system.equations, system.right - system.slack, system.right + system.slack)
    if limits is not None:
        known, open_part = system.constant(limits.columns), system.restrict(limits.columns)
        columns = sparse.hstack([sums.columns, open_part], format="csc")
        low = np.concatenate([sums.low, limits.low - known])
        sums = Limits(columns, low, np.concatenate([sums.high, limits.high - known]))
    floor, ceiling = _bounds_of_cells(sums, signs)
    # Rows that bounds of cells imply tie nothing together; without them parts are smaller.
    least, most = sums.columns.T @ floor, sums.columns.T @ ceiling
    is_needed = (sums.low > least) | (sums.high < most)
    sums = sums.part(np.arange(len(floor)), np.flatnonzero(is_needed))
    size, by_cell = np.diff(targets.indptr), targets.tocsr()
    for cells, inside in connected_parts(sums.columns):
        part = by_cell[cells].tocsc()
        chosen = np.flatnonzero(np.diff(part.indptr))
        if not len(chosen):
            continue
        # A target that lies in several parts is the sum of theirs: none of them knows when to stop.
        is_whole = np.diff(part.indptr)[chosen] == size[chosen]
        low, high = (wanted[side][chosen] for side in (0, 1))
        enough = (np.where(is_whole, low, -np.inf), np.where(is_whole, high, np.inf))
        own = sums.part(cells, inside)
        yield _Task(chosen, part[:, chosen], own, floor[cells], ceiling[cells], enough)


def _bounds_of_cells(sums: Limits, signs: bool) -> tuple[Real, Real]:
    """Bounds of cells from sums of one cell, and from any sum where no other cell is negative."""
    columns = sums.columns
    floor = np.full(columns.shape[0], 0.0 if signs else -np.inf)
    ceiling = np.full(columns.shape[0], np.inf)
    size, cell = np.diff(columns.indptr), columns.indices
    low, high = np.repeat(sums.low, size), np.repeat(sums.high, size)
    is_alone = np.repeat(size == 1, size)
    # Once: later rounds, from bounds of cells to sums and back, spared a few programs in a hundred.
    np.maximum.at(floor, cell[is_alone], low[is_alone])
    np.minimum.at(ceiling, cell[is_alone | signs], high[is_alone | signs])
    return np.minimum(floor, ceiling), ceiling


def _in_parallel(task: _Task, workers: int | None, done: Done) -> Intervals:
    """Solve programs here, or in several processes where that is worth it."""
    cores = available_cores() if workers is None else workers
    began, n = time.perf_counter(), len(task.chosen)
    first, rest = np.split(np.arange(n), [min(_FIRST, n)])
    program = Program(*task.sums, task.floor, task.ceiling)
    found = [_solve(task.part(first), program, done)]
    expected = (time.perf_counter() - began) / len(first) * len(rest)
    if cores < 2 or (workers is None and expected < _WORTH_STARTING):
        found.append(_solve(task.part(rest), program, done))
    elif len(rest):
        parts = [task.part(part) for part in np.array_split(rest, 2 * cores)]
        for each in in_processes(_solve_part, parts, cores):
            found.append(each)
            done(len(each.low))
    return Intervals(
        np.concatenate([each.low for each in found]),
        np.concatenate([each.high for each in found]),
        np.concatenate([each.is_proven for each in found]),
        sum(each.programs for each in found),
    )


def _solve_part(task: _Task) -> Intervals:
    return _solve(task, Program(*task.sums, task.floor, task.ceiling), lambda _: None)


def _solve(task: _Task, program: Program, done: Done) -> Intervals:
    """The interval of each target, one after another."""
    n, before = len(task.chosen), program.solved
    low, high, proven = np.full(n, np.inf), np.full(n, -np.inf), np.ones(n, dtype=bool)
    least, most = task.outside()
    ends = ((1, low, least, task.enough[0]), (-1, high, most, task.enough[1]))
    for k in range(n):
        cost = task.targets[:, [k]].toarray().ravel()
        for sense, side, outside, enough in ends:
            ahead = sense * (side[k] - outside[k])
            if ahead <= _CLOSE * max(1.0, abs(outside[k])) < np.inf:
                side[k] = outside[k]
            elif np.isfinite(enough[k]) and sense * (side[k] - enough[k]) <= 0:
                proven[k] = False
            elif (solution := program.minimise(sense * cost)) is None:
                side[k] = -sense * np.inf
            else:
                # A solution is a point of every target's interval: some need no program then.
                value = task.targets.T @ solution
                np.minimum(low, value, out=low)
                np.maximum(high, value, out=high)
                side[k] = value[k]
        done(1)
    return Intervals(low, high, proven, program.solved - before)
