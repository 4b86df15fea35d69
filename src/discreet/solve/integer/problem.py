"""What is asked of a search over whole numbers, which values cells may take, and what was found."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.arrays import Array, Index, Mask, Real, Whole, Whole32
from discreet.design.base import Design
from discreet.errors import DataError, InfeasibleError, ParameterError

LARGEST = 2**31 - 1  # searches hold inner cells in 32 bits, which halves the memory they go through


@dataclass(frozen=True, eq=False, init=False)
class Domain:
    r"""For each inner cell an arithmetic progression, with zero besides where that is allowed.

    .. math:: y_j \in \{f_j, f_j + s_j, f_j + 2s_j, \dots \le l_j\} \ (\cup \{0\})

    Intervals, two-point sets, multiples of a base, fixed values and :math:`\{0\} \cup \{k, \dots\}`
    are all of this form.

    Args:
      first: Smallest value of the progression.
      last: Upper limit of the progression.
      step: Distance of its values, at least 1.
      zero: Whether zero is allowed besides.
    """

    first: Whole32
    last: Whole32
    step: Whole32
    zero: Mask

    def __init__(
        self, first: ArrayLike, last: ArrayLike, step: ArrayLike = 1, zero: ArrayLike = False
    ) -> None:
        numbers = {"first": first, "last": last, "step": step}
        given = {name: _whole_bounds(name, values) for name, values in numbers.items()}
        given["zero"] = np.asarray(zero, dtype=bool)
        shape = np.broadcast_shapes(*(values.shape for values in given.values()))
        if len(shape) != 1:
            raise ParameterError(f"a domain is given cell by cell, got shape {shape}.")
        for name, values in given.items():
            object.__setattr__(self, name, np.ascontiguousarray(np.broadcast_to(values, shape)))
        if (self.step < 1).any():
            raise ParameterError("the values of a domain must be at least 1 apart.")
        if (self.first < 0).any():
            raise ParameterError("cells cannot be asked to be negative.")
        empty = (self.first > self.last) & ~self.zero
        if empty.any():
            j = int(np.flatnonzero(empty)[0])
            raise LimitError(
                f"inner cell {j} may take no value at all: its lower bound {self.first[j]} lies "
                f"above its upper bound {self.last[j]}. Widen the bounds."
            )

    @classmethod
    def interval(cls, low: ArrayLike, high: ArrayLike) -> Domain:
        """Every whole number from `low` to `high`."""
        return cls(low, high)

    @classmethod
    def gapped(cls, smallest: int, high: ArrayLike) -> Domain:
        """Zero, and every whole number from `smallest` to `high`."""
        return cls(smallest, high, zero=True) if smallest > 1 else cls(np.zeros_like(high), high)

    @classmethod
    def pair(cls, low: ArrayLike, high: ArrayLike) -> Domain:
        """One of two values, `low` or `high`."""
        return cls(low, high, np.maximum(np.subtract(high, low), 1))

    def __len__(self) -> int:
        return len(self.first)

    @property
    def is_free(self) -> Mask:
        """Which cells have more than one value to choose from."""
        # In 64 bits: the sum leaves 32 where the last value is the largest that they hold.
        several = self.first.astype(np.int64) + self.step <= self.last
        return several | (self.zero & (self.first > 0) & (self.first <= self.last))

    @property
    def low(self) -> Whole32:
        """The smallest value of each cell."""
        return np.where(self.zero, 0, self.first).astype(np.int32)

    @property
    def high(self) -> Whole32:
        """The largest value of each cell."""
        steps = np.maximum(self.last.astype(np.int64) - self.first, 0) // self.step
        largest = self.first + steps * self.step
        return np.where(self.first <= self.last, largest, 0).astype(np.int32)

    def take(self, rows: Array) -> Domain:
        """The domain of some of the cells."""
        return Domain(self.first[rows], self.last[rows], self.step[rows], self.zero[rows])

    def contains(self, y: Array) -> Mask:
        """Which of the values are allowed."""
        inside = (y >= self.first) & (y <= self.last) & ((y - self.first) % self.step == 0)
        allowed: Mask = inside | (self.zero & (y == 0))
        return allowed

    def require(self, y: Array) -> None:
        """Raise an error that names the first cell with a value outside its domain."""
        outside = np.flatnonzero(~self.contains(y))
        if len(outside):
            j = int(outside[0])
            raise LimitError(
                f"the start gives inner cell {j} a value outside its domain "
                f"({self.describe(j)}). Start from `domain.nearest(values)`."
            )

    def describe(self, j: int) -> str:
        """The allowed values of one cell, in words."""
        first, last, step = int(self.first[j]), int(self.last[j]), int(self.step[j])
        end = "…" if last == LARGEST else str(last)
        values = f"{first}, {first + step}, … up to {end}" if first < last else str(first)
        return f"0, or {values}" if self.zero[j] and first > 0 else values

    def nearest(self, values: ArrayLike) -> Whole:
        """The allowed value nearest to each of the given ones, the lower one of two."""
        x = np.asarray(values, dtype=np.float64)
        steps = np.ceil((x - self.first) / self.step - 0.5)
        y = self.first + np.clip(steps, 0, (self.high - self.first) // self.step) * self.step
        nearer_zero = self.zero & ((np.abs(x) <= np.abs(x - y)) | (self.first > self.last))
        return np.where(nearer_zero, 0, y).astype(np.int64)


@dataclass(frozen=True, eq=False)
class LatticeProblem:
    r"""Minimise a loss of the deviations of published cells over a lattice of inner cells.

    .. math:: \min_y \sum_k w_k\,|x_k^\top y - t_k|^p
              \quad\text{with}\quad y_j \in \mathcal D_j,\quad
              l_k \le x_k^\top y - t_k \le u_k.

    Limits and forbidden values of published cells are wanted, not assumed: a search reports how
    many it could not keep. With `groups` the limits are found by the search itself: it lowers the
    largest deviation of group 0 as far as it can, then that of group 1, and so on.

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
      allowance: What each published cell may deviate besides the largest deviation of its group.
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
    allowance: Real | None = None
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
        for name in ("target", "weights", "low", "high", "groups", "allowance", "base"):
            given = getattr(self, name)
            if given is not None and len(given) != self.design.n_published:
                raise ParameterError(
                    f"the design has {self.design.n_published:,} published cells, "
                    f"but `{name}` has {len(given):,}."
                )
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
        low, high = self.limits
        crossed = np.flatnonzero(np.ceil(self.target + low) > np.floor(self.target + high))
        if len(crossed):
            k = int(crossed[0])
            raise LimitError(
                f"published cell {self.design.name_of(k)} may deviate by {low[k]:g} to "
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
        """The largest deviation of each group, beyond what cells are allowed besides."""
        if self.groups is None:
            return ()
        size = np.abs(deviation)
        if self.allowance is not None:
            size = np.maximum(size - self.allowance, 0)
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
        # Real targets make deviations with rounding errors, far below the whole steps that count.
        broken: Mask = (deviation < low - 1e-9) | (deviation > high + 1e-9)
        if self.blocked:
            value = deviation + self.full_target
            broken |= (value > 0) & (value < self.blocked)
        return broken


@dataclass(frozen=True, eq=False)
class Gaps:
    """Published cells that must leave an interval."""

    cells: Index  # their positions
    below: Whole  # the largest value allowed below; less than zero where there is none
    above: Whole  # the smallest value allowed above

    def inside(self, z: Whole) -> Mask:
        """Which of them have not left."""
        mine = z[self.cells]
        return np.asarray((mine > self.below) & (mine < self.above))


@dataclass(frozen=True, eq=False)
class FoundTable:
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


def describe(
    problem: LatticeProblem, y: Whole, lower_bound: float = 0.0, **facts: Any
) -> FoundTable:
    """The facts about a point, computed from the point alone."""
    z = problem.design.aggregate(y)
    deviation = z - problem.target
    loss = problem.loss(deviation)
    maximum, broken = np.abs(deviation).max(initial=0), problem.violations(deviation).sum()
    bound = min(lower_bound, loss)
    return FoundTable(y, z, deviation, loss, float(maximum), int(broken), bound, **facts)


class LimitError(InfeasibleError):
    """A limit on a cell that no table can keep.

    The full text names the cell and, through it, something about its count: it stays inside.
    """

    def public(self) -> str:
        """A text that names no cell."""
        return "The limits on cells cannot all be kept. Widen them."


def check_size(values: Array) -> None:
    """Refuse counts of inner cells that the search, which holds 32 bits of each, cannot hold."""
    if (values > LARGEST).any():
        raise DataError(
            f"an inner cell counts {values.max():,.0f}, but whole-number methods hold up to "
            f"{LARGEST:,}. Tabulate in larger units, or leave that cell out."
        )


def _whole_bounds(name: str, values: ArrayLike) -> Whole32:
    given = np.asarray(values)
    if given.dtype.kind not in "iu":
        raise ParameterError(f"`{name}` of a domain must be whole numbers, got {given.dtype}.")
    check_size(given)
    return given.astype(np.int32)
