"""What `Suppress` is told, as people and recipes write it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from discreet import registry
from discreet.errors import ParameterError
from discreet.noise.checks import is_number
from discreet.protect.suppress.decimals import Decimals
from discreet.protect.suppress.named import rule_named
from discreet.protect.suppress.rules import Rule

CellLike = Mapping[str, object]
Cells = tuple[dict[str, str], ...]

_RULE = ("name", "why", "primaries", "needs")


def rules_of(given: Any) -> tuple[Rule, ...]:
    """One rule or several, some perhaps as texts."""
    several = given if isinstance(given, Sequence) and not isinstance(given, str) else (given,)
    rules = tuple(rule_named(each) if isinstance(each, str) else each for each in several)
    if not rules or not all(map(_is_rule, rules)):
        raise ParameterError(f"rules such as Threshold(3) were expected, got {given!r}.")
    return rules


def _is_rule(given: Any) -> bool:
    return not isinstance(given, type) and all(hasattr(given, part) for part in _RULE)


def decimals_of(given: Any) -> Decimals | None:
    """Decimals as they are, by the name of their residual, or as plain data."""
    if given is None or isinstance(given, Decimals):
        return given
    if isinstance(given, str):
        return Decimals(given)  # type: ignore[arg-type]  # checked where they are made
    if isinstance(given, Mapping):
        made: Decimals = registry.make(Decimals, given, "decimals")
        return made
    raise ParameterError(
        f"decimals are Decimals(), the name of a residual such as 'rmse', or None; got {given!r}."
    )


def cells_of(option: str, given: Any) -> Cells:
    """Cells by their codes."""
    if isinstance(given, Mapping) or not isinstance(given, Sequence):
        raise ParameterError(f'{option} is a list of cells such as {{"sex": "f"}}, got {given!r}.')
    for cell in given:
        if not isinstance(cell, Mapping):
            raise ParameterError(
                f'cells of {option} are given by their codes, such as {{"sex": "f"}}, got {cell!r}.'
            )
    return tuple(dict(cell) for cell in given)


def factors_of(given: Any) -> tuple[tuple[dict[str, str], float], ...]:
    """Cells with a factor on their cost."""
    entries = _entries("priorities", given, "a cell and a factor", 2)
    cells = cells_of("priorities", [cell for cell, _ in entries])
    factors = [factor for _, factor in entries]
    for factor in factors:
        if not is_number(factor) or not 0 < factor < np.inf:
            raise ParameterError(f"factors of priorities must be positive, got {factor!r}.")
    return tuple(zip(cells, map(float, factors), strict=True))


def bounds_of(given: Any) -> tuple[tuple[dict[str, str], float, float], ...]:
    """Cells with their smallest and largest possible values."""
    entries = _entries("bounds", given, "a cell, a smallest and a largest value", 3)
    cells = cells_of("bounds", [cell for cell, _, _ in entries])
    sides = [(low, high) for _, low, high in entries]
    for low, high in sides:
        if not is_number(low) or not is_number(high) or not low <= high:
            raise ParameterError(
                f"bounds are a cell, a smallest and a largest value, got {low!r} and {high!r}."
            )
    return tuple((c, float(a), float(b)) for c, (a, b) in zip(cells, sides, strict=True))


def _entries(option: str, given: Any, parts: str, length: int) -> list[Sequence[Any]]:
    """Entries that have as many parts as they need."""
    is_list = isinstance(given, Sequence) and not isinstance(given, str)
    for entry in given if is_list else [given]:
        if not isinstance(entry, list | tuple) or len(entry) != length or not is_list:
            raise ParameterError(f"{option} is a list, each entry {parts}; got {entry!r}.")
    return list(given)
