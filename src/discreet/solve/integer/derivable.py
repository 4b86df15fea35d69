"""Which inner cells the published cells give away."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discreet.design.base import Design
from discreet.errors import ParameterError

Whole = NDArray[np.int64]
_LARGEST_DENSE = 4000
_DETERMINED = 1 - 1e-6


def by_elimination(design: Design, z: Whole) -> NDArray[np.bool_]:
    """Inner cells known from zeros and from published cells with one unknown member left.

    Every inner cell of an empty published cell is zero; where all members but one are known, the
    last one is known too; and so on until nothing new turns up.
    """
    known = design.adjoint((z == 0).astype(np.int64)) > 0
    while True:
        unknown = design.aggregate((~known).astype(np.int64))
        last = design.adjoint((unknown == 1).astype(np.int64)) > 0
        found = last & ~known
        if not found.any():
            return known
        known |= found


def by_leverage(design: Design, z: Whole) -> NDArray[np.bool_]:
    """Inner cells that are a linear combination of the published cells.

    Those are the cells with leverage 1 in the design, after `by_elimination`.
    """
    known = by_elimination(design, z)
    rest = np.flatnonzero(~known)
    if len(rest) > _LARGEST_DENSE:
        raise ParameterError(
            f"the leverage check holds up to {_LARGEST_DENSE:,} inner cells in memory, "
            f"but {len(rest):,} are in question. Use easy_check alone."
        )
    if len(rest):
        X = design.matrix()[rest].toarray().astype(np.float64)
        directions, sizes, _ = np.linalg.svd(X, full_matrices=False)
        kept = directions[:, sizes > 1e-9 * sizes.max(initial=1.0)]
        known[rest] = (kept**2).sum(axis=1) > _DETERMINED
    return known
