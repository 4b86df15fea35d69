"""Fits in a row: each is fitted to the published cells of the one before."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from discreet.arrays import Array
from discreet.design.base import Design
from discreet.errors import ParameterError
from discreet.registry import load
from discreet.solve.fit import Certificate, Fit, Fitter, FitterBase, Prepared


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
    z: Array,
    *,
    weights: Array | None = None,
) -> Fit:
    began, fits = time.perf_counter(), list[Fit]()
    for _, link in links:
        fits.append(link(z, weights=weights))
        if not fits[-1].is_converged:
            break
        z = fits[-1].z
        if weights is not None:  # what was left out stays out
            weights = (np.asarray(weights) > 0).astype(np.float64)
    return Fit(
        fits[-1].cells,
        fits[-1].z,
        fits[-1].status,
        max((f.certificate for f in fits), key=_share),
        sum(f.iterations for f in fits),
        time.perf_counter() - began,
        {"links": [_summary(name, fit) for (name, _), fit in zip(links, fits, strict=False)]},
        fits[-1].design,
    )


def _share(certificate: Certificate) -> float:
    """How near a certificate is to its tolerance, or how far beyond it."""
    return certificate.worst / certificate.tolerance if certificate.tolerance else np.inf


def _summary(name: str, fit: Fit) -> dict[str, Any]:
    return {
        "fitter": name,
        "status": fit.status.name,
        "certificate": fit.certificate,
        "iterations": fit.iterations,
        "seconds": fit.seconds,
    }
