r"""What hidden cells together tell of one contributor.

A table gives away sums of hidden cells: where three are hidden beside their total, the sum of the
three is public. The rule that makes a single cell sensitive is asked of all these sums. For
contributors with :math:`x_k` in each hidden cell `k`, and somebody, or several who pool what they
know, with :math:`a_k` in it, a table :math:`z + \Delta` that these cannot rule out hides the first
in a set `S` of cells if

.. math:: \sum_{k \in S} (z_k + \Delta_k - a_k - x_k) \ge p \sum_{k \in S} x_k .

A program looks for the set that is furthest from having such a table. Its variables are the set and
the prices that prove it; without the condition that cells are in the set or not, it is linear, and
where even its optimum is zero one table hides them in all sets at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, islice, pairwise
from math import comb
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csc_array, csr_array, eye_array, hstack, vstack

from discreet.arrays import Array, Index, Mask, Real
from discreet.errors import NotConvergedError
from discreet.progress import report
from discreet.rules.counts import Difference, PrimaryRule
from discreet.rules.magnitudes import PQ, Dominance, FewContributors
from discreet.solve.linear.program import Program
from discreet.solve.linear.unknowns import connected_parts, distinct_columns, unknowns
from discreet.suppress.attackers import PUBLIC, Attacker, Attackers, attackers
from discreet.suppress.exceptions import Exempt
from discreet.suppress.pattern import Closeness, Pattern
from discreet.suppress.plan import cell_name
from discreet.tables.truth import TrueTable

# Sets of up to so many cells are searched to the end, whatever it takes.
EXHAUSTIVE = 20
_NODES = 2_000  # of the tree of choices for more cells
# Programs with more unknown cells, and cells of one contributor beyond which none is tried.
_MOST_UNKNOWN, _MOST_CELLS = 4_000, 500
_MOST_GROUPS = 1_000  # of contributors who are looked at together, or who pool what they know
_AT_ONCE = 5  # sums of one contributor that are protected in a round; the next finds the others
_MOST_TIMES = 10.0  # that a proof counts in a combination: with it, its rounding errors grow
_MISSING = 1e-6  # share of a contributor's total by which a set may miss its rule
_FOUND = 0  # the status of a program of SciPy that was solved


class Unions(NamedTuple):
    """What was found: sums that tell too much, and contributors of whom nothing is proven."""

    sums: tuple[Difference, ...]
    unproved: tuple[int, ...]


def closeness_of(rules: Sequence[PrimaryRule], table: TrueTable) -> tuple[Closeness, ...]:
    """How closely rules let contributors be known, where they say so."""
    given, found = table.contributions, []
    if given is None or given.may_be_negative:
        return ()
    for each in rules:
        rule = each.rule if isinstance(each, Exempt) else each
        exempt = each.exempt(table) if isinstance(each, Exempt) else None
        waived = getattr(rule, "waivers", ())
        last: dict[str, Any] = {
            "waived": tuple(given.places_of(waived).tolist()) if waived else (),
            "exempt": () if exempt is None else tuple(np.flatnonzero(exempt).tolist()),
        }
        if isinstance(rule, PQ):
            found.append(Closeness(rule.p / rule.q, coalition=rule.n, **last))
        elif isinstance(rule, Dominance):
            found.append(Closeness(100.0 / rule.k - 1.0, together=rule.n, **last))
        elif isinstance(rule, FewContributors):
            few = rule.n - 1
            found.append(Closeness(rule.range / 100.0, together=few, is_alone=True, **last))
    return tuple(found)


def find_unions(
    pattern: Pattern, earlier: Pattern | None = None, known: Unions | None = None
) -> Unions:
    """Sums of hidden cells that tell too much about contributors; a few of each.

    Where it is known what was found of an earlier pattern, and this one hides as much and more,
    those alone are looked at again of whom a sum told too much, or who are in the further cells.
    """
    if not pattern.closeness or pattern.contributions is None or pattern.y is None:
        return Unions((), ())
    search = _UnionSearch(pattern)
    sums: list[Difference] = []
    unproved: set[int] = set()
    is_again = np.ones(len(search.everybody), dtype=bool)
    if earlier is not None and known is not None:
        # What hides somebody still does when other cells are hidden as well.
        more = pattern.suppressed & ~earlier.suppressed
        if not (earlier.suppressed & ~pattern.suppressed).any():
            is_again = search.are_in(np.flatnonzero(more))
            told = [one for each in known.sums for one in each.owners]
            is_again |= np.isin(search.everybody.numbers, told)
            unproved.update(known.unproved)
    for closeness in pattern.closeness:
        groups, left_out = search.groups(closeness)
        unproved.update(search.everybody.numbers[left_out].tolist())
        groups = [who for who in groups if is_again[list(who)].any()]
        for done, who in enumerate(groups, 1):
            found = search.closest(who, closeness)
            if found is None:
                unproved.update(search.everybody.numbers[list(who)].tolist())
            else:
                sums += found
            report("contributors", done / len(groups))
    return Unions(tuple(sums), tuple(sorted(unproved)))


class _Target(NamedTuple):
    """Hidden cells, what others have in them beyond what the rule asks, and which are exempt."""

    cells: Index
    spare: Real
    is_exempt: Mask


class _UnionSearch:
    """The hidden cells, what everybody has in them, and the unknown cells behind them."""

    def __init__(self, pattern: Pattern) -> None:
        without = tuple(each for each in pattern.differences if not each.owners)
        self.pattern = replace(pattern, differences=without)
        self.everybody = attackers(self.pattern)
        X = pattern.design.matrix().astype(np.float64).tocsc()
        shown, hidden = ~pattern.suppressed, np.flatnonzero(pattern.suppressed)
        y = np.asarray(pattern.y, dtype=np.float64)
        self.system = unknowns(X[:, shown], pattern.z[shown], signs=True, known=pattern.known, y=y)
        # Cells of hierarchies that hold the same are one.
        columns = X[:, hidden]
        self.cells = hidden[np.sort(distinct_columns(columns)[0])] if len(hidden) else hidden
        self.columns = X[:, self.cells]
        self.z = np.asarray(pattern.z[self.cells], dtype=np.float64)
        self.parts = csr_array(self.everybody.shares.T @ self.columns)
        self.by_cell = self.parts.tocsc()
        changes = csc_array((X.shape[0], 0))
        if pattern.proofs is not None:
            changes = csc_array(pattern.proofs.changes[:, pattern.proofs.valid(pattern)])
        self.moves = csr_array(self.columns.T @ changes)
        ends = zip(changes.indptr[:-1], changes.indptr[1:], strict=True)
        entries = ((changes.indices[a:b], changes.data[a:b]) for a, b in ends)
        self.by_inner = csr_array(changes)
        self.rooms = [self.everybody.rooms(*entry) for entry in entries]
        self.part_of = np.full(X.shape[0], -1)
        self.members: list[Array] = []
        for k, (cells, _) in enumerate(connected_parts(self.system.equations)):
            self.part_of[self.system.cells[cells]] = k
            self.members.append(cells)
        # Who is in some cell of each part, or knows one.
        touched = csr_array(abs(self.everybody.shares) + self.everybody.known).tocoo()
        part = self.part_of[touched.row]
        self.inside = [np.unique(touched.col[part == k]) for k in range(len(self.members))]

    def are_in(self, cells: Index) -> Mask:
        """Which contributors have something in some of the published cells."""
        inside = self.pattern.design.matrix().tocsc()[:, cells].sum(axis=1)
        touched = self.everybody.shares.T @ np.asarray(inside, dtype=np.float64).ravel()
        return np.asarray(touched > 0)

    def groups(self, closeness: Closeness) -> tuple[list[tuple[int, ...]], Index]:
        """Contributors who are looked at one by one or together; of whom some groups are left out.

        Where there are too many groups, the largest in cells that break the rule are looked at.
        """
        n, none = len(self.everybody), np.empty(0, np.intp)
        if closeness.is_alone:
            return self._owners_of_cells(closeness.together)
        members = min(closeness.together, n)
        if members < 2:
            return [(k,) for k in range(n)], none
        # In some cell they must have more than the rule lets them.
        P = self.parts.toarray()
        order = np.argsort(-P, axis=0, kind="stable")[: members + 1]
        top = np.take_along_axis(P, order, axis=0)
        cells = self.z < (1 + closeness.share) * top[:members].sum(axis=0)
        if not cells.any():
            return [], none
        limit, P = self.z[cells] / (1 + closeness.share) * (1 + _MISSING), P[:, cells]
        if comb(n, members) <= 50 * _MOST_GROUPS:
            every = combinations(range(n), members)
            found = list(islice((g for g in every if (P[[*g]].sum(0) > limit).any()), _MOST_GROUPS))
            if len(found) < _MOST_GROUPS:
                return found, none
        columns = [np.sort(column).tolist() for column in order[:, cells].T]
        largest = {group for column in columns for group in combinations(column, members)}
        return sorted(largest)[:_MOST_GROUPS], np.flatnonzero(P.any(axis=1))

    def _owners_of_cells(self, most: int) -> tuple[list[tuple[int, ...]], Index]:
        """Groups of so many at most who are the only ones in two cells or more."""
        columns = [self.by_cell.indices[a:b] for a, b in pairwise(self.by_cell.indptr)]
        is_all = np.abs(self.by_cell.sum(axis=0) - self.z) <= _MISSING * self.z
        alone = [frozenset(c.tolist()) for c, whole in zip(columns, is_all, strict=True) if whole]
        first = {who for who in alone if 0 < len(who) <= most}
        found, waiting = set(first), sorted(first, key=sorted)
        while waiting and len(found) <= _MOST_GROUPS:
            who = waiting.pop()
            more = {who | other for other in first if len(who | other) <= most} - found
            found |= more
            waiting += sorted(more, key=sorted)
        groups = sorted(tuple(sorted(who)) for who in found)
        left = sorted({one for who in groups for one in who}) if len(groups) > _MOST_GROUPS else []
        return groups[:_MOST_GROUPS], np.array(left, dtype=np.intp)

    def closest(self, who: tuple[int, ...], closeness: Closeness) -> list[Difference] | None:
        """Sums that tell too much of contributors, to somebody each; `None` where it is open."""
        if set(self.everybody.numbers[list(who)].tolist()) <= set(closeness.waived):
            return []
        own = np.asarray(self.parts[list(who)].sum(axis=0)).ravel()
        cells = np.flatnonzero(own)
        if closeness.is_alone:
            cells = cells[own[cells] >= (1 - _MISSING) * self.z[cells]]
        is_exempt = np.isin(self.cells[cells], closeness.exempt)
        target = _Target(cells, self.z[cells] - (1 + closeness.share) * own[cells], is_exempt)
        is_safe = is_exempt.all() or (not closeness.coalition and (target.spare >= 0).all())
        # One cell is what its own rule is about, unless several pool what they know.
        if is_safe or len(cells) < 1 + (closeness.coalition < 2):
            return []
        # Among a few who are alone in cells, each is somebody whom the others come close to.
        others = self._others(cells, () if closeness.is_alone and len(who) > 1 else who)
        parts = self.by_cell[:, cells].tocsr()[others].toarray()
        if not closeness.coalition:
            parts[:] = 0.0
        n = min(max(closeness.coalition, 1), len(others))
        strictest = target._replace(spare=target.spare - -np.sort(-parts, axis=0)[:n].sum(axis=0))
        views, left = self._not_convinced(strictest, others, n)
        if left is None:
            return None
        found: list[Difference] = []
        while left and len(found) < _AT_ONCE:
            members, place = left.pop()
            one = views[place] if members else PUBLIC
            chosen, change = self._worst_set(strictest, one)
            if chosen is not None and not chosen.any():
                left = left if change is None else _limited_by(change, views, left)
                continue
            rows = np.searchsorted(others, members)
            at = target._replace(spare=target.spare - parts[rows].sum(axis=0))
            chosen, _ = self._worst_set(at, one)
            if chosen is None:
                return None
            need = -float(at.spare[chosen].sum())
            if need > _MISSING * own[cells][chosen].sum():
                found.append(self._sum(who, members, cells[chosen], need))
        return found

    def _others(self, cells: Index, who: tuple[int, ...]) -> Index:
        """Who else is in cells that have to do with some hidden ones, or knows them."""
        touched = np.unique(self.part_of[self.columns[:, cells].indices])
        found = [self.inside[k] for k in touched[touched >= 0].tolist()]
        found.append(np.unique(self.by_cell[:, cells].indices))
        return np.setdiff1d(np.concatenate(found), who).astype(np.intp)

    def _not_convinced(
        self, target: _Target, others: Index, n: int
    ) -> tuple[Attackers, list[_Members] | None]:
        """Attackers, and who may find a set of cells too close; `None` where they are too many."""
        views = self.everybody
        if (target.spare >= 0).all():
            return views, []
        if not len(others):
            return views, [((), 0)]
        if n < 2:
            # The proofs of single cells are at hand; many do for all cells of a contributor.
            moves = self.moves[target.cells].toarray() + target.spare[:, None]
            left = set(others.tolist())
            for k in np.flatnonzero((moves >= 0).all(axis=0)).tolist():
                left &= {one for one, room in self.rooms[k].items() if room < 1}
            found: list[_Members] | None = [((k,), k) for k in sorted(left)]
            strongest = _strongest([views[k] for k in sorted(left)] or [PUBLIC], 1)
        else:
            found = None
            if comb(len(others), n) <= _MOST_GROUPS:
                views, found = self._coalitions(others, n)
            strongest = self._all_at_once(others, n)
        # Somebody who knew as much as all others at once would know more than each of them.
        if found is None or len(found) > 1:
            chosen, _ = self._worst_set(target, strongest)
            if chosen is not None and not chosen.any():
                return views, []
        return views, found

    def _coalitions(self, others: Index, n: int) -> tuple[Attackers, list[_Members]]:
        groups = list(combinations(others.tolist(), n))
        numbers = [tuple(self.everybody.numbers[list(one)].tolist()) for one in groups]
        first = len(self.everybody)
        pooled = self.everybody.pool(self.pattern, numbers)
        return pooled, [(one, k) for k, one in enumerate(groups, first)]

    def _all_at_once(self, others: Index, n: int) -> Attacker:
        """Somebody who knows as much as every coalition, and in each cell as the largest of it."""
        found = _strongest([self.everybody[one] for one in others.tolist()], n)
        X, y = self.pattern.design.matrix().astype(np.float64).tocsc(), self.everybody.y
        inside = self.everybody.shares[:, others]
        for columns, values in ((eye_array(len(y), format="csc"), y), (X, self.pattern.z)):
            own = csr_array(columns.T @ inside)
            most = np.array([-np.sort(-own.data[a:b])[:n].sum() for a, b in pairwise(own.indptr)])
            theirs = columns[:, (most > 0) & (most >= (1 - _MISSING) * values)].indices
            found = replace(found, known=np.union1d(found.known, theirs))
        return found

    def _sum(
        self, who: tuple[int, ...], by: tuple[int, ...], cells: Index, need: float
    ) -> Difference:
        places = tuple(int(k) for k in self.cells[cells])
        names = "; ".join(cell_name(self.pattern.design, k) for k in places)
        said = "one contributor has" if len(who) == 1 else f"{len(who)} contributors have"
        why = f"what {said} in cells {names} together"
        owners, against = (tuple(self.everybody.numbers[list(some)].tolist()) for some in (who, by))
        return Difference(places, (1,) * len(places), why, need, owners, against)

    def _worst_set(
        self, target: _Target, one: Attacker
    ) -> tuple[Mask | None, tuple[Index, Real] | None]:
        """The set of cells furthest from being safe; empty if all are, `None` if not found.

        With it comes a change that hides them in all sets at once, where one was found.
        """
        combined = self._combine_proofs(target, one)
        if combined is not None:
            return np.zeros(len(target.cells), dtype=bool), combined
        targets = self.columns[:, target.cells]
        touched = np.unique(self.part_of[targets.indices])
        places = [self.members[k] for k in touched[touched >= 0].tolist()]
        unknown = np.sort(np.concatenate(places)) if places else np.empty(0, np.intp)
        if len(unknown) > _MOST_UNKNOWN or len(target.cells) > _MOST_CELLS:
            return None, None
        own = np.zeros(self.pattern.design.n_inner)
        own[one.cells] = one.shares
        unknown = unknown[~np.isin(self.system.cells[unknown], one.known)]
        inner = self.system.cells[unknown]
        room = np.maximum(self.everybody.y[inner] - own[inner], 0.0)
        equations = self.system.equations.tocsr()[unknown].tocsc()
        equations = equations[:, np.flatnonzero(np.diff(equations.indptr))]
        rows = targets.tocsr()[inner].tocsc()
        # Of cells that he knows himself he learns nothing.
        his = (np.diff(rows.indptr) == 0) & (
            targets.T @ np.isin(np.arange(len(own)), one.known) > 0
        )
        asked = target._replace(is_exempt=target.is_exempt | his)
        if asked.is_exempt.all():
            return np.zeros(len(his), dtype=bool), None
        chosen, moves = _furthest(rows, asked, equations, room, self._limits(inner))
        return chosen, None if moves is None else (inner, moves)

    def _combine_proofs(self, target: _Target, one: Attacker) -> tuple[Index, Real] | None:
        """A change that hides all sets at once, made of proofs that single cells have.

        There is one for nineteen of twenty who are safe, in a twentieth of the whole program's
        time, and whatever the number of cells.
        """
        moves = self.moves[target.cells]
        helps = moves[np.flatnonzero(target.spare < 0)].tocoo()
        is_ruled_out = np.zeros(moves.shape[1], dtype=bool)
        is_ruled_out[self.by_inner[one.known].indices] = True  # he knows a cell that it moves
        chosen = np.unique(helps.col[helps.data > 0])
        chosen = chosen[~is_ruled_out[chosen]]
        if not len(chosen):
            return None
        changes = self.by_inner[:, chosen]
        inner = np.flatnonzero(np.diff(changes.indptr))
        changes, own = changes[inner], np.zeros(self.pattern.design.n_inner)
        own[one.cells] = one.shares
        room = np.maximum(self.everybody.y[inner] - own[inner], 0.0)
        bounded, down, up = self._limits(inner)
        n, missing = len(target.cells), eye_array(len(target.cells))
        above = vstack([changes, bounded.T @ changes])
        rows = vstack(
            [
                hstack([above, csr_array((above.shape[0], n))]),
                hstack([moves[:, chosen], missing]),
            ],
            format="csr",
        )
        low = np.concatenate([-room, -down, -target.spare])
        high = np.concatenate([np.full(len(room), np.inf), up, np.full(n, np.inf)])
        weights = np.full(len(chosen), _MOST_TIMES)
        ceiling = np.concatenate([weights, np.full(n, np.inf)])
        program = Program(rows.T, low, high, np.zeros(len(ceiling)), ceiling)
        found = program.minimise(np.concatenate([np.zeros(len(chosen)), np.ones(n)]))
        size = max(float(np.abs(target.spare).max()), 1e-12)
        if found is None or found[len(chosen) :].sum() > _MISSING * size:
            return None
        return inner, np.asarray(changes @ found[: len(chosen)])

    def _limits(self, inner: Index) -> tuple[Any, Real, Real]:
        """Hidden cells with public bounds on some inner cells, and how far each can go."""
        pattern = self.pattern
        if pattern.bounds is None:
            return csc_array((len(inner), 0)), np.empty(0), np.empty(0)
        low, high = (np.asarray(side)[self.cells] for side in pattern.bounds)
        chosen = np.flatnonzero(np.isfinite(low) | np.isfinite(high))
        columns = self.columns[:, chosen].tocsr()[inner]
        return columns, (self.z - low)[chosen], (high - self.z)[chosen]


_Members = tuple[tuple[int, ...], int]
"""Who attacks, and the place of what they know among the attackers."""


def _limited_by(
    change: tuple[Index, Real], views: Attackers, left: list[_Members]
) -> list[_Members]:
    """Those who can rule a change out."""
    rooms = views.rooms(*change)
    return [(who, place) for who, place in left if rooms.get(place, 1.0) < 1 - _MISSING]


def _strongest(several: list[Attacker], n: int) -> Attacker:
    """An attacker who knows whatever one of several does, and in each cell the n largest parts."""
    cells = np.concatenate([one.cells for one in several])
    shares = np.concatenate([one.shares for one in several])
    order = np.lexsort((-shares, cells))
    first, start = np.unique(cells[order], return_index=True)
    place = np.arange(len(order)) - np.repeat(start, np.diff([*start, len(order)]))
    number = np.searchsorted(first, cells[order])
    most = np.bincount(number, np.where(place < n, shares[order], 0.0), len(first))
    known = np.unique(np.concatenate([one.known for one in several]))
    return Attacker("coalition", known, first, most.astype(np.float64))


def _furthest(
    targets: Any, asked: _Target, equations: Any, room: Real, limits: tuple[Any, Real, Real]
) -> tuple[Mask | None, Real | None]:
    """Minimise what a set has to spare with the largest change that helps it, by its prices.

    The largest sum of changes of a set is the least price of its cells: prices of equations, of the
    floors of unknown cells, and of public bounds. A set must have a cell that is not exempt.
    """
    bounded, down, up = limits
    spare, n, m = asked.spare, targets.shape[1], equations.shape[1]
    falls, rises = np.isfinite(down), np.isfinite(up)
    prices = [equations, -eye_array(len(room)), bounded[:, rises], -bounded[:, falls]]
    rows = hstack([-targets, *prices], format="csc")
    size = max(float(np.abs(spare).max(initial=0.0)), 1e-12)
    cost = np.concatenate([spare, np.zeros(m), room, up[rises], down[falls]]) / size
    free = np.zeros(len(cost), dtype=bool)
    free[n : n + m] = True
    floor, ceiling = np.where(free, -np.inf, 0.0), np.full(len(cost), np.inf)
    ceiling[:n] = 1.0
    nobody, none = np.zeros(n, dtype=bool), np.zeros(rows.shape[0])
    program = Program(rows.T, none, none, floor, ceiling, changing="nothing")
    try:
        found = program.minimise(cost)
    except NotConvergedError:
        return None, None
    if found is None or cost @ found >= -_MISSING:
        return nobody, program.prices() * size
    from scipy.optimize import Bounds, LinearConstraint, milp  # start-up time

    some = csr_array(np.append(~asked.is_exempt, np.zeros(len(cost) - n))[None, :])
    best = milp(
        cost,
        integrality=np.repeat([1, 0], [n, len(cost) - n]),
        bounds=Bounds(floor, ceiling),
        constraints=LinearConstraint(vstack([rows, some]), [*none, 1.0], [*none, np.inf]),
        options={} if n <= EXHAUSTIVE else {"node_limit": _NODES},
    )
    if best.status != _FOUND or best.x is None or best.fun is None:
        return None, None
    return (nobody if best.fun >= -_MISSING else best.x[:n] > 0.5), None
