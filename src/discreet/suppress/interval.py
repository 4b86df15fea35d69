"""Secondary suppression with proven intervals.

Linear programs look for proofs among the sensitive cells first: one change often proves the
intervals of many. Where there is no proof, the cheapest change of the whole table is one, and the
cells that it moves are suppressed as well; those with the largest needs come first. In the end
every secondary cell is published again whose proofs can be replaced by others, and some are
exchanged for cheaper ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Array, Index, Mask, Real
from discreet.errors import InfeasibleError
from discreet.progress import report
from discreet.solve.linear.changes import Change, Changes
from discreet.suppress.bank import EVERYBODY, Bank, asked_of
from discreet.suppress.gauss import Plan, name_of
from discreet.suppress.pattern import PUBLISHED, SECONDARY, Pattern
from discreet.suppress.proofs import Proofs
from discreet.suppress.sums import NONE, Sums, sums_of

if TYPE_CHECKING:
    from scipy.sparse import csc_array


_CHEAP = 1e-6  # what a magnitude of zero costs, as a share of the largest
_LARGE = 25_000  # sums from which on costs are compared near a sensitive cell only
_NEAR_COST = 6_000  # sums near a sensitive cell among which further suppressions are chosen
_NEAR = 2_000  # sums near a sensitive cell among which other proofs are looked for first
_EFFORT = 20_000_000  # sums of all programs of thinning together, a minute or two
_EFFORT_OF_SWAPS = 10_000_000  # the same for swaps


def suppress_by_interval(pattern: Pattern, plan: Plan, *, singletons: bool = True) -> Pattern:
    """The pattern with secondary suppressions and proofs of all intervals.

    Args:
      pattern: Sensitive cells with what they need.
      plan: What may be published, by priority. Cells in neither list stay suppressed.
      singletons: Whether intervals are proven against lone contributors as well.

    Raises:
      InfeasibleError: A sensitive cell cannot have its interval, whatever else is suppressed.
    """
    try:
        return _searched(pattern, plan, singletons, every_row=False)
    except InfeasibleError:
        return _searched(pattern, plan, singletons, every_row=True)


def _searched(pattern: Pattern, plan: Plan, singletons: bool, *, every_row: bool) -> Pattern:
    search = Search(pattern, plan, singletons=singletons, every_row=every_row)
    search.prove()
    search.repair()
    search.thin()
    search.swap()
    search.thin()
    return search.pattern()


class Search:
    """Open sums, the proofs found so far, and the programs that find more."""

    def __init__(
        self, pattern: Pattern, plan: Plan, *, singletons: bool, every_row: bool = False
    ) -> None:
        start = pattern.showing(plan.publishable)
        self.start, self.plan, self.singletons = start, plan, singletons
        self.effort: int | None = _EFFORT
        self.sums = sums_of(start, zeros_are_public=plan.zeros_are_public, every_row=every_row)
        self.cells = _Cells(start, plan, self.sums)
        self.is_open = self.cells.open_in(start.suppressed)
        self.bank = Bank(asked_of(start.showing(plan.must), self.sums, lone=singletons), self.sums)

    def prove(self) -> None:
        """Find proofs among the cells that are suppressed already, if there are not too many."""
        if self.is_open.sum() > _LARGE:
            return
        within = Changes(self.sums, self.is_open, effort=_EFFORT)
        items = self._hardest_first()
        for done, item in enumerate(items.tolist(), 1):
            prove_one(self.bank, within, item)
            report("proofs", done / len(items))

    def _hardest_first(self) -> Index:
        items = self.bank.open_items()
        return items[np.argsort(-self.bank.asked.need[items], kind="stable")]

    def repair(self) -> None:
        """Suppress further cells for what has no proof."""
        whole, _ = self._whole()
        items = self._hardest_first().tolist()
        for done, item in enumerate(items, 1):
            while views := sorted(self.bank.open_views(item)):
                change = cheapest_for(self.bank, whole, item, views)
                if change is not None:
                    open_for(change, self.bank, whole, self.is_open)
                if change is None or not self.bank.add(change):
                    items.append(self._risen(item, views))
            report("intervals", done / len(items))

    def _risen(self, item: int, views: list[int]) -> int:
        """What is asked above in place of something that no suppression gives below."""
        above = self.bank.rise(item) if self.plan.widths_rise else None
        if above is None:
            raise self.infeasible(item, views)
        return above

    def _whole(self, effort: int | None = None) -> tuple[Changes, Real]:
        """Changes of all sums that may be open, and what moves of those cost that are not yet."""
        prices = self.cells.costs(self.is_open)
        can = np.isfinite(prices)
        near = _NEAR_COST if can.sum() > _LARGE else None
        whole = Changes(self.sums, can, prices, near=near, effort=effort)
        whole.price(np.flatnonzero(self.is_open), FREE)
        return whole, prices

    def swap(self) -> None:
        """Suppress cheaper cells in place of dearer ones, as far as a fixed effort goes."""
        whole, prices = self._whole(_EFFORT_OF_SWAPS)
        swaps = Swaps(self.bank, whole, self.is_open, self.cells.cost, prices)
        candidates = self.cells.dearest_first(self.is_open)
        for done, total in enumerate(candidates.tolist(), 1):
            swaps.attempt(total)
            report("swaps", done / len(candidates))

    def thin(self) -> None:
        """Publish secondary cells again whose proofs can be replaced."""
        within = Changes(self.sums, self.is_open, near=_NEAR, effort=self.effort)
        candidates = self.cells.dearest_first(self.is_open)
        self.is_open[thin(self.bank, within, candidates, self.sums.lines)] = False
        self.effort = within.effort

    def pattern(self) -> Pattern:
        """The pattern with its proofs."""
        state = self.start.state.copy()
        state[self.cells.free] = PUBLISHED
        sums = self.sums.of_cell[self.cells.free]
        hidden = (sums != NONE) & self.is_open[sums]
        state[self.cells.free[hidden]] = SECONDARY
        proofs = Proofs(_on_all_rows(self.bank, self.sums, self.start), self.singletons)
        lower, upper = self._needs()
        return replace(self.start, state=state, proofs=proofs, lower=lower, upper=upper)

    def _needs(self) -> tuple[Real, Real]:
        """What the intervals need, with what was moved up."""
        asked, n = self.bank.asked, len(self.start.z)
        sides = []
        for sign in (-1, 1):
            need = np.zeros(n)
            items = np.flatnonzero((asked.sign == sign) & (asked.place < n))
            need[asked.place[items]] = asked.need[items]
            sides.append(need)
        return sides[0], sides[1]

    def infeasible(self, item: int, views: list[int]) -> InfeasibleError:
        """The error for something that no suppression gives."""
        asked, design = self.bank.asked, self.start.design
        place, n = int(asked.place[item]), len(self.start.z)
        what = f"cell {name_of(design, place)}" if place < n else "a sensitive difference"
        side = "above" if asked.sign[item] > 0 else "below"
        who = "" if views[0] == EVERYBODY else " for somebody who is alone in another cell"
        return InfeasibleError(
            f"{what} needs an interval that reaches {asked.need[item]:g} {side} its value, which "
            f"no suppression gives{who}: cells that must be shown, and cells known to be empty, "
            "do not leave it that much room. Ask for less, take cells out of frozen=, or let empty "
            "cells be suppressed (zeros=True)."
        )


class _Cells:
    """Which published cells a sum stands for, and what it costs to open it."""

    def __init__(self, pattern: Pattern, plan: Plan, sums: Sums) -> None:
        self.sums, self.free = sums, plan.order
        costs = np.abs(pattern.z).astype(np.float64) if pattern.costs is None else pattern.costs
        unit = 1.0 if pattern.z.dtype.kind in "iu" else _CHEAP * float(costs.max(initial=1.0))
        self.cost = self.total(costs + unit, plan.order)
        self.fixed = self.total(np.ones(len(costs)), plan.must) > 0
        never = np.setdiff1d(np.arange(len(costs)), plan.publishable)
        self.is_hidden = self.total(np.ones(len(costs)), never) > 0

    def total(self, values: Real, cells: Index) -> Real:
        """The values of some published cells, added up for each sum."""
        of_cell = self.sums.of_cell[cells]
        inside = of_cell != NONE
        found = np.bincount(of_cell[inside], values[cells[inside]], len(self.sums))
        return found.astype(np.float64)

    def open_in(self, suppressed: Mask) -> Mask:
        """Sums none of whose cells is shown."""
        shown = np.flatnonzero(~suppressed)
        return np.asarray(self.total(np.ones(len(suppressed)), shown) == 0)

    def costs(self, is_open: Mask) -> Real:
        """What it costs to open each sum; infinite where a cell of it must be shown."""
        shown = self.cost[~is_open & ~self.fixed]
        least = float(shown[shown > 0].min(initial=1.0)) if len(shown) else 1.0
        return np.where(self.fixed & ~is_open, np.inf, np.maximum(self.cost / least, FREE))

    def dearest_first(self, is_open: Mask) -> Index:
        """Open sums that could be published."""
        found = np.flatnonzero(is_open & (self.cost > 0) & ~self.is_hidden)
        return found[np.argsort(-self.cost[found], kind="stable")]


def _on_all_rows(bank: Bank, sums: Sums, pattern: Pattern) -> csc_array:
    """The changes in use on all inner cells."""
    from scipy.sparse import csc_array

    found = bank.changes().tocoo()
    entries = (found.data, (sums.inner[found.row], found.col))
    return csc_array(entries, shape=(pattern.design.n_inner, found.shape[1]))


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
