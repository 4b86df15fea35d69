"""Fitted releases: inner cells recovered from protected ones, and what may be said of them."""

from __future__ import annotations

from typing import TypeVar

from discreet.design.release import Fitter, Protected
from discreet.design.statement import Sentence, step_of
from discreet.protect.sentences import adds_up, process
from discreet.release.uncertainty import fitted_precision

AnyProtected = TypeVar("AnyProtected", bound=Protected)


def fitted(protected: AnyProtected, fitter: Fitter, *, require: bool) -> AnyProtected:
    """Protected values with inner cells from a fit; see `Protected.fit`."""
    fit = fitter(protected.design, protected.z, weights=protected.fit_weights())
    if require:
        fit.require()
    step = step_of(f"fit:{fitter.name}", {}, _sentences(fitter))
    return protected.with_parts(
        z=fit.z,
        y=fit.y,
        precision=fitted_precision(protected, fitter),
        fit_result=fit,
        statement=protected.statement.then(step),
    )


def _sentences(fitter: Fitter) -> list[Sentence]:
    return [
        process(
            "fitted",
            f"Inner cells were then fitted to the changed values ({fitter.name}), and published "
            "cells are their sums.",
            "Figures were then adjusted to each other.",
        ),
        adds_up(),
    ]
