"""Suppress cheaper cells in place of dearer ones."""

from __future__ import annotations

import numpy as np

from discreet.arrays import Mask, Real
from discreet.protect.suppress.bank import Bank
from discreet.solve.linear.changes import Change, Changes

FREE = 1e-3
"""What a move of a suppressed cell costs, beside the cheapest cell that is shown."""

_CHEAPER = 1 - 1e-9


class Swaps:
    """Sums that are open, and the programs that say what else could be.

    Args:
      bank: Proofs of everything asked.
      whole: Changes of all sums that may be open.
      is_open: Which sums are; changed in place.
      cost: What it costs that a sum is open.
      prices: What a unit of each sum's move costs as long as it is not open.
    """

    def __init__(self, bank: Bank, whole: Changes, is_open: Mask, cost: Real, prices: Real) -> None:
        self._bank, self._whole, self._open = bank, whole, is_open
        self._cost, self._prices = cost, prices

    def attempt(self, total: int) -> bool:
        """Close a sum if others that cost less together can prove what it did."""
        self._whole.close(total)
        items = np.array(self._bank.forget(total), dtype=np.intp)
        order = np.argsort(-self._bank.asked.need[items], kind="stable")
        opened: list[int] = []
        if self._replaced(items[order].tolist(), opened, float(self._cost[total])):
            self._open[total] = False
            return True
        for other in opened:
            self._open[other] = False
            self._whole.price(np.array([other]), self._prices[other], free=False)
            self._bank.forget(other)
        self._whole.close(total, closed=False)
        self._bank.restore(total)
        return False

    def _replaced(self, items: list[int], opened: list[int], limit: float) -> bool:
        """Prove everything again, and list the sums that were opened; whether they cost less."""
        for item in items:
            while views := sorted(self._bank.open_views(item)):
                change = cheapest_for(self._bank, self._whole, item, views)
                if change is None:
                    return False
                opened += open_for(change, self._bank, self._whole, self._open)
                if self._cost[opened].sum() >= limit * _CHEAPER or not self._bank.add(change):
                    return False
        return True


def cheapest_for(bank: Bank, whole: Changes, item: int, views: list[int]) -> Change | None:
    """The cheapest proof in all views, or else in as many as possible."""
    while views:
        change = whole.cheapest(bank.asked.goal(item, views), bank.asked.held(views))
        if change is not None:
            return change
        views = views[: len(views) // 2]
    return None


def open_for(change: Change, bank: Bank, whole: Changes, is_open: Mask) -> list[int]:
    """Open the sums that a change moves; which were not."""
    opened = change.places[~is_open[change.places]]
    is_open[opened] = True
    whole.price(opened, FREE)
    for total in opened.tolist():
        bank.restore(total)
    return list(opened.tolist())
