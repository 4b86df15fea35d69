r"""What hidden cells together tell of one contributor.

A table gives away sums of hidden cells: where three are hidden beside their total, the sum of the
three is public. The rule that makes a single cell sensitive is asked of all these sums. For a
contributor with :math:`x_k` in each hidden cell `k` and somebody with :math:`a_k` in it, a table
:math:`z + \Delta` that he cannot rule out hides the contributor in a set `S` of cells if

.. math:: \sum_{k \in S} (z_k + \Delta_k - a_k - x_k) \ge p \sum_{k \in S} x_k .

A program looks for the set that is furthest from having such a table. Its variables are the set and
the prices that prove it; without the condition that cells are in the set or not, it is linear, and
where even its optimum is zero one table hides the contributor in all sets at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csc_array, csr_array, eye_array, hstack

from discreet.arrays import Array, Index, Mask, Real
from discreet.errors import NotConvergedError
from discreet.progress import report
from discreet.rules.counts import Difference, PrimaryRule
from discreet.rules.magnitudes import PQ, Dominance
from discreet.solve.linear.program import Program
from discreet.solve.linear.unknowns import connected_parts, distinct_columns, unknowns
from discreet.suppress.attackers import PUBLIC, Attacker, attackers
from discreet.suppress.pattern import Closeness, Pattern
from discreet.suppress.plan import cell_name
from discreet.tables.truth import TrueTable

# Sets of up to so many cells are searched to the end, whatever it takes.
EXHAUSTIVE = 20
_NODES = 2_000  # of the tree of choices for more cells
# Programs with more unknown cells, and cells of one contributor beyond which none is tried.
_MOST_UNKNOWN, _MOST_CELLS = 4_000, 500
_MISSING = 1e-6  # share of a contributor's total by which a set may miss its rule
_FOUND = 0  # the status of a program of SciPy that was solved


@dataclass(frozen=True, eq=False, repr=False)
class ContributorSum(Difference):
    """**Confidential.** A sum of hidden cells that tells too much about one contributor.

    Attributes:
      need: How far it must be able to rise.
      owner: Whose part of it is known too closely, by number.
    """

    need: float = 0.0
    owner: int = -1


class Unions(NamedTuple):
    """What was found: sums that tell too much, and contributors of whom nothing is proven."""

    sums: tuple[ContributorSum, ...]
    unproved: tuple[int, ...]


def closeness_of(rules: Sequence[PrimaryRule], table: TrueTable) -> tuple[Closeness, ...]:
    """How closely rules let a contributor be known, where they say so of the largest one."""
    given, found = table.contributions, []
    for rule in rules:
        if given is None or given.may_be_negative or not isinstance(rule, PQ | Dominance):
            continue
        waived = tuple(given.places_of(rule.waivers).tolist()) if rule.waivers else ()
        if isinstance(rule, PQ):
            found.append(Closeness(rule.p / rule.q, True, waived))
        elif rule.n == 1:
            found.append(Closeness(100.0 / rule.k - 1.0, False, waived))
    return tuple(found)


def find_unions(pattern: Pattern) -> Unions:
    """Sums of hidden cells that tell too much about a contributor; at most one of each."""
    if not pattern.closeness or pattern.contributions is None or pattern.y is None:
        return Unions((), ())
    search = _UnionSearch(pattern)
    sums, unproved = [], []
    for who in range(len(search.everybody)):
        for closeness in pattern.closeness:
            found = search.closest(who, closeness)
            if found is None:
                unproved.append(int(search.everybody.numbers[who]))
            elif found.need > 0:
                sums.append(found)
            if found is None or found.need > 0:
                break
        report("contributors", (who + 1) / len(search.everybody))
    return Unions(tuple(sums), tuple(unproved))


class _UnionSearch:
    """The hidden cells, what everybody has in them, and the unknown cells behind them."""

    def __init__(self, pattern: Pattern) -> None:
        self.pattern, self.everybody = pattern, attackers(pattern)
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
        self.rooms = [self.everybody.rooms(*entry) for entry in entries]
        self.part_of = np.full(X.shape[0], -1)
        self.members: list[Array] = []
        for k, (cells, _) in enumerate(connected_parts(self.system.equations)):
            self.part_of[self.system.cells[cells]] = k
            self.members.append(cells)

    def closest(self, who: int, closeness: Closeness) -> ContributorSum | None:
        """The sum that is worst for a contributor; its need is zero where none is too close."""
        safe = ContributorSum((), (), "", 0.0)
        if int(self.everybody.numbers[who]) in closeness.waived:
            return safe
        start, end = self.parts.indptr[who : who + 2]
        cells, own = self.parts.indices[start:end].astype(np.intp), self.parts.data[start:end]
        spare = self.z[cells] - (1 + closeness.share) * own
        # One cell is what its own rule is about.
        if len(cells) < 2:
            return safe
        numbers, parts = self._others(who, cells) if closeness.by_second else ([], spare[None, :0])
        most = parts.max(axis=0) if numbers else np.zeros(len(cells))
        if self._is_hidden_at_once(cells, spare - most, numbers):
            return safe
        others = [self.everybody[k] for k in numbers]
        # Somebody who knew as much as all others at once would know more than each of them.
        if len(others) > 1 and self._is_safe(cells, spare - most, _join_attackers(others)):
            return safe
        each = zip(others, parts, strict=True) if others else [(PUBLIC, np.zeros(len(cells)))]
        for one, part in each:
            found = self._worst_set(cells, spare - part, one)
            if found is None:
                return None
            chosen = np.flatnonzero(found)
            need = -float((spare - part)[chosen].sum())
            if len(chosen) > 1 and need > _MISSING * own[chosen].sum():
                return self._sum(who, cells[chosen], need)
        return safe

    def _is_safe(self, cells: Index, spare: Real, one: Attacker) -> bool:
        found = self._worst_set(cells, spare, one)
        return found is not None and not found.any()

    def _others(self, who: int, cells: Index) -> tuple[list[int], Real]:
        """Who else is in some hidden cells, and what each has in them."""
        within = self.by_cell[:, cells]
        found = np.unique(within.indices)
        found = found[found != who]
        return found.tolist(), within.tocsr()[found].toarray()

    def _is_hidden_at_once(self, cells: Index, spare: Real, others: list[int]) -> bool:
        """Whether the table itself, or one of its proofs, leaves enough to others in each cell."""
        if (spare >= 0).all():
            return True
        # The proofs of single cells are at hand; many do for all cells of a contributor.
        is_enough = (self.moves[cells].toarray() + spare[:, None] >= 0).all(axis=0)
        found = np.flatnonzero(is_enough).tolist()
        return any(all(self.rooms[k].get(one, 1.0) >= 1 for one in others) for k in found)

    def _sum(self, who: int, cells: Index, need: float) -> ContributorSum:
        places = tuple(int(k) for k in self.cells[cells])
        names = "; ".join(cell_name(self.pattern.design, k) for k in places)
        why = f"what one contributor has in cells {names} together"
        owner = int(self.everybody.numbers[who])
        return ContributorSum(places, (1,) * len(places), why, need, owner)

    def _worst_set(self, cells: Index, spare: Real, one: Attacker) -> Mask | None:
        """The set of cells furthest from being safe; empty if all are, `None` if not found."""
        targets = self.columns[:, cells]
        touched = np.unique(self.part_of[targets.tocoo().row])
        places = [self.members[k] for k in touched[touched >= 0].tolist()]
        unknown = np.sort(np.concatenate(places)) if places else np.empty(0, np.intp)
        if len(unknown) > _MOST_UNKNOWN or len(cells) > _MOST_CELLS:
            return None
        own = np.zeros(self.pattern.design.n_inner)
        own[one.cells] = one.shares
        unknown = unknown[~np.isin(self.system.cells[unknown], one.known)]
        inner = self.system.cells[unknown]
        room = np.maximum(self.everybody.y[inner] - own[inner], 0.0)
        equations = self.system.equations.tocsr()[unknown].tocsc()
        equations = equations[:, np.flatnonzero(np.diff(equations.indptr))]
        limits = self._limits(inner)
        return _furthest(targets.tocsr()[inner], spare, equations, room, limits)

    def _limits(self, inner: Index) -> tuple[Any, Real, Real]:
        """Hidden cells with public bounds on some inner cells, and how far each can go."""
        pattern = self.pattern
        if pattern.bounds is None:
            return csc_array((len(inner), 0)), np.empty(0), np.empty(0)
        low, high = (np.asarray(side)[self.cells] for side in pattern.bounds)
        chosen = np.flatnonzero(np.isfinite(low) | np.isfinite(high))
        columns = self.columns[:, chosen].tocsr()[inner]
        return columns, (self.z - low)[chosen], (high - self.z)[chosen]


def _join_attackers(several: list[Attacker]) -> Attacker:
    """An attacker who knows whatever one of several does, and in each cell the largest part."""
    cells, number = np.unique(np.concatenate([one.cells for one in several]), return_inverse=True)
    shares = np.zeros(len(cells))
    np.maximum.at(shares, number, np.concatenate([one.shares for one in several]))
    return Attacker(
        "pair", np.unique(np.concatenate([one.known for one in several])), cells, shares
    )


def _furthest(
    targets: Any, spare: Real, equations: Any, room: Real, limits: tuple[Any, Real, Real]
) -> Mask | None:
    """Minimise what a set has to spare with the largest change that helps it, by its prices.

    The largest sum of changes of a set is the least price of its cells: prices of equations, of the
    floors of unknown cells, and of public bounds.
    """
    bounded, down, up = limits
    n, m = targets.shape[1], equations.shape[1]
    falls, rises = np.isfinite(down), np.isfinite(up)
    prices = [equations, -eye_array(len(room)), bounded[:, rises], -bounded[:, falls]]
    rows = hstack([-targets, *prices], format="csc")
    size = max(float(np.abs(spare).max(initial=0.0)), 1e-12)
    cost = np.concatenate([spare, np.zeros(m), room, up[rises], down[falls]]) / size
    free = np.zeros(len(cost), dtype=bool)
    free[n : n + m] = True
    floor = np.where(free, -np.inf, 0.0)
    chosen = np.zeros(n, dtype=bool)
    for whole in (False, True):
        found = _minimise(cost, rows, floor, n, whole)
        if found is None:
            return None
        if cost @ found >= -_MISSING:
            return np.zeros(n, dtype=bool)
        chosen = found[:n] > 0.5
    return chosen


def _minimise(cost: Real, rows: Any, floor: Real, n: int, whole: bool) -> Real | None:
    """The cheapest prices of a set of the first `n` things; `None` where none was found."""
    ceiling, none = np.full(len(cost), np.inf), np.zeros(rows.shape[0])
    ceiling[:n] = 1.0
    if not whole:
        program = Program(rows.T, none, none, floor, ceiling, changing="nothing")
        try:
            return program.minimise(cost)
        except NotConvergedError:
            return None
    from scipy.optimize import Bounds, LinearConstraint, milp

    options: Any = {} if n <= EXHAUSTIVE else {"node_limit": _NODES}
    found = milp(
        cost,
        integrality=np.repeat([1, 0], [n, len(cost) - n]),
        bounds=Bounds(floor, ceiling),
        constraints=LinearConstraint(rows, none, none),
        options=options,
    )
    return None if found.status != _FOUND else np.asarray(found.x)
