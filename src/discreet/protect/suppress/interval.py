"""Secondary suppression with proven intervals.

Linear programs look for proofs among the sensitive cells first: one change often proves the
intervals of many. Where there is no proof, the cheapest change of the whole table is one, and the
cells that it moves are suppressed as well; those with the largest needs come first. In the end
every secondary cell is published again whose proofs can be replaced by others, and some are
exchanged for cheaper ones.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Index, Mask, Real
from discreet.errors import InfeasibleError
from discreet.progress import report
from discreet.protect.suppress.bank import EVERYBODY, Bank, asked_of
from discreet.protect.suppress.gauss import Plan, name_of
from discreet.protect.suppress.pattern import PUBLISHED, SECONDARY, Pattern
from discreet.protect.suppress.proofs import Proofs
from discreet.protect.suppress.sums import NONE, Sums, sums_of
from discreet.protect.suppress.swaps import FREE, Swaps, cheapest_for, open_for
from discreet.protect.suppress.thinning import prove_one, thin
from discreet.solve.linear.changes import Changes

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
