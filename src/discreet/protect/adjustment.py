"""The additive table next to a perturbed one. Confidential: it knows which cells are empty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from discreet.arrays import Index, Real, Whole
from discreet.design.base import Design
from discreet.errors import ParameterError
from discreet.solve.integer.domain import LARGEST, Domain, check_size
from discreet.solve.integer.problem import Problem
from discreet.tables.truth import TrueTable


@dataclass(frozen=True, eq=False)
class Frame:
    """The inner cells that may hold records and the published cells they count in.

    Attributes:
      design: A design on these cells alone.
      rows: The inner cells' places in the table's design.
      cells: The published cells' places in the table's design.
    """

    design: Design
    rows: Index
    cells: Whole

    @classmethod
    def of(cls, table: TrueTable) -> Frame:
        """The cells of a table that no published zero keeps empty."""
        empty = table.design.adjoint((table.z == 0).astype(np.int64))
        rows = np.flatnonzero(empty == 0)
        design, cells = table.design.restricted(rows, occurring=True)
        return cls(design, rows, cells)

    @property
    def own(self) -> Whole | None:
        """For each inner cell a published cell that holds nothing else, if all of them have one."""
        own = self.design.inner_in_published()
        return None if (own < 0).any() else own


def adjustment(
    frame: Frame,
    perturbed: Whole,
    truth: Whole,
    *,
    min_count: int,
    max_move: float,
    weights: Mapping[int, float] | None,
) -> tuple[Problem, Whole]:
    """The problem of the nearest additive table, and a start.

    Args:
      frame: The cells.
      perturbed: Perturbed counts of the published cells.
      truth: Their true counts.
      min_count: The smallest positive count allowed.
      max_move: Largest move wanted of a published cell.
      weights: Weight of a published cell by the number of its variables; one where not given.
    """
    limited = np.isfinite(max_move)
    if limited:
        perturbed = np.clip(perturbed, truth - int(max_move), truth + int(max_move))
    domain = Domain.gapped(min_count, np.full(frame.design.n_inner, LARGEST))
    problem = Problem(
        frame.design,
        perturbed,
        domain,
        power=1,
        weights=_weights(frame, weights),
        low=np.subtract(truth - perturbed, max_move, dtype=np.float64) if limited else None,
        high=np.add(truth - perturbed, max_move, dtype=np.float64) if limited else None,
    )
    own = frame.own
    start = _fitted(frame, perturbed) if own is None else perturbed[own]
    check_size(start)
    return problem, domain.nearest(start)


def _fitted(frame: Frame, perturbed: Whole) -> Real:
    """Inner cells from a fit, where they are not published themselves."""
    from discreet.solve.least_squares.least_squares import LeastSquares  # start-up time: Numba

    return np.maximum(LeastSquares()(frame.design, perturbed.astype(np.float64)).y, 0.0)


def _weights(frame: Frame, weights: Mapping[int, float] | None) -> Real | None:
    if weights is None:
        return None
    if frame.design.over_variables is None:
        raise ParameterError(
            "weights go by the number of variables, but this table's design was made from a "
            "matrix and has none."
        )
    orders = frame.design.orders
    return np.array([weights.get(k, 1.0) for k in range(int(orders.max(initial=0)) + 1)])[orders]
