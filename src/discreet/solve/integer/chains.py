"""From a problem to compiled form: the model in arrays, and chains that search it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from discreet.arrays import Array, Real32, Whole, Whole32
from discreet.errors import DesignError
from discreet.solve.integer.kernels import (
    FIRST,
    HIGH,
    LAST,
    LOW,
    STEP,
    VALUE,
    WEIGHT,
    WIDTH,
    ZERO,
    Chain,
    Model,
    Rule,
    energy_of,
)
from discreet.solve.integer.problem import Problem
from discreet.solve.integer.schedule import SCHEDULE

_SLACK = 1e-3  # limits are held in single precision; whole steps are far larger
_GRID = 2.0**20  # real targets are held on this grid, so that whole steps stay exact
_LARGEST_EXACT = 2**30


@dataclass(frozen=True, eq=False)
class Compiled:
    """A problem with its model, target on the grid, and scales of its loss.

    Attributes:
      scale: What a typical smallest step costs, when all its published cells were right.
      unit: The same for a single published cell.
    """

    problem: Problem
    model: Model
    target: Array
    rest: Whole
    scale: float
    unit: float

    def deviation(self, y: Whole32) -> Array:
        """Deviations of a point, recomputed from the inner cells, and a spare entry."""
        whole = self.problem.design.aggregate(self.full(y)) - self.target
        kind = np.float64 if self.target.dtype.kind == "f" else np.int32
        return np.append(whole, 0).astype(kind)

    def full(self, y: Whole32) -> Whole:
        """All inner cells: the point, and the cells that have no choice."""
        inner = self.rest.copy()
        inner[self.problem.rows] = y
        return inner

    def with_limits(self, low: Array, high: Array, excess: float) -> Compiled:
        """The same problem with limits that cost `excess` units when they are broken by one."""
        cells = self.model.cells.copy()
        cells[:-1, LOW], cells[:-1, HIGH] = low - _SLACK, high + _SLACK
        rule = self.model.rule._replace(excess=float(excess * self.unit), plain=False)
        return replace(self, model=self.model._replace(cells=cells, rule=rule))

    def chain(self, y: Whole32, seed: np.uint64) -> Chain:
        """A chain that starts at a point."""
        deviation = self.deviation(y)
        energy = energy_of(self.model.cells, self.model.rule, deviation)
        numbers = np.array([energy, energy])
        return Chain(y.copy(), y.copy(), deviation, numbers, np.array([seed], dtype=np.uint64))

    def require_exact(self, chain: Chain) -> None:
        """Raise an error unless the chain's deviations are those of its inner cells."""
        if not np.array_equal(self.deviation(chain.y)[:-1], chain.deviation[:-1]):
            raise DesignError(
                "deviations carried along by the search differ from recomputed ones; "
                "please report this."
            )


def compiled(problem: Problem) -> Compiled:
    """The model of a problem; inner cells without a choice are left out of it."""
    rows = problem.rows
    members = problem.design.members(rows)
    plain = problem.power == 2 and (problem.weights is None or bool((problem.weights == 1).all()))
    plain = plain and not problem.blocked
    rule = Rule(float(problem.power), 0.0, problem.blocked, plain)
    model = Model(members, _places(problem, members), _cells(problem), rule)
    scale, unit = _scales(model)
    if problem.blocked:
        model = model._replace(rule=rule._replace(excess=SCHEDULE.blocked_cost * unit))
    rest = problem.domain.low.astype(np.int64)
    rest[rows] = 0
    return Compiled(problem, model, _grid_target(problem), rest, scale, unit)


def _places(problem: Problem, members: Whole32) -> Whole32:
    """Domain and number of published cells of each inner cell that has a choice."""
    part = problem.domain.take(problem.rows)
    places = np.empty((len(members), 5), dtype=np.int32)
    places[:, FIRST], places[:, LAST] = part.first, part.last
    places[:, STEP], places[:, ZERO] = part.step, part.zero
    places[:, WIDTH] = 0
    for column in members.T:
        places[:, WIDTH] += column < problem.design.n_published
    return places


def _cells(problem: Problem) -> Real32:
    """Weight, limits and whole target of each published cell, and a spare row without any."""
    cells = np.zeros((problem.design.n_published + 1, 4), dtype=np.float32)
    cells[-1, LOW], cells[-1, HIGH], cells[-1, VALUE] = -np.inf, np.inf, -np.inf
    low, high = problem.limits
    cells[:-1, WEIGHT] = 1.0 if problem.weights is None else problem.weights
    cells[:-1, LOW], cells[:-1, HIGH] = low - _SLACK, high + _SLACK
    if problem.blocked:
        cells[:-1, VALUE] = problem.full_target
    return cells


def _scales(model: Model) -> tuple[float, float]:
    """Typical loss of the smallest step, for all published cells of an inner cell and for one."""
    sample = slice(None, None, max(len(model.members) // 10_000, 1))
    weight = model.cells[model.members[sample], WEIGHT].sum(axis=1, dtype=np.float64)
    costs = weight * model.places[sample, STEP].astype(np.float64) ** model.rule.power
    scale = float(np.median(costs)) if len(costs) else 1.0
    scale = scale if scale > 0 else 1.0
    return scale, scale / max(
        float(np.mean(model.places[sample, WIDTH])) if len(costs) else 1.0, 1.0
    )


def _grid_target(problem: Problem) -> Array:
    """Whole targets as they are, real ones on a fine grid on which sums are exact."""
    target = np.asarray(problem.target)
    whole = target.dtype.kind in "iu" or bool((target == np.rint(target)).all())
    reach = np.abs(target).max(initial=0)
    if whole and reach < _LARGEST_EXACT:
        return target.astype(np.int64)
    return np.rint(target * _GRID) / _GRID
