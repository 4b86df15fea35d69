"""Additivity of perturbed tables by controlled tabular adjustment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from discreet.arrays import Array, Index, Real, Whole
from discreet.design.base import Design
from discreet.design.support import spread
from discreet.errors import DesignError, ParameterError, positive, whole
from discreet.protect.options import AS_IT_IS, DEVIATIONS, WEIGHTS, Effort, at_least, by_order
from discreet.protect.publication import WrappingMethod
from discreet.protect.sentences import claim_sentences, groups_not_hidden, limit, process
from discreet.solve.integer.problem import (
    LARGEST,
    Domain,
    FoundTable,
    LatticeProblem,
    LimitError,
    cell_name,
    check_size,
)
from discreet.solve.integer.rounding import is_two_way
from discreet.tables.protected import COUNT, Claims, Draws, Method, Protected
from discreet.tables.statement import Statement, step_of
from discreet.tables.truth import TrueTable

# more sweeps over the cells of a small table would search for nothing new
EFFORT = Effort(sweeps=4000, most=8e7)
# how much more a cell weighs for each variable it has fewer
MARGIN_FACTOR = 4.0


@dataclass(frozen=True)
class Adjust(WrappingMethod):
    r"""A perturbing method whose tables are then made to add up.

    With perturbed counts :math:`\tilde z` and weights `w`,

    .. math:: \min_y \sum_k w_k\,|x_k^\top y - \tilde z_k|,\qquad
              y_j \in \{0\} \cup \{m, m + 1, \dots\},\qquad
              |x_k^\top y - z_k| \le D.

    Cells that are truly empty stay empty. Sums of allowed numbers are allowed numbers, so no
    published cell is small either.

    Promise: published cells add up and are whole; true zeros stay zero; no count in 1..m-1; no
    cell further than `max_move` from the truth. What the search leaves further away is repaired by
    integer programs; where these find no such table either, nothing is published and the error
    asks for a larger `max_move`. The perturbing method keeps its own source of noise; the search
    draws for the whole table. The same cell may differ between tables.
    Cost: about 15 s for 22,000 non-empty cells of a three-way table on two busy cores.

    Args:
      method: The method that perturbs, with margins of their own, such as `CellKey`.
      min_count: Smallest positive count allowed; by default what the method allows.
      max_move: Largest deviation from the truth; by default that of the method.
      weights: Weight of a published cell by the number of its variables (0: the total); 1 where
        not given. Heavy cells stay as they were perturbed.
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

    method: Method
    min_count: int | None = None
    max_move: float | None = None
    weights: Mapping[int, float] | None = None
    proposals: float | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.min_count is not None:
            whole("min_count", self.min_count, 1)
        if self.max_move is not None:
            positive("max_move", self.max_move)
        if self.proposals is not None:
            at_least("proposals", self.proposals, 1)
        if self.seconds is not None:
            positive("seconds", self.seconds)
        object.__setattr__(self, "weights", by_order("weights", self.weights, positive=True))

    @property
    def claims(self) -> Claims:
        """What every release of this method keeps."""
        blocked, reach = tuple(range(1, self._min_count)), self._max_move
        return Claims(
            additive=True, unbiased=False, keeps_zeros=True, max_move=reach, blocked=blocked
        )

    @property
    def listed(self) -> dict[str, tuple[Any, ...]]:
        """Options that come from a short list where nobody counts releases."""
        return {"proposals": AS_IT_IS, "max_move": DEVIATIONS, "weights": (None, *WEIGHTS)}

    @property
    def _min_count(self) -> int:
        if self.min_count is not None:
            return self.min_count
        blocked = self.method.claims.blocked
        return next(m for m in range(1, len(blocked) + 2) if m not in blocked)

    @property
    def _max_move(self) -> float:
        return self.method.claims.max_move if self.max_move is None else self.max_move

    def __call__(self, table: TrueTable, *, draws: Draws) -> Protected:
        """Perturb the table by the method and adjust it."""
        perturbed = self._perturb(table, draws)
        frame = Frame.of(table)
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
        return self._search(table, Frame.of(table), perturbed, rng=rng, bounded=True)

    def _perturb(self, table: TrueTable, draws: Draws) -> Protected:
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
        frame: Frame,
        perturbed: Protected,
        *,
        rng: np.random.Generator,
        bounded: bool | None = None,
    ) -> FoundTable:
        from discreet.solve.integer.programs import Nearest  # start-up time: Numba
        from discreet.solve.integer.search import LatticeSearch  # start-up time: Numba

        z, least = table.z, self._min_count
        needed = np.where((z > 0) & (z < least), np.minimum(z, least - z), 0)
        if (needed > self._max_move).any():  # whatever the other cells do
            k = int(np.argmax(needed > self._max_move))
            raise LimitError(
                f"cell {cell_name(table.design, k)} has a small count, which becomes 0 or at least "
                f"{least}: it moves by {needed[k]} or more, but max_move is {self._max_move:g}. "
                "Raise it."
            )
        problem, start = adjustment(
            frame,
            # released on public support, which the table's own cells are part of
            np.asarray(perturbed.z[table.design.public().published])[frame.cells],
            table.z[frame.cells],
            min_count=self._min_count,
            max_move=self._max_move,
            weights=self.weights,
        )
        effort = min(EFFORT.of(len(start), self.proposals), EFFORT.of(len(start), None))
        search = LatticeSearch(effort, self.seconds, hot=0.25, cold=0.04, pairs=0.05)
        nearest = Nearest(search, bounded)
        return nearest(problem, start, is_network=is_two_way(table.design), rng=rng)

    def _statement(self, before: Statement) -> Statement:
        weights = None if self.weights is None else {str(k): v for k, v in self.weights.items()}
        reach = self._max_move if np.isfinite(self._max_move) else None
        given = {"min_count": self._min_count, "max_move": reach, "weights": weights}
        said = [
            process(
                "adjusted",
                "Changed counts were then moved as little as possible so that the table adds up.",
            ),
            *claim_sentences(self.claims, COUNT),
            groups_not_hidden(),
            limit(
                "differs-between-tables",
                "The same cell may be moved otherwise in another table; such tables can be "
                "averaged.",
            ),
        ]
        return before.then(step_of(f"protect:{self.name}", given, said))


def with_adjusted_margins(method: Any, table: TrueTable, draws: Draws) -> Protected:
    """A table whose inner cells are adjusted to margins that have noise of their own.

    A cell weighs four times as much for each variable it has fewer, so margins hardly move.
    """
    axes = len(table.design.axes)
    weights = {k: MARGIN_FACTOR ** (axes - k) for k in range(axes + 1)} if axes else None
    return Adjust(replace(method, margins="own"), weights=weights)(table, draws=draws)


@dataclass(frozen=True, eq=False)
class Frame:
    """The inner cells that may hold records and the published cells they count in.

    Attributes:
      design: A design on these cells alone.
      rows: The inner cells' places in the table's design.
      cells: The published cells' places in the table's design.
    """

    design: Design
    rows: Index
    cells: Whole

    @classmethod
    def of(cls, table: TrueTable) -> Frame:
        """The cells of a table that no published zero keeps empty."""
        empty = table.design.adjoint((table.z == 0).astype(np.int64))
        rows = np.flatnonzero(empty == 0)
        design, cells = table.design.restricted(rows, occurring=True)
        return cls(design, rows, cells)


def adjustment(
    frame: Frame,
    perturbed: Whole,
    truth: Whole,
    *,
    min_count: int,
    max_move: float,
    weights: Mapping[int, float] | None,
) -> tuple[LatticeProblem, Whole]:
    """The problem of the additive table nearest to perturbed published counts, and a start."""
    limited = np.isfinite(max_move)
    # noise and bound both hold at a cell; sums are what may have to leave the bound
    if limited:
        perturbed = np.clip(perturbed, truth - int(max_move), truth + int(max_move))
    domain = Domain.gapped(min_count, np.full(frame.design.n_inner, LARGEST))
    problem = LatticeProblem(
        frame.design,
        perturbed,
        domain,
        power=1,
        weights=_weights(frame, weights),
        low=np.subtract(truth - perturbed, max_move, dtype=np.float64) if limited else None,
        high=np.add(truth - perturbed, max_move, dtype=np.float64) if limited else None,
    )
    own = frame.design.inner_in_published()
    # inner cells are not published themselves: they start from a fit that is nowhere negative, as
    # no search of small steps leads back from large counts that were cut off at zero
    if (own < 0).any():
        from discreet.solve.non_negative.non_negative import NonNegative  # start-up time: Numba

        start: Array = NonNegative()(frame.design, perturbed.astype(np.float64)).y
    else:
        start = perturbed[own]
    check_size(start)
    return problem, domain.nearest(start)


def _weights(frame: Frame, weights: Mapping[int, float] | None) -> Real | None:
    if weights is None:
        return None
    if frame.design.over_variables is None:
        raise ParameterError(
            "weights go by the number of variables, but this table's design was made from a "
            "matrix and has none."
        )
    orders = frame.design.orders
    return np.array([weights.get(k, 1.0) for k in range(int(orders.max(initial=0)) + 1)])[orders]
