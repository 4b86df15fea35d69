"""Greedy choice of the cells that are rounded up, as a start for the search."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.arrays import Mask, Real
from discreet.solve.integer.schedule import SCHEDULE


def choose_cells(
    X: Any,
    residual: Real,
    height: float,
    count: int,
    *,
    step: int = 0,
    rng: np.random.Generator,
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
    inside = np.asarray(rows.sum(axis=0)).ravel()
    rows = rows[:, np.flatnonzero((inside > 0) & (inside < rows.shape[0]))]
    gain = rows @ residual[(inside > 0) & (inside < X.shape[0])]
    shared = height * (rows @ rows.T).toarray()
    picked = _forward(gain, shared, count, step)
    _exchange(gain, shared, picked, max(step, 1), count + SCHEDULE.extra_rounds)
    chosen = np.zeros(X.shape[0], dtype=bool)
    chosen[order[picked]] = True
    return chosen


def _forward(gain: Real, shared: Real, count: int, step: int) -> list[int]:
    """Pick rows one by one; `gain` is carried along."""
    picked: list[int] = []
    since = 0
    while len(picked) < count:
        _pick(gain, shared, picked)
        since += 1
        if step > 1 and since >= step and len(picked) < count:
            since = 0
            for _ in range(step // 2):
                if _drop_worst(gain, shared, picked) is None:
                    break
    return picked


def _exchange(gain: Real, shared: Real, picked: list[int], width: int, rounds: int) -> None:
    """Put the worst picked rows back and pick the best ones left, while that changes anything."""
    count = len(picked)
    if count == len(gain):
        return
    for _ in range(rounds):
        for _ in range(min(width, count)):
            if _drop_worst(gain, shared, picked) is None:
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


def _drop_worst(gain: Real, shared: Real, picked: list[int]) -> int | None:
    """Put the worst picked row back, unless it is the one picked last."""
    if not picked:
        return None
    place = int(np.argmin(gain[picked]))
    if place == len(picked) - 1:
        return None
    worst = picked.pop(place)
    gain += shared[:, worst]
    return worst
