"""What single parameters must be, each with one message wherever it is asked for.

Values of a whole column are judged where they enter: counts by `tables.truth.whole_counts`, keys by
`KeyConvention.check`.
"""

from __future__ import annotations

import math
import numbers

import numpy as np

from discreet.errors import ParameterError


def whole(name: str, value: int, least: int) -> int:
    """A whole number of at least `least`; NumPy's integers are taken too."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ParameterError(f"{name} must be a whole number of at least {least}, got {value!r}.")
    return int(value)


def is_number(value: object) -> bool:
    """Whether a value is a real number; NumPy's are taken too, truth values and text are not."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def truth_value(name: str, value: object) -> bool:
    """True or false, and nothing that only counts as such."""
    if not isinstance(value, bool | np.bool_):
        raise ParameterError(f"{name} must be True or False, got {value!r}.")
    return bool(value)


def positive(name: str, value: float) -> float:
    """A finite number above zero."""
    if not is_number(value) or not (math.isfinite(value) and value > 0):
        raise ParameterError(f"{name} must be a positive number, got {value!r}.")
    return float(value)


def within(name: str, value: float, most: float) -> float:
    """A number above zero and not above `most`."""
    if not is_number(value) or not 0 < value <= most:
        raise ParameterError(f"{name} must lie in (0, {most:g}], got {value!r}.")
    return float(value)
