"""Secondary suppression of least cost, for small tables, with a bound.

A pattern keeps all intervals exactly when, for each sensitive cell, each side and each lone
contributor, the suppressed cells can change so that the cell moves as far as it needs. Where they
cannot, prices of a linear program say which cells are missing: a cover, that holds in every pattern
with all intervals. The cheapest choice that meets all covers found so far is a lower bound, and
the best pattern once it keeps every interval.

See Fischetti & Salazar-González (2000).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from discreet.arrays import Mask, Real
from discreet.errors import ParameterError
from discreet.progress import report
from discreet.solve.linear.changes import Change, Changes
from discreet.solve.linear.covering import Covering, Cuts
from discreet.suppress.bank import EVERYBODY, Bank
from discreet.suppress.gauss import Plan
from discreet.suppress.interval import Search, suppress_by_interval
from discreet.suppress.pattern import Pattern

Pair = tuple[int, int]
LARGEST = 500
"""Tables with more published cells are refused."""
_ROUNDS = 300
_ROUGH = 0.05  # how far from the bound choices may be while covers are still found
_STALLED = 10  # rounds in which the relaxation may stay where it is
_CLOSE = 1e-6


def suppress_by_optimum(pattern: Pattern, plan: Plan, *, singletons: bool = True) -> Pattern:
    """The pattern of least cost with proofs of all intervals, and the bound of all such costs.

    Where the least cost is not found within a fixed number of steps, the cheapest pattern found has
    a bound below its cost.

    Args:
      pattern: Sensitive cells with what they need.
      plan: What may be published. Cells in neither list stay suppressed.
      singletons: Whether intervals are proven against lone contributors as well.

    Raises:
      ParameterError: The table is too large.
      InfeasibleError: A sensitive cell cannot have its interval, whatever else is suppressed.
    """
    _check_size(pattern)
    known = suppress_by_interval(pattern, plan, singletons=singletons)
    asked = replace(pattern, lower=known.lower, upper=known.upper)
    optimum = _Optimum(asked, plan, singletons)
    optimum.relax()
    found = optimum.cheaper_than(known)
    return replace(found, bound=min(optimum.bound, found.cost))


def lower_bound(pattern: Pattern, plan: Plan, *, singletons: bool = True) -> float:
    """What every pattern with all intervals costs at least, by a linear relaxation.

    Args:
      pattern: Sensitive cells with what they need; other states are not looked at.
      plan: What may be published. Cells in neither list stay suppressed.
      singletons: Whether intervals are proven against lone contributors as well.
    """
    _check_size(pattern)
    known = suppress_by_interval(pattern, plan, singletons=singletons)
    optimum = _Optimum(replace(pattern, lower=known.lower, upper=known.upper), plan, singletons)
    optimum.relax()
    return optimum.bound


class _Optimum:
    """The covers found so far, and the bound that follows.

    Attributes:
      bound: What every pattern costs at least.
    """

    def __init__(self, pattern: Pattern, plan: Plan, singletons: bool) -> None:
        self.search = Search(pattern, plan, singletons=singletons, every_row=True)
        start = self.search.start
        sums, cells = self.search.sums, self.search.cells
        costs = np.abs(start.z).astype(np.float64) if start.costs is None else start.costs
        self.always = self.search.is_open.copy()
        self.choice = np.flatnonzero(~self.always & ~cells.fixed)
        self.cost = cells.total(costs, plan.order)[self.choice]
        self.is_whole = bool((costs == np.round(costs)).all())
        self.bound = self.least = start.cost
        self.covering = Covering(self.cost)
        self.cuts = Cuts(sums, self.always, self.choice)
        items = range(len(self.search.bank.asked))
        self.watched: dict[Pair, None] = dict.fromkeys((item, EVERYBODY) for item in items)
        self.proofs: list[Change] = []

    def relax(self) -> None:
        """Find covers until parts of cells meet them all, or the bound no longer rises."""
        stalled = 0
        for _ in range(_ROUNDS):
            chosen = self.covering.relaxed()
            before = self.bound
            self._raise_bound(chosen.bound)
            stalled = 0 if self.bound > before else stalled + 1
            if chosen.share is None or stalled > _STALLED:
                return
            share = _without_rounding(chosen.share)
            if not self._watch(share) and not self._covered(share > 0):
                return

    def cheaper_than(self, known: Pattern) -> Pattern:
        """A pattern of least cost, or a known one that nothing was found to be cheaper than."""
        gap = _ROUGH
        for _ in range(_ROUNDS):
            chosen = self.covering.whole(gap)
            self._raise_bound(chosen.bound)
            report("least cost", min(1.0, self.bound / max(known.cost, _CLOSE)))
            if chosen.share is None or self.bound >= known.cost * (1 - _CLOSE):
                return known
            is_missing = self._covered(chosen.share > 0)
            known = min(self._completed(), known, key=lambda pattern: pattern.cost)
            if not is_missing and gap == 0:
                return known
            gap = gap if is_missing else 0.0
        return known

    def _raise_bound(self, added: float) -> None:
        bound = self.least + added
        if self.is_whole:
            bound = float(np.ceil(bound - _CLOSE * max(1.0, bound)))
        self.bound = max(self.bound, bound)

    def _watch(self, share: Real) -> bool:
        """Add covers that parts of cells miss, of what was missed before; whether there are any."""
        found = [(pair, self._cover(pair, share)) for pair in self.watched]
        missed = [(pair, cover) for pair, cover in found if cover is not None]
        for pair, cover in missed:
            self._add(pair, cover)
        return len(missed) > 0

    def _covered(self, chosen: Mask) -> bool:
        """Add covers that a choice of whole cells misses; whether there are any."""
        share = chosen.astype(np.float64)
        pairs = self._missed(chosen)
        for pair in pairs:
            if not self._cover_apart(pair, share):
                self._add(pair, 1.0 - share)
            self.watched[pair] = None
        return len(pairs) > 0

    def _cover_apart(self, pair: Pair, share: Real) -> int:
        """Add covers that have no cell in common beyond the choice; how many there are."""
        found, share = 0, share.copy()
        while (cover := self._cover(pair, share)) is not None:
            self._add(pair, cover)
            share[cover > 0] = 1.0
            found += 1
        return found

    def _cover(self, pair: Pair, share: Real) -> Real | None:
        asked, views = self.search.bank.asked, [pair[1]]
        return self.cuts.cut(asked.goal(pair[0], views), asked.held(views), share)

    def _add(self, pair: Pair, cover: Real) -> None:
        if cover.sum() < 1 - _CLOSE:
            raise self.search.infeasible(pair[0], [pair[1]])
        self.covering.add(cover)

    def _missed(self, chosen: Mask) -> list[Pair]:
        """What has no proof among the open cells, one view of each; the bank holds the proofs."""
        search = self.search
        search.is_open = self._open(chosen)
        search.bank = bank = Bank(search.bank.asked, search.sums)
        for change in self.proofs:
            if search.is_open[change.places].all():
                bank.add(change)
        within = Changes(replace(search.sums, boxes=None), search.is_open)
        items = bank.open_items().tolist()
        found = [(item, self._first_missed(bank, within, item)) for item in items]
        return [(item, view) for item, view in found if view is not None]

    def _first_missed(self, bank: Bank, within: Changes, item: int) -> int | None:
        asked = bank.asked
        while views := sorted(bank.open_views(item))[:1]:
            change = within.cheapest(asked.goal(item, views), asked.held(views))
            if change is None or not bank.add(change):
                return views[0]
            self.proofs.append(change)
        return None

    def _open(self, chosen: Mask) -> Mask:
        is_open = self.always.copy()
        is_open[self.choice[chosen]] = True
        return is_open

    def _completed(self) -> Pattern:
        """The choice just checked with what it lacks, less what is not needed."""
        self.search.repair()
        self.search.thin()
        return self.search.pattern()


def _without_rounding(share: Real) -> Real:
    return np.where(share < _CLOSE, 0.0, np.where(share > 1 - _CLOSE, 1.0, share))


def _check_size(pattern: Pattern) -> None:
    if len(pattern.z) > LARGEST:
        raise ParameterError(
            f"patterns of least cost are for tables of at most {LARGEST} published cells, but this "
            f'one has {len(pattern.z):,}. Use secondary="interval".'
        )
