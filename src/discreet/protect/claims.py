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
    blocked: tuple[int, ...] = ()
    variance: float | None = None
    consistent: bool = False
    follows_truth: tuple[str, ...] = ()
