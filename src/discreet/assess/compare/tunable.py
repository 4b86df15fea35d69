"""Which parameter of a method sets its strength, and over which values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from discreet.errors import ParameterError, UnknownNameError
from discreet.noise.entropy import perturbation_table, variance_range
from discreet.noise.matrix import TransitionMatrix
from discreet.tables.protected import Method

_MOST_WHOLE = 25


@dataclass(frozen=True)
class Range:
    """Values of one parameter.

    Attributes:
      parameter: Its name.
      low: Smallest value.
      high: Largest value.
      whole: Whether only whole numbers will do.
      logarithmic: Whether steps are factors.
      values: A list of values instead of a range.
    """

    parameter: str
    low: float = 0.0
    high: float = 0.0
    whole: bool = False
    logarithmic: bool = True
    values: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not self.values and not self.low < self.high:
            raise ParameterError(
                f"the range of {self.parameter} must go upwards, got {self.low:g} to {self.high:g}."
            )

    @classmethod
    def of(cls, *given: Any) -> Range:
        """A range from ``("epsilon", 0.1, 10)`` or ``("cap", [1, 2, 5])``."""
        parameter, *values = given or ("",)
        if len(values) == 2 and not isinstance(values[0], Sequence):
            low, high = values
            whole = isinstance(low, int) and isinstance(high, int)
            return cls(parameter, low, high, whole=whole, logarithmic=low > 0)
        if len(values) == 1 and isinstance(values[0], Sequence) and values[0]:
            return cls(parameter, values=tuple(values[0]))
        raise ParameterError(
            f"give a range as (name, low, high) or (name, [value, …]) with at least one value, or "
            f"None to keep the method as it is; got {given}."
        )

    @property
    def is_discrete(self) -> bool:
        """Whether all values of interest are in the grid."""
        return self.whole or bool(self.values)

    def holds(self, value: float) -> bool:
        """Whether a value is one of these."""
        return value in self.values if self.values else self.low <= value <= self.high

    def grid(self, points: int) -> list[float]:
        """Values spread over the range; all of them where they are listed or few."""
        if self.values:
            return list(self.values)
        if self.whole:
            step = max(1, int(self.high - self.low) // _MOST_WHOLE)
            return list(range(int(self.low), int(self.high) + 1, step))
        spaced = np.geomspace if self.logarithmic else np.linspace
        return [float(v) for v in spaced(self.low, self.high, points)]

    def middle(self, a: float, b: float) -> float:
        """The value half-way between two."""
        return float(np.sqrt(a * b)) if self.logarithmic else (a + b) / 2


_USUAL = {
    "discrete-gaussian": Range("rho", 0.001, 50.0),
    "discrete-laplace": Range("epsilon", 0.05, 20.0),
    "laplace": Range("epsilon", 0.05, 20.0),
    "pram": Range("epsilon", 0.1, 6.0),
    "drop-add": Range("share", 0.01, 1.0),
    "safe": Range("min_count", 2, 12, whole=True),
    "small-count-rounding": Range("base", 2, 15, whole=True),
    "controlled-rounding": Range("base", 2, 15, whole=True),
}


def range_for(method: Method) -> Range | None:
    """The usual range of a method; `None` when it has no parameter that sets its strength."""
    matrix = getattr(method, "matrix", None)
    if method.name == "cell-key" and isinstance(matrix, TransitionMatrix):
        return _variances(matrix)
    if method.name == "pram" and matrix is not None:
        return Range("alpha", 0.05, 1.0) if getattr(method, "invariant", False) else None
    return _USUAL.get(method.name)


def is_chosen(method: Method, name: str) -> bool:
    """Whether a parameter has a usual value and was given another one.

    A strength that must always be given, such as ε, is a place to start from.
    """
    field = getattr(method, "__dataclass_fields__", {}).get(name)
    default = getattr(field, "default", MISSING)
    return default is not MISSING and bool(getattr(method, name) != default)


def value_of(method: Method, name: str) -> float | None:
    """The value of a parameter, of the method's own or of its perturbation table."""
    made = getattr(getattr(method, "matrix", None), "parameters", {})
    value = getattr(method, name, made.get(name))
    return value if isinstance(value, (int, float)) else None


def with_parameter(method: Method, name: str, value: float) -> Any:
    """The method with another value of one parameter, of its own or of its perturbation table."""
    if not is_dataclass(method) or isinstance(method, type):
        raise ParameterError(f"method {method.name!r} has no parameters that could be set.")
    known = [field.name for field in fields(method)]
    if name in known:
        return replace(method, **{name: value})
    matrix = getattr(method, "matrix", None)
    if isinstance(matrix, TransitionMatrix) and {"D", "V", name} <= matrix.parameters.keys():
        made = perturbation_table(**{**matrix.parameters, name: value})
        return replace(method, **{"matrix": made})
    raise UnknownNameError(f"parameter of method {method.name!r}", name, known)


def _variances(matrix: TransitionMatrix) -> Range | None:
    """The variances that a designed perturbation table can have with its other parameters."""
    made = dict(matrix.parameters)
    if not {"D", "V", "js"} <= made.keys():
        return None
    span = variance_range(made["D"], made["js"], made.get("pstay"), made.get("mono", True))
    if span is None or not span[0] < span[1]:
        return None
    low, high = span
    edge = 0.01 * (high - low)
    return Range("V", low + edge, high - edge, logarithmic=False)
