"""The fit that suits the published cells, chosen by what they are."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.design.base import Design
from discreet.solve.continuous.chain import Chain
from discreet.solve.continuous.inputs import check_tolerance, checked_values, checked_weights
from discreet.solve.continuous.least_squares import LeastSquares
from discreet.solve.continuous.log_linear import LogLinear
from discreet.solve.continuous.non_negative import NonNegative
from discreet.solve.fit import Fit, Fitter, FitterBase, Prepared, Status

_ROUNDING = 1e-9  # of its size, or of one count, up to which a published cell adds up
_RESOLUTION = 1e-13  # the same of the largest cell, which double precision does not resolve


@dataclass(frozen=True, eq=False)
class Auto(FitterBase):
    """Expected inner frequencies by the simplest fit that serves, with the reason in the notes.

    Where every inner cell is published there is nothing to spread: cells that add up are taken as
    they are, others are fitted by `NonNegative`. Where inner cells are open, cells that add up and
    are not negative are spread by `LogLinear`; others go through `Chain`, non-negative first, and
    so do cells that add up in no table without negative inner cells.

    Promise: the inner cells are not negative, and `notes["fitter"]` and `notes["why"]` say what was
    done. Certificate and status are those of the fit that was chosen.

    Cost: one least squares fit to see whether the cells add up (nothing where it has a closed
    form), then that of the fit that was chosen.

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

    def prepare(self, design: Design) -> Prepared:
        """Prepare what may be needed, when it is needed first."""
        return _Choice(self, design)


@dataclass(frozen=True, eq=False)
class _Choice:
    """The fits of one design, each prepared on first use."""

    options: Auto
    design: Design

    def __call__(self, z: NDArray[Any], *, weights: NDArray[Any] | None = None) -> Fit:
        began = time.perf_counter()
        w = checked_weights(self.design, weights)
        values = checked_values(self.design, z, w > 0)
        fitter, why = self._choose(values, w)
        fit = fitter(z, weights=weights)
        if fitter is self._log_linear and fit.status is Status.inconsistent:
            fitter, why = (
                self._chain,
                "no table without negative inner cells has the published ones",
            )
            fit = fitter(z, weights=weights)
        notes = fit.notes | {"fitter": fitter.name, "why": why}
        return replace(fit, notes=notes, seconds=time.perf_counter() - began)

    def _choose(self, z: NDArray[np.float64], w: NDArray[np.float64]) -> tuple[_Named, str]:
        known = self._knows_every_inner_cell(w)
        open_cells = "inner cells are not published"
        if not self._adds_up(z, w):
            if known:
                return self._non_negative, "every inner cell is published, but sums contradict"
            return self._chain, f"published cells contradict each other, and {open_cells}"
        if known:
            return self._non_negative, "every inner cell is published, and all cells add up"
        return self._log_linear, f"published cells add up, and {open_cells}"

    def _knows_every_inner_cell(self, w: NDArray[np.float64]) -> bool:
        single = (self.design.column_sizes == 1) & (w > 0)
        return bool((self.design.adjoint(single.astype(np.float64)) > 0).all())

    def _adds_up(self, z: NDArray[np.float64], w: NDArray[np.float64]) -> bool:
        """Whether some table without negative margins has the published cells."""
        if (z < 0).any():
            return False
        fitted = self._least_squares(z, weights=(w > 0).astype(np.float64)).z
        allowed = _ROUNDING * np.maximum(z, 1.0) + _RESOLUTION * z.max(initial=0.0)
        return bool((np.abs(fitted - z) <= allowed)[w > 0].all())

    @cached_property
    def _least_squares(self) -> _Named:
        return _Named.of(LeastSquares(tolerance=_ROUNDING), self.design)

    @cached_property
    def _non_negative(self) -> _Named:
        return _Named.of(NonNegative(tolerance=self.options.tolerance), self.design)

    @cached_property
    def _log_linear(self) -> _Named:
        return _Named.of(LogLinear(), self.design)

    @cached_property
    def _chain(self) -> _Named:
        first = NonNegative(tolerance=self.options.tolerance)
        return _Named.of(Chain([first, LogLinear()]), self.design)


@dataclass(frozen=True, eq=False)
class _Named:
    """A prepared fitter that keeps its name."""

    name: str
    prepared: Prepared

    @classmethod
    def of(cls, fitter: Fitter, design: Design) -> _Named:
        return cls(fitter.name, fitter.prepare(design))

    def __call__(self, z: NDArray[Any], *, weights: NDArray[Any] | None = None) -> Fit:
        return self.prepared(z, weights=weights)
