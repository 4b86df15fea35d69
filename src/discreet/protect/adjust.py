"""Controlled tabular adjustment: additivity of perturbed tables, and sensitive cells moved away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from discreet.arrays import Array, Index, Real, Whole
from discreet.design.base import Design
from discreet.design.support import spread
from discreet.errors import DesignError, ParameterError, positive, whole
from discreet.protect.options import (
    AS_IT_IS,
    DEVIATIONS,
    REACHES,
    WEIGHTS,
    Effort,
    OptionLists,
    by_order,
    check_effort,
    look_up_by_order,
    with_text_keys,
)
from discreet.protect.publication import WrappingMethod
from discreet.protect.sentences import (
    claim_sentences,
    groups_not_hidden,
    limit,
    process,
    statement_of,
)
from discreet.solve.integer.problem import (
    LARGEST,
    Domain,
    FoundTable,
    Gaps,
    LatticeProblem,
    LimitError,
)
from discreet.solve.integer.rounding import is_two_way
from discreet.tables.protected import COUNT, Claims, Draws, Method, Protected
from discreet.tables.statement import Sentence, Statement, step_of
from discreet.tables.truth import TrueTable

# more sweeps over the cells of a small table would search for nothing new
EFFORT = Effort(sweeps=4000, most=8e7)
# how much more a cell weighs for each variable it has fewer
MARGIN_FACTOR = 4.0
# without a method counts of one and two are removed, as Giessing & Höhne do
_SMALLEST = 3
_DIFFERS = "The same cell may be moved otherwise in another table; such tables can be averaged."
PROTECTIONS = (1, 2, 3, 5)
"""How far protection intervals reach, where nobody counts releases."""


@dataclass(frozen=True)
class Adjust(WrappingMethod):
    r"""A perturbing method whose tables are then made to add up; or adjustment alone.

    With perturbed counts :math:`\tilde z` and weights `w`,

    .. math:: \min_y \sum_k w_k\,|x_k^\top y - \tilde z_k|,\qquad
              y_j \in \{0\} \cup \{m, m + 1, \dots\},\qquad
              |x_k^\top y - z_k| \le D.

    With `sensitive` every count `z` from 1 to that number must also leave its protection interval:
    :math:`x_k^\top y \le z - a` or :math:`\ge z + b`. Without a method (`Adjust(None)`) the table
    itself is adjusted: :math:`\tilde z = z`.

    Cells that are truly empty stay empty. Sums of allowed numbers are allowed numbers, so no
    published cell is small either.

    Promise: published cells add up and are whole; true zeros stay zero; no count in 1..m-1; no
    cell further than `max_move` from the truth. What the search leaves further away is repaired by
    integer programs; where these find no such table either, nothing is published and the error
    asks for a larger `max_move`. The perturbing method keeps its own source of noise; the search
    draws for the whole table. The same cell may differ between tables.
    Cost: about 15 s for 22,000 non-empty cells of a three-way table on two busy cores.

    Args:
      method: The method that perturbs, with margins of their own, such as `CellKey`; `None` for a
        table that is adjusted as it is.
      min_count: Smallest positive count allowed; by default what the method allows, and 3 without
        a method.
      max_move: Largest deviation from the truth; by default that of the method.
      weights: Weight of a published cell by the number of its variables (0: the total); 1 where
        not given. Heavy cells stay as they were perturbed.
      value_weights: Weight by perturbed value besides, such as ``{0: 64, 3: 4}``, which keeps zeros
        and threes where they are; the product of both counts.
      bounds: Largest deviation by number of variables, where it is below `max_move`.
      sensitive: Counts from 1 to this number must leave their protection interval.
      protection: How far below and above its count the interval of a sensitive cell reaches.
      proposals: Effort of the search, in experiments only.
      seconds: Search for this long, in experiments only: the result depends on the machine.

    See Giessing & Höhne (2011), section 5; Castro & González (2009); Dandekar & Cox (2002).
    """

    name: ClassVar[str] = "adjust"
    source: ClassVar[str] = "table"
    wraps: ClassVar[str] = "a perturbing method such as CellKey(...)"
    private_method: ClassVar[str] = (
        ", and keeping true zeros would undo that. Make its release add up with a fitter "
        "(`release.fit(...)`)."
    )
    private_release: ClassVar[str] = (
        "keeping true zeros would undo that. Make it add up with a fitter (`release.fit(...)`)."
    )
    counts_only: ClassVar[str] = "adjustment is for whole counts"
    remedy: ClassVar[str] = " Leave out grid=, or use a fitter (`release.fit(...)`)."
    option_lists: ClassVar[OptionLists] = {
        "proposals": AS_IT_IS,
        "max_move": DEVIATIONS,
        "weights": (None, *WEIGHTS),
        "value_weights": (None, *WEIGHTS),
        "bounds": DEVIATIONS,
        "sensitive": (None, *REACHES),
        "protection": PROTECTIONS,
    }

    method: Method | None = None  # type: ignore[assignment]  # a wrapping method has one
    min_count: int | None = None
    max_move: float | None = None
    weights: Mapping[int, float] | None = None
    value_weights: Mapping[int, float] | None = None
    bounds: Mapping[int, float] | None = None
    sensitive: int | None = None
    protection: tuple[int, int] = (1, 1)
    proposals: float | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.method is not None:
            super().__post_init__()
        if self.min_count is not None:
            whole("min_count", self.min_count, 1)
        if self.max_move is not None:
            positive("max_move", self.max_move)
        check_effort(self.proposals, self.seconds)
        for name in ("weights", "value_weights"):
            object.__setattr__(self, name, by_order(name, getattr(self, name), positive=True))
        object.__setattr__(self, "bounds", by_order("bounds", self.bounds))
        if self.sensitive is not None:
            whole("sensitive", self.sensitive, 1)
        if not isinstance(self.protection, Sequence) or len(self.protection) != 2:
            raise ParameterError(f"protection is a pair, below and above, got {self.protection!r}.")
        both = tuple(whole("protection", reach, 1) for reach in self.protection)
        object.__setattr__(self, "protection", both)

    @property
    def claims(self) -> Claims:
        """What every release of this method keeps."""
        kept = Claims(additive=True, unbiased=False, keeps_zeros=True)
        return replace(kept, max_move=self._max_move, blocked=tuple(range(1, self._min_count)))

    @property
    def _min_count(self) -> int:
        if self.min_count is not None:
            return self.min_count
        if self.method is None:
            return _SMALLEST
        blocked = self.method.claims.blocked
        return next(m for m in range(1, len(blocked) + 2) if m not in blocked)

    @property
    def _max_move(self) -> float:
        if self.max_move is not None:
            return self.max_move
        return np.inf if self.method is None else self.method.claims.max_move

    def __call__(self, table: TrueTable, *, draws: Draws) -> Protected:
        """Perturb the table by the method and adjust it."""
        perturbed = self._perturb(table, draws)
        frame = CellsInUse.of(table)
        found = self._search(table, frame, perturbed, rng=draws.generator(self, table))
        if found.violations:
            raise LimitError(
                f"{found.violations:,} published cells would move by more than "
                f"{self._max_move:g}, and no table was found in which none does. Raise max_move, "
                "or publish fewer margins."
            )
        z = spread(found.z, frame.cells, table.design.n_published)
        y = spread(found.y, frame.rows, table.design.n_inner)
        shown = table.design.shows_inner_cells
        statement = self._statement(perturbed.statement)
        made = Protected.of(table.design, z, statement, y=y if shown else None)
        return replace(made, status=perturbed.status)

    def search(self, table: TrueTable, *, draws: Draws) -> FoundTable:
        """The search behind the release, with a lower bound.

        **Confidential**: it holds what the perturbed counts and the empty cells were.
        """
        perturbed, rng = self._perturb(table, draws), draws.generator(self, table)
        return self._search(table, CellsInUse.of(table), perturbed, rng=rng, bounded=True)

    def _perturb(self, table: TrueTable, draws: Draws) -> Protected:
        if self.method is None:
            table.require_inner()
            return Protected.of(table.design, table.z.astype(np.int64), Statement())
        perturbed = self.protect_first(table, draws)
        if perturbed.hidden.any():
            raise DesignError(
                "some cells are hidden, and in a table that adds up they could be computed. "
                "Perturb without a threshold."
            )
        return perturbed

    def _search(
        self,
        table: TrueTable,
        frame: CellsInUse,
        perturbed: Protected,
        *,
        rng: np.random.Generator,
        bounded: bool | None = None,
    ) -> FoundTable:
        from discreet.solve.integer.programs import Nearest, nearest_apart  # start-up time: Numba
        from discreet.solve.integer.search import LatticeSearch  # start-up time: Numba

        z, least = table.z, self._min_count
        needed = np.where((z > 0) & (z < least), np.minimum(z, least - z), 0)
        if (needed > self._max_move).any():  # whatever the other cells do
            k = int(np.argmax(needed > self._max_move))
            raise LimitError(
                f"cell {table.design.name_of(k)} has a small count, which becomes 0 or at least "
                f"{least}: it moves by {needed[k]} or more, but max_move is {self._max_move:g}. "
                "Raise it."
            )
        truth = table.z[frame.cells]
        # released on public support, which the table's own cells are part of
        shown = np.asarray(perturbed.z[table.design.public().published])[frame.cells]
        problem, start, aside = adjustment(
            frame,
            shown,
            truth,
            min_count=self._min_count,
            max_move=np.minimum(self._max_move, _by_variables(frame, self.bounds, np.inf)),
            weights=self.weights,
            value_weights=self.value_weights,
        )
        effort = min(EFFORT.of(len(start), self.proposals), EFFORT.of(len(start), None))
        search = LatticeSearch(effort, self.seconds, hot=0.25, cold=0.04, pairs=0.05)
        nearest, is_network = Nearest(search, bounded), is_two_way(table.design)
        if self.sensitive is None or not (gaps := self._gaps(truth)).cells.size:
            found = nearest(problem, start, is_network=is_network, rng=rng)
        else:
            found = nearest_apart(nearest, problem, gaps, start, is_network=is_network, rng=rng)
        return replace(found, y=found.y + aside, z=found.z + frame.design.aggregate(aside))

    def _gaps(self, truth: Whole) -> Gaps:
        """Sensitive cells, and the values next to their protection intervals."""
        (below, above), most = self.protection, self.sensitive or 0
        cells = np.flatnonzero((truth >= 1) & (truth <= most))
        return Gaps(cells, np.maximum(truth[cells] - below, -1), truth[cells] + above)

    def _statement(self, before: Statement) -> Statement:
        given: dict[str, Any] = {
            "min_count": self._min_count,
            "max_move": self._max_move if np.isfinite(self._max_move) else None,
            "weights": with_text_keys(self.weights),
            "sensitive": self.sensitive,
            "protection": None if self.sensitive is None else list(self.protection),
            "value_weights": with_text_keys(self.value_weights),
            "bounds": with_text_keys(self.bounds),
        }
        what = "Counts were" if self.method is None else "Changed counts were then"
        said = [
            process("adjusted", f"{what} moved as little as possible so that the table adds up."),
            *self._moved_away(),
            *claim_sentences(self.claims, COUNT),
            groups_not_hidden(),
            limit("differs-between-tables", _DIFFERS),
        ]
        if self.method is None:
            told = (
                "No noise was drawn before: many published values are true counts, and the moves "
                "of the others follow from the true table and the rule."
            )
            return statement_of(self.name, given, [*said, limit("no-noise", told)])
        return before.then(step_of(f"protect:{self.name}", given, said))

    def _moved_away(self) -> list[Sentence]:
        """What is said of sensitive cells."""
        if self.sensitive is None:
            return []
        below, above = self.protection
        counts = "1" if self.sensitive == 1 else f"1 to {self.sensitive}"
        text = f"Counts of {counts} were moved down by at least {below} or up by at least {above}."
        holds = partial(_moved_away, self.sensitive, below, above)
        return [Sentence("sensitive-moved", text, holds=holds)]


def _moved_away(sensitive: int, below: int, above: int, evidence: Any) -> bool:
    """Whether sensitive counts left their intervals in each of the releases."""
    is_sensitive = (evidence.truth >= 1) & (evidence.truth <= sensitive)
    moves = [(final.z - evidence.truth)[is_sensitive] for final in evidence.finals]
    return all(bool(((move <= -below) | (move >= above)).all()) for move in moves)


def with_adjusted_margins(method: Any, table: TrueTable, draws: Draws) -> Protected:
    """A table whose inner cells are adjusted to margins that have noise of their own.

    A cell weighs four times as much for each variable it has fewer, so margins hardly move.
    """
    axes = len(table.design.axes)
    weights = {k: MARGIN_FACTOR ** (axes - k) for k in range(axes + 1)} if axes else None
    return Adjust(replace(method, margins="own"), weights=weights)(table, draws=draws)


@dataclass(frozen=True, eq=False)
class CellsInUse:
    """The inner cells that may hold records and the published cells they count in."""

    design: Design  # on these cells alone
    rows: Index  # the inner cells' places in the table's design
    cells: Whole  # the published cells' places in the table's design

    @classmethod
    def of(cls, table: TrueTable) -> CellsInUse:
        """The cells of a table that no published zero keeps empty."""
        empty = table.design.adjoint((table.z == 0).astype(np.int64))
        rows = np.flatnonzero(empty == 0)
        design, cells = table.design.restricted(rows, occurring=True)
        return cls(design, rows, cells)


def adjustment(
    frame: CellsInUse,
    perturbed: Whole,
    truth: Whole,
    *,
    min_count: int,
    max_move: float | Real,
    weights: Mapping[int, float] | None,
    value_weights: Mapping[int, float] | None = None,
) -> tuple[LatticeProblem, Whole, Whole]:
    """The problem of the additive table nearest to perturbed published counts, and a start.

    Last come the inner counts that were put aside: the search holds 32 bits of a cell, and of
    larger ones it looks at what lies around the start.
    """
    reach = np.broadcast_to(np.floor(max_move), truth.shape)
    is_limited = bool(np.isfinite(reach).any())
    # noise and bound both hold at a cell; sums are what may have to leave the bound
    if is_limited:
        perturbed = np.clip(perturbed, truth - reach, truth + reach).astype(np.int64)
    own = frame.design.inner_in_published()
    # inner cells are not published themselves: they start from a fit that is nowhere negative, as
    # no search of small steps leads back from large counts that were cut off at zero
    if (own < 0).any():
        from discreet.solve.non_negative.non_negative import NonNegative  # start-up time: Numba

        start: Array = NonNegative()(frame.design, perturbed.astype(np.float64)).y
    else:
        start = perturbed[own]
    aside = np.where(start > LARGEST, start - LARGEST // 2, 0).astype(np.int64)
    domain = Domain.gapped(min_count, np.full(frame.design.n_inner, LARGEST))
    problem = LatticeProblem(
        frame.design,
        perturbed - frame.design.aggregate(aside),
        domain,
        power=1,
        weights=_weights(frame, perturbed, weights, value_weights),
        low=truth - perturbed - reach if is_limited else None,
        high=truth - perturbed + reach if is_limited else None,
    )
    return problem, domain.nearest(start - aside), aside


def _weights(
    frame: CellsInUse,
    perturbed: Whole,
    weights: Mapping[int, float] | None,
    value_weights: Mapping[int, float] | None,
) -> Real | None:
    """Weights by number of variables times those by value."""
    if weights is None and value_weights is None:
        return None
    found = _by_variables(frame, weights, 1.0)
    for value, weight in (value_weights or {}).items():
        found = np.where(perturbed == value, found * weight, found)
    return found


def _by_variables(frame: CellsInUse, given: Mapping[int, float] | None, other: float) -> Real:
    """A number for each published cell by the number of its variables."""
    if given is None:
        return np.full(frame.design.n_published, other)
    if frame.design.over_variables is None:
        raise ParameterError(
            "weights and bounds go by the number of variables, but this table's design was made "
            "from a matrix and has none."
        )
    return look_up_by_order(given, frame.design.orders, other)
