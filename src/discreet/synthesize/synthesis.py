"""What a synthesizing method returns: synthetic values, and what is to be said of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from discreet.arrays import Real


@dataclass(frozen=True)
class Synthesis:
    """Synthetic values in the place of the confidential ones.

    Attributes:
      Y: The synthetic values, n×k, rows and columns as in the original.
      details: What the method found out on the way, by name (e.g. `alpha`, `largest_alpha`,
        `rank_X`, `rank_residuals`). It is confidential.
    """

    Y: Real
    details: Mapping[str, Any] = field(default_factory=dict)
