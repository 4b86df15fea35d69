"""Which inner cells the published cells give away."""

from __future__ import annotations

import numpy as np
from numba import njit

from discreet.arrays import Mask, Whole, Whole32
from discreet.design.base import Design
from discreet.errors import ParameterError
from discreet.solve.integer.schedule import SCHEDULE

_DETERMINED = 1 - 1e-6


def by_elimination(design: Design, z: Whole) -> Mask:
    """Inner cells known from zeros and from published cells with one unknown member left.

    Every inner cell of an empty published cell is zero; where all members but one are known, the
    last one is known too; and so on until nothing new turns up.

    Cost: each inner cell that zeros leave open is visited once, with its published cells; memory
    4 bytes for each of both, unless no published cell has a single member left.
    """
    known = design.adjoint((z == 0).astype(np.int64)) > 0
    if (design.aggregate((~known).astype(np.int64)) == 1).any():
        rows = np.flatnonzero(~known)
        known[rows] = _eliminate(design.members(rows), design.n_published)
    return known


@njit(cache=True)
def _eliminate(members: Whole32, n_published: int) -> Mask:
    """Which inner cells are the last unknown member of a published cell, one after the other.

    The number of unknown members and the sum of their positions tell which one is the last.
    """
    known = np.zeros(len(members), dtype=np.bool_)
    unknown = np.zeros(n_published + 1, dtype=np.int64)
    places = np.zeros(n_published + 1, dtype=np.int64)
    for j in range(len(members)):
        for k in members[j]:
            unknown[k] += 1
            places[k] += j
    waiting = [np.int64(k) for k in range(n_published) if unknown[k] == 1]
    while len(waiting):
        k = waiting.pop()
        if unknown[k] != 1:
            continue
        j = places[k]
        known[j] = True
        for other in members[j]:
            unknown[other] -= 1
            places[other] -= j
            if other < n_published and unknown[other] == 1:
                waiting.append(np.int64(other))
    return known


def by_leverage(design: Design, z: Whole) -> Mask:
    """Inner cells that are a linear combination of the published cells.

    Those are the cells with leverage 1 in the design, after `by_elimination`.
    """
    known = by_elimination(design, z)
    rest = np.flatnonzero(~known)
    if len(rest) > SCHEDULE.leverage_cells:
        raise ParameterError(
            f"the leverage check holds up to {SCHEDULE.leverage_cells:,} inner cells in memory, "
            f"but {len(rest):,} are in question. Use easy_check alone."
        )
    if len(rest):
        X = design.matrix()[rest].toarray().astype(np.float64)
        directions, sizes, _ = np.linalg.svd(X, full_matrices=False)
        kept = directions[:, sizes > 1e-9 * sizes.max(initial=1.0)]
        known[rest] = (kept**2).sum(axis=1) > _DETERMINED
    return known
