"""Choices of least cost that meet covers: sums of coefficients of what is chosen, at least one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import NotConvergedError

Vector = NDArray[np.float64]

EFFORT = 60_000
"""Covers times nodes of trees of choices, all choices together: about ten seconds.

A limit in seconds would depend on the machine.
"""

_ROOT = 10  # nodes that the first of a tree counts for
_SOLVED, _LIMIT, _OTHER = 0, 1, 4  # SciPy has no number of its own for a limit of nodes


@dataclass(frozen=True, eq=False)
class Chosen:
    """The outcome of a choice.

    Attributes:
      share: How much of each thing is chosen, zero to one; `None` where no choice was found.
      bound: What every choice costs at least.
    """

    share: Vector | None
    bound: float


class Covering:
    """Things with costs, and the covers found so far.

    Args:
      cost: What each thing costs.
      effort: Limit of covers times nodes of trees of choices, all choices together.
    """

    def __init__(self, cost: Vector, *, effort: int = EFFORT) -> None:
        self._cost, self._effort = cost, effort
        self._scale = float(cost.max(initial=0.0)) or 1.0
        self._rows: list[Vector] = []

    def add(self, coefficients: Vector) -> None:
        """Ask that the coefficients of what is chosen add up to one or more."""
        self._rows.append(coefficients)

    def relaxed(self) -> Chosen:
        """The cheapest choice where parts of things can be chosen."""
        return self._solved(whole=False, gap=0.0)

    def whole(self, gap: float = 0.0) -> Chosen:
        """The cheapest choice of whole things, with the bound that was reached.

        Args:
          gap: By what share a choice may be dearer than the bound.
        """
        return self._solved(whole=True, gap=gap)

    def _solved(self, *, whole: bool, gap: float) -> Chosen:
        from scipy.optimize import Bounds, LinearConstraint, milp

        n = len(self._cost)
        if not self._rows or not n:
            return Chosen(np.zeros(n), 0.0)
        nodes = self._effort // len(self._rows) - _ROOT
        if whole and nodes <= 0:
            return Chosen(None, 0.0)
        options: Any = {"mip_rel_gap": gap, "node_limit": max(nodes, 1)}
        found = milp(
            self._cost / self._scale,
            integrality=np.full(n, int(whole)),
            bounds=Bounds(0.0, 1.0),
            constraints=LinearConstraint(np.array(self._rows), lb=1.0),
            options=options,
        )
        is_limited = found.status == _OTHER and found.mip_dual_bound is not None
        if found.status not in (_SOLVED, _LIMIT) and not is_limited:
            raise NotConvergedError(f"a choice of least cost was not found: {found.message}")
        if whole:
            self._effort -= len(self._rows) * (_ROOT + (found.mip_node_count or 0))
        bound = found.mip_dual_bound if whole else found.fun
        share = found.x
        if share is not None and whole:
            share = np.round(share)
        return Chosen(share, 0.0 if bound is None else float(bound) * self._scale)
