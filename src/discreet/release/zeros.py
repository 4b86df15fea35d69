"""Fits that keep released zeros: inner cells under a published zero are left out.

Langsrud (2019b) treats zeros in three ways: fit all inner cells, leave out all that are truly empty
(which the custodian alone can do), or leave out those that lie under a zero among the published
cells. The third is a function of released values, so whoever has the release can do it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from discreet.errors import ParameterError
from discreet.solve.fit import Certificate, Fit, Fitter, Status
from discreet.tables.protected import Protected

ALL, MARGINS = "all", "margins"
"""Which inner cells a fit may fill: all, or those in no published cell that is zero."""
_OF_INNER_CELLS = ("start", "variance")
"""Options of fitters with a value for each inner cell."""


def check_zeros(zeros: str) -> None:
    """Refuse a treatment of zeros that does not exist."""
    if zeros not in (ALL, MARGINS):
        raise ParameterError(f"zeros must be {ALL!r} or {MARGINS!r}, got {zeros!r}.")


def fit_without_zeros(protected: Protected, fitter: Fitter) -> Any:
    """The fit on the inner cells that lie in no published zero; all others are zero.

    Published cells that are not shown, or have no weight, say nothing about zeros.
    """
    _check_fitter(fitter)
    design, weights = protected.design, protected.fit_weights()
    zero = np.asarray(protected.z) == 0
    if weights is not None:
        zero &= weights > 0
    kept = np.flatnonzero(design.adjoint(zero.astype(np.int64)) == 0)
    notes = {"zeros": design.n_inner - len(kept)}
    if not len(kept):
        nothing = np.zeros(design.n_inner), np.zeros(design.n_published)
        return Fit(*nothing, Status.converged, Certificate(), notes=notes, design=design)
    sub, cells = design.restricted(kept)
    fit = fitter(sub, protected.z[cells], weights=None if weights is None else weights[cells])
    y = np.zeros(design.n_inner, dtype=fit.y.dtype)
    y[kept] = fit.y
    return replace(fit, cells=y, z=design.aggregate(y), notes=fit.notes | notes, design=design)


def _check_fitter(fitter: Any) -> None:
    """Refuse options with a value for each inner cell: the fit does not see them all."""
    for part in _parts(fitter):
        given = [name for name in _OF_INNER_CELLS if getattr(part, name, None) is not None]
        if given:
            raise ParameterError(
                f"{given[0]}= has a value for each inner cell, but zeros='margins' leaves "
                "some out. Use zeros='all', with a variance of 0 where cells are to stay zero."
            )


def _parts(fitter: Any) -> Iterable[Any]:
    yield fitter
    yield from getattr(fitter, "fitters", ())
