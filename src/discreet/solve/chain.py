"""Fits in a row: each is fitted to the published cells of the one before."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.design.base import Design
from discreet.errors import ParameterError
from discreet.registry import load
from discreet.solve.fit import Certificate, Fit, Fitter, FitterBase, Prepared, Status


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

    fitters: Sequence[Fitter | str] = ("non-negative", "log-linear")

    def __post_init__(self) -> None:
        is_list = isinstance(self.fitters, Iterable) and not isinstance(self.fitters, str)
        made = tuple(_made(f) for f in self.fitters) if is_list else ()
        if not made:
            raise ParameterError(f"a chain needs a list of fitters, got {self.fitters!r}.")
        object.__setattr__(self, "fitters", made)

    @property
    def name(self) -> str:
        """The fitter's name in the registry."""
        return "chain"

    def prepare(self, design: Design) -> Prepared:
        """Prepare every fitter of the chain."""
        links = [(f.name, f.prepare(design)) for f in self.fitters if not isinstance(f, str)]
        return partial(_fit, links)


def _made(fitter: Fitter | str) -> Fitter:
    """A fitter, given as such or by its name."""
    made: Fitter = load("fitter", fitter)() if isinstance(fitter, str) else fitter
    if not callable(getattr(made, "prepare", None)):
        raise ParameterError(f"a chain needs fitters or their names, got {fitter!r}.")
    return made


def _fit(
    links: Sequence[tuple[str, Prepared]],
    z: NDArray[Any],
    *,
    weights: NDArray[Any] | None = None,
) -> Fit:
    began = time.perf_counter()
    fits: list[Fit] = []
    for _, link in links:
        fits.append(link(z, weights=weights))
        if not fits[-1].is_converged:
            break
        z, weights = fits[-1].z, _used(weights)
    return Fit(
        fits[-1].cells,
        fits[-1].z,
        _status(fits),
        _weakest([f.certificate for f in fits]),
        sum(f.iterations for f in fits),
        time.perf_counter() - began,
        {"links": [_summary(name, fit) for (name, _), fit in zip(links, fits, strict=False)]},
        fits[-1].design,
    )


def _used(weights: NDArray[Any] | None) -> NDArray[np.float64] | None:
    """Weights of the links after the first: what was left out stays out."""
    return None if weights is None else (np.asarray(weights) > 0).astype(np.float64)


def _status(fits: Sequence[Fit]) -> Status:
    return next((f.status for f in fits if not f.is_converged), Status.converged)


def _weakest(certificates: Sequence[Certificate]) -> Certificate:
    """The certificate that is nearest to its tolerance, or furthest beyond it."""
    shares = [c.worst / c.tolerance if c.tolerance else np.inf for c in certificates]
    return certificates[int(np.argmax(shares))]


def _summary(name: str, fit: Fit) -> dict[str, Any]:
    return {
        "fitter": name,
        "status": fit.status.name,
        "certificate": fit.certificate,
        "iterations": fit.iterations,
        "seconds": fit.seconds,
    }
