"""What is asked of a search over whole numbers, and what it found."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Array, Index, Mask, Real, Whole
from discreet.design.base import Design
from discreet.errors import ParameterError
from discreet.solve.integer.domain import Domain, LimitError


@dataclass(frozen=True, eq=False)
class Problem:
    r"""Minimise a loss of the deviations of published cells over a lattice of inner cells.

    .. math:: \min_y \sum_k w_k\,|x_k^\top y - t_k|^p
              \quad\text{with}\quad y_j \in \mathcal D_j,\quad
              l_k \le x_k^\top y - t_k \le u_k.

    Limits and forbidden values of published cells are wanted, not assumed: a search reports how
    many it could not keep. With
    `groups` the limits are found by the search itself: it lowers the largest deviation of group
    0 as far as it can, then that of group 1, and so on.

    Args:
      design: The linear model.
      target: What the published cells should be, :math:`t`.
      domain: The values each inner cell may take.
      power: The exponent :math:`p \ge 1`; 1 and 2 are fast.
      weights: One non-negative weight for each published cell; all one when absent.
      low: Lower limits of the deviations, not above zero.
      high: Upper limits of the deviations, not below zero.
      groups: For each published cell the group whose largest deviation is lowered together
        (-1: none).
      goals: For each group the largest deviation that is low enough; 0 when absent.
      blocked: Published values in 1..blocked-1 are forbidden (needs whole targets).
      base: What inner cells outside the design add to each published cell; only forbidden
        values depend on it.
    """

    design: Design
    target: Array
    domain: Domain
    power: float = 2.0
    weights: Real | None = None
    low: Real | None = None
    high: Real | None = None
    groups: NDArray[np.int8] | None = None
    goals: tuple[float, ...] = ()
    blocked: int = 0
    base: Whole | None = None

    def __post_init__(self) -> None:
        if not self.power >= 1:
            raise ParameterError(f"power must be at least 1, got {self.power}.")
        if len(self.domain) != self.design.n_inner:
            raise ParameterError(
                f"the design has {self.design.n_inner:,} inner cells, "
                f"but domains were given for {len(self.domain):,}."
            )
        for name in ("target", "weights", "low", "high", "groups", "base"):
            self._check_length(name)
        if self.weights is not None and not (self.weights >= 0).all():
            raise ParameterError("weights must not be negative.")
        if not np.isfinite(self.target).all():
            raise ParameterError("targets must be finite numbers.")
        if self.blocked and not (self.target == np.rint(self.target)).all():
            raise ParameterError("forbidden values need whole targets.")
        if self.blocked and self.groups is not None:
            raise ParameterError(
                "forbidden values and groups of limits to lower exclude each other."
            )
        self._check_limits()

    def _check_length(self, name: str) -> None:
        given = getattr(self, name)
        if given is not None and len(given) != self.design.n_published:
            raise ParameterError(
                f"the design has {self.design.n_published:,} published cells, "
                f"but `{name}` has {len(given):,}."
            )

    def _check_limits(self) -> None:
        """Refuse limits that exclude every value, and name the first such cell."""
        low, high = self.limits
        crossed = np.flatnonzero(np.ceil(self.target + low) > np.floor(self.target + high))
        if len(crossed):
            k = int(crossed[0])
            raise LimitError(
                f"published cell {cell_name(self.design, k)} may deviate by {low[k]:g} to "
                f"{high[k]:g}, which leaves it no whole number. Widen its bound."
            )

    @property
    def is_limited(self) -> bool:
        """Whether there are limits to keep or to find, or forbidden values."""
        given = (self.groups, self.low, self.high)
        return self.blocked > 0 or any(limit is not None for limit in given)

    @property
    def limits(self) -> tuple[Real, Real]:
        """Lower and upper limits of the deviations; infinite where there are none."""
        free = np.full(self.design.n_published, np.inf)
        low = -free if self.low is None else np.asarray(self.low, dtype=np.float64)
        high = free if self.high is None else np.asarray(self.high, dtype=np.float64)
        return low, high

    @property
    def all_weights(self) -> Real:
        """One weight for each published cell."""
        if self.weights is None:
            return np.ones(self.design.n_published)
        return np.asarray(self.weights, dtype=np.float64)

    @cached_property
    def rows(self) -> Index:
        """The inner cells that have a choice."""
        return np.flatnonzero(self.domain.is_free)

    @property
    def full_target(self) -> Array:
        """What the published cells should be, inner cells outside the design included."""
        full: Array = self.target if self.base is None else self.target + self.base
        return full

    def largest(self, deviation: Array) -> tuple[float, ...]:
        """The largest deviation of each group."""
        if self.groups is None:
            return ()
        size = np.abs(deviation)
        count = int(self.groups.max(initial=-1)) + 1
        return tuple(float(size[self.groups == g].max(initial=0)) for g in range(count))

    def goal(self, group: int) -> float:
        """The largest deviation of a group that is low enough."""
        return self.goals[group] if group < len(self.goals) else 0.0

    def deviation(self, y: Array) -> Array:
        """Deviations of the published cells from their targets."""
        return self.design.aggregate(y) - self.target

    def loss(self, deviation: Array) -> float:
        """The loss of given deviations."""
        return float((self.all_weights * np.abs(deviation).astype(np.float64) ** self.power).sum())

    def violations(self, deviation: Array, limits: tuple[Real, Real] | None = None) -> Mask:
        """Which published cells break their limits, or others, or take a forbidden value."""
        low, high = self.limits if limits is None else limits
        broken: Mask = (deviation < low - 1e-9) | (deviation > high + 1e-9)
        if self.blocked:
            value = deviation + self.full_target
            broken |= (value > 0) & (value < self.blocked)
        return broken


@dataclass(frozen=True, eq=False)
class Found:
    """A feasible point and its loss.

    Attributes:
      y: Inner cells, every one in its domain.
      z: Their published cells.
      deviation: Published cells less their targets.
      loss: The loss reached.
      maximum: The largest deviation.
      violations: How many published cells break their limits.
      lower_bound: No point that keeps the limits has a smaller loss; zero unless it was asked for.
      proposals: Steps proposed by all chains together.
      chain_losses: The loss each chain reached.
      is_repeatable: Whether the effort was counted in proposals, so that the seed alone decides.
      is_optimal: Whether the point is proven to be a best one.
    """

    y: Whole
    z: Whole
    deviation: Array
    loss: float
    maximum: float
    violations: int
    lower_bound: float
    proposals: int = 0
    chain_losses: tuple[float, ...] = ()
    is_repeatable: bool = True
    is_optimal: bool = False


def describe(problem: Problem, y: Whole, lower_bound: float = 0.0, **facts: Any) -> Found:
    """The facts about a point, computed from the point alone."""
    z = problem.design.aggregate(y)
    deviation = z - problem.target
    loss = problem.loss(deviation)
    return Found(
        y=y,
        z=z,
        deviation=deviation,
        loss=loss,
        maximum=float(np.abs(deviation).max(initial=0)),
        violations=int(problem.violations(deviation).sum()),
        lower_bound=min(lower_bound, loss),
        **facts,
    )


def cell_name(design: Design, k: int) -> str:
    """A published cell by its codes, or by its number where there are none."""
    if not design.axes:
        return str(k)
    codes = design.cell(k)
    return str(codes) if codes else "the total"
