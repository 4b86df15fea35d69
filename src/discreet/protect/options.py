"""Options of the whole-number methods as plain values, checked when they are written."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from discreet.arrays import Real, Whole
from discreet.errors import ParameterError


def by_order(name: str, given: object, *, positive: bool = False) -> dict[int, float] | None:
    """Numbers by number of variables; recipes give the keys as text."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise ParameterError(
            f"{name} go by number of variables, such as {{1: 2, 2: 4}}, got {given!r}."
        )
    found = {_number_of_variables(name, k): _finite(name, value) for k, value in given.items()}
    if any(value < 0 or (positive and value == 0) for value in found.values()):
        wanted = "be positive" if positive else "not be negative"
        raise ParameterError(f"{name} must {wanted}, got {dict(given)}.")
    return found


def at_least(name: str, value: Any, least: float) -> float:
    """A finite number that is not below the least one."""
    found = _finite(name, value)
    if found < least:
        raise ParameterError(f"{name} must be at least {least:g}, got {found:g}.")
    return found


def numbers(name: str, given: Any) -> Real:
    """A list of finite numbers."""
    try:
        found = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.array(math.nan)
    if found.ndim != 1 or not np.isfinite(found).all():
        raise ParameterError(f"{name} must be a list of finite numbers, got {given!r}.")
    return found


def whole_numbers(name: str, given: Any) -> Whole:
    """A list of whole numbers."""
    found = numbers(name, given)
    if (found != np.rint(found)).any():
        raise ParameterError(f"{name} must be whole numbers, got {given!r}.")
    return np.asarray(given).astype(np.int64)


def _number_of_variables(name: str, key: Any) -> int:
    try:
        order = int(key)
    except (TypeError, ValueError, OverflowError):
        order = -1
    if order < 0 or (not isinstance(key, str) and order != key):
        raise ParameterError(f"keys of {name} are numbers of variables (0, 1, 2, …), got {key!r}.")
    return order


def _finite(name: str, value: Any) -> float:
    if not isinstance(value, (int, float, np.number)) or not math.isfinite(value):
        raise ParameterError(f"{name}: a finite number is needed, got {value!r}.")
    return float(value)
