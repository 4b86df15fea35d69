r"""Which margins to perturb and which to keep exact, by the expected error of the fit.

The matrix mechanism (Li et al. 2015) in the setting of Langsrud (2019b): noise is added to some
margins, inner cells are fitted to these by least squares, and everything published is summed from
the fit. With noise of precision :math:`W` on the perturbed columns `A` of :math:`X`, the fit has
covariance :math:`(A W A^\top)^+` on the tables that keep the exact margins, so the error of a
published cell with column `x` is known before anything is drawn:

.. math:: \mathrm{E}(x^\top\hat y - x^\top y)^2 = x^\top (A W A^\top)^+ x + (x^\top L y)^2

with `L` the projection on what no chosen margin determines. The first part depends on the design
and the budget alone; the second, the bias, on the truth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Real
from discreet.assess.compare.strategy import Error, Strategy, Workload
from discreet.assess.listing import aligned
from discreet.design.base import Design
from discreet.design.formula import Margins, Term, margins, parse
from discreet.design.structured import StructuredDesign
from discreet.errors import ParameterError
from discreet.facade.table import Table

if TYPE_CHECKING:
    import pyarrow as pa

_LARGEST_BIAS = 20_000_000


@dataclass(frozen=True)
class MarginPlan:
    """Margins that get noise and margins that are kept as they are."""

    perturbed: tuple[Term, ...]
    exact: tuple[Term, ...] = ()

    @property
    def label(self) -> str:
        """Both in words."""
        noisy = _shown(self.perturbed)
        return f"{noisy}; exact {_shown(self.exact)}" if self.exact else noisy


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
    error: Error


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
    def frame(self) -> pa.Table:
        """A row per plan: rank, perturbed, exact, cells, sensitivity, variance, rmse and parts."""
        import pyarrow as pa

        return pa.Table.from_pylist([_row(k, p) for k, p in enumerate(self.plans, 1)])

    def __repr__(self) -> str:
        side = "confidential: true counts were used" if self.is_confidential else "public facts"
        header = ("", "perturbed", "exact", "sensitivity", "expected error", "noise", "bias")
        rows = [header, *(_line(k, p) for k, p in enumerate(self.plans, 1))]
        return "\n".join([f"Margins to perturb ({side})", *aligned(rows)])


def select_margins(
    target: Design | Table,
    candidates: Sequence[Margins | MarginPlan] | None = None,
    *,
    epsilon: float | None = None,
    variance: float | None = None,
    exact: Margins | None = None,
) -> MarginRanking:
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

    See Langsrud (2019b), section 5; Li et al. (2015).
    """
    if (epsilon is None) == (variance is None):
        raise ParameterError("give the noise by epsilon= (a budget) or by variance=, not both.")
    for name, value in (("epsilon", epsilon), ("variance", variance)):
        if value is not None and not value > 0:
            raise ParameterError(f"{name} must be positive, got {value!r}.")
    design, y = _public(target)
    plans = _plans(design, candidates, exact)
    workload = Workload(design, [term for p in plans for term in (*p.perturbed, *p.exact)])
    ranked = [_ranked(workload, plan, epsilon, variance, y) for plan in plans]
    used_truth = any(r.error.bias for r in ranked)
    return MarginRanking(tuple(sorted(ranked, key=_order)), used_truth)


def _public(target: Design | Table) -> tuple[StructuredDesign, Real | None]:
    """The design on its public support, and the inner counts if they are known."""
    design = target.design if isinstance(target, Table) else target
    design = design.structured("margins to choose from")
    known = isinstance(target, Table) and target.inner is not None
    counts = target.y.astype(np.float64) if isinstance(target, Table) and known else None
    lift = design.public()
    is_small = lift.inner is not None and lift.design.n_inner <= _LARGEST_BIAS
    if lift.design is design or counts is None or not is_small:
        return lift.design, counts if lift.design is design else None
    return lift.design, lift.lift(counts)


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


def _ranked(
    workload: Workload,
    plan: MarginPlan,
    epsilon: float | None,
    variance: float | None,
    y: Real | None,
) -> RankedPlan:
    strategy = Strategy.of(workload, plan.perturbed, plan.exact)
    sensitivity = strategy.sensitivity
    noise = (variance or 0.0) if epsilon is None else 2 * (sensitivity / epsilon) ** 2
    error = strategy.error(noise, y)
    return RankedPlan(plan, len(strategy.noisy), sensitivity, noise, error)


def _order(found: RankedPlan) -> tuple[bool, float]:
    """Plans whose error is open come last."""
    return found.error.bias is None, found.error.rmse


def _row(rank: int, found: RankedPlan) -> dict[str, Any]:
    error = found.error
    return {
        "rank": rank,
        "perturbed": _shown(found.plan.perturbed),
        "exact": _shown(found.plan.exact),
        "cells": found.cells,
        "sensitivity": found.sensitivity,
        "variance": found.variance,
        "rmse": None if error.bias is None else error.rmse,
        "noise_rmse": error.noise,
        "bias_rmse": error.bias,
        "determines_all": error.bias == 0,
    }


def _line(rank: int, found: RankedPlan) -> tuple[str, ...]:
    error = found.error
    bias = "unknown" if error.bias is None else f"{error.bias:.4g}"
    total = "at least " if error.bias is None else ""
    return (
        f"{rank}",
        _shown(found.plan.perturbed),
        _shown(found.plan.exact) or "–",
        f"{found.sensitivity}",
        f"{total}{error.rmse:.4g}",
        f"{error.noise:.4g}",
        bias,
    )


def _shown(terms: Sequence[Term]) -> str:
    return " + ".join(":".join(term) or "1" for term in terms)
