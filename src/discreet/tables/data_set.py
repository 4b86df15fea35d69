"""Which records a table was made from: their name and edition, and what bounds one unit of them.

Everything here is public: it appears in statements. Nothing here is measured on the records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np

from discreet.arrays import Whole
from discreet.design.base import Cell
from discreet.errors import ParameterError
from discreet.tables.keys import KeyConvention

Keys = Literal["kept", "redrawn", "given"]
UNNAMED = "unnamed"


class SecretLike(Protocol):
    """What a table needs of the custodian's secret; it holds no more than keyed hashes."""

    @property
    def is_public(self) -> bool:
        """Whether everybody knows the secret, as that of the demo data."""

    @property
    def mark(self) -> str:
        """A keyed hash of a constant: tells one secret from another and nothing else."""

    def zero_key(self, cells: Sequence[Cell], rule: str | KeyConvention) -> Whole:
        """The key of each cell without records, from its definition."""

    def mixed(self, keys: Whole, purpose: str) -> Whole:
        """A keyed hash of each cell key: whole numbers below 2³², unrelated between purposes."""

    def generator(self, message: bytes) -> np.random.Generator:
        """A generator that depends on the secret and the message only."""


@dataclass(frozen=True)
class Bounds:
    """What one unit can contribute to a table, as the engine enforces it.

    Attributes:
      weight: Largest weight of a record; larger ones are cut to it. `None`: no bound.
      person: Column that identifies the unit of protection; each record is a unit when absent.
      max_records: Records of one unit that are counted at most.
    """

    weight: float | None = None
    person: str | None = None
    max_records: int = 1


@dataclass(frozen=True)
class DataSet:
    """The name of some records, which of their editions this is, and how their keys are made.

    Attributes:
      name: The name under which the custodian's ledger counts releases and budget.
      edition: Changes whenever the records do.
      keys: Whether record keys stay the same in the next edition (`"kept"`), are made anew
        (`"redrawn"`), or came with the records (`"given"`).
      bounds: What one unit can contribute.
    """

    name: str = UNNAMED
    edition: str = "1"
    keys: Keys = "given"
    bounds: Bounds = field(default_factory=Bounds)

    def __post_init__(self) -> None:
        for what in ("name", "edition"):
            value = getattr(self, what)
            if not isinstance(value, str) or not value.strip():
                raise ParameterError(f"the {what} of a data set must be a text, got {value!r}.")
        if self.keys not in ("kept", "redrawn", "given"):
            raise ParameterError(f"keys must be 'kept', 'redrawn' or 'given', got {self.keys!r}.")
