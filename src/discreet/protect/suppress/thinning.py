"""Publish secondary cells again whose proofs can be replaced by others."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.progress import report
from discreet.protect.suppress.bank import Bank
from discreet.solve.changes import Changes

Places = NDArray[np.intp]


def thin(bank: Bank, within: Changes, candidates: Places, equations: Any) -> Places:
    """The candidates that need not be suppressed, each tried in its turn.

    Args:
      bank: Proofs of everything asked.
      within: Changes of the open sums.
      candidates: Open sums that may be published, in the order in which they are tried.
      equations: Sums × equations.
    """
    from discreet.protect.suppress.interval import prove_one

    alone = _Alone(equations, within.moves, np.unique(bank.asked.total))
    published = []
    for done, total in enumerate(candidates.tolist(), 1):
        report("thinning", done / len(candidates))
        if alone.would_fix(total):
            continue
        within.close(total)
        items, before = bank.forget(total)
        order = np.argsort(-bank.asked.need[items], kind="stable")
        if all(prove_one(bank, within, int(item)) for item in items[order]):
            published.append(total)
            alone.close(total)
        else:
            within.close(total, closed=False)
            bank.restore(items, before)
    return np.array(published, dtype=np.intp)


class _Alone:
    """Which sums of an equation are open, to see at once that one is needed."""

    def __init__(self, equations: Any, is_open: NDArray[np.bool_], asked: Places) -> None:
        self._open = is_open.copy()
        self._asked = np.zeros(len(is_open), dtype=bool)
        self._asked[asked] = True
        self._by_sum, self._by_equation = equations.tocsr(), equations.tocsc()

    def would_fix(self, total: int) -> bool:
        """Whether a sensitive sum would be left alone in an equation."""
        if not self._open[total]:
            return False
        start, end = self._by_sum.indptr[total : total + 2]
        for equation in self._by_sum.indices[start:end]:
            first, last = self._by_equation.indptr[equation : equation + 2]
            others = self._by_equation.indices[first:last]
            others = others[self._open[others] & (others != total)]
            if len(others) == 1 and self._asked[others[0]]:
                return True
        return False

    def close(self, total: int) -> None:
        """Take a sum out."""
        self._open[total] = False
