r"""Integer reconstruction: the people that every table agreeing with the release has in common.

What a release leaves possible of each sum follows from its statement: shown values as they stand,
perturbed ones within the reach of their noise, hidden ones anything. A person whose inner cell has
the same count in every whole table is provably disclosed, whoever the intruder is.

.. math:: \{y \in \mathbb{Z}^n : l \le X^\top y \le u,\ f \le y \le c\}

Bounds are passed on first, then equal columns are merged and what hangs together is solved by
itself. An unknown that can have one more or one less in a table that was found is free; a table in
the middle of all ranges frees most. Tables are generated that differ as much as they can; an
unknown that takes two values is free. What stays the same is verified: a program that pushes all
candidates at the end of their range and finds none that moves proves them together, the others are
proven one by one. So a fixed unknown has a proof, a free one has two tables, and the rest is said
to be undecided.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import block_array, csc_array, csr_array
from scipy.sparse.csgraph import connected_components

from discreet.arrays import Index, Mask, Real, Whole
from discreet.assessment.audit.perturbed import Ranges, pass_bounds
from discreet.assessment.audit.ranges import is_perturbed, ranges_of
from discreet.attacks.frame import About, Claims, Knowledge, PublicAttack
from discreet.errors import InfeasibleError, ParameterError
from discreet.progress import report
from discreet.solve.linear.program import highs_model, load_highs
from discreet.tables.protected import COUNT, CellStatus, Protected

_LARGEST = 500_000  # inner cells: passing bounds takes a second there, programs are counted apart
_FIXED, _SEEN = 2.0, 1.0  # confidence of what is proven, and of what one of the tables says
_ROUNDS = 12  # of generated tables: candidates that are still the same after as many seldom move
_STALE = 2  # rounds after which generating stops if no candidate moved
_LARGEST_PART = 4_000  # unknowns that hang together: programs of a second, larger ones take minutes
_ROOM = (2, 4, 8)  # widths of sums that are narrowed: where signs and sums bind, wide ones only
_NODES = 2_000  # of one program's search; beyond it the unknowns stay undecided


@dataclass(frozen=True)
class IntegerReconstruction(PublicAttack):
    """Claims the people of one table that agrees with the release; those in every table first.

    Args:
      programs: Integer programs that are solved at most; what is left then is not proven.
    """

    programs: int = 300
    name: ClassVar[str] = "integer-reconstruction"
    about: ClassVar[About] = "inner"
    remedy: ClassVar[str] = (
        "publish fewer or coarser margins, or noise whose reach exceeds the counts (larger D)"
    )

    def refusal(self, release: Any, knowledge: Knowledge) -> str:
        """Too large, or no counts."""
        if release.unit != COUNT:
            return "the values are no counts"
        if release.design.n_inner > _LARGEST:
            return f"more than {_LARGEST:,} inner cells"
        try:
            possible_sums(release)
        except ParameterError as error:
            return str(error).rstrip(".")
        return ""

    def __call__(self, release: Any, knowledge: Knowledge, *, rng: np.random.Generator) -> Claims:
        """Inner cells with people in them, by their positions; nothing that is claimed is drawn."""
        found = self.vary(release, rng)
        cells = np.flatnonzero((found.table > 0) & (found.is_fixed | found.is_free))
        sure = np.where(found.is_fixed[cells], _FIXED, _SEEN / (1.0 + found.table[cells]))
        said, proven = found.table[cells].tolist(), found.is_fixed[cells]
        return Claims.ranked(cells.tolist(), said, sure, proven=proven, undecided=found.undecided)

    def vary(self, release: Protected, rng: np.random.Generator) -> Variability:
        """Which inner cells are the same in every table; needs nothing but the release."""
        X = release.design.matrix().tocsc()
        ends = possible_sums(release)
        return solution_variability(X, *ends, rng=rng, programs=self.programs)


def possible_sums(release: Protected) -> tuple[Real, Real, Real, Real]:
    """Smallest and largest true counts of published and of inner cells, from the statement."""
    if is_perturbed(release):
        told = ranges_of(release)
        return told.low, told.high, told.inner_low, told.inner_high
    n, z = release.design.n_inner, np.asarray(release.z, dtype=np.float64)
    low, high = z.copy(), z.copy()
    open_ = release.hidden | release.replaced
    # A hidden count is not empty where zeros are shown as such.
    low[open_] = 1.0 if release.statement.says("empty-cells") else 0.0
    high[open_] = np.inf
    if release.status is not None:
        empty = release.status == CellStatus.structural_zero
        low[empty] = high[empty] = 0.0
    return low, high, np.zeros(n), np.full(n, np.inf)


@dataclass(frozen=True, eq=False)
class Variability:
    """What all whole tables have in common.

    Attributes:
      table: One of the tables; the smallest values of unknowns that are undecided.
      is_fixed: Unknowns that are the same in every table, with a proof.
      is_free: Unknowns that differ between two tables that were found.
      tables: How many tables were found.
      programs: Integer programs that were solved.
    """

    table: Whole
    is_fixed: Mask
    is_free: Mask
    tables: int
    programs: int

    @property
    def undecided(self) -> int:
        """Unknowns for which neither a proof nor a second value was found."""
        return int((~self.is_fixed & ~self.is_free).sum())


def solution_variability(
    X: Any,
    low: Real,
    high: Real,
    floor: Real,
    ceiling: Real,
    *,
    rng: np.random.Generator,
    programs: int = 2_000,
) -> Variability:
    """Which unknowns are the same in every whole table.

    Args:
      X: Unknowns × sums, 0/1, sparse.
      low: Smallest value of each sum.
      high: Largest value of each sum.
      floor: Smallest value of each unknown, whole.
      ceiling: Largest value of each unknown, whole or infinite.
      rng: Draws directions in which tables are looked for; the answer does not depend on it.
      programs: How many integer programs are solved at most.

    Raises:
      InfeasibleError: No whole table agrees with the sums.
    """
    X = csc_array(X)
    ranges = pass_bounds(X, Ranges(low, high, np.ceil(floor - 1e-9), ceiling))
    # Sums that hold whatever their cells are join nothing: left in, they tie a country together.
    binds = _binding_sums(X, ranges)
    X, ranges = X[:, binds], ranges._replace(low=ranges.low[binds], high=ranges.high[binds])
    state = _Search(X, ranges, rng, programs)
    is_open = ranges.ceiling > ranges.floor
    state.table[~is_open] = ranges.floor[~is_open].astype(np.int64)
    state.is_fixed[~is_open] = True
    state.table[is_open] = ranges.floor[is_open].astype(np.int64)
    is_alone = is_open & (np.diff(X.tocsr().indptr) == 0)
    state.is_free |= is_alone  # every value of its range is in a table
    for part in _parts(X, np.flatnonzero(is_open & ~is_alone)):
        if len(part) <= _LARGEST_PART:
            state.solve(part)
    return Variability(state.table, state.is_fixed, state.is_free, state.tables, state.programs)


@dataclass(eq=False)
class _Search:
    X: Any
    ranges: Ranges
    rng: np.random.Generator
    most: int
    table: Whole = field(init=False)
    is_fixed: Mask = field(init=False)
    is_free: Mask = field(init=False)
    tables: int = 1
    programs: int = 0

    def __post_init__(self) -> None:
        n = self.X.shape[0]
        self.table = np.zeros(n, dtype=np.int64)
        self.is_fixed, self.is_free = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)

    def solve(self, part: Index) -> None:
        """Decide the unknowns of one part; those with equal columns together."""
        rows = self.X.tocsr()[part]
        sums = np.unique(rows.indices)
        columns: Any = csr_array(rows[:, sums])
        columns.sort_indices()
        kinds: dict[bytes, int] = {}
        kind = np.array(
            [
                kinds.setdefault(columns.indices[a:b].tobytes(), len(kinds))
                for a, b in zip(columns.indptr[:-1], columns.indptr[1:], strict=True)
            ]
        )
        first = np.unique(kind, return_index=True)[1]
        floor, ceiling = (
            np.bincount(kind, end[part]).astype(np.float64) for end in self.ranges[2:]
        )
        outside = np.asarray(self.X[:, sums].T @ self._settled(part))
        ends = self.ranges.low[sums] - outside, self.ranges.high[sums] - outside
        found = _Component(columns[first].T.tocsc(), *ends, floor, ceiling, self)
        found.decide()
        self._spread(part, kind, found)

    def _settled(self, part: Index) -> Real:
        """What other unknowns bring to the sums; those of other parts are in none of them."""
        value = np.where(self.ranges.ceiling > self.ranges.floor, 0.0, self.ranges.floor)
        value[part] = 0.0
        return np.asarray(value)

    def _spread(self, part: Index, kind: Whole, found: _Component) -> None:
        """Share sums among unknowns with equal columns; they vary unless it is at an end."""
        alone = np.bincount(kind)[kind] == 1
        value = found.value[kind]
        at_end = (value == found.floor[kind]) | (value == found.ceiling[kind])
        is_fixed = found.is_fixed[kind] & (alone | at_end)
        self.is_fixed[part], self.is_free[part] = is_fixed, found.is_free[kind] | ~(alone | at_end)
        left = found.value.astype(np.float64).copy()
        np.subtract.at(left, kind, self.ranges.floor[part])
        for place, group in zip(part, kind, strict=True):
            floor, ceiling = self.ranges.floor[place], self.ranges.ceiling[place]
            more = min(left[group], ceiling - floor)
            self.table[place], left[group] = round(floor + more), left[group] - more


class _Component:
    """Unknowns that hang together, as one integer program with many objectives."""

    def __init__(
        self, rows: Any, low: Real, high: Real, floor: Real, ceiling: Real, state: _Search
    ) -> None:
        highspy = load_highs("integer reconstruction")
        self.state, self.floor, self.ceiling = state, floor, ceiling.copy()
        self.rows, self.low, self.high = rows, low, high
        model = highs_model(rows, rows=(low, high), columns=(floor, ceiling))
        model.col_cost_ = np.zeros(model.num_col_)
        model.integrality_ = [highspy.HighsVarType.kInteger] * model.num_col_
        self._highs, self._status = highspy.Highs(), highspy.HighsModelStatus
        for name, value in {"output_flag": False, "threads": 1, "mip_max_nodes": _NODES}.items():
            self._highs.setOptionValue(name, value)
        self._highs.passModel(model)
        n = model.num_col_
        self.value = np.zeros(n, dtype=np.int64)
        self.is_fixed, self.is_free = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)

    def decide(self) -> None:
        """Generate tables, then verify what they have in common."""
        found = self._middle()
        if found is None:
            found, _ = self._minimise(np.zeros(len(self.value)))
        if found is None:
            return
        self.value = found
        self._move_alone(found)
        self._generate()
        self._verify_together()
        for k in np.flatnonzero(~self.is_fixed & ~self.is_free):
            if not self.is_fixed[k] and not self.is_free[k]:
                self._verify(int(k))

    def _middle(self) -> Whole | None:
        """A table one off the ends of all sums with room for it, where there is one."""
        width = self.high - self.low
        every = np.arange(len(width), dtype=np.int32)
        for least in _ROOM:
            room = np.where(width >= least, 1.0, 0.0)
            self._highs.changeRowsBounds(len(room), every, self.low + room, self.high - room)
            try:
                found = self._minimise(np.zeros(len(self.value)))[0] if room.any() else None
            except InfeasibleError:
                found = None
            if found is not None:
                break
        self._highs.changeRowsBounds(len(width), every, self.low, self.high)
        return found

    def _move_alone(self, table: Whole) -> None:
        """Free is whatever can have one more or one less while all others stay as they are."""
        sums, starts = np.asarray(self.rows @ table), self.rows.indptr[:-1]
        more, less = (
            np.minimum.reduceat(room[self.rows.indices], starts) >= 1
            for room in (self.high - sums, sums - self.low)
        )
        moves = (more & (table < self.ceiling)) | (less & (table > self.floor))
        self.state.tables += int((moves & ~self.is_free).sum())
        self.is_free |= moves

    def _generate(self) -> None:
        stale = 0
        for _ in range(_ROUNDS):
            same = ~self.is_free
            if not same.any() or stale == _STALE:
                return
            up = np.where(self.value <= self.floor, -1.0, 1.0)
            weights = self.state.rng.integers(1, 5, len(up))
            found, _ = self._minimise(np.where(same, up * weights, 0.0))
            stale = 0 if self._compare(found) else stale + 1

    def _verify_together(self) -> None:
        """Push all candidates off their end at once, until none moves."""
        for end, sign in ((self.floor, -1.0), (self.ceiling, 1.0)):
            while True:
                stays = ~self.is_free & ~self.is_fixed & (self.value == end)
                if not stays.any():
                    break
                found, is_best = self._minimise(np.where(stays, sign, 0.0))
                if self._compare(found):
                    continue
                if is_best and found is not None:
                    self.is_fixed |= stays
                break

    def _verify(self, k: int) -> None:
        """Fixed if neither a smaller nor a larger value is possible."""
        cost = np.zeros(len(self.value))
        for sign in (1.0, -1.0):
            cost[k] = sign
            found, is_best = self._minimise(cost)
            self._compare(found)
            if self.is_free[k] or not is_best:
                return
        self.is_fixed[k] = True

    def _compare(self, found: Whole | None) -> bool:
        """Note which unknowns another table moves; whether it moves one that had not moved."""
        if found is None:
            return False
        moved = (found != self.value) & ~self.is_free
        self.is_free |= moved
        self._move_alone(found)
        self.state.tables += int(moved.any())
        return bool(moved.any())

    def _minimise(self, cost: Real) -> tuple[Whole | None, bool]:
        """A whole table with the smallest cost, and whether it is proven to have it."""
        if self.state.programs >= self.state.most:
            return None, False
        self.state.programs += 1
        report("integer reconstruction", self.state.programs / self.state.most)
        n = len(cost)
        self._highs.changeColsCost(n, np.arange(n, dtype=np.int32), cost)
        self._highs.run()
        status = self._highs.getModelStatus()
        if status == self._status.kInfeasible:
            raise InfeasibleError("no whole table agrees with everything that is published.")
        if status not in (self._status.kOptimal, self._status.kSolutionLimit):
            return None, False
        found = np.rint(np.asarray(self._highs.getSolution().col_value)).astype(np.int64)
        return found, status == self._status.kOptimal and self._keeps(found)

    def _keeps(self, found: Whole) -> bool:
        """Whether a rounded solution is a table: programs are exact to a tolerance only."""
        sums = np.asarray(self.rows @ found)
        inside = (found >= self.floor) & (found <= self.ceiling)
        return bool(inside.all() and (sums >= self.low).all() and (sums <= self.high).all())


def _binding_sums(X: Any, ranges: Ranges) -> Index:
    """Sums whose range rules out something that the ranges of their cells allow."""
    endless = np.isinf(ranges.ceiling)
    most = np.asarray(X.T @ np.where(endless, 0.0, ranges.ceiling))
    most[np.asarray(X.T @ endless.astype(np.int64)) > 0] = np.inf
    is_bound = (ranges.low > np.asarray(X.T @ ranges.floor)) | (ranges.high < most)
    return np.flatnonzero(is_bound)


def _parts(X: Any, cells: Index) -> list[Index]:
    """Unknowns that share sums with each other, a part each."""
    if not len(cells):
        return []
    rows = X.tocsr()[cells]
    graph = block_array([[None, rows], [rows.T, None]], format="csr")
    _, label = connected_components(graph, directed=False)
    label = label[: len(cells)]
    order = np.argsort(label, kind="stable")
    ends = np.flatnonzero(np.diff(label[order])) + 1
    return [cells[part] for part in np.split(order, ends)]
