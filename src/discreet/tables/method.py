"""What a method is: what it promises, where its chance comes from, and how it is called."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from discreet.arrays import Whole

if TYPE_CHECKING:
    from discreet.tables.protected import Protected
    from discreet.tables.truth import TrueTable


@dataclass(frozen=True)
class Claims:
    """Promises of a method about every table it protects.

    Attributes:
      additive: Published cells are sums of one protected inner table.
      unbiased: The expected value of a cell is its true count.
      keeps_zeros: A true zero stays zero.
      keeps_positive: A positive count stays positive.
      max_move: No cell moves further than this.
      blocked: Values that never appear in the release.
      variance: Variance of the noise of a large count, where the method fixes it.
      consistent: The same cell has the same value in every table it appears in.
      follows_truth: Laws of the battery that the method cannot keep, because what it publishes of
        a cell follows from true values; its statement says so.
    """

    additive: bool
    unbiased: bool
    keeps_zeros: bool
    keeps_positive: bool = False
    max_move: float = math.inf
    blocked: Sequence[int] = ()
    variance: float | None = None
    consistent: bool = False
    follows_truth: tuple[str, ...] = ()


class Draws(Protocol):
    """Where a method's random choices come from: a secret and the system, or an experiment's seed.

    A method draws from nothing else.
    """

    def generator(self, method: Any, table: TrueTable) -> np.random.Generator:
        """The generator of a table-wise method, for this method on this table."""

    def laplace(self, n: int, scale: float, cap: int | None = None) -> Whole:
        """Discrete Laplace noise, none beyond the cap."""

    def gaussian(self, n: int, scale: float) -> Whole:
        """Discrete Gaussian noise."""


class Method(Protocol):
    """What protects a table.

    `source` says where the noise comes from: `"keys"` (looked up by the table's cell keys, so the
    same records get the same noise in every table), `"table"` (a generator made from the secret and
    this very table) or `"system"` (the operating system, through a vetted library). A method may
    also offer `units`, what it can publish; `cell_law(table, position)`, the deviations of one
    published cell and their probabilities (or `None`); and `in_order(inner, published)`, the method
    for a table whose cells are in another order.
    """

    @property
    def name(self) -> str:
        """The method's name in the registry."""

    @property
    def source(self) -> str:
        """`"keys"`, `"table"` or `"system"`."""

    @property
    def claims(self) -> Claims:
        """What the method promises for every table."""

    def __call__(self, table: TrueTable, *, draws: Draws) -> Protected:
        """Protect the table."""
