"""Publish secondary cells again whose proofs can be replaced by others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from discreet.arrays import Array, Index, Mask
from discreet.progress import report
from discreet.protect.suppress.bank import EVERYBODY, Bank
from discreet.solve.linear.changes import Changes

_MOST_ITEMS = 60  # needs that rest on a sum from which on it is not tried whether it can be shown


def thin(bank: Bank, within: Changes, candidates: Index, lines: Any) -> Index:
    """The candidates that need not be suppressed, each tried in its turn.

    Args:
      bank: Proofs of everything asked.
      within: Changes of the open sums.
      candidates: Open sums that may be published, in the order in which they are tried.
      lines: Sums × equations between them.
    """
    neighbours = Neighbours(bank, within.moves, lines)
    published = []
    for done, total in enumerate(candidates.tolist(), 1):
        report("thinning", done / len(candidates))
        if neighbours.would_fix(total):
            continue
        within.close(total)
        items = np.array(bank.forget(total), dtype=np.intp)
        near = neighbours.has(total, bank.asked.total[items])
        order = np.lexsort((-bank.asked.need[items], ~near))
        is_tried = len(items) <= _MOST_ITEMS
        if is_tried and all(prove_one(bank, within, int(item)) for item in items[order]):
            published.append(total)
            neighbours.close(total)
        else:
            within.close(total, closed=False)
            bank.restore(total)
    return np.array(published, dtype=np.intp)


class Neighbours:
    """The open sums of each line, to see at once that one is needed.

    Args:
      bank: What has to be proven.
      is_open: Which sums are open.
      lines: Sums × equations between them.
    """

    def __init__(self, bank: Bank, is_open: Mask, lines: Any) -> None:
        asked, n = bank.asked, len(is_open)
        self._open = is_open.copy()
        self._by_sum, self._by_line = lines.tocsr(), lines.tocsc()
        self._asked = asked
        self._item = np.full(n, -1, dtype=np.int64)
        self._item[asked.total] = np.arange(len(asked))

    def would_fix(self, total: int) -> bool:
        """Whether a line would give a sensitive sum to everybody or to a lone contributor."""
        if not self._open[total]:
            return False
        return any(self._tells(others) for others in self._lines(total))

    def has(self, total: int, sums: Array) -> Mask:
        """Which of some sums share a line with a sum."""
        found = [np.empty(0, np.int64), *self._lines(total)]
        return np.isin(sums, np.concatenate(found))

    def close(self, total: int) -> None:
        """Take a sum out."""
        self._open[total] = False

    def _lines(self, total: int) -> Iterator[Array]:
        start, end = self._by_sum.indptr[total : total + 2]
        for line in self._by_sum.indices[start:end]:
            first, last = self._by_line.indptr[line : line + 2]
            others = self._by_line.indices[first:last]
            yield others[self._open[others] & (others != total)]

    def _tells(self, others: Array) -> bool:
        """Whether a line with these open sums gives one of them."""
        if len(others) == 1:
            return bool(self._item[others[0]] >= 0)
        whose = self._asked.knower[others]
        for who in np.unique(whose[whose != EVERYBODY]).tolist():
            rest = others[whose != who]
            if len(rest) == 1 and self._item[rest[0]] >= 0:
                return not self._asked.is_exempt(int(self._item[rest[0]]), who)
        return False


def prove_one(bank: Bank, within: Changes, item: int) -> bool:
    """Look for proofs of one thing in all views; whether there are.

    A proof for everybody leaves open the views of the few contributors whose cells it moves.
    """
    if EVERYBODY in bank.open_views(item) and not _prove(bank, within, item, [EVERYBODY]):
        return False
    waiting = [sorted(bank.open_views(item))]
    while waiting:
        views = [v for v in waiting.pop() if v in bank.open_views(item)]
        if not views or _prove(bank, within, item, views):
            continue
        if len(views) == 1:
            return False
        half = len(views) // 2
        waiting += [views[half:], views[:half]]
    return True


def _prove(bank: Bank, within: Changes, item: int, views: list[int]) -> bool:
    """Look for one change that proves something in some views at once."""
    change = within.cheapest(bank.asked.goal(item, views), bank.asked.held(views))
    if change is not None:
        bank.add(change)
    return change is not None and not bank.open_views(item).intersection(views)
