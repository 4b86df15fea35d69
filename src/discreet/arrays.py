"""Array types of the package: one name for each element type."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Real = NDArray[np.float64]
Whole = NDArray[np.int64]
Mask = NDArray[np.bool_]
Index = NDArray[np.intp]

Real32 = NDArray[np.float32]
Whole32 = NDArray[np.int32]
Unsigned32 = NDArray[np.uint32]
Unsigned64 = NDArray[np.uint64]
