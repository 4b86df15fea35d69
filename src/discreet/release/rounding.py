"""Whole-number releases of fitted inner cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from discreet.design.base import Design
from discreet.design.release import QUALITY_STEP, Release, Step
from discreet.errors import DesignError, ParameterError
from discreet.solve.integer.remainders import parts
from discreet.solve.integer.rounding import balanced, controlled, independent, systematic

Rounding = Literal["margins", "unbiased", "total", "cube"]
Whole = NDArray[np.int64]

_TEXT: dict[str, str] = {
    "margins": "Inner cells were rounded down or up so that published cells are rounded down or "
    "up as well wherever that is possible.",
    "unbiased": "Inner cells were rounded down or up at random, independently and without bias.",
    "total": "Inner cells were rounded down or up at random, without bias and with the total kept.",
    "cube": "Inner cells were rounded down or up at random, without bias and with the published "
    "sums kept as far as possible.",
}


def round_release(
    release: Release, method: str = "margins", *, rng: np.random.Generator
) -> Release:
    """The release with its inner cells rounded down or up to whole numbers.

    Promise: inner cells move by less than one and published cells add up. ``"unbiased"``,
    ``"total"`` and ``"cube"`` keep every expected value; ``"total"`` also keeps the total to less
    than one, ``"cube"`` the published cells as far as possible; ``"margins"`` brings every
    published cell within one of its value wherever it can, in two-way tables always.

    Args:
      release: A release with inner cells, none negative.
      method: ``"margins"``, ``"unbiased"``, ``"total"`` or ``"cube"``.
      rng: Source of randomness.
    """
    if method not in get_args(Rounding):
        known = ", ".join(repr(m) for m in get_args(Rounding))
        raise ParameterError(f"method must be one of {known}, got {method!r}.")
    if release.y is None:
        raise DesignError("inner cells are not part of this release; fit them before rounding.")
    y = _ROUND[method](release.design, release.y, rng)
    z = release.design.aggregate(y)
    far = int((np.abs(z - release.design.aggregate(release.y)) >= 1).sum())
    text = f"{_TEXT[method]} {far:,} of {len(z):,} published cells moved by one or more."
    statement = release.statement.without(QUALITY_STEP).then(Step(f"round:{method}"), text)
    weighted = None if release.weighted is None else z.astype(np.float64)
    return replace(
        release,
        z=z,
        y=y,
        weighted=weighted,
        status=None,
        quality=None,
        statement=statement,
        fit_result=None,
    )


def _margins(design: Design, y: NDArray[Any], rng: np.random.Generator) -> Whole:
    return controlled(design, y, rng=rng).y


def _cube(design: Design, y: NDArray[Any], rng: np.random.Generator) -> Whole:
    return balanced(design, y, rng=rng)


def _unbiased(design: Design, y: NDArray[Any], rng: np.random.Generator) -> Whole:
    base, fraction = parts(y)
    return base + independent(fraction, rng)


def _total(design: Design, y: NDArray[Any], rng: np.random.Generator) -> Whole:
    base, fraction = parts(y)
    return base + systematic(fraction, rng)


_ROUND: dict[str, Callable[[Design, NDArray[Any], np.random.Generator], Whole]] = {
    "margins": _margins,
    "unbiased": _unbiased,
    "total": _total,
    "cube": _cube,
}
