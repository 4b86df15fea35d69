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
from typing import Any, NamedTuple

import numpy as np

from discreet.arrays import Index, Mask, Real
from discreet.errors import NotConvergedError, ParameterError
from discreet.progress import report
from discreet.solve.linear.changes import Change, Changes, Floors, MoveGoal, Tied, work_of
from discreet.solve.linear.program import Program
from discreet.suppress.bank import EVERYBODY, ProofBank
from discreet.suppress.interval import IntervalSearch, suppress_by_interval
from discreet.suppress.pattern import Pattern
from discreet.suppress.plan import PublicationPlan

Pair = tuple[int, int]
"""Something that has to be proven, and the view in which it is."""


# Tables with more published cells are refused: each round has a program for every need and view.
LARGEST = 2_000
_ROUNDS = 300
# Steps of all programs that look for covers (`work_of`), about a minute. When they are spent, the
# best pattern found so far is the result, and the bound is the one reached by then.
_MOST_WORK = 4_000_000


# How far from the bound choices may be while covers are still found: an exact optimum of a problem
# that lacks covers is thrown away in the next round.
_ROUGH = 0.05
_STALLED = 10  # rounds in which the bound of the relaxation may stay where it is
_CLOSE = 1e-6


def suppress_by_optimum(
    pattern: Pattern, plan: PublicationPlan, *, singletons: bool = True
) -> Pattern:
    """The pattern of least cost with proofs of all intervals, and the bound of all such costs.

    Where the least cost is not found within a fixed number of steps, the cheapest pattern found has
    a bound below its cost. The arguments are those of `suppress_by_interval`.
    """
    known, relaxed = _relax(pattern, plan, singletons)
    found = relaxed.cheaper_than(known)
    return replace(found, bound=min(relaxed.bound, found.cost))


def lower_bound(pattern: Pattern, plan: PublicationPlan, *, singletons: bool = True) -> float:
    """What every pattern with all intervals costs at least, by a linear relaxation."""
    return _relax(pattern, plan, singletons)[1].bound


def _relax(pattern: Pattern, plan: PublicationPlan, singletons: bool) -> tuple[Pattern, _LeastCost]:
    """A pattern with all intervals as the cost to beat, and the relaxation of its problem."""
    if len(pattern.z) > LARGEST:
        raise ParameterError(
            f"patterns of least cost are for tables of at most {LARGEST} published cells, but this "
            f'one has {len(pattern.z):,}. Use secondary="interval".'
        )
    known = suppress_by_interval(pattern, plan, singletons=singletons)
    # Widths for which there was no room below have moved up; both patterns need the same.
    relaxed = _LeastCost(replace(pattern, lower=known.lower, upper=known.upper), plan, singletons)
    relaxed.relax()
    return known, relaxed


class _LeastCost:
    """The covers found so far, and the bound that follows.

    Attributes:
      bound: What every pattern costs at least.
    """

    def __init__(self, pattern: Pattern, plan: PublicationPlan, singletons: bool) -> None:
        self.search = IntervalSearch(pattern, plan, singletons=singletons, every_row=True)
        start = self.search.start
        sums, cells = self.search.sums, self.search.cells
        costs = np.abs(start.z).astype(np.float64) if start.costs is None else start.costs
        self.always = self.search.is_open.copy()
        self.choice = np.flatnonzero(~self.always & ~cells.fixed)
        self.cost = cells.total(costs, plan.others)[self.choice]
        self.is_whole = bool((costs == np.round(costs)).all())
        self.bound = self.least = start.cost
        self.covering = Covering(self.cost)
        self.cuts = Cuts(sums, self.always, self.choice)
        items = range(len(self.search.bank.required))
        self.watched: dict[Pair, None] = dict.fromkeys((item, EVERYBODY) for item in items)
        self.proofs: list[Change] = []
        self.spent = 0  # on proofs; covers are counted where they are found

    def relax(self) -> None:
        """Find covers until parts of cells meet them all, or the bound no longer rises."""
        stalled = 0
        for _ in range(_ROUNDS):
            chosen = self.covering.relax()
            before = self.bound
            self._raise_bound(chosen.bound)
            stalled = 0 if self.bound > before else stalled + 1
            if chosen.share is None or stalled > _STALLED or self.is_spent:
                return
            share = np.where(chosen.share < _CLOSE, 0.0, chosen.share)
            share = np.where(share > 1 - _CLOSE, 1.0, share)
            # Views that were missed before are asked first; a search through all of them takes
            # programs for every sensitive cell and lone contributor.
            if not self._cover_watched(share) and not self._cover_choice(share > 0):
                return

    def cheaper_than(self, known: Pattern) -> Pattern:
        """A pattern of least cost, or a known one that nothing was found to be cheaper than."""
        gap = _ROUGH
        for _ in range(_ROUNDS):
            chosen = self.covering.whole(gap)
            self._raise_bound(chosen.bound)
            report("least cost", min(1.0, self.bound / max(known.cost, _CLOSE)))
            is_best = self.bound >= known.cost * (1 - _CLOSE)
            if chosen.share is None or is_best or self.is_spent:
                return known
            is_missing = self._cover_choice(chosen.share > 0)
            # A choice that lacks something is completed all the same: it may be the best pattern
            # when the rounds end.
            self.search.effort = None  # each pattern is thinned anew
            self.search.repair()
            self.search.thin()
            known = min(self.search.pattern(), known, key=lambda pattern: pattern.cost)
            if not is_missing and gap == 0:
                return known
            gap = gap if is_missing else 0.0
        return known

    @property
    def is_spent(self) -> bool:
        """Whether programs have taken all they may."""
        return self.cuts.spent + self.spent > _MOST_WORK

    def _raise_bound(self, added: float) -> None:
        bound = self.least + added
        # Whole costs have whole sums: a bound of 61.2 means 62.
        if self.is_whole:
            bound = float(np.ceil(bound - _CLOSE * max(1.0, bound)))
        self.bound = max(self.bound, bound)

    def _cover_watched(self, share: Real) -> bool:
        """Add covers that parts of cells miss, of what was missed before; whether there are any."""
        pairs = (pair for pair in self.watched if not self.is_spent)
        found = [(pair, self._missed_cover(pair, share)) for pair in pairs]
        missed = [(pair, cover) for pair, cover in found if cover is not None]
        for pair, cover in missed:
            self._add(pair, cover)
        return len(missed) > 0

    def _cover_choice(self, chosen: Mask) -> bool:
        """Add covers that a choice of whole cells misses; whether there are any."""
        pairs = self._unproven_pairs(chosen)
        for pair in pairs:
            share, is_found = chosen.astype(np.float64), False
            # Covers without a cell in common raise the bound more than many with the same one.
            while (cover := self._missed_cover(pair, share)) is not None:
                self._add(pair, cover)
                share[cover > 0] = 1.0
                is_found = True
            # A cover missed by a rounding error is not given. This weaker one holds all the same:
            # the choice lacks a proof, so one of the other cells must be open.
            if not is_found:
                self._add(pair, 1.0 - share)
            self.watched[pair] = None
        return len(pairs) > 0

    def _missed_cover(self, pair: Pair, share: Real) -> Real | None:
        required, views = self.search.bank.required, [pair[1]]
        goal, floors = required.goal(pair[0], views), required.floors(views)
        return self.cuts.cut(goal, required.known_sums(views), share, floors)

    def _add(self, pair: Pair, cover: Real) -> None:
        if cover.sum() < 1 - _CLOSE:
            raise self.search.infeasible(pair[0], [pair[1]])
        self.covering.add(cover)

    def _unproven_pairs(self, chosen: Mask) -> list[Pair]:
        """What has no proof among the open cells, one view of each; the bank holds the proofs."""
        search = self.search
        search.is_open = self.always.copy()
        search.is_open[self.choice[chosen]] = True
        search.bank = bank = ProofBank(search.bank.required, search.sums)
        for change in self.proofs:
            if search.is_open[change.places].all():
                bank.add(change)
        within = Changes(replace(search.sums, boxes=None), search.is_open)
        items = bank.open_items().tolist()
        found = [(item, self._first_unproven_view(bank, within, item)) for item in items]
        self.spent += within.spent
        return [(item, view) for item, view in found if view is not None]

    def _first_unproven_view(self, bank: ProofBank, within: Changes, item: int) -> int | None:
        required = bank.required
        while views := sorted(bank.open_views(item))[:1]:
            change = required.cheapest(within, item, views)
            if change is None or not bank.add(change):
                return views[0]
            self.proofs.append(change)
        return None


_SOLVED, _LIMIT, _OTHER = 0, 1, 4  # SciPy has no number of its own for a limit of nodes


# Covers times nodes of trees of choices, all choices together: about ten seconds. A limit in
# seconds would make patterns depend on the machine.
_EFFORT = 60_000
_ROOT = 10  # nodes that the first of a tree counts for: it solves a program from nothing
_NOTHING = 1e-7  # weights below this are rounding errors
_MISSING = 1e-6  # covers that are missed by less are met


class Cuts:
    """Covers that follow from the equations, where some sums are open and some may be opened."""

    def __init__(self, sums: Tied, always: Mask, choice: Index) -> None:
        self._equations, self._down = sums.equations, sums.down
        self._always, self._choice = always, choice
        none, up = np.zeros(sums.equations.shape[1]), np.full(len(sums), np.inf)
        self._program = Program(sums.equations, none, none, -sums.down, up, changing="bounds")
        self.spent = 0

    def cut(
        self, goal: MoveGoal, held: Index, share: Real, floors: Floors | None = None
    ) -> Real | None:
        """Coefficients of the choice that add up to one in every pattern with the goal reached.

        Args:
          goal: A sum that is to move.
          held: Sums that must not.
          share: How far each sum of the choice is open, zero to one. Only a cover that it misses
            is given.
          floors: Sums that go down less far, each once.
        """
        room = self._down
        if floors is not None:
            room = self._down.copy()
            room[floors[0]] = np.minimum(room[floors[0]], floors[1])
        # Those that are open in part go no further than the goal. Their limits decide which prices
        # are found, not whether the cover holds.
        opened = self._always.astype(np.float64)
        opened[self._choice] = share
        wide = opened >= 1
        up = np.where(wide, np.inf, goal.reach * opened)
        down = np.where(wide, room, np.minimum(room, goal.reach) * opened)
        up[held] = down[held] = 0.0
        ahead = up if goal.sign > 0 else down
        ahead[goal.total] = min(ahead[goal.total], goal.reach)
        cost = np.zeros(len(up))
        cost[goal.total] = -goal.sign
        before = self._program.steps
        self._program.afresh(cost, -down, up)
        self.spent += work_of(self._program.steps - before, len(up))
        weights = np.asarray(self._equations @ self._program.prices()) - cost
        weights[np.abs(weights) < _NOTHING] = 0.0
        weights[held] = 0.0
        gain = np.where(weights > 0, np.inf, 0.0)
        falls = weights < 0
        gain[falls] = -weights[falls] * room[falls]
        missing = goal.reach - float(gain[self._always].sum())
        if missing <= _MISSING * goal.reach:
            return None
        coefficients = np.minimum(gain[self._choice] / missing, 1.0)
        return coefficients if coefficients @ share < 1 - _MISSING else None


class CoverChoice(NamedTuple):
    """The outcome of a choice.

    Attributes:
      share: How much of each thing is chosen, zero to one; `None` where no choice was found.
      bound: What every choice costs at least.
    """

    share: Real | None
    bound: float


class Covering:
    """Things with costs, and the covers found so far; `effort` counts covers times nodes."""

    def __init__(self, cost: Real, *, effort: int = _EFFORT) -> None:
        self._cost, self._effort = cost, effort
        self._scale = float(cost.max(initial=0.0)) or 1.0
        self._rows: list[Real] = []

    def add(self, coefficients: Real) -> None:
        """Ask that the coefficients of what is chosen add up to one or more."""
        self._rows.append(coefficients)

    def relax(self) -> CoverChoice:
        """The cheapest choice where parts of things can be chosen."""
        if not self._rows or not len(self._cost):
            return CoverChoice(np.zeros(len(self._cost)), 0.0)
        found = self._solve({})
        return CoverChoice(found.x, float(found.fun) * self._scale)

    def whole(self, gap: float = 0.0) -> CoverChoice:
        """The cheapest choice of whole things, by a share of `gap` above the bound at most."""
        if not self._rows or not len(self._cost):
            return CoverChoice(np.zeros(len(self._cost)), 0.0)
        nodes = self._effort // len(self._rows) - _ROOT
        if nodes <= 0:
            return CoverChoice(None, 0.0)
        found = self._solve({"mip_rel_gap": gap, "node_limit": nodes}, whole=True)
        self._effort -= len(self._rows) * (_ROOT + (found.mip_node_count or 0))
        share = None if found.x is None else np.round(found.x)
        return CoverChoice(share, float(found.mip_dual_bound or 0.0) * self._scale)

    def _solve(self, options: Any, *, whole: bool = False) -> Any:
        from scipy.optimize import Bounds, LinearConstraint, milp

        found = milp(
            self._cost / self._scale,
            integrality=np.full(len(self._cost), int(whole)),
            bounds=Bounds(0.0, 1.0),
            constraints=LinearConstraint(np.array(self._rows), lb=1.0),
            options=options,
        )
        is_limited = found.status == _OTHER and found.mip_dual_bound is not None
        if found.status not in (_SOLVED, _LIMIT) and not is_limited:
            raise NotConvergedError(f"a choice of least cost was not found: {found.message}")
        return found
