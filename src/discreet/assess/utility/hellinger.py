r"""The Hellinger distance between true and released values, and the utility made from it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Array
from discreet.assess.cells import PairMeasure, Pairs, columns
from discreet.assess.measure import POSITIVE, NotApplicableError, Score
from discreet.facade.table import Table
from discreet.tables.protected import Protected


def hellinger(f: Array, g: Array) -> float:
    r"""The distance :math:`\sqrt{\tfrac12\sum(\sqrt{f} - \mathrm{sign}(g)\sqrt{|g|})^2}`.

    The sign lets released values be negative; without negative ones it changes nothing.
    """
    difference = np.sqrt(f) - np.sign(g) * np.sqrt(np.abs(g))
    return math.sqrt(0.5 * float(difference @ difference))


@dataclass(frozen=True)
class HellingerDistance(PairMeasure):
    r"""Hellinger distance, :math:`\mathrm{HD} = \sqrt{\tfrac12\sum(\sqrt f - \sqrt g)^2}`.

    Range: 0 upwards. Lower is better. Not scaled: it grows with the table.
    The breakdown gives distance and utility by number of crossed variables.

    >>> from discreet.assess.cells import toy
    >>> HellingerDistance()(*toy([4, 9, 0], [9, 4, 0])).value
    1.0

    Args:
      signed: Whether a released value may be negative; its root then keeps the sign.

    See Shlomo, Krenzke & Li (2019); signed: Langsrud (2019b), equation 4.
    """

    name = "hellinger-distance"
    kind = "utility"
    range = POSITIVE

    signed: bool = True

    def value(self, pair: Pairs) -> float:
        """The distance."""
        return hellinger(pair.f, pair.g)

    def __call__(self, table: Table, release: Protected) -> Score:
        """Take the measure."""
        pair = self.pairs(table, release)
        if not self.signed and (pair.g < 0).any():
            raise NotApplicableError("released values are negative; use signed=True.")
        return self.score(self.value(pair), pair.on, _by_order(pair))


@dataclass(frozen=True)
class HellingerUtility(HellingerDistance):
    r"""Hellinger utility, :math:`1 - \mathrm{HD}(f, g) / \sqrt{\sum f}`.

    Range: up to 1 (nothing changed); at least 0 for counts with the right total, below 0 for
    wild ones. Higher is better. Options and breakdown are those of the Hellinger distance.

    >>> from discreet.assess.cells import toy
    >>> round(HellingerUtility()(*toy([4, 9, 3], [9, 4, 3])).value, 4)
    0.75

    See Shlomo, Antal & Elliot (2015), Langsrud & Lupp (2021), equation 3.
    """

    name = "hellinger-utility"
    range = (-math.inf, 1.0)
    direction = "higher"

    def value(self, pair: Pairs) -> float:
        """One minus the distance relative to its largest size."""
        total = float(pair.f.sum())
        if not total > 0:
            raise NotApplicableError("the true total is zero, so nothing can be related to it.")
        return 1 - hellinger(pair.f, pair.g) / math.sqrt(total)


def _by_order(pair: Pairs) -> dict[str, list[Any]]:
    """Distance and utility of the one-way, two-way, … cells."""
    orders = pair.orders()
    rows = []
    for order in np.unique(orders):
        f, g = pair.f[orders == order], pair.g[orders == order]
        distance, total = hellinger(f, g), float(f.sum())
        utility = 1 - distance / math.sqrt(total) if total > 0 else None
        rows.append((int(order), len(f), distance, utility))
    return columns(("variables", "cells", "distance", "utility"), rows)
