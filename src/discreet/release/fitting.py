"""Fitted releases: inner cells recovered, released zeros kept, whole numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeVar, cast, get_args

import numpy as np

from discreet import registry
from discreet.arrays import Array, Real, Whole
from discreet.design.base import Design
from discreet.design.inner import KEPT, ListedTable
from discreet.errors import DesignError, ParameterError
from discreet.progress import notice
from discreet.protect.sentences import adds_up, not_negative, process, whole_numbers
from discreet.randomness import stream
from discreet.release.uncertainty import fitted_precision, likelihoods_of, why_biased
from discreet.solve.fit import Certificate, Fit, Fitter, Status
from discreet.solve.integer.rounding import (
    WHOLE,
    choose_independently,
    choose_systematically,
    round_balanced,
    round_controlled,
    round_near,
    spread_remainder,
    whole_and_fraction,
)
from discreet.solve.margins.from_margins import MarginFit
from discreet.tables.protected import COUNT, Protected
from discreet.tables.statement import Sentence, step_of

AnyProtected = TypeVar("AnyProtected", bound=Protected)
_CELL_OPTIONS = ("start", "variance")
ALL, MARGINS = "all", "margins"
"""Which inner cells a fit may fill: all, or those in no published cell that is zero."""


def fit_cells(
    protected: AnyProtected, fitter: Fitter | str, *, zeros: str = ALL, require: bool = False
) -> AnyProtected:
    """Protected values with inner cells from a fit; see `Release.fit`."""
    if isinstance(fitter, str):
        fitter = cast("Fitter", registry.build("fitter", fitter))
    if not callable(fitter):
        raise ParameterError(f"a fitter or its name was expected, got {fitter!r}.")
    check_zeros(zeros)
    fitter = _with_noise_of(protected, fitter)
    protected = _at_published_levels(protected, fitter)
    closed = zeros == MARGINS
    if closed:
        fit = _fit_without_zeros(protected, fitter)
    else:
        fit = fitter(protected.design, protected.z, weights=protected.fit_weights())
    if require:
        fit.require()
    if isinstance(fit, MarginFit) and (why := why_biased(protected)) is not None:
        fit = replace(fit, compute_errors=partial(_refuse_errors, why))
    most = getattr(fitter, "max_nonzero", None)
    given = {"zeros": MARGINS if closed else None, "max_nonzero": most}
    said = [] if not closed else [_ZEROS_KEPT]
    said += [
        process(
            "fitted",
            f"Inner cells were then fitted to the changed values ({fitter.name}), and published "
            "cells are their sums.",
            "Figures were then adjusted to each other.",
        ),
        adds_up(),
    ]
    if not fit.is_converged:
        said.append(_stopped_early(fit))
    if fit.cells.dtype.kind == "i":
        said += [whole_numbers(), not_negative()]
    step = step_of(f"fit:{fitter.name}", given, said)
    is_known = fit.is_converged and not closed
    return protected.with_parts(
        z=fit.z,
        y=_kept_cells(fit),
        precision=fitted_precision(protected, fitter) if is_known else None,
        fit_result=fit,
        statement=protected.statement.then(step),
    )


def _refuse_errors(why: str) -> Real:
    raise DesignError(why)


def _at_published_levels(protected: AnyProtected, fitter: Any) -> AnyProtected:
    """The values over the groups that are published, unless somebody speaks of finer cells.

    A fit would spread each province evenly over its municipalities, which says nothing and takes
    fifty times as long. Published cells are the same, in the same order.
    """
    coarse = protected.design.at_published_levels() if protected.y is None else None
    if coarse is None or _has_cell_options(fitter):
        return protected
    status, quality = protected.status, protected.quality
    return protected.with_parts(design=coarse, status=status, quality=quality)


def _has_cell_options(fitter: Any) -> bool:
    """Whether a fitter, or one that it tries, has a value for each inner cell."""
    parts = (fitter, *getattr(fitter, "fitters", ()))
    return any(getattr(part, name, None) is not None for part in parts for name in _CELL_OPTIONS)


def _with_noise_of(protected: Protected, fitter: Fitter) -> Fitter:
    """The fitter, told the law or the variance of the release's noise where it asks for it."""
    if getattr(fitter, "likelihoods", 0) is None:
        given: Fitter = replace(fitter, likelihoods=likelihoods_of(protected))  # type: ignore[type-var]
        return given
    precision = protected.precision
    if getattr(fitter, "unit_variance", 0.0) is not None or precision is None:
        return fitter
    noisy = precision[np.isfinite(precision) & (precision > 0)]
    if not len(noisy):
        return fitter
    told: Fitter = replace(fitter, unit_variance=1 / float(noisy.max()))  # type: ignore[type-var]
    return told


def _kept_cells(fit: Fit) -> Any:
    """Inner cells as a release holds them; records of a large crossing stay with the fit."""
    if isinstance(fit.cells, ListedTable):
        return None if fit.cells.size > KEPT else fit.y
    return fit.cells if fit.cells.size > KEPT else fit.y


def _stopped_early(fit: Fit) -> Sentence:
    """That the certificate of a fit does not hold, and what was reached."""
    return process(
        "fit-not-reached",
        f"The fit did not reach its goal (it ended as {fit.status.name}; {fit.certificate}): "
        "figures add up, but others that add up are nearer to the changed values.",
        "The adjustment was stopped before it was perfect.",
    )


_ZEROS_KEPT = process(
    "zeros-kept",
    "Inner cells in a published cell whose changed value was zero were taken to be empty.",
)


def check_zeros(zeros: str) -> None:
    """Refuse a treatment of zeros that does not exist."""
    if zeros not in (ALL, MARGINS):
        raise ParameterError(f"zeros must be {ALL!r} or {MARGINS!r}, got {zeros!r}.")


def _fit_without_zeros(protected: Protected, fitter: Any) -> Any:
    """The fit on the inner cells that lie in no published zero; all others are zero.

    Published cells that are not shown, or have no weight, say nothing about zeros. Options with a
    value for each inner cell are refused: the fit does not see them all.
    """
    if hasattr(fitter, "likelihoods"):
        raise ParameterError(
            "a likelihood says itself which cells may be zero; leave out zeros='margins'."
        )
    if _has_cell_options(fitter):
        raise ParameterError(
            "start= and variance= have a value for each inner cell, but zeros='margins' leaves "
            "some out. Use zeros='all', with a variance of 0 where cells are to stay zero."
        )
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


Rounding = Literal["margins", "near", "unbiased", "total", "cube", "multinomial"]
METHODS: tuple[str, ...] = get_args(Rounding)
_TEXT: dict[str, str] = {
    "margins": "Inner cells were rounded down or up so that published cells are rounded down or "
    "up as well wherever that is possible.",
    "near": "Inner cells were rounded down or up so that published cells stay near their values.",
    "unbiased": "Inner cells were rounded down or up at random, independently and without bias.",
    "total": "Inner cells were rounded down or up at random, without bias and with the total kept.",
    "cube": "Inner cells were rounded down or up at random, without bias and with the published "
    "sums kept as far as possible.",
    "multinomial": "Decimals of inner cells were cut off, and what they sum to was spread over the "
    "cells by a multinomial draw with the decimals as weights, without bias and with the total "
    "kept.",
}


def round_cells(protected: AnyProtected, method: str, seed: int) -> AnyProtected:
    """Inner cells rounded to whole numbers; see `Release.round`.

    Promise: inner cells move by less than one, with ``"multinomial"`` down by less than one, and
    published cells add up. All but ``"margins"`` and ``"near"`` keep every expected value;
    ``"total"`` and ``"multinomial"`` also keep the total to less than one, ``"cube"`` the published
    cells as far as possible; ``"margins"`` brings every published cell within one of its value
    wherever it can, in two-way tables always; ``"near"`` does so in small tables, and most of them
    in others, in a fraction of a second.

    Args:
      protected: Protected values with inner cells, none negative.
      method: One of `METHODS`.
      seed: Seed of the random choices; it need not be secret, for only public values are rounded.
    """
    if method not in METHODS:
        known = ", ".join(repr(m) for m in METHODS)
        raise ParameterError(f"method must be one of {known}, got {method!r}.")
    if protected.y is None:
        raise DesignError("inner cells are not part of this release; fit them before rounding.")
    y = _ROUND[method](protected.design, protected.y, stream(seed, f"round:{method}"))
    done = process("rounded", _TEXT[method], "Figures were rounded to whole numbers.")
    said = [done, adds_up(), whole_numbers(), not_negative()]
    return protected.with_parts(
        z=protected.design.aggregate(y),
        y=y,
        precision=None,
        fit_result=None,
        statement=protected.statement.then(step_of(f"round:{method}", {}, said)),
    )


_LARGEST_ROUNDED = 20_000_000
"""Inner cells up to which counts are rounded unasked: a fifth of a second for 3.6 million."""
_NEGATIVE = ("least-squares", "additive")  # fitters whose values may be below zero


def to_whole_numbers(fitted: AnyProtected, *, asked: bool = False) -> AnyProtected:
    """Fitted counts as whole numbers, with the fit's certificate; others as they are.

    Promise: a function of public values alone, since the seed of the rounding is fixed.

    Args:
      fitted: Fitted values.
      asked: Whether somebody asked for it: least squares has whole numbers then too, unless some
        of its values are negative.
    """
    name = fitted.statement.steps[-1].name.partition(":")[2]
    if fitted.unit != COUNT or fitted.y is None or fitted.y.dtype.kind == "i":
        return fitted
    if name in _NEGATIVE and not asked:
        return fitted
    if not isinstance(fitted.y, np.ndarray) or len(fitted.y) > _LARGEST_ROUNDED:
        notice(
            f"{fitted.design.n_inner:,} inner cells are not rounded unasked, so figures keep their "
            "decimals. Fit with 'from-margins' or 'whole-number', or call `release.round`."
        )
        return fitted
    if (fitted.y < -WHOLE).any():
        notice("some fitted values are negative, so that figures keep their decimals.")
        return fitted
    return replace(round_cells(fitted, "near", 0), fit_result=fitted.fit_result)


def _round_by(draw: Callable[..., Array], y: Array, rng: np.random.Generator) -> Whole:
    base, fraction = whole_and_fraction(y)
    return base + draw(fraction, rng)


_ROUND: dict[str, Callable[[Design, Array, np.random.Generator], Whole]] = {
    "margins": lambda design, y, rng: round_controlled(design, y, rng=rng).y,
    "near": lambda design, y, rng: round_near(design, y, rng=rng),
    "unbiased": lambda _, y, rng: _round_by(choose_independently, y, rng),
    "total": lambda _, y, rng: _round_by(choose_systematically, y, rng),
    "cube": lambda design, y, rng: round_balanced(design, y, rng=rng),
    "multinomial": lambda _, y, rng: _round_by(spread_remainder, y, rng),
}
