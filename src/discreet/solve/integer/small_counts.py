"""Small counts: which cells are rounded up, and which give themselves away."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from scipy.sparse import csc_array, eye_array

from discreet.arrays import Mask, Real, Whole, Whole32
from discreet.design.base import Design
from discreet.solve.linear.elimination import find_spanned

# Rounds of exchanging cells in a greedy choice, besides one for each chosen cell: a bound, since
# several equally good cells may change places in a circle.
_EXTRA_ROUNDS = 100


def choose_cells(
    X: Any, residual: Real, height: float, count: int, *, step: int = 0, rng: np.random.Generator
) -> Mask:
    r"""Which `count` rows of `X` to raise by `height` so that the published cells fit best.

    .. math:: \min_u \lVert h X^\top u - \tau\rVert^2, \quad u \in \{0, 1\}^n,\ \sum u = c.

    Rows are picked one at a time, the one with the largest :math:`(X(\tau - hX^\top u))_i`;
    then the worst picked row is exchanged for the best one left, until that is the same row.
    Rows that are equally good are taken in random order.

    Args:
      X: Rows to choose from × published cells, a sparse matrix.
      residual: The target :math:`\tau` of the published cells.
      height: What a chosen row adds, :math:`h`.
      count: How many rows to choose.
      step: After every `step` picks, up to half as many are put back; 0 never.
      rng: Source of the random order.

    See Langsrud & Heldal (2018).
    """
    order = rng.permutation(X.shape[0])
    rows = X[order]
    # Published cells with none or all of the rows are the same for every choice of so many.
    inside = np.asarray(rows.sum(axis=0)).ravel()
    differs = np.flatnonzero((inside > 0) & (inside < X.shape[0]))
    rows = rows[:, differs]
    gain = rows @ residual[differs]
    shared = height * (rows @ rows.T).toarray()
    picked: list[int] = []
    since = 0
    while len(picked) < count:
        _pick(gain, shared, picked)
        since += 1
        if step > 1 and since >= step and len(picked) < count:
            since = 0
            for _ in range(step // 2):
                if not _drop_worst(gain, shared, picked):
                    break
    _exchange(gain, shared, picked, max(step, 1), count + _EXTRA_ROUNDS)
    chosen = np.zeros(X.shape[0], dtype=bool)
    chosen[order[picked]] = True
    return chosen


def _exchange(gain: Real, shared: Real, picked: list[int], width: int, rounds: int) -> None:
    """Put the worst picked rows back and pick the best ones left, while that changes anything."""
    count = len(picked)
    if count == len(gain):
        return
    for _ in range(rounds):
        for _ in range(min(width, count)):
            if not _drop_worst(gain, shared, picked):
                break
        if len(picked) == count:
            return
        while len(picked) < count:
            _pick(gain, shared, picked)


def _pick(gain: Real, shared: Real, picked: list[int]) -> None:
    left = gain.copy()
    left[picked] = -np.inf
    best = int(np.argmax(left))
    picked.append(best)
    gain -= shared[:, best]


def _drop_worst(gain: Real, shared: Real, picked: list[int]) -> bool:
    """Put the worst picked row back, unless it is the one picked last; whether one was."""
    place = int(np.argmin(gain[picked])) if picked else -1
    if place == len(picked) - 1:
        return False
    gain += shared[:, picked.pop(place)]
    return True


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
    # Both are taken along as cells become known; a search for the last member each time would visit
    # large published cells again and again.
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
        if unknown[k] != 1:  # its last member became known through another cell meanwhile
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
    """Inner cells that are a linear combination of the published cells: those of leverage one.

    What `by_elimination` knows comes first; the others are asked exactly, in whole numbers.
    """
    known = by_elimination(design, z)
    rest = np.flatnonzero(~known)
    X = csc_array(design.matrix()[rest]).astype(np.int64)
    known[rest] = find_spanned(X, eye_array(len(rest), dtype=np.int64, format="csc"))
    return known
