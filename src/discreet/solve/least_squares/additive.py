r"""Additivity by clamping and refitting, the scheme the field uses (Langsrud & Lupp 2021)."""

from __future__ import annotations

import numbers
import time
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from discreet.arrays import Array, Mask, Real
from discreet.design.base import Design
from discreet.errors import ParameterError
from discreet.progress import report
from discreet.solve.fit import (
    Fit,
    FitterBase,
    Prepared,
    check_options,
    checked_values,
    checked_weights,
)
from discreet.solve.least_squares.least_squares import LeastSquares


@dataclass(frozen=True, eq=False)
class Additive(FitterBase):
    r"""Least squares, with published cells that come out negative set to zero for good.

    The published cells are projected on the tables that add up. Cells that come out below `limit`
    become zero; every published cell that is zero is then dropped together with all inner cells
    that count in it, and the rest is projected again, until no further cell falls below.

    Promise: published cells add up and are not negative. This is not the non-negative least squares
    fit: a cell once set to zero is never released, zeros in the input become structural as soon as
    one fitted cell is negative, and inner cells may be negative. It is here because published
    figures were made with it; `NonNegative` fits better.

    Cost: one least squares fit for each round; a handful of rounds.

    Args:
      limit: Fitted published cells below it count as zero.
      tolerance: Accuracy of each round, as for `LeastSquares`.
      max_steps: Conjugate gradient steps after which a round gives up.
      count: What one count is in the units of the data.

    See Langsrud & Lupp (2021).
    """

    name = "additive"
    limit: float = 1e-10
    tolerance: float = 1e-6
    max_steps: int = 20_000
    count: float = 1.0

    def __post_init__(self) -> None:
        check_options(self.tolerance, self.max_steps, self.count)
        if not (isinstance(self.limit, numbers.Real) and 0 < self.limit < 1):
            raise ParameterError(f"limit must lie in (0, 1), got {self.limit!r}.")

    def prepare(self, design: Design) -> Prepared:
        """Find the structure of the design once for many right-hand sides."""
        rounds = LeastSquares(tolerance=self.tolerance, max_steps=self.max_steps, count=self.count)
        return partial(_fit, self.limit, design, rounds, rounds.prepare(design))


def _fit(
    limit: float,
    design: Design,
    least_squares: LeastSquares,
    first_round: Prepared,
    z: Array,
    *,
    weights: Array | None = None,
) -> Fit:
    began, w = time.perf_counter(), checked_weights(design, weights)
    now = first_round(z, weights=w)
    notes = {"structure": now.notes["structure"]}
    targets = checked_values(design, z, w > 0)
    low, rounds, steps = now.z < limit, 1, now.iterations
    while low.any() and now.is_converged:
        report("fit", 1.0 - 1.0 / rounds)
        now = _without(low | ((targets == 0) & (w > 0)), now, design, least_squares, targets, w)
        rounds, steps = rounds + 1, steps + now.iterations
        more = low | (now.z < limit)
        if more.sum() == low.sum():
            break
        low = more
    notes |= {"solver": now.notes["solver"], "rounds": rounds, "zeros": int(low.sum())}
    return replace(now, iterations=steps, seconds=time.perf_counter() - began, notes=notes)


def _without(
    zero: Mask, last: Fit, design: Design, least_squares: LeastSquares, z: Real, weights: Real
) -> Fit:
    """The fit without zero cells, whether they were set or given, and without their members.

    A cell of weight zero has no given value, but can be set to zero as any other. What is left of
    the last fit has the form of the smallest norm still, so that its correction is fitted.
    """
    cells = np.flatnonzero(design.adjoint(zero.astype(np.float64)) == 0)
    rest, at = design.restricted(cells)
    left = last.y[cells]
    fit = least_squares(rest, z[at] - rest.aggregate(left), weights=weights[at])
    y, fitted = np.zeros(design.n_inner), np.zeros(design.n_published)
    y[cells] = left + fit.y
    fitted[at] = rest.aggregate(y[cells])
    cell = fit.certificate.cell
    certificate = replace(fit.certificate, cell=None if cell is None else int(at[cell]))
    return replace(fit, cells=y, z=fitted, certificate=certificate, design=design)
