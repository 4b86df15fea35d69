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
from typing import Any

import numpy as np

from discreet.arrays import Array, Index, Mask, Real
from discreet.errors import InfeasibleError
from discreet.progress import report
from discreet.solve.linear.changes import Change, Changes
from discreet.suppress.bank import EVERYBODY, ProofBank, Requirements, requirements
from discreet.suppress.pattern import PUBLISHED, SECONDARY, Pattern
from discreet.suppress.plan import PublicationPlan, cell_name
from discreet.suppress.proofs import Proofs
from discreet.suppress.sums import NONE, TableSums, table_sums

# A program of more sums takes too long to be solved for each sensitive cell: in larger tables costs
# are compared among the sums near the cell, and boxes take the place of programs elsewhere.
_LARGE = 25_000
_NEAR_COST = 6_000  # sums near a sensitive cell among which further suppressions are chosen
# Thinning asks whether there is any proof, not for the cheapest: fewer sums are enough.
_NEAR = 2_000
# Effort is counted in steps of programs and not by a clock (`Changes`), so that the same table has
# the same pattern on every machine. Publishing cells again, and exchanging them, take this many
# times what the proofs took, and at least what a third of a second does.
_THINNING, _SWAPS, _LEAST = 1.5, 0.5, 20_000
_EFFORT = 2_000_000  # of proofs among sensitive cells
# A sum on which more needs rest stays suppressed: all of them would have to be proven anew, and one
# that fails is enough for all programs to have been in vain.
_MOST_ITEMS = 60
# What a move of a suppressed cell costs beside the cheapest cell that is shown. Not nothing: a
# program would move any number of them, and each lone cell that moves leaves one more view open.
_FREE = 1e-3
# What a move of a cell costs that may be published again, beside others, where any proof will do:
# without it a fifth more programs were solved in recorded tables, and a percent more was hidden.
_AVOIDED = 100.0
_CHEAP = 1e-6  # what a magnitude of zero costs, as a share of the largest
_CHEAPER = 1 - 1e-9  # a swap must gain more than rounding errors


def suppress_by_interval(
    pattern: Pattern,
    plan: PublicationPlan,
    *,
    singletons: bool = True,
    earlier: Pattern | None = None,
) -> Pattern:
    """The pattern with secondary suppressions and proofs of all intervals.

    Args:
      pattern: Sensitive cells; other states are not looked at.
      plan: What may be published.
      singletons: Whether contributors must not learn sensitive cells either.
      earlier: A pattern of the same cells, in which less was sensitive: the search begins there.

    Raises:
      InfeasibleError: No suppression gives some interval.
    """
    try:
        return _search_pattern(pattern, plan, singletons, earlier, every_row=False)
    except InfeasibleError:
        # Representatives stand for many inner cells, and may lack the one that makes the room.
        return _search_pattern(pattern, plan, singletons, earlier, every_row=True)


def _search_pattern(
    pattern: Pattern,
    plan: PublicationPlan,
    singletons: bool,
    earlier: Pattern | None,
    *,
    every_row: bool,
) -> Pattern:
    search = IntervalSearch(pattern, plan, singletons=singletons, every_row=every_row)
    if earlier is not None:
        before = search.start_from(earlier)
        search.prove()
        search.repair()
        search.thin(~before)
        return search.pattern()
    search.prove()
    search.repair()
    # Swaps start from a pattern without needless cells, and may make others needless.
    search.thin()
    search.swap()
    search.thin()
    return search.pattern()


class IntervalSearch:
    """Open sums, the proofs found so far, and the programs that find more."""

    def __init__(
        self, pattern: Pattern, plan: PublicationPlan, *, singletons: bool, every_row: bool = False
    ) -> None:
        start = pattern.showing(plan.publishable)
        self.start, self.plan, self.singletons = start, plan, singletons
        # What proofs took, and what is left for thinning once it has begun.
        self.spent = 0
        self.effort: int | None = None
        self.sums = table_sums(start, zeros_are_public=plan.zeros_are_public, every_row=every_row)
        self.cells = _SumCosts(start, plan, self.sums)
        self.is_open = self.cells.open_in(start.suppressed)
        # Which inner cells everybody knows follows from the cells that are shown in any case.
        needs = requirements(start.showing(plan.must), self.sums, lone=singletons)
        self.bank = ProofBank(needs, self.sums)

    def start_from(self, earlier: Pattern) -> Mask:
        """Hide what an earlier pattern hides, with its proofs; which sums are open then."""
        self.is_open |= self.cells.open_in(earlier.suppressed)
        if earlier.proofs is not None:
            for change in self.sums.changes_of(self.start, earlier.proofs.changes):
                self.bank.add(change)
        return self.is_open.copy()

    def prove(self) -> None:
        """Find proofs among the cells that are suppressed already, if there are not too many."""
        if self.is_open.sum() > _LARGE:
            return
        within = Changes(self.sums, self.is_open, effort=_EFFORT)
        items = self._hardest_first(self.bank.open_items())
        for done, item in enumerate(items.tolist(), 1):
            prove_one(self.bank, within, item)
            report("proofs", done / len(items))
        self.spent += within.spent

    def _hardest_first(self, items: Index) -> Index:
        # A change that meets a large need often meets smaller ones on its way.
        return items[np.argsort(-self.bank.required.need[items], kind="stable")]

    def repair(self) -> None:
        """Suppress further cells for what has no proof."""
        whole, _ = self._whole_table()
        items = self._hardest_first(self.bank.open_items()).tolist()
        for done, item in enumerate(items, 1):
            while views := sorted(self.bank.open_views(item)):
                change = self._cheapest(whole, item, views)
                if change is not None:
                    self._open_moved(change, whole)
                if change is None or not self.bank.add(change):
                    above = self.bank.ask_above_instead(item) if self.plan.widths_rise else None
                    if above is None:
                        raise self.infeasible(item, views)
                    items.append(above)
            report("intervals", done / len(items))
        self.spent += whole.spent

    def _whole_table(self, effort: int | None = None) -> tuple[Changes, Real]:
        """Changes of all sums that may be open, and what moves of those cost that are not yet."""
        prices = self.cells.prices(self.is_open)
        can = np.isfinite(prices)
        near = _NEAR_COST if can.sum() > _LARGE else None
        whole = Changes(self.sums, can, prices, near=near, effort=effort)
        whole.price(np.flatnonzero(self.is_open), _FREE)
        return whole, prices

    def _cheapest(self, whole: Changes, item: int, views: list[int]) -> Change | None:
        """The cheapest proof in all views, or else in as many as possible."""
        required = self.bank.required
        while views:
            change = required.cheapest(whole, item, views)
            if change is not None:
                return change
            # Together lone contributors may know too much for one proof, but not half of them.
            views = views[: len(views) // 2]
        return None

    def _open_moved(self, change: Change, whole: Changes) -> list[int]:
        """Open the sums that a change moves; which were not."""
        opened = change.places[~self.is_open[change.places]]
        self.is_open[opened] = True
        whole.price(opened, _FREE)
        found: list[int] = opened.tolist()
        for total in found:
            self.bank.enable_proofs(total)
        return found

    def thin(self, among: Mask | None = None) -> None:
        """Publish secondary cells again, some or any, whose proofs can be replaced."""
        if self.effort is None:
            self.effort = self._share(_THINNING)
        within = Changes(self.sums, self.is_open, near=_NEAR, effort=self.effort)
        # Proofs that leave the candidates alone need not be found again when one is published.
        candidates = self.cells.dearest_first(self.is_open)
        dearest = self.cells.cost[candidates].max(initial=0.0) or 1.0
        for total in candidates.tolist():
            cost = _AVOIDED * (1 + float(self.cells.cost[total]) / dearest)
            within.price(np.array([total]), cost)
        bank, required = self.bank, self.bank.required
        lines = OpenLines(required, within.moves, self.sums.lines)
        published = []
        # The dearest first, since each cell that is published makes the next harder to publish.
        if among is not None:
            candidates = candidates[among[candidates]]
        for done, total in enumerate(candidates.tolist(), 1):
            report("thinning", done / len(candidates))
            if lines.would_fix(total):
                continue
            within.close(total)
            items = np.array(bank.disable_proofs(total, _MOST_ITEMS), dtype=np.intp)
            # Needs in the same line are the hardest to prove without it: a failure shows soonest.
            near = lines.share_line(total, required.total[items])
            order = np.lexsort((-required.need[items], ~near))
            is_tried = len(items) <= _MOST_ITEMS
            if is_tried and all(prove_one(bank, within, int(item)) for item in items[order]):
                published.append(total)
                lines.close(total)
            else:
                within.close(total, closed=False)
                bank.enable_proofs(total, as_before=True)
        self.is_open[np.array(published, dtype=np.intp)] = False
        self.effort = within.effort

    def _share(self, times: float) -> int:
        """Effort in proportion to what proofs took."""
        return max(_LEAST, int(times * self.spent))

    def swap(self) -> None:
        """Suppress cheaper cells in place of dearer ones, as far as a fixed effort goes."""
        whole, prices = self._whole_table(self._share(_SWAPS))
        candidates = self.cells.dearest_first(self.is_open).tolist()
        for done, total in enumerate(candidates, 1):
            self._try_swap(total, whole, prices)
            report("swaps", done / len(candidates))

    def _try_swap(self, total: int, whole: Changes, prices: Real) -> None:
        """Close a sum if others that cost less together can prove what it did."""
        whole.close(total)
        found = self.bank.disable_proofs(total, _MOST_ITEMS)
        items = self._hardest_first(np.array(found, dtype=np.intp)).tolist()
        opened: list[int] = []
        cost, is_tried = float(self.cells.cost[total]), len(items) <= _MOST_ITEMS
        if is_tried and self._prove_for_less(items, opened, cost, whole):
            self.is_open[total] = False
            return
        for other in opened:
            self.is_open[other] = False
            whole.price(np.array([other]), prices[other], free=False)
            self.bank.disable_proofs(other)
        whole.close(total, closed=False)
        self.bank.enable_proofs(total, as_before=True)

    def _prove_for_less(
        self, items: list[int], opened: list[int], limit: float, whole: Changes
    ) -> bool:
        """Prove everything again, and list the sums that were opened; whether they cost less."""
        for item in items:
            while views := sorted(self.bank.open_views(item)):
                change = self._cheapest(whole, item, views)
                if change is None:
                    return False
                opened += self._open_moved(change, whole)
                is_dearer = self.cells.cost[opened].sum() >= limit * _CHEAPER
                if is_dearer or not self.bank.add(change):
                    return False
        return True

    def pattern(self) -> Pattern:
        """The pattern with its proofs, and with needs as they were moved up."""
        n, free, required = len(self.start.z), self.cells.free, self.bank.required
        state = self.start.state.copy()
        state[free] = PUBLISHED
        sums = self.sums.of_cell[free]
        state[free[(sums != NONE) & self.is_open[sums]]] = SECONDARY
        lower, upper = np.zeros(n), np.zeros(n)
        for sign, need in ((-1, lower), (1, upper)):
            items = np.flatnonzero((required.sign == sign) & (required.place < n))
            need[required.place[items]] = required.need[items]
        proofs = Proofs(self.bank.changes(self.start.design.n_inner), self.singletons)
        return replace(self.start, state=state, proofs=proofs, lower=lower, upper=upper)

    def infeasible(self, item: int, views: list[int]) -> InfeasibleError:
        """The error for something that no suppression gives."""
        required, start, design = self.bank.required, self.start, self.start.design
        place, n = int(required.place[item]), len(start.z)
        is_cell = place < n
        what = f"cell {cell_name(design, place)}" if is_cell else start.differences[place - n].why
        side = "above" if required.sign[item] > 0 else "below"
        who = "" if views[0] == EVERYBODY else " for somebody who contributes to other cells"
        told = None if is_cell else self._telling_cell(place - n)
        by = (
            ""
            if told is None
            else f"; cell {cell_name(design, told)}, which must be shown, tells it"
        )
        return InfeasibleError(
            f"{what} needs an interval that reaches {required.need[item]:g} {side} its value, "
            f"which no suppression gives{who}{by}: cells that must be shown, and cells known to be "
            "empty, do not leave it that much room. Ask for less, take cells out of forced= and "
            "frozen=, or let empty cells be suppressed (zeros=True)."
        )

    def _telling_cell(self, number: int) -> int | None:
        """The smallest cell with all of a sensitive sum that must be shown."""
        start, must = self.start, self.plan.must
        sums = start.difference_columns()[:, [number]].astype(np.float64)
        inside = start.design.matrix().tocsc()[:, must].T @ sums
        found = must[np.asarray(inside.toarray()).ravel() == sums.sum()]
        return int(found[np.argmin(start.z[found])]) if len(found) else None


class _SumCosts:
    """Which published cells a sum stands for, and what it costs to open it."""

    def __init__(self, pattern: Pattern, plan: PublicationPlan, sums: TableSums) -> None:
        self.sums, self.free = sums, plan.others
        costs = np.abs(pattern.z).astype(np.float64) if pattern.costs is None else pattern.costs
        # Even an empty cell costs something, or programs would suppress any number of them.
        unit = 1.0 if pattern.z.dtype.kind in "iu" else _CHEAP * float(costs.max(initial=1.0))
        self.cost = self.total(costs + unit, plan.others)
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

    def prices(self, is_open: Mask) -> Real:
        """What it costs to open each sum; infinite where a cell of it must be shown."""
        # In units of the cheapest cell that is shown, so that `_FREE` is little in every table.
        shown = self.cost[~is_open & ~self.fixed]
        least = float(shown[shown > 0].min(initial=1.0)) if len(shown) else 1.0
        return np.where(self.fixed & ~is_open, np.inf, np.maximum(self.cost / least, _FREE))

    def dearest_first(self, is_open: Mask) -> Index:
        """Open sums that could be published."""
        found = np.flatnonzero(is_open & (self.cost > 0) & ~self.is_hidden)
        return found[np.argsort(-self.cost[found], kind="stable")]


class OpenLines:
    """The open sums of each line, to see at once that one is needed.

    Most sums that cannot be published are the last but one of a line with a sensitive cell; a look
    at the line says so without a program.

    Args:
      required: What has to be proven.
      is_open: Which sums are open.
      lines: Sums × equations between them.
    """

    def __init__(self, required: Requirements, is_open: Mask, lines: Any) -> None:
        self._open, self._required = is_open.copy(), required
        self._by_sum, self._by_line = lines.tocsr(), lines.tocsc()
        self._item = np.full(len(is_open), -1, dtype=np.int64)
        self._item[required.total] = np.arange(len(required))

    def would_fix(self, total: int) -> bool:
        """Whether a line would give a sensitive sum to everybody or to a lone contributor."""
        if not self._open[total]:
            return False
        return any(self._gives_one(others) for others in self._lines(total))

    def share_line(self, total: int, sums: Array) -> Mask:
        """Which of some sums share a line with a sum."""
        found = [np.empty(0, np.int64), *self._lines(total)]
        return np.isin(sums, np.concatenate(found))

    def close(self, total: int) -> None:
        """Take a sum out."""
        self._open[total] = False

    def _lines(self, total: int) -> Iterator[Array]:
        """The other open sums of each line of a sum."""
        start, end = self._by_sum.indptr[total : total + 2]
        for line in self._by_sum.indices[start:end]:
            first, last = self._by_line.indptr[line : line + 2]
            others = self._by_line.indices[first:last]
            yield others[self._open[others] & (others != total)]

    def _gives_one(self, others: Array) -> bool:
        """Whether a line with these open sums gives a sensitive one of them."""
        if len(others) == 1:
            return bool(self._item[others[0]] >= 0)
        whose = self._required.knower[others]
        for who in np.unique(whose[whose != EVERYBODY]).tolist():
            rest = others[whose != who]
            if len(rest) == 1 and self._item[rest[0]] >= 0:
                return who not in self._required.exempt.get(int(self._item[rest[0]]), ())
        return False


def prove_one(bank: ProofBank, within: Changes, item: int) -> bool:
    """Look for proofs of one thing in all views; whether there are.

    A proof for everybody leaves open the views of the few contributors whose cells it moves.
    """
    if EVERYBODY in bank.open_views(item) and not _prove_at_once(bank, within, item, [EVERYBODY]):
        return False
    # Views are met together where possible, and halved where not: one program often serves many.
    waiting = [sorted(bank.open_views(item))]
    while waiting:
        views = [v for v in waiting.pop() if v in bank.open_views(item)]
        if not views or _prove_at_once(bank, within, item, views):
            continue
        if len(views) == 1:
            return False
        half = len(views) // 2
        waiting += [views[half:], views[:half]]
    return True


def _prove_at_once(bank: ProofBank, within: Changes, item: int, views: list[int]) -> bool:
    """Look for one change that proves something in some views at once."""
    change = bank.required.cheapest(within, item, views)
    if change is not None:
        bank.add(change)
    return change is not None and not bank.open_views(item).intersection(views)
