"""The fit that suits the published cells, chosen by what they are."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from discreet.arrays import Array, Mask, Real
from discreet.design.base import Design
from discreet.design.fused.null_space import Contradictions, NullSpace
from discreet.solve.chain import Chain
from discreet.solve.fit import Fit, Fitter, FitterBase, Prepared, Status
from discreet.solve.inputs import check_tolerance, checked_values, checked_weights
from discreet.solve.least_squares.least_squares import LeastSquares
from discreet.solve.likelihood.log_linear import LogLinear
from discreet.solve.non_negative.non_negative import NonNegative


@dataclass(frozen=True)
class AutoSchedule:
    """When published cells add up.

    Attributes:
      rounding: Share of its size, or of one count, by which a published cell may be off.
      resolution: The same of the largest cell, which double precision does not resolve.
    """

    rounding: float = 1e-9
    resolution: float = 1e-13


SCHEDULE = AutoSchedule()


@dataclass(frozen=True, eq=False)
class Auto(FitterBase):
    """Expected inner frequencies by the simplest fit that serves, with the reason in the notes.

    Where every inner cell is published there is nothing to spread: cells that add up are taken as
    they are, others are fitted by `NonNegative`. Where inner cells are open, cells that add up and
    are not negative are spread by `LogLinear`; others go through `Chain`, non-negative first, and
    so do cells that add up in no table without negative inner cells.

    Promise: the inner cells are not negative, and `notes["fitter"]` and `notes["why"]` say what was
    done; `choose` says it before the fit. Certificate and status are those of the chosen fit.

    Cost: some passes over the published cells to see whether they add up, or a least squares fit
    where inner cells are structural zeros or published ones are not used; then that of the fit.

    Args:
      tolerance: Accuracy of the least squares fits, as for `NonNegative`.

    See Langsrud (2019b), Langsrud & Lupp (2021).
    """

    tolerance: float = 1e-3

    def __post_init__(self) -> None:
        check_tolerance(self.tolerance)

    @property
    def name(self) -> str:
        """The fitter's name in the registry."""
        return "auto"

    def choose(self, design: Design, z: Array, *, weights: Array | None = None) -> Chosen:
        """The fitter that suits the published cells, and why.

        A log-linear fit may find that its cells add up in no table without negative inner cells;
        the call then goes on with the chain, and says so in its notes.
        """
        return _Fits(self, design).choose(z, weights)

    def prepare(self, design: Design) -> Prepared:
        """Prepare what may be needed, when it is needed first."""
        return _Fits(self, design)


class Chosen(NamedTuple):
    """A fitter, and the reason for it in words."""

    fitter: Fitter
    why: str


@dataclass(frozen=True, eq=False)
class _Fits:
    """The fits of one design, each prepared on first use."""

    options: Auto
    design: Design
    prepared: dict[str, Prepared] = field(default_factory=dict)

    def __call__(self, z: Array, *, weights: Array | None = None) -> Fit:
        began = time.perf_counter()
        fitter, why = self.choose(z, weights)
        fit = self._fitted(fitter, z, weights)
        if isinstance(fitter, LogLinear) and fit.status is Status.inconsistent:
            why = "no table without negative inner cells has the published ones"
            fitter, fit = self._chain, self._fitted(self._chain, z, weights)
        notes = fit.notes | {"fitter": fitter.name, "why": why}
        return replace(fit, notes=notes, seconds=time.perf_counter() - began)

    def choose(self, z: Array, weights: Array | None) -> Chosen:
        w = checked_weights(self.design, weights)
        adds_up = self._adds_up(checked_values(self.design, z, w > 0), w)
        if self._knows_every_inner_cell(w):
            sums = "and all cells add up" if adds_up else "but sums contradict"
            return Chosen(self._non_negative, f"every inner cell is published, {sums}")
        open_cells = "and inner cells are not published"
        if adds_up:
            return Chosen(LogLinear(), f"published cells add up, {open_cells}")
        return Chosen(self._chain, f"published cells contradict each other, {open_cells}")

    def _knows_every_inner_cell(self, w: Real) -> bool:
        single = (self.design.column_sizes == 1) & (w > 0)
        if np.count_nonzero(single) < self.design.n_inner:
            return False
        return bool((self.design.adjoint(single.astype(np.float64)) > 0).all())

    def _adds_up(self, z: Real, w: Real) -> bool:
        """Whether some table without negative margins has the published cells."""
        if (z < 0).any():
            return False
        fitted = self._that_add_up(z, w > 0)
        allowed = SCHEDULE.rounding * np.maximum(z, 1.0) + SCHEDULE.resolution * z.max(initial=0.0)
        return bool((np.abs(fitted - z) <= allowed)[w > 0].all())

    def _that_add_up(self, z: Real, used: Mask) -> Real:
        """Published cells of some table near the given ones, the same if there is one with these.

        On full crossings they are found among the published cells, whatever the size of the table.
        """
        full = self.design.product_form
        if full is not None and used.all() and NullSpace.is_known(full):
            return full.complete(z - Contradictions(full).part(z))
        least_squares = LeastSquares(tolerance=SCHEDULE.rounding)
        return self._fitted(least_squares, z, used.astype(np.float64)).z

    def _fitted(self, fitter: Fitter, z: Array, weights: Array | None) -> Fit:
        if fitter.name not in self.prepared:
            self.prepared[fitter.name] = fitter.prepare(self.design)
        return self.prepared[fitter.name](z, weights=weights)

    @property
    def _non_negative(self) -> NonNegative:
        return NonNegative(tolerance=self.options.tolerance)

    @property
    def _chain(self) -> Chain:
        return Chain([self._non_negative, LogLinear()])
