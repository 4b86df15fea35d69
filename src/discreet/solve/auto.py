"""Fitters made of others: `Auto` chooses one by what is published, `Chain` puts some in a row."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from discreet.arrays import Array, Mask, Real
from discreet.design.base import Design
from discreet.design.fused.contradictions import Contradictions
from discreet.design.fused.null_space import NullSpace
from discreet.design.support import LARGEST_DENSE
from discreet.errors import ParameterError
from discreet.registry import load
from discreet.solve.fit import (
    Certificate,
    Fit,
    Fitter,
    FitterBase,
    Prepared,
    Status,
    check_tolerance,
    checked_values,
    checked_weights,
)
from discreet.solve.least_squares.least_squares import LeastSquares, publishes_every_cell
from discreet.solve.likelihood.log_linear import LogLinear
from discreet.solve.margins.from_margins import FromMargins
from discreet.solve.non_negative.non_negative import NonNegative

# A slope of so many tolerances, relative to that which a count causes, closes a cell.
_SURE = 100.0
# Inner cells that passes over a table walk through, in some minutes on two cores.
_MOST_WALKED = 5_000_000_000
# Cells add up where they deviate by no more than this share of their size, or of one count,
_ROUNDING = 1e-9
# and this share of the largest cell, which double precision does not resolve.
_RESOLUTION = 1e-13


@dataclass(frozen=True, eq=False)
class Auto(FitterBase):
    """Expected inner frequencies by the simplest fit that serves, with the reason in the notes.

    Where every inner cell is published there is nothing to spread: cells that add up are taken as
    they are, others are fitted by `NonNegative`. Where inner cells are open, cells that add up and
    are not negative are spread by `LogLinear`; others go through `Chain`, non-negative first, and
    so do cells that add up in no table without negative inner cells. A crossing of more than five
    billion cells is not walked through: `FromMargins` works on its margins alone.

    Promise: the inner cells are not negative, and `notes["fitter"]` and `notes["why"]` say what was
    done; `choose` says it before the fit. Certificate and status are those of the chosen fit.

    Cost: some passes over the published cells to see whether they add up, or a least squares fit
    where inner cells are structural zeros or published ones are not used; then that of the fit.

    Args:
      tolerance: Accuracy of the least squares fits, as for `NonNegative`.

    See Langsrud (2019b), Langsrud & Lupp (2021).
    """

    name = "auto"
    tolerance: float = 1e-3

    def __post_init__(self) -> None:
        check_tolerance(self.tolerance)

    def choose(self, design: Design, z: Array, *, weights: Array | None = None) -> FitterChoice:
        """The fitter that suits the published cells, and why.

        A log-linear fit may find that its cells add up in no table without negative inner cells;
        the call then goes on with the chain, and says so in its notes.
        """
        return _PreparedAuto(self, design).choose(z, weights)

    def prepare(self, design: Design) -> Prepared:
        """Prepare what may be needed, when it is needed first."""
        return _PreparedAuto(self, design)


class FitterChoice(NamedTuple):
    """A fitter, and the reason for it in words."""

    fitter: Fitter
    why: str


@dataclass(frozen=True, eq=False)
class _PreparedAuto:
    """The fits of one design, each prepared on first use."""

    options: Auto
    design: Design
    prepared: dict[str, Prepared] = field(default_factory=dict)

    def __call__(self, z: Array, *, weights: Array | None = None) -> Fit:
        began = time.perf_counter()
        fitter, why = self.choose(z, weights)
        fit = self._fit_with(fitter, z, weights)
        # What does not arrive is passed on, in the end to a fit that serves any values.
        more: list[Fitter] = [self._chain, self._non_negative]
        order = [f.name for f in (LogLinear(), *more)]
        for other in more[order.index(fitter.name) :] if fitter.name in order else ():
            if fit.is_converged:
                break
            if fit.status is Status.inconsistent:
                why = "no table without negative inner cells has the published ones"
            else:
                why = f"{why}; {fitter.name} ended as {fit.status.name}"
            again = self._fit_with(other, z, weights)
            fitter, fit = min((fitter, fit), (other, again), key=_distance)
        notes = fit.notes | {"fitter": fitter.name, "why": why}
        return replace(fit, notes=notes, seconds=time.perf_counter() - began)

    def choose(self, z: Array, weights: Array | None) -> FitterChoice:
        w = checked_weights(self.design, weights)
        if self.design.n_inner > _MOST_WALKED and self.design.over_variables is not None:
            return FitterChoice(FromMargins(), "the crossing is too large to be walked through")
        adds_up = self._adds_up(checked_values(self.design, z, w > 0), w)
        if publishes_every_cell(self.design, w):
            sums = "and all cells add up" if adds_up else "but sums contradict"
            return FitterChoice(self._non_negative, f"every inner cell is published, {sums}")
        open_cells = "and inner cells are not published"
        if adds_up:
            return FitterChoice(LogLinear(), f"published cells add up, {open_cells}")
        return FitterChoice(self._chain, f"published cells contradict each other, {open_cells}")

    def _adds_up(self, z: Real, w: Real) -> bool:
        """Whether some table without negative margins has the published cells."""
        if (z < 0).any():
            return False
        used, full = w > 0, self.design.product_form
        # On full crossings contradictions are found among the published cells alone, whatever the
        # size of the table; else by the least squares fit, which meets cells that add up.
        if full is not None and used.all() and NullSpace.is_known(full):
            fitted = full.complete(z - Contradictions(full).part(z))
        else:
            least_squares = LeastSquares(tolerance=_ROUNDING)
            found = self._fit_with(least_squares, z, used.astype(np.float64))
            if not found.is_converged:
                return True  # not known: the log-linear fit finds out, and is passed on if not
            fitted = found.z
        allowed = _ROUNDING * np.maximum(z, 1.0) + _RESOLUTION * z.max(initial=0.0)
        return bool((np.abs(fitted - z) <= allowed)[used].all())

    def _fit_with(self, fitter: Fitter, z: Array, weights: Array | None) -> Fit:
        if fitter.name not in self.prepared:
            self.prepared[fitter.name] = fitter.prepare(self.design)
        return self.prepared[fitter.name](z, weights=weights)

    @property
    def _non_negative(self) -> NonNegative:
        return NonNegative(tolerance=self.options.tolerance)

    @property
    def _chain(self) -> Chain:
        return Chain([self._non_negative, LogLinear()])


@dataclass(frozen=True, eq=False)
class Chain(FitterBase):
    """Perturbed margins to a table that adds up, then to expected inner frequencies, in one call.

    By default non-negative least squares makes the margins consistent, and the log-linear model
    spreads them over the inner cells, so that no cell is zero without need.

    Promise: the published cells of the result are those of the first fit as nearly as the later
    ones reach their tolerances. The status is that of the first fit that did not converge, and the
    certificate that of the weakest link; every link's own stand in the notes.

    Cost: that of its fits.

    Args:
      fitters: Fitters or their names, in order. Weights go to the first; the others meet what they
        are given, less the cells of weight zero that the first left open.

    See Langsrud (2019b), Langsrud & Lupp (2021).
    """

    name = "chain"
    fitters: Sequence[Fitter | str] = ("non-negative", "log-linear")

    def __post_init__(self) -> None:
        is_list = isinstance(self.fitters, Iterable) and not isinstance(self.fitters, str)
        fitters = []
        for given in self.fitters if is_list else ():
            fitters.append(load("fitter", given)() if isinstance(given, str) else given)
            if not callable(getattr(fitters[-1], "prepare", None)):
                raise ParameterError(f"a chain needs fitters or their names, got {given!r}.")
        if not fitters:
            raise ParameterError(f"a chain needs a list of fitters, got {self.fitters!r}.")
        object.__setattr__(self, "fitters", tuple(fitters))

    def prepare(self, design: Design) -> Prepared:
        """Prepare every fitter of the chain."""
        links = [(f, f.prepare(design)) for f in self.fitters if not isinstance(f, str)]
        return partial(_fit_chain, links, design)


def _fit_chain(
    links: Sequence[tuple[Fitter, Prepared]],
    design: Design,
    z: Array,
    *,
    weights: Array | None = None,
) -> Fit:
    began, fits, closed = time.perf_counter(), list[Fit](), None
    for fitter, link in links:
        fit = None
        if closed is not None and isinstance(fitter, LogLinear) and fitter.start is None:
            fit = replace(fitter, start=~closed)(design, z, weights=weights)
        fits.append(fit if fit is not None and fit.is_converged else link(z, weights=weights))
        if not fits[-1].is_converged:
            break
        closed = _closed_cells(fitter, fits[-1], design, z, weights)
        z = fits[-1].z
        # Fitted cells have no noise of their own, but what was left out stays out.
        if weights is not None:
            weights = (np.asarray(weights) > 0).astype(np.float64)
    summaries = [
        {
            "fitter": fitter.name,
            "status": fit.status.name,
            "certificate": fit.certificate,
            "iterations": fit.iterations,
            "seconds": fit.seconds,
        }
        for (fitter, _), fit in zip(links, fits, strict=False)
    ]
    return Fit(
        fits[-1].cells,
        fits[-1].z,
        fits[-1].status,
        max((f.certificate for f in fits), key=_share_of_tolerance),
        sum(f.iterations for f in fits),
        time.perf_counter() - began,
        {"links": summaries},
        fits[-1].design,
    )


def _closed_cells(
    fitter: Fitter, fit: Fit, design: Design, z: Array, weights: Array | None
) -> Mask | None:
    r"""Inner cells that are zero in every table with the published cells of a non-negative fit.

    At its optimum the forces :math:`u` on published cells have :math:`Xu \le 0`, and
    :math:`y^\top Xu = 0` for all tables with the fitted cells: where :math:`Xu < 0` they are zero.
    A log-linear fit would drive these cells to zero one power of ten after the other.
    """
    if not isinstance(fitter, NonNegative) or fitter.ridge or design.n_inner > LARGEST_DENSE:
        return None
    w = checked_weights(design, weights)
    forces = w * (checked_values(design, z, w > 0) - fit.z)
    forces[fit.notes["held"]] = fit.notes["multipliers"]
    slope = -design.adjoint(forces)
    closed = (fit.y == 0) & (slope > _SURE * fitter.tolerance * design.adjoint(w))
    return closed if closed.any() else None


def _distance(found: tuple[Fitter, Fit]) -> float:
    """How far a fit is from its goal; one of contradicting margins has none."""
    fit = found[1]
    return np.inf if fit.status is Status.inconsistent else _share_of_tolerance(fit.certificate)


def _share_of_tolerance(certificate: Certificate) -> float:
    """How near a certificate is to its tolerance, or how far beyond it."""
    return certificate.worst / certificate.tolerance if certificate.tolerance else np.inf
