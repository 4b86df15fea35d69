r"""The set of admissible laws of one row, explored by linear programming.

For true count `i` with deviations `v` the row `p` satisfies

.. math:: \sum p = 1,\quad \sum p\,v = 0,\quad \sum p\,v^2 = V,\quad 0 \le p \le 1,

with optional monotone tails, bounds on the centre and a bound on
:math:`|p_{i,i-1} - p_{i,i+1}|` (Giessing & Höhne 2011, section 3.1).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.arrays import Real
from discreet.noise.support import Support, Tails


@dataclass(frozen=True)
class RowPolytope:
    """All laws of one row that meet the conditions, the variance left open.

    Args:
      support: The admissible deviations.
      tails: The order of the probabilities.
      stay: Lower and upper bound of the probability of no change.
      asymmetry: Largest difference between the probabilities of -1 and +1, or None.
    """

    support: Support
    tails: Tails
    stay: tuple[float, float] = (0.0, 1.0)
    asymmetry: float | None = None

    def extreme(self, cost: npt.ArrayLike, V: float | None = None) -> Real | None:
        """The law of least cost, with variance `V` when given; None when there is no law."""
        from scipy.optimize import linprog

        if not self.support.deviations:
            return None
        A, b = self._equalities(V)
        ub = self._inequalities()
        result = linprog(
            np.asarray(cost, dtype=float),
            A_eq=A,
            b_eq=b,
            A_ub=ub[0] if len(ub[1]) else None,
            b_ub=ub[1] if len(ub[1]) else None,
            bounds=self._bounds(),
            method="highs",
        )
        return None if result.x is None else np.clip(result.x, 0.0, 1.0)

    def variance_range(self) -> tuple[float, float] | None:
        """Smallest and largest variance that the conditions allow; None when there is no law."""
        square = self._v() ** 2
        low, high = self.extreme(square), self.extreme(-square)
        if low is None or high is None:
            return None
        return float(square @ low), float(square @ high)

    def intervals(self, V: float) -> tuple[Real, Real] | None:
        """Smallest and largest value of every probability; None when there is no law."""
        unit = np.eye(len(self._v()))
        low = [self.extreme(e, V) for e in unit]
        high = [self.extreme(-e, V) for e in unit]
        if any(x is None for x in low + high):
            return None
        return np.diagonal(np.array(low)).copy(), np.diagonal(np.array(high)).copy()

    def _v(self) -> Real:
        return np.array(self.support.deviations, dtype=float)

    def _bounds(self) -> list[tuple[float, float]]:
        return [self.stay if v == 0 else (0.0, 1.0) for v in self.support.deviations]

    def _equalities(self, V: float | None) -> tuple[Real, Real]:
        v = self._v()
        rows, right = [np.ones_like(v), v], [1.0, 0.0]
        if V is not None:
            rows, right = [*rows, v**2], [*right, V]
        return np.array(rows), np.array(right)

    def _inequalities(self) -> tuple[Real, Real]:
        rows = [self._difference(outer, inner) for outer, inner in self.tails.steps()]
        right = [0.0] * len(rows)
        if self.asymmetry is not None:
            skew = near_skew(self.support)
            rows, right = [*rows, skew, -skew], [*right, self.asymmetry, self.asymmetry]
        return np.array(rows), np.array(right)

    def _difference(self, outer: int, inner: int) -> Real:
        row = np.zeros(len(self.support.deviations))
        row[outer], row[inner] = 1.0, -1.0
        return row


def near_skew(support: Support) -> Real:
    """The feature whose mean is p(-1) - p(+1)."""
    return np.array([float((v == -1) - (v == 1)) for v in support.deviations])


def common_range(ranges: Iterable[tuple[float, float] | None]) -> tuple[float, float] | None:
    """The variances open to every row, or None when there are none."""
    known = list(ranges)
    if any(r is None for r in known):
        return None
    low = max(r[0] for r in known if r is not None)
    high = min(r[1] for r in known if r is not None)
    return (low, high) if low <= high + 1e-12 else None


def describe_range(span: tuple[float, float] | None) -> str:
    """The range in words, for error messages."""
    if span is None:
        return "no variance can be met by all rows"
    return f"V must lie in [{span[0]:.6g}, {span[1]:.6g}]"
