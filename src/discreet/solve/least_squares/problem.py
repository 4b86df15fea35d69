r"""The least squares problem all fitters of this family share.

.. math:: \min_y \tfrac12 \sum_k w_k (x_k^\top y - z_k)^2
          + \tfrac{\lambda}{2} \sum_i \frac{(y_i - s_i)^2}{q_i}

The second sum chooses among tables that fit equally well, as :math:`\lambda \to 0`: by default the
one of smallest norm (:math:`s = 0`, :math:`q = 1`); with a starting table the one nearest to it,
which is linear calibration when :math:`q = s`.

`CertificateLimits` say what a fit is asked to reach, and certificates whether it did. A certificate
uses the result and its multipliers alone, with one or two `aggregate` and `adjoint` of the design.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Mask, Real, Whole
from discreet.design.base import Design
from discreet.design.formula import TOTAL, parse, resolve
from discreet.design.product import ProductDesign
from discreet.design.support import Embedding
from discreet.errors import ParameterError
from discreet.solve.fit import Certificate, checked_start, checked_values, checked_weights
from discreet.solve.least_squares.basis import pseudo_inverse

Exact = str | int | Sequence[str | int | Sequence[str]]
_NOTHING = np.empty(0, dtype=np.int64)

# From this factor between one weight and the next the upper margins are held by multipliers: with
# them inside the equations the condition number would be their ratio, or more.
_HELD_GAP = 30.0
# The choice among tables that fit equally well may be off by so many tolerances: it costs far more
# digits than the fit, and moves no published cell.
_CHOICE = 100.0
# By this part a norm may exceed the smallest one where single cells are not judged.
EXCESS = 0.05
# Share of its size to which a margin that is held can be told from another.
RESOLVED = 1e-12
# What double precision leaves of the terms of a gradient, and the deviation in counts beyond which
# it is no excuse: fits of 10¹⁴ called themselves converged with a 3 that had become a 4.
_ROUNDING, _NO_EXCUSE = 1e-13, 0.05


@dataclass(frozen=True, eq=False)
class Prior:
    """What the inner cells are drawn to where the published cells leave a choice."""

    start: Real | None = None  # the table s; zeros when absent
    variance: Real | None = None  # how far each cell may move, q; ones when absent
    # Values of the cells that may not move at all, zero elsewhere; absent when all are zero.
    given: Real | None = None

    @classmethod
    def of(cls, design: Design, start: ArrayLike | None, variance: ArrayLike | None) -> Prior:
        """Checked; the variance of a starting table is the table itself unless it is given."""
        s = None if start is None else checked_start(design, start)
        q = s if variance is None else checked_start(design, variance, "variance")
        if s is None or q is None or not (given := np.where(q > 0, 0.0, s)).any():
            return cls(s, q)
        return cls(s - given, q, given)

    @property
    def is_plain(self) -> bool:
        """Whether this is the smallest norm."""
        return self.start is None and self.variance is None

    def starts(self, cells: Whole) -> Real:
        """The starting values of some cells."""
        return np.zeros(len(cells)) if self.start is None else self.start[cells]

    def deviations(self, cells: Whole) -> Real:
        """The square roots of some cells' variances."""
        return np.ones(len(cells)) if self.variance is None else np.sqrt(self.variance[cells])

    def table_after(self, step: Real) -> Real:
        """The table after a step, in units of the variance, from the starting table."""
        scaled = step if self.variance is None else self.variance * step
        return scaled if self.start is None else self.start + scaled

    def steps(self, y: Real) -> Real:
        """The inverse of `table_after`; zero where nothing can move."""
        return self.per_variance(y if self.start is None else y - self.start)

    def per_variance(self, values: Real) -> Real:
        """Values divided by the variance; zero where nothing can move."""
        if self.variance is None:
            return values
        return np.divide(values, self.variance, out=np.zeros_like(values), where=self.variance > 0)

    def movable(self, n: int) -> Mask:
        """Which of the inner cells may move."""
        return np.ones(n, dtype=bool) if self.variance is None else self.variance > 0


@dataclass(frozen=True, eq=False)
class Targets:
    """Checked published values and weights; nothing here has the size of the table."""

    z: Real  # values; zero where the weight is
    weights: Real  # precisions
    # Published positions of exact margins and of those whose weight exceeds others by far.
    held: Whole
    slack: Real  # deviation for each unit of their multipliers: one over the weight, zero if exact

    @staticmethod
    def from_values(
        design: Design, z: ArrayLike, weights: ArrayLike | None, exact: Whole | None
    ) -> Targets:
        """Checked; without `exact`, not even an empty one, no margin is held."""
        w = checked_weights(design, weights).copy()
        if exact is None:
            return Targets(checked_values(design, z, w > 0), w, _NOTHING, np.zeros(0))
        # Among other margins an exact one without a weight gets one, which keeps its cells in use.
        w[exact] = np.where(w[exact] > 0, w[exact], 1.0)
        own = w.copy()
        own[exact] = np.inf
        # Above the widest gap between weights, if wide enough, margins are held like exact ones.
        different = np.unique(own[(own > 0) & np.isfinite(own)])
        ratios, least = different[1:] / different[:-1], np.inf
        if len(ratios) and ratios.max() >= _HELD_GAP:
            least = float(different[ratios.argmax() + 1])
        held = np.flatnonzero(own >= least)
        return Targets(checked_values(design, z, w > 0), w, held, 1.0 / own[held])

    @property
    def exact(self) -> Whole:
        """The margins that must be met."""
        return np.asarray(self.held[self.slack == 0])


@dataclass(frozen=True)
class Accuracy:
    """How accurate a fit is asked to be."""

    tolerance: float  # deviation of a cell, in counts
    count: float = 1.0  # what one count is in the units of the data

    def deviation(self, z: Real) -> float:
        """The deviation in the units of the data; less where all targets are below one count."""
        return self.tolerance * min(self.count, float(np.abs(z).max(initial=0.0)) or np.inf)


@dataclass(frozen=True, eq=False)
class CertificateLimits:
    r"""Limits that make a certificate hold, for every cell on its own scale.

    A gradient :math:`g_i` that should be zero could be undone by moving the target of any published
    cell `k` that counts `i` by :math:`g_i / w_k`. By so much that cell deviates from what the
    optimum demands. The limit is a share of one count, more for cells that are noisier than the
    others beside them: :math:`|g_i| \le \tau c \sqrt{\sum_k w_k / \sum_k w_k^{-1}}`, which is
    :math:`\tau c w` where weights are alike. Nothing is divided by the largest entry of anything.
    """

    accuracy: Accuracy  # how accurate the fit is asked to be
    gradient: Real  # for every inner cell the largest gradient
    curvature: Real  # for every inner cell the gradient that a count too many causes
    margin: Real  # for every published cell the largest deviation where it is held
    inner: Real  # for every inner cell the largest deviation from the form that singles it out

    @classmethod
    def of(
        cls, design: InnerCells, z: Real, weights: Real, held: Whole, accuracy: Accuracy
    ) -> CertificateLimits:
        """The limits of a problem; held margins have multipliers, whatever their weight."""
        soft, deviation = weights.copy(), accuracy.deviation(z)
        soft[held] = 0.0
        smallest = smallest_sizes(design, z, weights, accuracy.count)
        total = design.adjoint(soft)
        return cls(
            accuracy,
            gradient_limits(design, z, soft, accuracy),
            np.where(total > 0, total, _root_ratio(soft.sum(), pseudo_inverse(soft).sum())),
            np.maximum(deviation, RESOLVED * np.abs(z)),
            _CHOICE * np.maximum(deviation, RESOLVED * smallest),
        )


@dataclass(frozen=True, eq=False)
class LeastSquaresProblem(Targets):
    r"""Targets with a design and a prior; what cells that may not move contribute is taken out."""

    design: Design  # the design
    prior: Prior  # where the inner cells are drawn to
    limits: CertificateLimits  # what is asked for, on the scale of each cell

    @classmethod
    def of(
        cls,
        design: Design,
        z: ArrayLike,
        weights: ArrayLike | None,
        prior: Prior,
        accuracy: Accuracy,
        exact: Whole | None = None,
    ) -> LeastSquaresProblem:
        """Checked; targets of cells with weight zero are not looked at, unless they are exact.

        Without `exact`, not even an empty one, no margin is held.
        """
        given = Targets.from_values(design, z, weights, exact)
        values, w = given.z, given.weights
        if prior.given is not None:
            values = np.where(w > 0, values - design.aggregate(prior.given), 0.0)
        limits = CertificateLimits.of(design, values, w, given.held, accuracy)
        return cls(values, w, given.held, given.slack, design, prior, limits)

    def among(self, chosen: Whole, weights: Real | float, tolerance: float) -> LeastSquaresProblem:
        """The same problem with some of the published cells alone, none of them held."""
        w = np.zeros(len(self.z))
        w[chosen] = weights
        accuracy = replace(self.limits.accuracy, tolerance=tolerance)
        limits = CertificateLimits.of(self.design, self.z, w, _NOTHING, accuracy)
        return replace(self, weights=w, held=_NOTHING, slack=np.zeros(0), limits=limits)

    def on_full_crossing(self, embedding: Embedding[ProductDesign]) -> LeastSquaresProblem:
        """The same problem on the full crossing; cells out of reach are zero in any case."""
        # Cells that the design lacks get their block's mean: weights that are equal within blocks
        # stay so, and the full crossing keeps its closed form.
        means = block_means(self.design, self.weights)
        weights = np.repeat(means, np.diff(embedding.design.offsets))
        weights[embedding.published] = self.weights
        z, held = embedding.to_public_cells(self.z), embedding.published[self.held]
        limits = CertificateLimits.of(embedding.design, z, weights, held, self.limits.accuracy)
        return replace(self, design=embedding.design, z=z, weights=weights, limits=limits)

    def with_targets(self, z: Real) -> LeastSquaresProblem:
        """The same problem with other targets, judged on the same scales."""
        return replace(self, z=z)

    @property
    def right_hand_side(self) -> Real:
        r"""The right-hand side of the normal equations, :math:`XWz`."""
        return self.design.adjoint(self.weights * self.z)

    def misfit(self, fitted: Real) -> Real:
        r"""Weighted residuals :math:`W(z - \hat z)` of fitted published cells."""
        return self.weights * (self.z - fitted)

    def serves_worse(self, y: Real, ridge: float = 0.0) -> bool:
        """Whether a table is worse than the one at the start: exact margins first, then loss."""
        start = self.prior.starts(np.arange(len(y)))
        ranks = []
        for table in (y, start):
            off = self.z - self.design.aggregate(table)
            missed = _largest(off[self.exact] / self.limits.margin[self.exact])
            drawn = ridge * float(self.prior.steps(table) @ (table - start))
            off[self.exact] = 0.0
            ranks.append((max(missed, 1.0), float(self.weights @ off**2) + drawn))
        return ranks[0] > ranks[1]

    def complete(self, y: Real) -> Real:
        """The table with the cells that may not move put back."""
        return y if self.prior.given is None else y + self.prior.given


def block_means(design: Design, weights: Real) -> Real:
    """Mean weight of each block; one for a block without cells."""
    design = design.require_variables("blocks")
    n, block = len(design.blocks), design.block_of_cell()
    size = np.bincount(block, minlength=n)
    sums = np.bincount(block, weights=weights, minlength=n)
    return np.divide(sums, size, out=np.ones(n), where=size > 0)


def positions_of(design: Design, margins: Exact) -> Whole:
    """Published positions of margins named as in a design, or given by number."""
    if isinstance(margins, (str, int)):
        return _positions_by_name(design, str(margins))
    numbers = [m for m in margins if isinstance(m, (int, np.integer))]
    names = [m for m in margins if not isinstance(m, (int, np.integer))]
    if any(not 0 <= k < design.n_published for k in numbers):
        raise ParameterError(
            f"published cells are numbered 0 to {design.n_published - 1}, got {numbers}."
        )
    found = _positions_by_name(design, names) if names else _NOTHING
    return np.unique(np.concatenate([np.array(numbers, dtype=np.int64), found]))


def _positions_by_name(design: Design, margins: str | Sequence[str | Sequence[str]]) -> Whole:
    design = design.require_variables("margins by name; give published positions")
    of_levels = {block.levels: k for k, block in enumerate(design.blocks)}
    wanted = resolve(design.axes, parse(margins))
    missing = [block for block in wanted if block.levels not in of_levels]
    if missing:
        names = [level.name for level in missing[0].levels if level is not None]
        raise ParameterError(
            f"margin {tuple(names)} is not published by this design, so it has no value to meet. "
            "Name margins of the design."
        )
    every = np.arange(design.n_published)
    return np.concatenate([every[design.slice_of(of_levels[block.levels])] for block in wanted])


def frozen_margins(exact: Exact) -> str | tuple[str | int | tuple[str, ...], ...]:
    """Margins as a value that does not change; checked for shape, not yet against a design."""
    if isinstance(exact, str):
        return exact
    if isinstance(exact, int) and exact == 1:
        return TOTAL
    if isinstance(exact, bytes) or not isinstance(exact, Iterable):
        raise ParameterError(f"exact needs a formula or a list of margins, got {exact!r}.")
    for margin in exact:
        is_known = isinstance(margin, (str, int, np.integer)) or (
            isinstance(margin, (tuple, list)) and all(isinstance(name, str) for name in margin)
        )
        if not is_known or isinstance(margin, bool):
            raise ParameterError(
                "exact lists margins by name, as tuples of variables, or published positions, got "
                f"{margin!r}."
            )
    return tuple(m if isinstance(m, (str, int, np.integer)) else tuple(m) for m in exact)


class InnerCells(Protocol):
    """All inner cells of a design, or some."""

    def adjoint(self, z: Real, /) -> Real:
        """For each of them the sum over the published cells that it counts in."""


def gradient_limits(design: InnerCells, z: Real, soft: Real, accuracy: Accuracy) -> Real:
    """For every inner cell the largest gradient, with the weights of the margins not held."""
    total, spread = design.adjoint(soft), design.adjoint(pseudo_inverse(soft))
    elsewhere = _root_ratio(soft.sum(), pseudo_inverse(soft).sum())
    unit = np.where(total > 0, _root_ratio(total, spread), elsewhere)
    rounding = design.adjoint(soft * excused_rounding(z, accuracy.count))
    return np.maximum(accuracy.deviation(z) * unit, rounding)


def excused_rounding(z: Real, count: float, share: float = _ROUNDING) -> Real:
    """Rounding errors of published cells that may pass: a small part of a count, or one digit."""
    size = np.abs(z)
    return np.asarray(np.minimum(share * size, np.maximum(_NO_EXCUSE * count, np.spacing(size))))


def smallest_sizes(design: InnerCells, z: Real, weights: Real, count: float) -> Real:
    """The size of the smallest published cells that count each inner cell; zero where none does."""
    return pseudo_inverse(design.adjoint((weights > 0) / np.maximum(np.abs(z), count)))


def _root_ratio(total: Real, spread: Real) -> Real:
    return np.sqrt(np.divide(total, spread, out=np.ones_like(total), where=spread > 0))


def certify_least_squares(problem: LeastSquaresProblem, y: Real, row_space: Real) -> Certificate:
    r"""The normal equations :math:`XW(X^\top y - z) = 0`, and :math:`y = s + qX\nu`.

    `row_space` are the cells `y` in the latter form, which makes them the nearest to `s`.
    """
    movable, fitted = problem.prior.movable(len(y)), problem.design.aggregate(y)
    g = np.where(movable, -problem.design.adjoint(problem.misfit(fitted)), 0.0)
    return _certify(problem, g, np.zeros(0), y - row_space)


def certify_deviations(problem: LeastSquaresProblem, off: Real, apart: Real) -> Certificate:
    """Deviations of published cells from the optimum, where they are known one by one."""
    rounding = excused_rounding(problem.z, problem.limits.accuracy.count).max(initial=0.0)
    share = np.abs(off) / np.maximum(problem.limits.margin, rounding)
    tolerance, cell = problem.limits.accuracy.tolerance, int(share.argmax()) if len(off) else None
    return Certificate(
        stationarity=tolerance * _largest(share),
        selection=tolerance * _largest(apart / problem.limits.inner),
        tolerance=tolerance,
        deviation=None if cell is None else abs(float(off[cell])),
        cell=cell,
    )


def certify_non_negative(
    problem: LeastSquaresProblem,
    y: Real,
    multipliers: Real,
    *,
    dual: Real | None,
    ridge: float,
    norm_dual: Real | None = None,
) -> Certificate:
    r"""The conditions of Karush, Kuhn and Tucker, and :math:`y = \max(0, s + qX\nu)`.

    With :math:`g` the gradient of the Lagrangian and `d` the curvature,
    :math:`\min(d_iy_i, g_i) = 0`, and margins that are held deviate as their multipliers say.

    Args:
      problem: Targets, weights, and what was asked for.
      y: Fitted inner cells.
      multipliers: Those of the margins that the problem holds.
      dual: The vector :math:`\nu` that shows `y` to be the optimum nearest to `s`; not needed
        when a ridge makes the optimum unique.
      ridge: Factor of the ridge that is part of the objective, zero without.
      norm_dual: A vector that shows the norm of `y` to be nearly the smallest instead.
    """
    fitted, movable = problem.design.aggregate(y), problem.prior.movable(len(y))
    residuals = problem.misfit(fitted)
    residuals[problem.held] = multipliers
    g = ridge * problem.prior.steps(y) - problem.design.adjoint(residuals)
    off = (problem.z - fitted)[problem.held] - problem.slack * multipliers
    apart = np.zeros_like(y)
    if dual is not None:
        apart = y - np.maximum(problem.prior.table_after(problem.design.adjoint(dual)), 0.0)
    blocked = np.minimum(g, problem.limits.curvature * y)
    blocked, apart = (np.where(movable, values, 0.0) for values in (blocked, apart))
    excess = 0.0
    if norm_dual is not None:
        # Cells in a published zero are zero in any table, and only weaken the bound on its norm.
        must_be_zero = problem.design.adjoint((fitted == 0).astype(float)) > 0
        inner = np.where(must_be_zero, 0.0, problem.design.adjoint(norm_dual))
        norm, smallest = float(np.linalg.norm(y)), smallest_norm(fitted, norm_dual, inner)
        if norm > 0.0:
            excess = norm / smallest - 1.0 if smallest > 0 else np.inf
    return _certify(problem, blocked, off, apart, excess)


def smallest_norm(fitted: Real, dual: Real, inner: Real) -> float:
    r"""A norm that no table :math:`y \ge 0` with the given published cells falls below.

    For any vector :math:`\nu`, `dual` here with :math:`X\nu` as `inner` (zero where cells must be),
    :math:`\hat z^\top \nu = y^\top X\nu \le \|y\| \, \|\max(0, X\nu)\|`.
    """
    size = float(np.linalg.norm(np.maximum(inner, 0.0)))
    return max(float(fitted @ dual), 0.0) / size if size > 0 else 0.0


def _certify(
    problem: LeastSquaresProblem, g: Real, off: Real, apart: Real, excess: float = 0.0
) -> Certificate:
    """Every condition in units of its limit, times the tolerance."""
    limits, tolerance = problem.limits, problem.limits.accuracy.tolerance
    gradient, margin = g / limits.gradient, off / limits.margin[problem.held]
    deviation, cell = _worst_cell(problem, g, gradient)
    if _largest(margin) > _largest(gradient):
        worst = int(np.abs(margin).argmax())
        deviation, cell = abs(float(off[worst])), int(problem.held[worst])
    return Certificate(
        stationarity=tolerance * _largest(gradient),
        feasibility=tolerance * _largest(margin),
        selection=tolerance * max(_largest(apart / limits.inner), excess / EXCESS),
        tolerance=tolerance,
        deviation=deviation,
        cell=cell,
    )


def _worst_cell(problem: LeastSquaresProblem, g: Real, gradient: Real) -> tuple[float, int | None]:
    """The worst gradient as the deviation of one published cell, and which one."""
    if len(g) == 0:
        return 0.0, None
    chosen = np.zeros(len(g))
    worst = int(np.abs(gradient).argmax())
    chosen[worst] = 1.0
    counting = (problem.design.aggregate(chosen) > 0) & (problem.weights > 0)
    soft = counting.copy()
    soft[problem.held] = False
    cells = np.flatnonzero(soft if soft.any() else counting)
    if len(cells) == 0:
        return 0.0, None
    # The cell that would have to move farthest, measured against what it may.
    cell = int(cells[(problem.weights * problem.limits.margin)[cells].argmin()])
    return abs(float(g[worst])) / float(problem.weights[cell]), cell


def _largest(values: Real) -> float:
    return float(np.abs(values).max(initial=0.0))
