"""SAFE: change the records so that no table made from them has a small cell."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from discreet.arrays import Array, Index, Real, Whole
from discreet.design.base import Design
from discreet.design.formula import Margins, parse
from discreet.design.support import LARGEST_DENSE
from discreet.errors import DesignError, ParameterError, is_number, whole, within
from discreet.frames import Frame
from discreet.protect.cells import on_public_support
from discreet.protect.options import (
    AS_IT_IS,
    DEVIATIONS,
    SHARES,
    WEIGHTS,
    Effort,
    OptionLists,
    by_order,
    check_effort,
    look_up_by_order,
    with_text_keys,
)
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
    LatticeProblem,
    LimitError,
)
from discreet.solve.integer.rounding import choose_systematically
from discreet.tables.protected import Claims, Draws, Protected
from discreet.tables.statement import Sentence, Statement
from discreet.tables.truth import TrueTable

EFFORT = Effort(sweeps=2000, most=2e8)
_AMONG = {1: "in cells of at most one variable", 2: "in cells of more variables"}


@dataclass(frozen=True)
class Safe:
    r"""Inner cells without small counts, as near as possible to the truth in controlled tables.

    .. math:: \min_y \max_k (|x_k^\top y - z_k| - a_k), \quad\text{then}\quad
              \min_y \sum_k w_k (x_k^\top y - z_k)^2,
              \qquad y_j \in \{0\} \cup \{m, m + 1, \dots\}

    over the controlled cells `k`, which may deviate by an allowance :math:`a_k` besides; empty
    inner cells stay empty unless `opens_zeros`, and none moves by more than `max_move`. Sums of
    such numbers are such numbers, so no table that is computed from the result, controlled or not,
    has a count in :math:`1..m-1`.

    Promise: additive and consistent over all tables for ever, no count in 1..m-1, true zeros
    stay zero unless they are opened; inner cells move by at most `max_move`. The deviation of
    controlled cells is small; how small is known inside alone (`search`, `effect`), since it would
    give counts of small tables away. That of other tables is not bounded.
    Its inner table is part of the release, and it tells more than the margins it is kept near to:
    whoever reconstructs records from it finds more of them than from the true three-way margins.
    Cost: proposals × controlled tables look-ups for each of two chains, 2,000 proposals for
    each non-empty inner cell and at most 2·10⁸; memory 4 bytes for each non-empty inner cell and
    controlled table.

    Args:
      min_count: The smallest positive count allowed, :math:`m`.
      controlled: Margins whose cells are kept near the truth; the table's own when absent.
      bounds: Largest deviation wanted for cells of at most one variable (key 1) and for all
        others (key 2). Without a bound the largest deviation is lowered as far as possible.
      max_move: Largest move of an inner cell; `min_count` when absent, infinity for no limit. A
        small one hardly changes controlled tables and keeps others much nearer to the truth.
      weights: Weight of a controlled cell in the spread, by the number of its variables.
      allowances: What a controlled cell may deviate beside the maximum or its bound, by the number
        of its variables; important cells get none.
      allowance_share: A share of its count that a controlled cell may deviate besides, rounded
        down: larger moves for larger cells.
      opens_zeros: Whether empty inner cells may become `min_count` or more; structural zeros stay.
      seconds: Search for this long, in experiments only: the result depends on the machine.
      proposals: Effort of the search, in experiments only.

    See Giessing & Höhne (2011), section 2.
    """

    min_count: int = 3
    controlled: Margins | None = None
    bounds: Mapping[int, float] | None = None
    max_move: float | None = None
    weights: Mapping[int, float] | None = None
    seconds: float | None = None
    proposals: float | None = None
    allowances: Mapping[int, float] | None = None
    allowance_share: float | None = None
    opens_zeros: bool = False

    name: ClassVar[str] = "safe"
    source: ClassVar[str] = "table"
    option_lists: ClassVar[OptionLists] = {
        "proposals": AS_IT_IS,
        "max_move": DEVIATIONS,
        "bounds": DEVIATIONS,
        "weights": (None, *WEIGHTS),
        "allowances": DEVIATIONS,
        "allowance_share": (None, *SHARES),
    }

    def __post_init__(self) -> None:
        whole("min_count", self.min_count, 2)
        if self.max_move is not None and (
            not is_number(self.max_move) or not self.max_move >= self.min_count - 1
        ):
            raise ParameterError(
                f"max_move must be at least min_count - 1 = {self.min_count - 1}, or small cells "
                f"cannot leave; got {self.max_move!r}."
            )
        check_effort(self.proposals, self.seconds)
        if self.controlled is not None:  # one spelling, since another one would draw anew
            terms = tuple(sorted({tuple(sorted(term)) for term in parse(self.controlled)}))
            object.__setattr__(self, "controlled", terms)
        if self.allowance_share is not None:
            within("allowance_share", self.allowance_share, 1)
        for name in ("bounds", "weights", "allowances"):
            object.__setattr__(self, name, by_order(name, getattr(self, name)))
        if self.bounds is not None and not self.bounds.keys() <= {1, 2}:
            raise ParameterError(
                f"bounds take the keys 1 (cells of one variable) and 2 (all others), "
                f"got {sorted(self.bounds)}."
            )

    @property
    def claims(self) -> Claims:
        """What every release of this method keeps."""
        blocked = tuple(range(1, self.min_count))
        keeps = not self.opens_zeros
        return Claims(additive=True, unbiased=False, keeps_zeros=keeps, blocked=blocked)

    @property
    def reach(self) -> int:
        """How far an inner cell may move, as a whole number."""
        wanted = self.min_count if self.max_move is None else self.max_move
        return int(min(wanted, LARGEST))

    def __call__(self, table: TrueTable, *, draws: Draws) -> Protected:
        """Protect the table; its inner cells become part of the release."""
        rng = draws.generator(self, table)
        if self.opens_zeros:  # every cell that may hold records takes part
            table = on_public_support(table, with_inner=True)
        y = np.zeros(table.design.n_inner, dtype=np.int64)
        y[self._support(table)] = self.search(table, rng=rng).y
        design, statement = table.design, self._statement(table.data_set.units or "people")
        crossing = math.prod(len(axis) for axis in design.axes)
        if design.is_confidential and crossing > LARGEST_DENSE:
            # too large to show every empty cell: the support that is left is the protected one
            kept = np.flatnonzero(y)
            public = design.restricted(kept).design
            return Protected(public, public.aggregate(y[kept]), statement, y=y[kept])
        return Protected.of(design, design.aggregate(y), statement, y=y)

    def _support(self, table: TrueTable) -> Index:
        """The inner cells that take part."""
        return np.arange(len(table.y)) if self.opens_zeros else np.flatnonzero(table.y)

    def search(self, table: TrueTable, *, rng: np.random.Generator) -> FoundTable:
        """The search behind the release, on the inner cells that take part: the non-empty ones.

        **Confidential**: it holds deviations from the truth.
        """
        from discreet.solve.integer.search import LatticeSearch  # start-up time: Numba

        support = self._support(table)
        problem = self._problem(table, support)
        start = table.y[support].copy()
        small = np.flatnonzero(start < self.min_count)
        # systematic sampling raises as many of them as keeps their sum
        chosen = choose_systematically(start[small] / self.min_count, rng)
        start[small] = self.min_count * chosen
        search = LatticeSearch(EFFORT.of(len(start), self.proposals), self.seconds)
        return search(problem, start, rng=rng)

    def _problem(self, table: TrueTable, support: Index) -> LatticeProblem:
        design, order = over_support(table.design, support, self.controlled)
        y = table.y[support]
        target = design.aggregate(y)
        allowance = look_up_by_order(self.allowances, order, 0.0)
        allowance += np.floor((self.allowance_share or 0.0) * target)
        bound = look_up_by_order(self.bounds, np.where(order <= 1, 1, 2), np.inf) + allowance
        self._check_bounds(design, target, bound)
        # among cells without a bound of their own the largest deviation is lowered
        limited = np.isfinite(bound)
        groups = np.where(order <= 1, 1, 0).astype(np.int8)
        groups[limited] = -1
        first = np.maximum(y - self.reach, self.min_count)
        last = np.maximum(np.minimum(y + self.reach, np.maximum(y, LARGEST)), self.min_count)
        return LatticeProblem(
            design,
            target,
            Domain(first, last, np.array(1), y <= self.reach),
            weights=None if self.weights is None else look_up_by_order(self.weights, order, 1.0),
            low=-bound,
            high=bound,
            groups=groups if (groups >= 0).any() else None,
            goals=(0.0, 1.0),
            allowance=allowance if allowance.any() else None,
        )

    def _check_bounds(self, design: Design, target: Whole, bound: Real) -> None:
        """Refuse a bound that a single cell cannot keep whatever the others do."""
        small = (target > 0) & (target < self.min_count)
        least = np.where(small, np.minimum(target, self.min_count - target), 0)
        broken = np.flatnonzero(least > bound)
        if len(broken):
            k = int(broken[0])
            raise LimitError(
                f"controlled cell {design.name_of(k)} has a small count, which becomes 0 or at "
                f"least {self.min_count}: it moves by {least[k]} or more, but the bound is "
                f"{bound[k]:g}. Raise the bound."
            )

    def _statement(self, units: str) -> Statement:
        parameters: dict[str, Any] = {
            "min_count": self.min_count,
            "max_move": self.reach,
            "bounds": with_text_keys(self.bounds),
            "controlled": _plain(self.controlled),
            "allowance_share": self.allowance_share,
            "opens_zeros": self.opens_zeros or None,
        }
        if self.allowances is not None:
            parameters["allowances"] = with_text_keys(self.allowances)
        small = "1" if self.min_count == 2 else f"less than {self.min_count}"
        said = [
            process(
                "safe",
                f"Counts of {small} were removed from all inner cells, and chosen tables were kept "
                "near the truth; in other tables deviations can be larger.",
                f"Some {units} were counted elsewhere, so that no small figure remains.",
            ),
            *claim_sentences(self.claims, "count"),
            groups_not_hidden(),
            inner_table_tells(),
        ]
        if self.bounds:
            wanted = " and ".join(f"{bound:g} {_AMONG[k]}" for k, bound in self.bounds.items())
            if self.allowances or self.allowance_share:
                wanted += ", and allowances for some cells besides,"
            said.append(
                limit(
                    "bounds-wanted",
                    f"Deviations of at most {wanted} were asked for; whether all of them were "
                    "reached is not published.",
                )
            )
        return statement_of(self.name, parameters, said)


def inner_table_tells() -> Sentence:
    """What the inner table gives away beyond the tables it is kept near to; figures are measured.

    The test of attacks on SAFE measures them again.
    """
    return limit(
        "inner-table",
        "The inner table is part of the release, and true in most cells. In a measured table of "
        "five variables it held 89 % of the records as they are; a reconstruction from the true "
        "margins of three variables held 84 %.",
    )


def _plain(margins: Margins | None) -> str | list[str | list[str]] | None:
    """Margins as a file gives them back."""
    if isinstance(margins, str | None):
        return margins
    return [margin if isinstance(margin, str) else list(margin) for margin in margins]


SIZE_CLASSES = (1, 3, 6, 10, 20, 50, 100, 300, 500, 1000, 5000)


@dataclass(frozen=True, eq=False)
class Effect:
    """**Confidential.** True and protected counts of the same cells.

    Attributes:
      true: Counts before protection.
      protected: Counts after it.
    """

    true: Whole
    protected: Whole

    @property
    def deviation(self) -> Whole:
        """Protected less true counts."""
        return self.protected - self.true

    @property
    def largest(self) -> int:
        """The largest deviation in size."""
        return int(np.abs(self.deviation).max(initial=0))

    @property
    def mean(self) -> float:
        """The mean size of the deviations."""
        return float(np.abs(self.deviation).mean()) if len(self.true) else 0.0

    def transitions(self, largest: int = 8) -> Real:
        """The share of the cells with true count `i` that became `j`, for `i` up to `largest`.

        Rows without cells are zero.
        """
        chosen = self.true <= largest
        shares = np.zeros((largest + 1, int(self.protected[chosen].max(initial=0)) + 1))
        np.add.at(shares, (self.true[chosen], self.protected[chosen]), 1.0)
        cells = shares.sum(axis=1, keepdims=True)
        shares /= np.where(cells > 0, cells, 1.0)
        return shares

    def shares(self, smallest: int = 1, largest: int | None = None) -> dict[int, float]:
        """How often each deviation occurs among true counts from `smallest` to `largest`."""
        chosen = self.true >= smallest
        if largest is not None:
            chosen &= self.true <= largest
        found, counts = np.unique(self.deviation[chosen], return_counts=True)
        return dict(zip(found.tolist(), (counts / max(counts.sum(), 1)).tolist(), strict=True))

    def by_size(self, edges: Sequence[int] = SIZE_CLASSES) -> Frame:
        """Number of cells, mean and largest deviation, by classes of the true count."""
        size = np.abs(self.deviation)
        place = np.searchsorted(np.asarray(edges), self.true, side="right")
        names = [f"{a}-{b - 1}" for a, b in zip(edges, edges[1:], strict=False)]
        members = [size[place == k] for k in range(1, len(edges) + 1)]
        return Frame(
            {
                "count": [*names, f"{edges[-1]}+"],
                "cells": [len(m) for m in members],
                "mean": [float(m.mean()) if len(m) else None for m in members],
                "largest": [int(m.max()) if len(m) else None for m in members],
            }
        )


def effect(table: TrueTable, release: Protected, margins: Margins | None = None) -> Effect:
    """True and protected counts of the non-empty cells of margins; the table's own when absent.

    **Confidential.** The margins need not be among the published ones, so that it shows what
    happens in tables that a method did not control.
    """
    if release.y is None:
        raise DesignError("inner cells are not part of this release; fit them first.")
    support = np.flatnonzero(table.y)
    design, _ = over_support(table.design, support, margins)
    protected = _released_counts(table.design, release, support)
    return Effect(design.aggregate(table.y[support]), design.aggregate(protected))


def over_support(design: Design, support: Index, margins: Margins | None) -> tuple[Design, Whole]:
    """Cells of margins over some of the inner cells, and the number of variables of each."""
    if margins is not None:
        design = design.require_variables("margins to choose").with_margins(margins)
    chosen = design
    if len(support) < design.n_inner or design.support == "all":
        chosen = design.restricted(support, occurring=True).design
    return chosen, chosen.orders


def _released_counts(inside: Design, release: Protected, support: Index) -> Array:
    """Released counts of some inner cells of a table's design; zero where they have none."""
    released, y = release.design, np.asarray(release.y)
    if not inside.is_confidential:
        return y[support]
    mine, public = inside.over_variables, released.over_variables
    if mine is None or public is None or public.shape != mine.shape:
        raise DesignError("the release was made on another support; compare smaller tables.")
    # the support was confidential and the release is on the public one: places go by codes
    flat = np.ravel_multi_index(mine.leaf_positions(support), mine.shape)
    return np.append(y, y.dtype.type(0))[public.inner_at(flat)]
