"""From a problem to compiled form: the model in arrays, and chains that search it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DesignError
from discreet.solve.integer.domain import Whole
from discreet.solve.integer.kernels import Chain, Model, energy_of
from discreet.solve.integer.problem import Problem, members_of

_SLACK = 1e-3  # limits are held in single precision; whole steps are far larger
_GRID = 2.0**20  # real targets are held on this grid, so that whole steps stay exact
_LARGEST_EXACT = 2**30
_TABULATED = 4096  # deviations whose powers are tabulated, where the power is neither 1 nor 2
_BLOCKED_COST = 10.0  # what a forbidden published value costs, in losses of one published cell


@dataclass(frozen=True, eq=False)
class Compiled:
    """A problem with its model, target on the grid, and scales of its loss.

    Attributes:
      scale: What a typical smallest step costs, when all its published cells were right.
      unit: The same for a single published cell.
    """

    problem: Problem
    model: Model
    target: NDArray[Any]
    rest: Whole
    scale: float
    unit: float

    def deviation(self, y: NDArray[np.int32]) -> NDArray[Any]:
        """Deviations of a point, recomputed from the inner cells, and a spare entry."""
        whole = self.problem.design.aggregate(self.full(y)) - self.target
        kind = np.float64 if self.target.dtype.kind == "f" else np.int32
        return np.append(whole, 0).astype(kind)

    def full(self, y: NDArray[np.int32]) -> Whole:
        """All inner cells: the point, and the cells that have no choice."""
        inner = self.rest.copy()
        inner[self.problem.rows] = y
        return inner

    def with_limits(
        self, low: NDArray[Any], high: NDArray[Any], excess: float, spread: float = 1.0
    ) -> Compiled:
        """The same problem with limits that cost `excess` units, and the loss times `spread`."""
        model = self.model._replace(
            low=_published(low - _SLACK, -np.inf),
            high=_published(high + _SLACK, np.inf),
            weights=(self.model.weights * spread).astype(np.float32),
            excess=float(excess * self.unit),
            plain=False,
        )
        return replace(self, model=model)

    def chain(self, y: NDArray[np.int32], seed: np.uint64) -> Chain:
        """A chain that starts at a point."""
        deviation = self.deviation(y)
        energy = energy_of(self.model, deviation)
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
    part = problem.domain.take(rows)
    members = members_of(problem.design, rows)
    widths = (members < problem.design.n_published).sum(axis=1, dtype=np.int32)
    given = problem.weights
    ones = np.ones(problem.design.n_published)
    low, high = problem.limits
    model = Model(
        members=members,
        widths=widths,
        first=part.first,
        last=part.last,
        step=part.step,
        zero=part.zero,
        weights=_published(ones if given is None else given, 0.0),
        low=_published(low - _SLACK, -np.inf),
        high=_published(high + _SLACK, np.inf),
        value=np.append(problem.full_target if problem.blocked else (), 0).astype(np.int32),
        blocked=problem.blocked,
        powers=np.arange(2 if problem.power in (1, 2) else _TABULATED, dtype=float) ** problem.power,
        power=float(problem.power),
        excess=0.0,
        plain=problem.power == 2 and (given is None or bool((given == 1).all())),
    )
    scale, unit = _scales(model)
    if problem.blocked:
        model = model._replace(plain=False, excess=_BLOCKED_COST * unit)
    rest = problem.domain.low.astype(np.int64)
    rest[rows] = 0
    return Compiled(problem, model, _grid_target(problem), rest, scale, unit)


def _published(values: NDArray[Any], spare: float) -> NDArray[np.float32]:
    return np.append(values, spare).astype(np.float32)


def _scales(model: Model) -> tuple[float, float]:
    """Typical loss of the smallest step, for all published cells of an inner cell and for one."""
    sample = slice(None, None, max(len(model.members) // 10_000, 1))
    weight = model.weights[model.members[sample]].sum(axis=1, dtype=np.float64)
    costs = weight * model.step[sample].astype(np.float64) ** model.power
    scale = float(np.median(costs)) if len(costs) else 1.0
    scale = scale if scale > 0 else 1.0
    return scale, scale / max(float(np.mean(model.widths[sample])) if len(costs) else 1.0, 1.0)


def _grid_target(problem: Problem) -> NDArray[Any]:
    """Whole targets as they are, real ones on a fine grid on which sums are exact."""
    target = np.asarray(problem.target)
    whole = target.dtype.kind in "iu" or bool((target == np.rint(target)).all())
    reach = np.abs(target).max(initial=0)
    if whole and reach < _LARGEST_EXACT:
        return target.astype(np.int64)
    return np.rint(target * _GRID) / _GRID
