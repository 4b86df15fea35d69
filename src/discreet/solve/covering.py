"""Choices of least cost that meet covers: sums of coefficients of what is chosen, at least one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import NotConvergedError

Vector = NDArray[np.float64]

_NODES = 20_000  # of a tree of choices; a limit in seconds would depend on the machine
_SOLVED, _LIMIT = 0, 1


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
    """

    def __init__(self, cost: Vector) -> None:
        self._cost = cost
        self._scale = float(cost.max(initial=0.0)) or 1.0
        self._rows: list[Vector] = []

    def add(self, coefficients: Vector) -> None:
        """Ask that the coefficients of what is chosen add up to one or more."""
        self._rows.append(coefficients)

    def relaxed(self) -> Chosen:
        """The cheapest choice where parts of things can be chosen."""
        return self._solved(whole=False)

    def whole(self) -> Chosen:
        """The cheapest choice of whole things, with the bound that was reached."""
        return self._solved(whole=True)

    def _solved(self, *, whole: bool) -> Chosen:
        from scipy.optimize import Bounds, LinearConstraint, milp

        n = len(self._cost)
        if not self._rows or not n:
            return Chosen(np.zeros(n), 0.0)
        options: Any = {"mip_rel_gap": 0.0, "node_limit": _NODES}
        found = milp(
            self._cost / self._scale,
            integrality=np.full(n, int(whole)),
            bounds=Bounds(0.0, 1.0),
            constraints=LinearConstraint(np.array(self._rows), lb=1.0),
            options=options,
        )
        if found.status not in (_SOLVED, _LIMIT):
            raise NotConvergedError(f"a choice of least cost was not found: {found.message}")
        bound = found.mip_dual_bound if whole else found.fun
        share = found.x
        if share is not None and whole:
            share = np.round(share)
        return Chosen(share, 0.0 if bound is None else float(bound) * self._scale)
