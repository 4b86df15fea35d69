"""What a search over whole numbers found, and how good it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.solve.integer.domain import Whole
from discreet.solve.integer.problem import Problem


@dataclass(frozen=True, eq=False)
class Found:
    """A feasible point, with its loss and a lower bound on the least loss there is.

    Attributes:
      y: Inner cells, every one in its domain.
      z: Their published cells.
      deviation: Published cells less their targets.
      loss: The loss reached.
      maximum: The largest deviation.
      violations: How many published cells break their limits.
      lower_bound: No point of the domain has a smaller loss; from the continuous relaxation.
      proposals: Steps proposed by all chains together.
      seconds: Time taken.
      chain_losses: The loss each chain reached.
      is_repeatable: Whether the effort was counted in proposals, so that the seed alone decides.
      is_optimal: Whether the point is proven to be a best one.
    """

    y: Whole
    z: Whole
    deviation: NDArray[Any]
    loss: float
    maximum: float
    violations: int
    lower_bound: float
    proposals: int = 0
    seconds: float = 0.0
    chain_losses: tuple[float, ...] = ()
    is_repeatable: bool = True
    is_optimal: bool = False

    @property
    def gap(self) -> float:
        """How much of the loss may be due to the search: 0 when it is proven least."""
        if self.is_optimal or self.loss <= self.lower_bound:
            return 0.0
        return (self.loss - self.lower_bound) / self.loss


def describe(problem: Problem, y: Whole, lower_bound: float, **facts: Any) -> Found:
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
