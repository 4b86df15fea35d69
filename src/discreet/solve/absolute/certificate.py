r"""Duality gaps of least absolute deviation, cell by cell, and the certificate made of them.

The loss plus :math:`\tfrac{\rho}{2}\|y\|^2`, less the value of a dual vector `u` within the
weights, is the sum of :math:`w_k|r_k| - u_kr_k` over the published cells, `r` their residuals, and
of :math:`\tfrac{\rho}{2}(y_i - p_i)^2 - y_i\min(0, (Xu)_i)`, :math:`p = \max(0, Xu)/\rho`, over
the inner cells. None of them is negative. Without a ridge no slope :math:`(Xu)_i` may be positive,
and the second part is :math:`-y_i(Xu)_i`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from discreet.arrays import Mask, Real, Whole
from discreet.design.base import Design, dot
from discreet.solve.fit import Certificate, Status
from discreet.solve.least_squares.problem import Accuracy, gradient_limits

# The gap of a table is a sum, in which a single cell could hide: each may have a tenth of a count
# of it for itself, or a tenth of this share of its residual where that is more.
_OWN_COUNT, _OWN_SHARE = 0.1, 1e-4
# Deviation of an exact margin, in counts or as a share of the largest value, that rounding and the
# last steps may leave.
_EXACT_COUNT, _EXACT_SHARE = 1e-3, 1e-12
# A loss below this share of the weighted data is measured against that share: relative to a loss of
# zero, which tables without noise have, no gap would ever be small.
SMALL_LOSS = 1e-4


@dataclass(frozen=True, eq=False)
class ProvenTable:
    """A table with its proofs."""

    y: Real  # inner cells
    dual: Real  # a dual vector of the loss
    ridge: float  # the ridge that singles out the table; zero where there is none
    ridge_dual: Real  # a dual vector of the loss with that ridge
    steps: int = 0  # steps taken
    status: Status = Status.stalled  # why the search has ended, unless the certificate holds


class Inner(NamedTuple):
    """Some inner cells: their positions, values, and slopes with a dual vector."""

    cells: Whole
    y: Real
    slopes: Real


@dataclass(frozen=True, eq=False)
class DualityGaps:
    """The gap of a table and a dual vector."""

    published: Real  # what each published cell has of it, divided by its weight
    cells: Whole  # the inner cells that may have a part of it; all others have none
    inner: Real  # what each of these has of it
    total: float  # the whole gap
    loss: float  # the loss of the table
    residual: Real  # published values less those of the table

    @classmethod
    def of(
        cls, weights: Real, residual: Real, u: Real, inner: Inner, ridge: float = 0.0
    ) -> DualityGaps:
        """The gap with a ridge, or without if it is zero.

        The inner cells are all that are positive, and with a ridge all that have a positive slope;
        others may be among them.
        """
        size = np.abs(residual)
        # Cells of weight zero have no part in the gap: their share is that of a tight bound.
        share = np.divide(u, weights, out=np.sign(residual), where=weights > 0)
        published = size - share * residual
        cells, y, slopes = inner
        of_inner = -y * np.minimum(slopes, 0.0)
        if ridge:
            of_inner += 0.5 * ridge * (y - np.maximum(slopes, 0.0) / ridge) ** 2
        total = dot(weights, published) + float(of_inner.sum())
        return cls(published, cells, of_inner, total, dot(weights, size), residual)

    def own(self, accuracy: Accuracy, limits: Callable[[Whole], Real]) -> float:
        """The largest part that one cell has, in units of which the tolerance is allowed.

        `limits` gives the largest gradients of some inner cells.
        """
        unit = np.maximum(accuracy.count, _OWN_SHARE * np.abs(self.residual))
        published = float((self.published / unit).max(initial=0.0))
        inner = float((self.inner / limits(self.cells)).max(initial=0.0))
        return accuracy.tolerance * max(published, accuracy.tolerance * inner) / _OWN_COUNT


class _SomeCells(NamedTuple):
    """Some inner cells of a design, which judges them without an index of its own."""

    design: Design
    cells: Whole

    def adjoint(self, z: Real) -> Real:
        """For each of the cells the sum over the published cells that it counts in."""
        return np.asarray(self.design.adjoint(z)[self.cells])


def largest_miss(residual: Real, is_exact: Mask, z: Real, accuracy: Accuracy) -> float:
    """The largest deviation of an exact margin, in units of which the tolerance is allowed."""
    most = float(np.abs(z).max(initial=0.0))
    limit = max(_EXACT_COUNT * min(accuracy.count, most or np.inf), _EXACT_SHARE * most)
    return accuracy.tolerance * float(np.abs(residual[is_exact]).max(initial=0.0)) / limit


def certify(
    design: Design, z: Real, weights: Real, soft: Real, answer: ProvenTable, accuracy: Accuracy
) -> Certificate:
    """Both duality gaps and all bounds, with the design alone; `stationarity` is cell by cell.

    Nothing that a solver carries along is trusted: sums and slopes are computed anew.

    `soft` are the weights without those of exact margins, whose own are prices: a dual vector has
    no bound there, and whatever price it stays within, it bounds the loss of every table that has
    these margins. Nothing is measured against a price.

    `gap` is that of the loss, `selection` that of the loss with the ridge (one if there is
    none); both are relative. `feasibility` covers the inner cells and both dual vectors.
    """
    y, dual, ridge = answer.y, answer.dual, answer.ridge
    residual, slopes, cells = z - design.aggregate(y), design.adjoint(dual), np.flatnonzero(y > 0)
    gaps = DualityGaps.of(weights, residual, dual, Inner(cells, y[cells], slopes[cells]))
    own = gaps.own(
        accuracy, lambda cells: gradient_limits(_SomeCells(design, cells), z, soft, accuracy)
    )
    over = [np.abs(v) - weights for v in (dual, answer.ridge_dual)]
    infeasible = max(float(v.max(initial=0.0)) for v in (*over, slopes))
    size = max(dot(soft, np.abs(residual)), SMALL_LOSS * dot(soft, np.abs(z))) or 1.0
    selection = 1.0
    if ridge > 0:
        slopes = design.adjoint(answer.ridge_dual)
        cells = np.flatnonzero((y > 0) | (slopes > 0))
        inner = Inner(cells, y[cells], slopes[cells])
        excess = DualityGaps.of(weights, residual, answer.ridge_dual, inner, ridge).total
        selection = excess / ridge_size(gaps.loss, ridge, y)
    off = largest_miss(residual, weights > soft, z, accuracy)
    return Certificate(
        feasibility=max(infeasible / largest(soft), off, -float(y.min(initial=0.0)), 0.0),
        stationarity=own,
        gap=max((gaps.loss - dot(z, dual)) / size, 0.0),
        tolerance=accuracy.tolerance,
        selection=max(selection, 0.0),
        deviation=float(gaps.published.max(initial=0.0)),
        cell=int(gaps.published.argmax()) if len(z) else None,
    )


def ridge_size(loss: float, ridge: float, y: Real) -> float:
    """The loss with the ridge, which its gap is relative to."""
    return max(loss + 0.5 * ridge * dot(y, y), np.finfo(float).tiny)


def largest(values: Real) -> float:
    """The largest size, one where there is none."""
    return float(np.abs(values).max(initial=0.0)) or 1.0
