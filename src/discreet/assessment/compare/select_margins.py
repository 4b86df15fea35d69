r"""Which margins to perturb and which to keep exact, by the expected error of the fit.

The matrix mechanism (Li et al. 2015) in the setting of Langsrud (2019b): noise is added to some
margins, inner cells are fitted to these by least squares, and everything published is summed from
the fit. With noise of precision :math:`W` on the perturbed columns `A` of :math:`X`, the fit has
covariance :math:`(A W A^\top)^+` on the tables that keep the exact margins, so the error of a
published cell with column `x` is known before anything is drawn:

.. math:: \mathrm{E}(x^\top\hat y - x^\top y)^2 = x^\top (A W A^\top)^+ x + (x^\top L y)^2

with `L` the projection on what no chosen margin determines. The first part depends on the design
and the budget alone; the second, the bias, on the truth.

On a complete design whose levels have groups of equal size, all margins share eigenvectors: with
:math:`g_{bS}` the eigenvalue of block `b` on effect `S` (of rank :math:`r_S`) and precisions
:math:`w_b`, the sum of squared errors of target block `t` is

.. math:: \sum_S r_S\, g_{tS} \Big/ \sum_b w_b\, g_{bS},

effects of exact margins left out. Other designs are decomposed as dense matrices.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args, overload

import numpy as np

from discreet.arrays import Array, Real, Whole
from discreet.assessment.assess import align_columns
from discreet.assessment.cells import check_choice
from discreet.assessment.compare.model_steps import Criterion, ModelPath, build_model
from discreet.design.base import Design
from discreet.design.formula import Margins, Term, margins, parse, resolve
from discreet.design.structured import StructuredDesign
from discreet.display.bars import shows_progress
from discreet.errors import DesignError, ParameterError
from discreet.facade.table import Table
from discreet.frames import Frame
from discreet.progress import report
from discreet.solve.least_squares.basis import Effects

LARGEST_DENSE = 3_000  # inner cells: a decomposition takes time by their cube
_LARGEST_BIAS = 20_000_000  # inner cells that counts are spread over to measure a bias

# Share of the largest eigenvalue below which one is a rounding error of zero.
_TINY = 1e-9


@dataclass(frozen=True)
class MarginPlan:
    """Margins that get noise and margins that are kept as they are."""

    perturbed: tuple[Term, ...]
    exact: tuple[Term, ...] = ()

    @property
    def label(self) -> str:
        """Both in words."""
        noisy = _terms_text(self.perturbed)
        return f"{noisy}; exact {_terms_text(self.exact)}" if self.exact else noisy


@dataclass(frozen=True)
class ExpectedError:
    """Expected root mean square error of the published cells.

    Attributes:
      noise: The part that comes from noise.
      bias: The part that no chosen margin tells; 0 when all is determined, `None` when unknown.
    """

    noise: float
    bias: float | None

    @property
    def rmse(self) -> float:
        """Both parts together; the noise alone when the bias is unknown."""
        return math.hypot(self.noise, self.bias or 0.0)


@dataclass(frozen=True)
class RankedPlan:
    """A plan and the error to expect of it.

    Attributes:
      plan: The margins.
      cells: How many cells get noise.
      sensitivity: In how many of them one record counts.
      variance: Variance of the noise of each.
      error: Expected error of the published cells.
    """

    plan: MarginPlan
    cells: int
    sensitivity: int
    variance: float
    error: ExpectedError


@dataclass(frozen=True, repr=False)
class MarginRanking:
    """Plans, the one with the smallest expected error first.

    Attributes:
      plans: The plans with their errors.
      is_confidential: Whether true counts were used, for the bias of plans that do not determine
        everything published.
    """

    plans: tuple[RankedPlan, ...]
    is_confidential: bool

    @property
    def best(self) -> MarginPlan:
        """The plan with the smallest expected error."""
        return self.plans[0].plan

    @property
    def frame(self) -> Frame:
        """A row per plan: rank, perturbed, exact, cells, sensitivity, variance, rmse and parts."""
        return Frame.from_rows([_row(k, p) for k, p in enumerate(self.plans, 1)])

    def __repr__(self) -> str:
        side = "confidential: true counts were used" if self.is_confidential else "public facts"
        header = ("", "perturbed", "exact", "sensitivity", "expected error", "noise", "bias")
        rows = [header, *(_text_row(k, p) for k, p in enumerate(self.plans, 1))]
        return "\n".join([f"Margins to perturb ({side})", *align_columns(rows)])


@overload
def select_margins(
    target: Design | Table,
    candidates: Sequence[Margins | MarginPlan] | None = ...,
    *,
    epsilon: float | None = ...,
    variance: float | None = ...,
    exact: Margins | None = ...,
    by: Literal["error"] = ...,
    alpha: float = ...,
) -> MarginRanking: ...
@overload
def select_margins(
    target: Design | Table,
    candidates: Sequence[Margins | MarginPlan] | None = ...,
    *,
    by: Criterion,
    alpha: float = ...,
) -> ModelPath: ...
@shows_progress("ranking margins")
def select_margins(
    target: Design | Table,
    candidates: Sequence[Margins | MarginPlan] | None = None,
    *,
    epsilon: float | None = None,
    variance: float | None = None,
    exact: Margins | None = None,
    by: Literal["error"] | Criterion = "error",
    alpha: float = 0.05,
) -> MarginRanking | ModelPath:
    r"""Rank sets of margins by the expected error of what is published after a fit.

    Each plan perturbs its margins, keeps others exact, fits inner cells by least squares, and sums
    the published cells of the target from these. With `epsilon`, the budget is shared by all
    perturbed cells: Laplace noise of scale Δ/ε, Δ the number of perturbed cells a record counts
    in. The fewer margins, the less noise on each; the more, the better the noise averages out.

    Promise: the noise part is exact for least squares and needs public facts only (the design and
    the budget); a non-negative fit does better. A plan that does not determine every published
    cell has a bias, which only the true counts tell: it is computed for a `Table` (the result is
    then confidential), and left open for a `Design`, where such plans come last.
    Exact margins are outside any guarantee unless they are public knowledge.
    Cost: a few sums over effects for complete designs with equal groups; a dense decomposition of
    inner × inner cells otherwise, up to 3,000 of them.

    Args:
      target: What is published in the end.
      candidates: Sets of margins to perturb, each a formula, a list of tuples or a `MarginPlan`;
        by default all margins of each order.
      epsilon: The budget of the whole release.
      variance: Variance of the noise on every cell instead, for noise that does not share a
        budget, such as cell keys.
      exact: Margins that could be kept exact: every candidate is tried with and without.
      by: ``"error"``, or how a log-linear model of a true table is built instead, one more margin
        at a time: ``"likelihood-ratio"``, ``"aic"`` or ``"bic"``. The result, a `ModelPath`, is
        confidential; `candidates` are then margins that may be added.
      alpha: Largest p-value of a margin that the likelihood ratio lets in.

    See Langsrud (2019b), section 5; Li et al. (2015).
    """
    if by != "error":
        check_choice("by", by, get_args(Criterion))
        return _build_model(target, candidates, (epsilon, variance, exact), by, alpha)
    _check_noise(epsilon, variance)
    design, y = _public_design(target)
    plans = _plans(design, candidates, exact)
    workload = Workload(design, [term for p in plans for term in (*p.perturbed, *p.exact)])
    ranked = []
    for done, plan in enumerate(plans):
        report("ranking margins", done / len(plans))
        strategy = Strategy.of(workload, plan.perturbed, plan.exact)
        sensitivity = strategy.sensitivity
        noise = (variance or 0.0) if epsilon is None else 2 * (sensitivity / epsilon) ** 2
        error = strategy.error(noise, y)
        ranked.append(RankedPlan(plan, len(strategy.noisy), sensitivity, noise, error))
    # Plans whose bias is not known come last, however small the noise: their error is a bound.
    ranked.sort(key=lambda found: (found.error.bias is None, found.error.rmse))
    return MarginRanking(tuple(ranked), any(found.error.bias for found in ranked))


def _check_noise(epsilon: float | None, variance: float | None) -> None:
    if (epsilon is None) == (variance is None):
        raise ParameterError("give the noise by epsilon= (a budget) or by variance=, not both.")
    for name, value in (("epsilon", epsilon), ("variance", variance)):
        if value is not None and not value > 0:
            raise ParameterError(f"{name} must be positive, got {value!r}.")


def _build_model(
    target: Design | Table, candidates: Any, others: tuple[Any, ...], by: Criterion, alpha: float
) -> ModelPath:
    """The model path of a true table; what belongs to expected errors is refused."""
    if any(given is not None for given in others):
        raise ParameterError(
            f"by={by!r} looks at true counts and not at noise; leave out epsilon=, variance= and "
            "exact=."
        )
    design, y = _public_design(target)
    if y is None:
        raise ParameterError(
            f"by={by!r} needs a table with true inner counts; a design alone has none."
        )
    if isinstance(candidates, str):
        candidates = [candidates]
    return build_model(design, y, candidates, by=by, alpha=alpha)


def _public_design(target: Design | Table) -> tuple[StructuredDesign, Real | None]:
    """The design on its public support, and the inner counts if they are known."""
    design = target.design if isinstance(target, Table) else target
    design = design.require_variables("margins to choose from")
    counts = None
    if isinstance(target, Table) and target.inner is not None:
        counts = target.y.astype(np.float64)
    lift = design.public()
    if lift.design is design or counts is None:
        return lift.design, counts
    is_small = lift.inner is not None and lift.design.n_inner <= _LARGEST_BIAS
    return lift.design, lift.to_public_support(counts) if is_small else None


def _plans(
    design: StructuredDesign,
    candidates: Sequence[Margins | MarginPlan] | None,
    exact: Margins | None,
) -> list[MarginPlan]:
    names = [axis.name for axis in design.axes]
    if candidates is None:
        candidates = [margins(names, k, lower=False) for k in range(1, len(names) + 1)]
    if isinstance(candidates, (str, Mapping)) or not candidates:
        raise ParameterError("candidates must be a list of sets of margins.")
    given = [c if isinstance(c, MarginPlan) else MarginPlan(tuple(parse(c))) for c in candidates]
    kept = () if exact is None else tuple(parse(exact))
    more = [MarginPlan(p.perturbed, tuple(dict.fromkeys((*p.exact, *kept)))) for p in given]
    return list(dict.fromkeys([*given, *more]))


def _row(rank: int, found: RankedPlan) -> dict[str, Any]:
    error = found.error
    return {
        "rank": rank,
        "perturbed": _terms_text(found.plan.perturbed),
        "exact": _terms_text(found.plan.exact),
        "cells": found.cells,
        "sensitivity": found.sensitivity,
        "variance": found.variance,
        "rmse": None if error.bias is None else error.rmse,
        "noise_rmse": error.noise,
        "bias_rmse": error.bias,
        "determines_all": error.bias == 0,
    }


def _text_row(rank: int, found: RankedPlan) -> tuple[str, ...]:
    error = found.error
    bias = "unknown" if error.bias is None else f"{error.bias:.4g}"
    total = "at least " if error.bias is None else ""
    return (
        f"{rank}",
        _terms_text(found.plan.perturbed),
        _terms_text(found.plan.exact) or "–",
        f"{found.sensitivity}",
        f"{total}{error.rmse:.4g}",
        f"{error.noise:.4g}",
        bias,
    )


def _terms_text(terms: Sequence[Term]) -> str:
    return " + ".join(":".join(term) or "1" for term in terms)


class Workload:
    """The published cells of a design, and a wider design that holds all margins of all plans."""

    def __init__(self, design: StructuredDesign, terms: Sequence[Term]) -> None:
        self.wide = design.with_margins([*design.terms, *terms])
        self.target = self.columns(design.terms)

    def columns(self, terms: Sequence[Term]) -> Whole:
        """Published positions of margins in the wide design."""
        blocks = self.blocks(terms)
        parts = [np.arange(*self.wide.slice_of(k).indices(self.wide.n_published)) for k in blocks]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)

    def blocks(self, terms: Sequence[Term]) -> list[int]:
        """Blocks of margins in the wide design."""
        wanted = {block.levels for block in resolve(self.wide.axes, terms)} if terms else set()
        return [k for k, block in enumerate(self.wide.blocks) if block.levels in wanted]

    @cached_property
    def representative(self) -> Whole:
        """For each published cell the first one with the same inner cells."""
        return self.wide.duplicates()

    @cached_property
    def effects(self) -> Effects | None:
        """The analysis of variance, where all margins share eigenvectors."""
        product = self.wide.product_form
        return None if product is None else Effects.of(product)

    @cached_property
    def matrix(self) -> Real:
        """The wide design as a dense matrix."""
        if self.wide.n_inner > LARGEST_DENSE:
            raise DesignError(
                f"the expected error of a design with declared zeros or groups of unequal size "
                f"needs at most {LARGEST_DENSE:,} inner cells, and this one has "
                f"{self.wide.n_inner:,}. Leave out levels or zeros, or compare by simulation."
            )
        return np.asarray(self.wide.matrix().toarray(), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Strategy:
    """Cells that get noise and cells that are kept exact."""

    workload: Workload  # what is published in the end
    noisy: Whole  # positions of the cells that get noise, each once
    exact: Whole  # positions of the exact cells

    @classmethod
    def of(cls, workload: Workload, perturbed: Sequence[Term], exact: Sequence[Term]) -> Strategy:
        """The cells of margins; cells that are the same count once, exact ones get no noise."""
        first = workload.representative
        kept = np.unique(first[workload.columns(exact)])
        noisy = np.setdiff1d(first[workload.columns(perturbed)], kept)
        return cls(workload, noisy, kept)

    @property
    def sensitivity(self) -> int:
        """In how many of the noisy cells one record counts."""
        return self.workload.wide.sensitivity(self.noisy)

    def error(self, variance: float, y: Real | None) -> ExpectedError:
        """Expected error with noise of this variance; the bias needs the inner counts `y`."""
        if not len(self.noisy):
            variance = 1.0  # nothing has noise, so its variance does not matter
        effects, weights = self.workload.effects, self._block_weights()
        if effects is None or weights is None:
            return self._dense_error(variance, y)
        noisy, exact = weights
        gains, ranks = effects.gains, effects.ranks.ravel()
        strength = noisy @ gains / variance
        known = exact @ gains > 0
        wide = self.workload.wide
        published = np.unique(wide.block_of_cell()[self.workload.target])
        target = np.bincount(published, minlength=len(wide.blocks)).astype(np.float64) @ gains
        open_ = ~known & (strength > 0)
        noise = float((ranks * target)[open_] @ (1 / strength[open_]))
        lost = ~known & (strength == 0) & (ranks * target > 0)
        part = None
        if y is not None and lost.any():
            # The projection on the effects without weight: eigenvalue one where the weight is zero.
            project = effects.basis(noisy + exact).function(lambda v: (v <= 0).astype(np.float64))
            part = project(y)
        return self._error(noise, bool(lost.any()), part)

    def _block_weights(self) -> tuple[Real, Real] | None:
        """For each block whether its cells are noisy and exact; `None` where only some are."""
        wide, found = self.workload.wide, []
        for cells in (self.noisy, self.exact):
            marks = np.zeros(wide.n_published)
            marks[cells] = 1.0
            sizes = np.diff(wide.offsets)
            each = np.bincount(wide.block_of_cell(), marks, minlength=len(sizes))
            if ((each > 0) & (each < sizes)).any():
                return None
            found.append(each / sizes)
        return found[0], found[1]

    def _dense_error(self, variance: float, y: Real | None) -> ExpectedError:
        X = self.workload.matrix
        free = _null_space(X[:, self.exact])
        noisy = free.T @ X[:, self.noisy]
        eigenvalues, vectors = np.linalg.eigh(noisy @ noisy.T / variance)
        some = eigenvalues > _TINY * max(1.0, float(eigenvalues.max(initial=0.0)))
        seen, unseen = free @ vectors[:, some], free @ vectors[:, ~some]
        targets = X[:, self.workload.target].T
        noise = float((((targets @ seen) ** 2) / eigenvalues[some]).sum())
        lost = bool(np.abs(targets @ unseen).max(initial=0.0) > _TINY * len(X))
        return self._error(noise, lost, None if y is None else unseen @ (unseen.T @ y))

    def _error(self, noise: float, lost: bool, part: Real | None) -> ExpectedError:
        """The error of a mean published cell; `part` is what no margin tells, where it is known."""
        bias: float | None = 0.0
        if lost:
            bias = None
        if lost and part is not None:
            missed: Array = self.workload.wide.aggregate(part)[self.workload.target]
            bias = float(np.sqrt((missed**2).mean()))
        return ExpectedError(math.sqrt(noise / len(self.workload.target)), bias)


def _null_space(columns: Real) -> Real:
    """An orthonormal basis of the tables that have zeros in all these cells."""
    if not columns.shape[1]:
        return np.eye(len(columns))
    eigenvalues, vectors = np.linalg.eigh(columns @ columns.T)
    return np.asarray(vectors[:, eigenvalues <= _TINY * max(1.0, float(eigenvalues.max()))])
