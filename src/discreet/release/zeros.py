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
from numpy.typing import NDArray

from discreet.design.base import Design
from discreet.design.release import Fitter, Protected
from discreet.design.sparse import SparseDesign
from discreet.design.structured import StructuredDesign
from discreet.errors import ParameterError
from discreet.solve.fit import Certificate, Fit, Status

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
    sub, cells = on_support(design, kept)
    fit = fitter(sub, protected.z[cells], weights=None if weights is None else weights[cells])
    y = np.zeros(design.n_inner, dtype=fit.y.dtype)
    y[kept] = fit.y
    return replace(fit, cells=y, z=design.aggregate(y), notes=fit.notes | notes, design=design)


def on_support(design: Design, kept: NDArray[np.intp]) -> tuple[Design, NDArray[np.int64]]:
    """The design on some inner cells, and which published cells they reach."""
    if not isinstance(design, StructuredDesign):
        X = design.matrix()[kept]
        cells = np.flatnonzero(np.asarray(X.sum(axis=0)).ravel())
        return Design.from_matrix(X[:, cells]), cells
    codes = [codes[kept] for codes in design.inner_codes()]
    sub = SparseDesign(design.axes, [*design.terms], codes)
    places = [
        int(design.offsets[k]) + np.searchsorted(design.block_cells(k), sub.block_cells(k))
        for k in range(len(design.blocks))
    ]
    return sub, np.concatenate(places)


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
