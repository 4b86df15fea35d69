"""Cell keys: sums of record keys, brought back to the range of one record key.

The key of a cell is a function of the records in it and nothing else, so the same cell has the
same key in every table. Every convention in use is a sum modulo something; fractional keys are
whole numbers scaled by a power of ten.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from discreet.arrays import Array, Whole
from discreet.errors import KeysError, ParameterError, UnknownNameError

Edge = Literal["right", "left"]


@dataclass(frozen=True)
class KeyConvention:
    """How record keys become a cell key, and how a cell key is looked up.

    Attributes:
      name: The convention's name.
      modulus: Record and cell keys are whole numbers in `0 … modulus − 1`.
      edge: `"right"`: a key belongs to the first interval whose upper end lies above it;
        `"left"`: to the first interval whose upper end is not below it.
    """

    name: str
    modulus: int
    edge: Edge = "right"

    def __post_init__(self) -> None:
        if not 2 <= self.modulus <= 2**32:
            raise ParameterError(
                f"the modulus of a key convention must lie in 2..2³², got {self.modulus}."
            )

    def reduce(self, sums: Array) -> Whole:
        """Sums of record keys brought back to the key range."""
        reduced: Whole = np.asarray(sums, dtype=np.int64) % self.modulus
        return reduced

    def check(self, keys: Array) -> Whole:
        """Keys as int64, or a clear error when they are not keys of this convention."""
        keys = np.asarray(keys)
        if keys.dtype.kind not in "iu":
            raise KeysError(
                f"keys of the {self.name!r} convention are whole numbers, got {keys.dtype}. "
                "Scale fractional keys with `KeyConvention.scale`."
            )
        if keys.size and (keys.min() < 0 or keys.max() >= self.modulus):
            raise KeysError(
                f"keys of the {self.name!r} convention lie in 0..{self.modulus - 1}; "
                "some of those given do not."
            )
        return keys.astype(np.int64)

    def scale(self, fractions: Array) -> Whole:
        """Whole-number keys from fractions in [0, 1), exact when they have few enough digits."""
        fractions = np.asarray(fractions, dtype=np.float64)
        if fractions.size and not (fractions.min() >= 0 and fractions.max() < 1):
            raise KeysError("fractional keys lie in [0, 1); some of those given do not.")
        return self.reduce(np.rint(fractions * self.modulus))


def fractional(digits: int = 8, edge: Edge = "right") -> KeyConvention:
    """Keys in [0, 1) with a fixed number of digits, as whole numbers; sums keep their fraction."""
    if not 1 <= digits <= 9:
        raise ParameterError(f"digits must lie in 1..9, got {digits}.")
    return KeyConvention(f"fractional-{digits}", 10**digits, edge)


CONVENTIONS: Mapping[str, KeyConvention] = {
    c.name: c
    for c in (
        KeyConvention("discreet", 2**32),
        KeyConvention("ptable", 10**8),
        KeyConvention("ssb", 10**8, "left"),
        KeyConvention("mersenne", 2**31 - 1, "left"),
        KeyConvention("prime", 17_312_941),
        KeyConvention("ons-256", 256),
        KeyConvention("ons-4096", 4096),
    )
}


def convention(name: str | KeyConvention) -> KeyConvention:
    """A convention by its name, such as `discreet`, `ptable`, `ssb`, `mersenne` or `ons-256`."""
    if isinstance(name, KeyConvention):
        return name
    if isinstance(name, str) and name.startswith("fractional-") and name[11:].isdigit():
        return fractional(int(name[11:]))
    if not isinstance(name, str) or name not in CONVENTIONS:
        raise UnknownNameError("key convention", name, CONVENTIONS)
    return CONVENTIONS[name]
