"""Rounding real inner cells to whole numbers by chance: freely, or with a fixed total."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.solve.integer.domain import Whole

Real = NDArray[np.float64]
WHOLE = 1e-9  # values this near to a whole number are taken to be it


def parts(y: NDArray[Any]) -> tuple[Whole, Real]:
    """Whole parts and fractions; values that are whole but for rounding errors are whole."""
    base = np.floor(y + WHOLE)
    fraction = np.where(y - base > WHOLE, y - base, 0.0)
    return base.astype(np.int64), fraction


def independent(probability: Real, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Choose each cell with its probability, independently of the others."""
    return rng.random(len(probability)) < probability


def systematic(probability: Real, rng: np.random.Generator) -> NDArray[np.bool_]:
    r"""Choose cells with given probabilities so that their number is fixed, or nearly.

    Cell `i` is chosen when a point :math:`u + k`, :math:`k = 0, 1, \dots`, falls into its piece
    of the cumulated probabilities, with one uniform `u`.

    Promise: each cell is chosen with exactly its probability; the number of chosen cells in any
    run of neighbouring cells differs from its expectation by less than one.
    """
    ends = np.floor(np.cumsum(probability) - rng.random() + 1.0 + 1e-12)
    return np.diff(ends, prepend=0.0) > 0.5
