"""Cells that are published as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.assess.cells import CLASS_STARTS, Mask, PairMeasure, Pairs, count_classes
from discreet.assess.measure import UNIT, NotApplicableError, Score
from discreet.design.base import Vector
from discreet.design.release import Release
from discreet.design.table import Table


def unchanged(f: Vector, g: Vector) -> Mask:
    """Whether the released value, rounded to a whole number, is the true one."""
    return np.asarray(np.abs(g - f) < 0.5)


@dataclass(frozen=True)
class UnchangedCells(PairMeasure):
    r"""Share of the cells that are not empty and whose released value rounds to the true one.

    .. math:: \#\{f > 0, |g - f| < \tfrac12\} / \#\{f > 0\}

    Range: 0 to 1. Lower is safer; one minus it is the share of perturbed cells. The breakdown
    gives cells and share by class of the true count.

    >>> from discreet.assess.cells import toy
    >>> UnchangedCells()(*toy([1, 4, 2, 9, 0], [0, 4, 3, 9.4, 0])).value
    0.5

    Args:
      cells: Published or inner cells.
      values: Counts or weighted counts.
      zeros: Whether empty cells count as well.
      classes: First value of each class of true values.

    See Langsrud & Lupp (2021), section 6; Shlomo, Krenzke & Li (2019), Table 4.
    """

    name = "unchanged-cells"
    kind = "risk"
    range = UNIT
    direction = "lower"

    zeros: bool = False
    classes: tuple[int, ...] = CLASS_STARTS

    def __call__(self, table: Table, release: Release) -> Score:
        """Take the measure."""
        pair = self.pairs(table, release)
        chosen = np.ones(len(pair.f), dtype=bool) if self.zeros else pair.f > 0
        same = _share(pair, chosen, "every true value is zero.")
        return self.score(same, pair.on, self._by_class(pair.f[chosen], pair.g[chosen]))

    def _by_class(self, f: Vector, g: Vector) -> dict[str, list[Any]]:
        index, names = count_classes(f, self.classes)
        cells = np.bincount(index, minlength=len(names))
        same = np.bincount(index[unchanged(f, g)], minlength=len(names))
        used = np.flatnonzero(cells)
        return {
            "class": [names[k] for k in used],
            "cells": cells[used].tolist(),
            "unchanged": same[used].tolist(),
            "share": (same[used] / cells[used]).tolist(),
        }


@dataclass(frozen=True)
class UnchangedSmallCells(PairMeasure):
    r"""Share of the small cells, true count 1 to `small`, whose released value rounds to it.

    .. math:: \#\{1 \le f \le s, |g - f| < \tfrac12\} / \#\{1 \le f \le s\}

    Range: 0 to 1. Lower is safer.

    >>> from discreet.assess.cells import toy
    >>> UnchangedSmallCells()(*toy([1, 2, 2, 9], [0, 2, 3, 9])).value
    0.3333333333333333

    Args:
      cells: Published or inner cells.
      values: Counts or weighted counts.
      small: The largest count that is small.

    See Langsrud & Lupp (2021), section 6.
    """

    name = "unchanged-small-cells"
    kind = "risk"
    range = UNIT
    direction = "lower"

    small: int = 2

    def __call__(self, table: Table, release: Release) -> Score:
        """Take the measure."""
        pair = self.pairs(table, release)
        chosen = (pair.f > 0) & (pair.f <= self.small)
        return self.score(_share(pair, chosen, "no true count is small."), pair.on)


def _share(pair: Pairs, chosen: Mask, otherwise: str) -> float:
    if not chosen.any():
        raise NotApplicableError(otherwise)
    return float(unchanged(pair.f[chosen], pair.g[chosen]).mean())
