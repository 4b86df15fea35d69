r"""What can be said of sums of inner cells when other sums are known: feasibility intervals.

.. math:: \min_y, \max_y\; t^\top y \quad\text{subject to}\quad x_k^\top y = z_k,\; y \ge 0

for many targets `t`. Known cells are taken out first and components are dealt with one by one. One
solution bounds the intervals of all targets from inside; where such a bound meets one from outside,
no program is solved. The others start from the last solution, which stays feasible.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.processes import available_cores, in_processes
from discreet.progress import report
from discreet.solve.linear.program import Program
from discreet.solve.linear.unknowns import Marks, Unknowns, unknowns

Vector = NDArray[np.float64]

CLOSE = 1e-7
"""Bounds this near to each other, relative to their size, are the same."""

_TIGHTENING_ROUNDS = 6
_FIRST = 16  # targets that are tried before other processes are started
_WORTH_STARTING = 10.0  # seconds of work from which on processes are started


@dataclass(frozen=True, eq=False)
class Intervals:
    """What is known of each target.

    Attributes:
      low: Smallest possible value.
      high: Largest possible value.
      is_proven: Whether both are exact; where `enough` was asked for, an interval may be wider.
      programs: Linear programs that were solved.
    """

    low: Vector
    high: Vector
    is_proven: Marks
    programs: int = 0

    @property
    def width(self) -> Vector:
        """Length of each interval."""
        return self.high - self.low


class Limits(NamedTuple):
    """Public bounds of sums of inner cells.

    Attributes:
      columns: The inner cells of each sum, a sparse column each.
      low: Smallest possible value of each.
      high: Largest possible value of each.
    """

    columns: Any
    low: Vector
    high: Vector


def feasible_intervals(
    X: Any,
    values: NDArray[Any],
    targets: Any,
    *,
    signs: bool = True,
    limits: Limits | None = None,
    enough: tuple[Vector, Vector] | None = None,
    known: Marks | None = None,
    y: Any = None,
    workers: int | None = None,
) -> Intervals:
    """Intervals of targets, given the values of other sums of the same inner cells.

    Args:
      X: Inner cells × known sums, 0/1, sparse.
      values: The known sums.
      targets: Inner cells × targets, sparse; whole coefficients.
      signs: Whether inner cells are known not to be negative.
      limits: Bounds of further sums that are public.
      enough: For each target a low and a high value; an interval that reaches both is not followed
        further.
      known: Inner cells that are known beforehand.
      y: Their values.
      workers: Processes to use; by default those that are worth starting.
    """
    system = unknowns(X, values, signs=signs, known=known, y=y)
    return intervals_of(system, targets, signs=signs, limits=limits, enough=enough, workers=workers)


def intervals_of(
    system: Unknowns,
    targets: Any,
    *,
    signs: bool = True,
    limits: Limits | None = None,
    enough: tuple[Vector, Vector] | None = None,
    workers: int | None = None,
) -> Intervals:
    """Intervals of targets for a system that is reduced already; see `feasible_intervals`."""
    constant = system.constant(targets)
    open_part = system.restrict(targets)
    low, high = constant.copy(), constant.copy()
    proven, programs = np.ones(len(low), dtype=bool), 0
    jobs = list(_jobs(system, open_part, constant, signs, limits, enough))
    sizes = np.cumsum([0, *(len(job.chosen) for job in jobs)])
    for begin, job in zip(sizes, jobs, strict=False):
        share = (begin / sizes[-1], len(job.chosen) / sizes[-1])
        found = _in_parallel(job, workers, share)
        low[job.chosen] += found.low
        high[job.chosen] += found.high
        proven[job.chosen] &= found.is_proven
        programs += found.programs
    return Intervals(low, high, proven, programs)


@dataclass(frozen=True, eq=False)
class _Job:
    """The targets that touch one component, with what is known of them so far.

    Attributes:
      chosen: Which of all targets these are.
      targets: Cells of the component × targets.
      equations: Cells × equations.
      right: Their values.
      slack: How far these may be off.
      floor: Smallest value of each cell.
      ceiling: Largest value of each cell.
      limits: Bounds of further sums of the component's cells.
      seen_low: Smallest value of each target among solutions.
      seen_high: Largest value among them.
      enough_low: How far down an interval has to reach, at most.
      enough_high: How far up.
    """

    chosen: NDArray[np.intp]
    targets: Any
    equations: Any
    right: Vector
    slack: float
    floor: Vector
    ceiling: Vector
    limits: Limits | None
    seen_low: Vector
    seen_high: Vector
    enough_low: Vector
    enough_high: Vector

    def part(self, which: NDArray[Any]) -> _Job:
        """The job for some of its targets."""
        by_target = ("chosen", "seen_low", "seen_high", "enough_low", "enough_high")
        return replace(
            self,
            targets=self.targets[:, which],
            **{name: getattr(self, name)[which] for name in by_target},
        )

    def program(self) -> Program:
        """The linear program of the component."""
        from scipy import sparse

        matrix, low, high = self.equations, self.right - self.slack, self.right + self.slack
        if self.limits is not None:
            matrix = sparse.hstack([matrix, self.limits.columns], format="csc")
            low = np.concatenate([low, self.limits.low])
            high = np.concatenate([high, self.limits.high])
        return Program(matrix, low, high, self.floor, self.ceiling)


def _jobs(
    system: Unknowns,
    targets: Any,
    constant: Vector,
    signs: bool,
    limits: Limits | None,
    enough: tuple[Vector, Vector] | None,
) -> Iterator[_Job]:
    floor = np.zeros(len(system.cells)) if signs else np.full(len(system.cells), -np.inf)
    ceiling = np.full(len(system.cells), np.inf)
    if limits is not None:
        limits = _on_unknown(limits, system)
        floor, ceiling = _of_single_cells(limits, floor, ceiling)
    if signs:
        floor, ceiling = _tightened(system, floor, ceiling)
    if limits is not None:
        limits = _not_implied(limits, floor, ceiling)
    component, of_equation = _joined(system, limits)
    by_cell = targets.tocsr()
    for label in np.unique(component):
        cells = np.flatnonzero(component == label)
        part = by_cell[cells].tocsc()
        chosen = np.flatnonzero(np.diff(part.indptr))
        if not len(chosen):
            continue
        rows = np.flatnonzero(of_equation == label)
        alone = np.diff(part[:, chosen].indptr) == np.diff(targets[:, chosen].indptr)
        wanted = _wanted(enough, constant, chosen, alone)
        yield _Job(
            chosen,
            part[:, chosen],
            system.equations.tocsr()[cells].tocsc()[:, rows],
            system.right[rows],
            system.slack,
            floor[cells],
            ceiling[cells],
            None if limits is None else _limits_of(limits, cells),
            np.full(len(chosen), np.inf),
            np.full(len(chosen), -np.inf),
            *wanted,
        )


def _wanted(
    enough: tuple[Vector, Vector] | None, constant: Vector, chosen: NDArray[Any], alone: Marks
) -> tuple[Vector, Vector]:
    """What is enough of a component's part; only targets within one component can stop early."""
    if enough is None:
        return np.full(len(chosen), -np.inf), np.full(len(chosen), np.inf)
    low, high = (side[chosen] - constant[chosen] for side in enough)
    return np.where(alone, low, -np.inf), np.where(alone, high, np.inf)


def _on_unknown(limits: Limits, system: Unknowns) -> Limits:
    """The limits of what is unknown of each sum."""
    known = system.constant(limits.columns)
    return Limits(system.restrict(limits.columns), limits.low - known, limits.high - known)


def _of_single_cells(limits: Limits, floor: Vector, ceiling: Vector) -> tuple[Vector, Vector]:
    """Bounds of cells that are the only unknown one of a sum."""
    single = np.flatnonzero(np.diff(limits.columns.indptr) == 1)
    cells = limits.columns.indices[limits.columns.indptr[single]]
    floor, ceiling = floor.copy(), ceiling.copy()
    np.maximum.at(floor, cells, limits.low[single])
    np.minimum.at(ceiling, cells, limits.high[single])
    return floor, ceiling


def _not_implied(limits: Limits, floor: Vector, ceiling: Vector) -> Limits | None:
    """Limits that do not follow from the bounds of single cells."""
    least, most = limits.columns.T @ floor, limits.columns.T @ ceiling
    size = np.diff(limits.columns.indptr)
    kept = np.flatnonzero((size > 1) & ((limits.low > least) | (limits.high < most)))
    if not len(kept):
        return None
    return Limits(limits.columns[:, kept], limits.low[kept], limits.high[kept])


def _joined(system: Unknowns, limits: Limits | None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Components, joined where a public bound ties several of them together."""
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    if limits is None:
        return system.component, system.component_of_equation
    n, entries = system.n_components, limits.columns.tocoo()
    places = (system.component[entries.row], n + entries.col)
    size = n + limits.columns.shape[1]
    tied = sparse.coo_array((np.ones(len(entries.data)), places), shape=(size, size))
    label = connected_components(tied, directed=False)[1]
    return label[system.component], label[system.component_of_equation]


def _limits_of(limits: Limits, cells: NDArray[Any]) -> Limits:
    """The limits of a component."""
    part = limits.columns.tocsr()[cells].tocsc()
    chosen = np.flatnonzero(np.diff(part.indptr))
    return Limits(part[:, chosen], limits.low[chosen], limits.high[chosen])


def _tightened(system: Unknowns, floor: Vector, ceiling: Vector) -> tuple[Vector, Vector]:
    """Bounds of cells that follow from one equation at a time."""
    entries = system.equations.tocoo()
    cell, row = entries.row, entries.col
    for _ in range(_TIGHTENING_ROUNDS):
        least, most = (np.bincount(row, side[cell], len(system.right)) for side in (floor, ceiling))
        above, below = ceiling.copy(), floor.copy()
        np.minimum.at(above, cell, (system.right - least + system.slack)[row] + floor[cell])
        if np.isfinite(most).all():
            np.maximum.at(below, cell, (system.right - most - system.slack)[row] + ceiling[cell])
        if (above >= ceiling).all() and (below <= floor).all():
            break
        floor, ceiling = np.minimum(below, above), above
    return floor, ceiling


def _in_parallel(job: _Job, workers: int | None, share: tuple[float, float]) -> Intervals:
    """Solve a component's programs here, or in several processes where that is worth it."""
    cores = available_cores() if workers is None else workers
    began = time.perf_counter()
    first = np.arange(min(_FIRST, len(job.chosen)))
    program = job.program()
    solved = _solve(job.part(first), program, share, len(job.chosen))
    rest = np.arange(len(first), len(job.chosen))
    expected = (time.perf_counter() - began) / max(len(first), 1) * len(rest)
    if not len(rest):
        return solved
    if cores < 2 or (workers is None and expected < _WORTH_STARTING):
        later = _solve(job.part(rest), program, share, len(job.chosen), len(first))
    else:
        parts = [job.part(part) for part in np.array_split(rest, 2 * cores)]
        later = _gathered(list(_reported(in_processes(_solved, parts, cores), parts, share)))
    return _gathered([solved, later])


def _solved(job: _Job) -> Intervals:
    return _solve(job, job.program(), (0.0, 0.0), len(job.chosen))


def _reported(found: Any, parts: list[_Job], share: tuple[float, float]) -> Iterator[Intervals]:
    for done, each in enumerate(found, 1):
        report("intervals", share[0] + share[1] * done / len(parts))
        yield each


def _gathered(parts: list[Intervals]) -> Intervals:
    return Intervals(
        np.concatenate([p.low for p in parts]),
        np.concatenate([p.high for p in parts]),
        np.concatenate([p.is_proven for p in parts]),
        sum(p.programs for p in parts),
    )


def _solve(
    job: _Job, program: Program, share: tuple[float, float], of: int, done: int = 0
) -> Intervals:
    """The interval of each target, one after another."""
    outside_low, outside_high = job.targets.T @ job.floor, job.targets.T @ job.ceiling
    low, high = job.seen_low.copy(), job.seen_high.copy()
    proven, before = np.zeros(len(low), dtype=bool), program.solved
    for k in range(len(low)):
        cost = np.zeros(job.targets.shape[0])
        inside = slice(job.targets.indptr[k], job.targets.indptr[k + 1])
        cost[job.targets.indices[inside]] = job.targets.data[inside]
        down = _reach(program, job, cost, k, (low, high), outside_low[k], job.enough_low[k], 1)
        up = _reach(program, job, cost, k, (low, high), outside_high[k], job.enough_high[k], -1)
        proven[k] = down and up
        report("intervals", share[0] + share[1] * (done + k + 1) / of)
    return Intervals(low, high, proven, program.solved - before)


def _reach(
    program: Program,
    job: _Job,
    cost: Vector,
    k: int,
    seen: tuple[Vector, Vector],
    outside: float,
    enough: float,
    sense: int,
) -> bool:
    """Bring one side of a target's interval to its end; whether that end is exact."""
    side = seen[0] if sense > 0 else seen[1]
    if np.isfinite(outside) and sense * (side[k] - outside) <= CLOSE * max(1.0, abs(outside)):
        side[k] = outside
        return True
    if np.isfinite(enough) and sense * (side[k] - enough) <= 0:
        return False
    solution = program.minimise(sense * cost)
    if solution is None:
        side[k] = -sense * np.inf
        return True
    value = job.targets.T @ solution
    np.minimum(seen[0], value, out=seen[0])
    np.maximum(seen[1], value, out=seen[1])
    side[k] = value[k]
    return True
