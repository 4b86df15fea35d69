"""What a measure is and what it says: a score with its range and the way to read it.

Everything here is confidential: a score is a function of true counts. Whether one is published is
the caller's decision.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, SupportsFloat

from discreet.errors import DiscreetError
from discreet.facade.table import Table
from discreet.frames import Frame
from discreet.tables.protected import Protected

Kind = Literal["risk", "utility", "description"]
Direction = Literal["higher", "lower", "zero"]
UNIT = (0.0, 1.0)
POSITIVE: tuple[float, float] = (0.0, math.inf)
EVERYTHING: tuple[float, float] = (-math.inf, math.inf)
NO_MECHANISM = "name the noise: mechanism= a transition matrix, or --ptable on the command line."
NO_SENSITIVE = "name the sensitive variable: sensitive=, or --sensitive on the command line."


class NotApplicableError(DiscreetError):
    """A measure cannot be taken of this table and release; the message says why."""


def loss(value: float, direction: str) -> float:
    """The value turned so that smaller is better (safer) for every measure."""
    if direction == "zero":
        return abs(value)
    return -value if direction == "higher" else value


@dataclass(frozen=True)
class Score:
    """One number about a table and its release, and how to read it.

    Attributes:
      name: The measure's name in the registry.
      value: The number.
      kind: `"risk"`, `"utility"`, or `"description"` of what is neither.
      range: Smallest and largest value it can take.
      direction: Whether higher or lower values, or values near zero, are better (safer).
      on: What was measured: which cells and values, or which variables.
      parts: Columns of a tidy table that goes into detail; see `breakdown`.
    """

    name: str
    value: float
    kind: Kind
    range: tuple[float, float]
    direction: Direction
    on: str = ""
    parts: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def reading(self) -> str:
        """How to read the value, in words.

        >>> Score("x", 0.2, "risk", UNIT, "lower").reading
        'lower is safer'
        """
        if self.kind == "description":
            return "a description, no measure of risk"
        way = "nearer zero" if self.direction == "zero" else self.direction
        return f"{way} is {'safer' if self.kind == 'risk' else 'better'}"

    @property
    def loss(self) -> float:
        """The value turned so that smaller is better (safer) for every measure."""
        return loss(self.value, self.direction)

    @property
    def breakdown(self) -> Frame:
        """The details as a frame: by count class, margin, or group; may have no columns."""
        return Frame(self.parts)


class Measure(Protocol):
    """What compares a table with its release; options are its fields."""

    @property
    def name(self) -> str:
        """The measure's name in the registry."""

    @property
    def kind(self) -> Kind:
        """`"risk"`, `"utility"` or `"description"`."""

    def __call__(self, table: Table, release: Protected) -> Score:
        """The score of a release, or `NotApplicableError` with the reason."""


class BaseMeasure(ABC):
    """The fixed facts of a measure, and the way from a number to a score.

    Most measures are shares, and better (safer) when they are lower.
    """

    kind: ClassVar[Kind]
    range: ClassVar[tuple[float, float]] = UNIT
    direction: ClassVar[Direction] = "lower"

    @property
    @abstractmethod
    def name(self) -> str:
        """The measure's name in the registry; that of a family is made from its parameters."""

    def score(self, value: SupportsFloat, on: str, parts: Mapping[str, Any] | None = None) -> Score:
        """The score of this measure with a value."""
        return Score(
            self.name, float(value), self.kind, self.range, self.direction, on, parts or {}
        )
