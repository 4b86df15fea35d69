"""Fitted releases: inner cells recovered from protected ones, and what may be said of them."""

from __future__ import annotations

from typing import TypeVar, cast

from discreet import registry
from discreet.design.inner import KEPT
from discreet.errors import ParameterError
from discreet.protect.sentences import adds_up, not_negative, process, whole_numbers
from discreet.release.uncertainty import fitted_precision
from discreet.release.zeros import ALL, MARGINS, check_zeros, fit_without_zeros
from discreet.solve.fit import Fitter
from discreet.tables.protected import Protected
from discreet.tables.statement import Sentence, step_of

AnyProtected = TypeVar("AnyProtected", bound=Protected)


def fitted(
    protected: AnyProtected, fitter: Fitter | str, *, zeros: str = ALL, require: bool = True
) -> AnyProtected:
    """Protected values with inner cells from a fit; see `Release.fit`."""
    if isinstance(fitter, str):
        fitter = cast("Fitter", registry.build("fitter", fitter))
    if not callable(fitter):
        raise ParameterError(f"a fitter or its name was expected, got {fitter!r}.")
    check_zeros(zeros)
    closed = zeros == MARGINS
    if closed:
        fit = fit_without_zeros(protected, fitter)
    else:
        fit = fitter(protected.design, protected.z, weights=protected.fit_weights())
    if require:
        fit.require()
    most = getattr(fitter, "max_nonzero", None)
    given = {"zeros": MARGINS if closed else None, "max_nonzero": most}
    said = _sentences(fitter, closed=closed)
    if fit.cells.dtype.kind == "i":
        said += [whole_numbers(), not_negative()]
    step = step_of(f"fit:{fitter.name}", given, said)
    return protected.with_parts(
        z=fit.z,
        y=fit.cells if len(fit.cells) > KEPT else fit.y,
        precision=None if closed else fitted_precision(protected, fitter),
        fit_result=fit,
        statement=protected.statement.then(step),
    )


def _sentences(fitter: Fitter, *, closed: bool) -> list[Sentence]:
    kept = process(
        "zeros-kept",
        "Inner cells in a published cell whose changed value was zero were taken to be empty.",
    )
    return [
        *([kept] if closed else []),
        process(
            "fitted",
            f"Inner cells were then fitted to the changed values ({fitter.name}), and published "
            "cells are their sums.",
            "Figures were then adjusted to each other.",
        ),
        adds_up(),
    ]
