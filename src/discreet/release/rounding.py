"""Whole-number releases of fitted inner cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeVar, get_args

import numpy as np

from discreet.arrays import Array, Mask, Whole
from discreet.design.base import Design
from discreet.errors import DesignError, ParameterError
from discreet.protect.sentences import adds_up, not_negative, process, whole_numbers
from discreet.randomness import stream
from discreet.solve.integer.remainders import parts
from discreet.solve.integer.rounding import balanced, controlled, independent, systematic
from discreet.tables.protected import Protected
from discreet.tables.statement import step_of

Rounding = Literal["margins", "unbiased", "total", "cube"]
METHODS: tuple[str, ...] = get_args(Rounding)

AnyProtected = TypeVar("AnyProtected", bound=Protected)

_TEXT: dict[str, str] = {
    "margins": "Inner cells were rounded down or up so that published cells are rounded down or "
    "up as well wherever that is possible.",
    "unbiased": "Inner cells were rounded down or up at random, independently and without bias.",
    "total": "Inner cells were rounded down or up at random, without bias and with the total kept.",
    "cube": "Inner cells were rounded down or up at random, without bias and with the published "
    "sums kept as far as possible.",
}


def rounded(
    protected: AnyProtected, method: str = "margins", *, rng: np.random.Generator
) -> AnyProtected:
    """Protected values with inner cells rounded down or up to whole numbers.

    Promise: inner cells move by less than one and published cells add up. ``"unbiased"``,
    ``"total"`` and ``"cube"`` keep every expected value; ``"total"`` also keeps the total to less
    than one, ``"cube"`` the published cells as far as possible; ``"margins"`` brings every
    published cell within one of its value wherever it can, in two-way tables always.

    Args:
      protected: Protected values with inner cells, none negative.
      method: ``"margins"``, ``"unbiased"``, ``"total"`` or ``"cube"``.
      rng: Source of randomness; it need not be secret.
    """
    if method not in METHODS:
        known = ", ".join(repr(m) for m in METHODS)
        raise ParameterError(f"method must be one of {known}, got {method!r}.")
    if protected.y is None:
        raise DesignError("inner cells are not part of this release; fit them before rounding.")
    y = _ROUND[method](protected.design, protected.y, rng)
    said = [
        process("rounded", _TEXT[method], "Figures were rounded to whole numbers."),
        adds_up(),
        whole_numbers(),
        not_negative(),
    ]
    return protected.with_parts(
        z=protected.design.aggregate(y),
        y=y,
        precision=None,
        fit_result=None,
        statement=protected.statement.then(step_of(f"round:{method}", {}, said)),
    )


def rounded_by_seed(protected: AnyProtected, method: str, seed: int) -> AnyProtected:
    """The same with random choices from a seed, which need not be secret; see `Release.round`."""
    return rounded(protected, method, rng=stream(seed, f"round:{method}"))


def _drawn(y: Array, draw: Callable[..., Mask], rng: np.random.Generator) -> Whole:
    base, fraction = parts(y)
    return base + draw(fraction, rng)


_ROUND: dict[str, Callable[[Design, Array, np.random.Generator], Whole]] = {
    "margins": lambda design, y, rng: controlled(design, y, rng=rng).y,
    "unbiased": lambda _, y, rng: _drawn(y, independent, rng),
    "total": lambda _, y, rng: _drawn(y, systematic, rng),
    "cube": lambda design, y, rng: balanced(design, y, rng=rng),
}
