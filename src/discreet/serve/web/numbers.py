"""Numbers as the readers of a language write them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Numbers:
    """The signs of a language.

    Attributes:
      thousands: Between groups of three digits.
      decimal: Between whole numbers and decimals.
      minus: In front of negative numbers.
      percent: How a percentage is written, `{} %`.
    """

    thousands: str
    decimal: str
    minus: str
    percent: str

    @cached_property
    def _signs(self) -> dict[int, str]:
        return {ord(","): self.thousands, ord("."): self.decimal, ord("-"): self.minus}

    def written(self, value: float, decimals: int = 0) -> str:
        """A number with so many decimals."""
        text = f"{value:,.{decimals}f}"
        if text.startswith("-") and not text.strip("-0.,"):
            text = text[1:]  # what rounds to zero has no sign
        return self.signed(text)

    def signed(self, english: str) -> str:
        """A number in English with the signs of this language."""
        return english.translate(self._signs)

    def in_percent(self, value: float, decimals: int = 1) -> str:
        """A percentage with its sign."""
        return self.percent.format(self.written(value, decimals))


def nice_ticks(largest: float, about: int = 4) -> list[float]:
    """Round numbers from zero to just beyond the largest value."""
    if not largest > 0:
        return [0.0, 1.0]
    rough = largest / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * k for k in (1, 2, 2.5, 5, 10) if power * k >= rough * (1 - 1e-9))
    if largest >= about and step < 1:
        step = 1.0
    return [step * k for k in range(math.ceil(largest / step - 1e-9) + 1)]
