"""Types of arrays, for the whole package."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

AnyArray = NDArray[Any]
"""Numbers of any type."""
Vector = NDArray[np.float64]
"""Real numbers."""
Matrix = NDArray[np.float64]
"""Real numbers in rows and columns."""
Counts = NDArray[np.int64]
"""Whole numbers: counts, places, labels."""
Mask = NDArray[np.bool_]
"""Which elements are meant."""
