"""What a method promises, as data that a battery can check and the docs can print."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Claims:
    """Promises of a method about every table it protects.

    Attributes:
      additive: Published cells are sums of one protected inner table.
      unbiased: The expected value of a cell is its true count.
      keeps_zeros: A true zero stays zero.
      max_move: No cell moves further than this.
      blocked: Values that never appear in the release.
      variance: Variance of the noise of a large count, where the method fixes it.
      consistent: The same cell has the same value in every table it appears in.
    """

    additive: bool
    unbiased: bool
    keeps_zeros: bool
    max_move: float = math.inf
    blocked: tuple[int, ...] = ()
    variance: float | None = None
    consistent: bool = False
