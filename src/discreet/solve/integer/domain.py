"""Which whole numbers each inner cell may take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Array, Mask, Whole, Whole32
from discreet.errors import DataError, InfeasibleError, ParameterError

LARGEST = 2**31 - 1


class LimitError(InfeasibleError):
    """A limit on a cell that no table can keep.

    The full text names the cell and, through it, something about its count: it stays inside.
    """

    def public(self) -> str:
        """A text that names no cell."""
        return "The limits on cells cannot all be kept. Widen them."


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
        given = {name: _whole(name, values) for name, values in numbers.items()}
        given["zero"] = np.asarray(zero, dtype=bool)
        shape = np.broadcast_shapes(*(values.shape for values in given.values()))
        if len(shape) != 1:
            raise ParameterError(f"a domain is given cell by cell, got shape {shape}.")
        for name, values in given.items():
            object.__setattr__(self, name, np.ascontiguousarray(np.broadcast_to(values, shape)))
        self._check()

    def _check(self) -> None:
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
        return cls(smallest, high, zero=True)

    @classmethod
    def pair(cls, low: ArrayLike, high: ArrayLike) -> Domain:
        """One of two values, `low` or `high`."""
        return cls(low, high, np.maximum(np.subtract(high, low), 1))

    def __len__(self) -> int:
        return len(self.first)

    @property
    def is_free(self) -> Mask:
        """Which cells have more than one value to choose from."""
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

    def require(self, y: Array, name_of: Callable[[int], str] = str) -> None:
        """Raise an error that names the first cell with a value outside its domain."""
        outside = np.flatnonzero(~self.contains(y))
        if len(outside):
            j = int(outside[0])
            raise LimitError(
                f"the start gives inner cell {name_of(j)} a value outside its domain "
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


def check_size(values: Array) -> None:
    """Refuse counts of inner cells that the search, which holds 32 bits of each, cannot hold."""
    if (values > LARGEST).any():
        raise DataError(
            f"an inner cell counts {values.max():,.0f}, but whole-number methods hold up to "
            f"{LARGEST:,}. Tabulate in larger units, or leave that cell out."
        )


def _whole(name: str, values: ArrayLike) -> Whole32:
    given = np.asarray(values)
    if given.dtype.kind not in "iu":
        raise ParameterError(f"`{name}` of a domain must be whole numbers, got {given.dtype}.")
    check_size(given)
    return given.astype(np.int32)
