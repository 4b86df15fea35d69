r"""How far cells move: absolute and relative deviations, overall and by size of the true count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from discreet.assess.cells import CLASS_STARTS, PairMeasure, Pairs, count_classes
from discreet.assess.measure import POSITIVE, NotApplicableError, Score
from discreet.design.base import Vector
from discreet.design.release import Release
from discreet.design.table import Table

SUMMARIES: dict[str, Callable[[Vector], Any]] = {
    "mean": np.mean,
    "median": np.median,
    "max": np.max,
}


@dataclass(frozen=True)
class _Deviation(PairMeasure):
    """A summary of deviations; the breakdown gives all of them by class of the true value."""

    kind = "utility"
    range = POSITIVE
    direction = "lower"
    summary: ClassVar[str]
    relative: ClassVar[bool] = False

    classes: tuple[int, ...] = CLASS_STARTS

    def __call__(self, table: Table, release: Release) -> Score:
        """Take the measure."""
        pair = self.pairs(table, release)
        f, d = _deviations(pair, self.relative)
        return self.score(SUMMARIES[self.summary](d), pair.on, _by_class(f, d, self.classes))


class MeanAbsoluteDeviation(_Deviation):
    r"""Mean absolute deviation, :math:`\sum|f - g|/n`.

    Range: 0 upwards. Lower is better. The breakdown gives cells, mean, median and largest
    deviation by class of the true value.

    >>> from discreet.assess.cells import toy
    >>> MeanAbsoluteDeviation()(*toy([4, 9, 0], [5, 9, 2])).value
    1.0

    Args:
      cells: Published or inner cells.
      values: Counts or weighted counts.
      classes: First value of each class of true values.

    See Langsrud (2019b), Tables 11 and 12.
    """

    name = "mean-absolute-deviation"
    summary = "mean"


class MedianAbsoluteDeviation(_Deviation):
    r"""Median absolute deviation, the median of :math:`|f - g|`.

    Range: 0 upwards. Lower is better. Breakdown and options as for the mean.

    >>> from discreet.assess.cells import toy
    >>> MedianAbsoluteDeviation()(*toy([4, 9, 0], [5, 9, 2])).value
    1.0
    """

    name = "median-absolute-deviation"
    summary = "median"


class MaxAbsoluteDeviation(_Deviation):
    r"""Largest absolute deviation, :math:`\max|f - g|`.

    Range: 0 upwards. Lower is better. Breakdown and options as for the mean.

    >>> from discreet.assess.cells import toy
    >>> MaxAbsoluteDeviation()(*toy([4, 9, 0], [5, 9, 2])).value
    2.0
    """

    name = "max-absolute-deviation"
    summary = "max"


class MeanRelativeDeviation(_Deviation):
    r"""Mean relative deviation, the mean of :math:`|f - g|/f` over the cells with :math:`f > 0`.

    Range: 0 upwards. Lower is better. Breakdown and options as for absolute deviations.

    >>> from discreet.assess.cells import toy
    >>> MeanRelativeDeviation()(*toy([4, 8, 0], [5, 6, 2])).value
    0.25
    """

    name = "mean-relative-deviation"
    summary = "mean"
    relative = True


class MedianRelativeDeviation(_Deviation):
    r"""Median relative deviation, the median of :math:`|f - g|/f` over cells with :math:`f > 0`.

    Range: 0 upwards. Lower is better. Breakdown and options as for absolute deviations.

    >>> from discreet.assess.cells import toy
    >>> MedianRelativeDeviation()(*toy([4, 8, 2], [5, 6, 4])).value
    0.25
    """

    name = "median-relative-deviation"
    summary = "median"
    relative = True


class MaxRelativeDeviation(_Deviation):
    r"""Largest relative deviation, the largest :math:`|f - g|/f` over cells with :math:`f > 0`.

    Range: 0 upwards. Lower is better. Breakdown and options as for absolute deviations.

    >>> from discreet.assess.cells import toy
    >>> MaxRelativeDeviation()(*toy([4, 8, 2], [5, 6, 4])).value
    1.0
    """

    name = "max-relative-deviation"
    summary = "max"
    relative = True


class RootMeanSquare(_Deviation):
    r"""Root mean square deviation, :math:`\sqrt{\sum(f - g)^2/n}`.

    Range: 0 upwards. Lower is better. Breakdown and options as for the mean absolute deviation.

    >>> from discreet.assess.cells import toy
    >>> RootMeanSquare()(*toy([4, 9, 0, 1], [6, 9, 0, 1])).value
    1.0
    """

    name = "root-mean-square"

    def __call__(self, table: Table, release: Release) -> Score:
        """Take the measure."""
        pair = self.pairs(table, release)
        f, d = _deviations(pair, relative=False)
        value = np.sqrt(np.mean(d.astype(np.float64) ** 2))
        return self.score(value, pair.on, _by_class(f, d, self.classes))


def _deviations(pair: Pairs, relative: bool) -> tuple[Vector, Vector]:
    """True values and deviations; relative ones of the cells that are not empty only."""
    d = np.abs(pair.g - pair.f)
    if not relative:
        return pair.f, d
    filled = pair.f > 0
    if not filled.any():
        raise NotApplicableError("every true value is zero, so nothing is relative to it.")
    return pair.f[filled], d[filled] / pair.f[filled]


def _by_class(f: Vector, d: Vector, starts: tuple[int, ...]) -> dict[str, list[Any]]:
    index, names = count_classes(f, starts)
    columns: dict[str, list[Any]] = {"class": [], "cells": [], "mean": [], "median": [], "max": []}
    for k, name in enumerate(names):
        inside = d[index == k]
        if len(inside):
            columns["class"].append(name)
            columns["cells"].append(len(inside))
            for summary, function in SUMMARIES.items():
                columns[summary].append(float(function(inside)))
    return columns
