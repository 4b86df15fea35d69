"""Small count rounding: round a few inner cells so that no published cell is small."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from discreet.arrays import Index, Mask, Real, Whole
from discreet.design.base import Design
from discreet.errors import InfeasibleError, ParameterError, whole
from discreet.protect.options import (
    AS_IT_IS,
    BASES,
    DEVIATIONS,
    WEIGHTS,
    Effort,
    at_least,
    by_order,
    numbers,
    whole_numbers,
)
from discreet.protect.sentences import (
    claim_sentences,
    groups_not_hidden,
    limit,
    process,
    statement_of,
)
from discreet.solve.integer.problem import Domain, LatticeProblem
from discreet.solve.integer.rounding import choose_systematically
from discreet.solve.integer.search import LatticeSearch
from discreet.solve.integer.small_counts import by_elimination, by_leverage, choose_cells
from discreet.tables.protected import Claims, Draws, Protected
from discreet.tables.statement import Statement
from discreet.tables.truth import TrueTable

Weights = Mapping[int, float] | Real
# a few cells are settled long before
EFFORT = Effort(sweeps=4000, most=5e6)


@dataclass(frozen=True)
class _RoundingPlan:
    """How a rounding is found."""

    searches: bool = True  # whether the first choice is improved by a search
    avoids: bool = True  # whether the search avoids making other published cells small
    relative: bool = False  # whether deviations of small published cells weigh more, by 1/(z + 1)


@dataclass(frozen=True, eq=False)
class SmallCountRounding:
    r"""Round few inner cells to a multiple of `base`, so that no published cell lies in 1..base-1.

    The inner cells that count in a small published cell, and are small themselves, become 0 or
    `base` (a larger one the multiple of `base` below or above it), so that

    .. math:: \min_y \sum_k w_k (x_k^\top y - z_k)^2.

    Few cells start from a greedy choice of the cells that are raised, many from systematic
    sampling; then a search improves on the start. Rounding can make other published cells small;
    their inner cells join in, until none is left.

    Promise: additive and consistent over the published tables; no published value in 1..base-1
    (unless `identify_new=False`); an inner cell moves by less than `base`; zeros stay zero unless
    `zero_candidates`. The rounded inner cells stay hidden, since some of them are true, unless
    `force_inner` rounds them all.
    Cost: sweeps over the rounded cells, a few tenths of a second for 25,000 of them.

    Args:
      base: The rounding base, at least 2.
      max_round: Inner cells of published cells up to this value are rounded; `base - 1` when
        absent.
      zero_candidates: Whether zeros (and multiples of `base`) may be raised too.
      force_inner: Round every inner cell that is not a multiple of `base`.
      all_small: Round every inner cell up to `max_round`.
      weights: Weight of each published cell in the loss, or by its number of variables.
      pre_rounded: Values of inner cells that were rounded before; -1 where they were not.
      pre_difference: Deviation of each published cell that another part of the data has caused.
      identify_new: Whether published cells that become small are dealt with.
      step: Stepwise greedy start: after so many picks, up to half of them are put back.
      max_iter_rows: Up to this many cells start from the greedy choice.
      max_iter: Rounds of dealing with new small cells.
      single_random: Choose the raised cells by chance, without a search.
      easy_check: Round small inner cells that are given away by zeros and single cells, too.
      leverage_check: Round small inner cells that are a linear combination of published ones, too.
      proposals: Effort of the search, in experiments only; 0 keeps the start.

    See Langsrud & Heldal (2018); Langsrud & Lupp (2021).
    """

    base: int = 3
    max_round: int | None = None
    zero_candidates: bool = False
    force_inner: bool = False
    all_small: bool = False
    weights: Weights | None = None
    pre_rounded: Whole | None = None
    pre_difference: Whole | None = None
    identify_new: bool = True
    step: int = 0
    max_iter_rows: int = 1000
    max_iter: int = 100
    single_random: bool = False
    easy_check: bool = True
    leverage_check: bool = False
    proposals: float | None = None

    name: ClassVar[str] = "small-count-rounding"
    source: ClassVar[str] = "table"

    def __post_init__(self) -> None:
        least = {"base": 2, "max_round": 1, "step": 0, "max_iter": 1, "max_iter_rows": 0}
        for name, lowest in least.items():
            if getattr(self, name) is not None:
                whole(name, getattr(self, name), lowest)
        if self.proposals is not None:
            at_least("proposals", self.proposals, 0)
        for name in ("pre_rounded", "pre_difference"):
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, whole_numbers(name, given))
        object.__setattr__(self, "weights", _plain_weights(self.weights))

    @property
    def claims(self) -> Claims:
        """What every release of this method keeps."""
        blocked = tuple(range(1, self.base)) if self.identify_new else ()
        keeps = not self.zero_candidates
        return Claims(
            additive=True, unbiased=False, keeps_zeros=keeps, blocked=blocked, consistent=False
        )

    @property
    def option_lists(self) -> dict[str, tuple[Any, ...]]:
        """Options that come from a short list where nobody counts releases."""
        usual = {
            name: (getattr(SmallCountRounding, name),) for name in ("max_iter_rows", "max_iter")
        }
        own = dict.fromkeys(("proposals", "pre_rounded", "pre_difference"), AS_IT_IS)
        lists = {"base": BASES, "max_round": DEVIATIONS, "weights": (None, *WEIGHTS)}
        return {**lists, **own, **usual, "step": (0, 1, 2, 3, 5, 10)}

    @property
    def first_kept(self) -> int:
        """Counts from here on are not small."""
        return self.base if self.max_round is None else self.max_round + 1

    def __call__(self, table: TrueTable, *, draws: Draws) -> Protected:
        """Protect the table; rounded inner cells are released only where all of them were."""
        inner = self.inner(table, rng=draws.generator(self, table))
        z, y = table.design.aggregate(inner), inner if self.force_inner else None
        return Protected.of(table.design, z, self._statement(), y=y)

    def in_order(self, inner: Index, published: Index) -> SmallCountRounding:
        """The method for a table whose cells are in another order."""
        ordered: dict[str, Any] = {}
        for name, order, kind in (
            ("weights", published, "published"),
            ("pre_rounded", inner, "inner"),
            ("pre_difference", published, "published"),
        ):
            given = getattr(self, name)
            # weights may go by number of variables instead
            if isinstance(given, np.ndarray):
                _check_length(name, given, len(order), kind)
                ordered[name] = given[order]
        return replace(self, **ordered)

    def further(self, table: TrueTable, inner: Whole, *, rng: np.random.Generator) -> Whole:
        """Rounded inner cells for another table, where those that were changed before stay.

        **Confidential.** Tables made from the result agree with those made from `inner` as far as
        the same inner cells are rounded.
        """
        changed = np.where(inner != table.y, inner, -1)
        return replace(self, pre_rounded=changed).inner(table, rng=rng)

    def inner(self, table: TrueTable, *, rng: np.random.Generator) -> Whole:
        """The rounded inner cells. **Confidential**: most of them are true.

        Few cells are rounded greedily, and by searches of several kinds; a search's result is
        taken when its loss is smaller and neither its largest deviation nor its Hellinger
        distance is larger. Many cells are left to one search.
        """
        first = self._first_rows(table.design, table.y, table.z) & ~self._fixed_rows(table.y)
        if self.single_random or self.proposals == 0:
            return self._passes(table, first, _RoundingPlan(searches=False), rng)
        if np.count_nonzero(first) > self.max_iter_rows:
            return self._passes(table, first, _RoundingPlan(), rng)
        best = self._passes(table, first, _RoundingPlan(searches=False), rng)
        least = self._losses(table, best)
        for plan in (_RoundingPlan(avoids=False), _RoundingPlan(), _RoundingPlan(relative=True)):
            other = self._passes(table, first, plan, rng)
            losses = self._losses(table, other)
            # the loss alone would pay for a better sum with a larger maximum
            no_worse = all(a <= b + 1e-9 for a, b in zip(losses, least, strict=True))
            if losses[0] < least[0] - 1e-9 and no_worse:
                best, least = other, losses
        return best

    def _passes(
        self, table: TrueTable, first: Mask, plan: _RoundingPlan, rng: np.random.Generator
    ) -> Whole:
        """Round the first cells, then those of published cells that have become small."""
        kept = self._fixed_rows(table.y)
        y = table.y if self.pre_rounded is None else np.where(kept, self.pre_rounded, table.y)
        free, new = np.zeros(len(y), dtype=bool), first
        for _ in range(self.max_iter):
            if new.any():
                free = free | new
                y = self._round_rows(table, y, free, new, plan, rng)
            new = self._new_rows(table.design, y) & ~kept & ~free
            if not new.any():
                return y
        raise InfeasibleError(
            f"published cells are still small after {self.max_iter} rounds. Raise max_iter, or "
            "publish fewer cells."
        )

    def _losses(self, table: TrueTable, y: Whole) -> tuple[float, float, float]:
        """Loss, largest deviation and squared Hellinger distance."""
        z, weights = table.design.aggregate(y), self._weights(table.design)
        target = self._target(table)
        size = np.abs(z - target).astype(np.float64)
        loss = (size**2).sum() if weights is None else (weights * size**2).sum()
        apart = (np.sqrt(z) - np.sqrt(np.maximum(target, 0))) ** 2
        return float(loss), float(size.max(initial=0)), float(apart.sum())

    def _fixed_rows(self, true: Whole) -> Mask:
        if self.pre_rounded is None:
            return np.zeros(len(true), dtype=bool)
        _check_length("pre_rounded", self.pre_rounded, len(true), "inner")
        kept: Mask = self.pre_rounded >= 0
        return kept

    def _new_rows(self, design: Design, y: Whole) -> Mask:
        """Small inner cells that count in small published cells, or are given away."""
        if not self.identify_new:
            return np.zeros(len(y), dtype=bool)
        z = design.aggregate(y)
        small = design.adjoint(((z > 0) & (z < self.base)).astype(np.int64)) > 0
        rows: Mask = small & (y > 0) & (y < self.base)
        return rows if rows.any() else self._derivable(design, y, z)

    def _first_rows(self, design: Design, true: Whole, z: Whole) -> Mask:
        limit = self.first_kept
        small: Mask = design.adjoint(((z > 0) & (z < limit)).astype(np.int64)) > 0
        candidate = (true < limit) & ((true % self.base > 0) | self.zero_candidates)
        rows = small & candidate
        if self.all_small:
            rows |= (true > 0) & (true < limit) & (true % self.base > 0)
        if self.force_inner:
            rows |= true % self.base > 0
        return rows if rows.any() else self._derivable(design, true, z)

    def _derivable(self, design: Design, y: Whole, z: Whole) -> Mask:
        """Small inner cells that the published cells give away."""
        small = (y > 0) & (y < self.base)
        if not small.any() or not (self.easy_check or self.leverage_check):
            return np.zeros(len(y), dtype=bool)
        known = by_leverage(design, z) if self.leverage_check else by_elimination(design, z)
        return small & known

    def _round_rows(
        self,
        table: TrueTable,
        y: Whole,
        free: Mask,
        new: Mask,
        plan: _RoundingPlan,
        rng: np.random.Generator,
    ) -> Whole:
        """Choose the values of all rounded cells anew, starting with the new ones."""
        start = self._first_choice(table, y, new, plan, rng)
        if not plan.searches:
            return start
        rows = np.flatnonzero(free)
        # later rounds change little: they start cooler, and a tenth of the effort will do
        is_first = bool((free == new).all())
        effort = min(EFFORT.of(len(rows), self.proposals), EFFORT.sweeps * len(rows))
        search = LatticeSearch(
            proposals=effort if is_first else effort / 10, chains=1, hot=0.3 if is_first else 0.05
        )
        start[rows] = search(self._problem(table, start, rows, plan), start[rows], rng=rng).y
        return start

    def _problem(
        self, table: TrueTable, y: Whole, rows: Index, plan: _RoundingPlan
    ) -> LatticeProblem:
        """The choice between two values for some inner cells, the others as they are.

        The total counts as one more published cell, so that it is kept as well.
        """
        part, cells = table.design.restricted(rows)
        total = sparse.csr_array(np.ones((len(rows), 1), dtype=np.int64))
        design = Design.from_matrix(sparse.hstack([part.matrix(), total], format="csr"))
        # what the other inner cells contribute is fixed
        rest = y.copy()
        rest[rows] = 0
        base = np.append(table.design.aggregate(rest)[cells], rest.sum())
        target = np.append(self._target(table)[cells], self._total(table)) - base
        low = table.y[rows] // self.base * self.base
        weights = self._weights(table.design)
        if weights is not None:
            weights = np.append(weights[cells], 1.0)
        if plan.relative:
            # near chi-square: without it a small cell's deviation weighs as a large one's
            weights = 1.0 / np.append(table.z[cells] + 1.0, table.y.sum() + 1.0)
        return LatticeProblem(
            design,
            target,
            Domain.pair(low, low + self.base),
            weights=weights,
            blocked=self.base if self.identify_new and plan.avoids else 0,
            base=base,
        )

    def _target(self, table: TrueTable) -> Whole:
        if self.pre_difference is None:
            return table.z
        _check_length("pre_difference", self.pre_difference, len(table.z), "published")
        target: Whole = table.z - self.pre_difference
        return target

    def _total(self, table: TrueTable) -> int:
        """What the rounded cells should add up to: the total, less its part of the differences."""
        total = int(table.y.sum())
        if self.pre_difference is None:
            return total
        whole = np.flatnonzero(table.design.column_sizes == table.design.n_inner)
        return int(self._target(table)[whole[0]]) if len(whole) else total

    def _first_choice(
        self, table: TrueTable, y: Whole, new: Mask, plan: _RoundingPlan, rng: np.random.Generator
    ) -> Whole:
        """A first choice for new cells: how many are raised follows from the total."""
        rows = np.flatnonzero(new)
        rest = table.y[rows] % self.base
        lost = self._total(table) - int(y.sum())
        count = int(np.clip(np.rint((rest.sum() + lost) / self.base), 0, len(rows)))
        lowered = y.copy()
        lowered[rows] -= rest
        if self.single_random:
            raised = np.isin(np.arange(len(rows)), rng.permutation(len(rows))[:count])
        elif len(rows) <= self.max_iter_rows:
            problem = self._problem(table, lowered, rows, plan)
            raised = self._greedy(problem, lowered[rows], count, rng)
        else:
            raised = choose_systematically(rest / self.base, rng)
        lowered[rows] += self.base * raised
        return lowered

    def _greedy(
        self, problem: LatticeProblem, low: Whole, count: int, rng: np.random.Generator
    ) -> Mask:
        ones = np.ones(problem.design.n_published)
        root = np.sqrt(ones if problem.weights is None else problem.weights)
        # the total is kept by the number of raised cells already
        root[-1] = 0.0
        X = problem.design.matrix() @ sparse.diags_array(root)
        residual = root * -problem.deviation(low)
        return choose_cells(X, residual, self.base, count, step=self.step, rng=rng)

    def _weights(self, design: Design) -> Real | None:
        if self.weights is None:
            return None
        if not isinstance(self.weights, Mapping):
            _check_length("weights", self.weights, design.n_published, "published")
            return self.weights
        weights = self.weights
        orders = design.require_variables("numbers of variables to weigh cells by").orders
        return np.array([weights.get(int(order), 1.0) for order in orders])

    def _statement(self) -> Statement:
        parameters = {
            "base": self.base,
            "max_round": self.max_round,
            "zero_candidates": self.zero_candidates,
            "force_inner": self.force_inner or None,
            "pre_rounded": None if self.pre_rounded is None else True,
        }
        aim = ", so that no published count is small" if self.identify_new else ""
        said = [
            process(
                "small-count-rounding",
                f"Small inner counts were rounded to a multiple of {self.base}{aim}.",
                f"Some small figures were rounded to a multiple of {self.base}.",
            ),
            *claim_sentences(self.claims, "count"),
            groups_not_hidden(),
        ]
        if not self.force_inner:
            said.append(
                limit("true-counts", "Many published values are true counts; few of them moved.")
            )
        return statement_of(self.name, parameters, said)


def _check_length(name: str, given: NDArray[np.generic], wanted: int, kind: str) -> None:
    if len(given) != wanted:
        raise ParameterError(f"{name} has {len(given):,} values for {wanted:,} {kind} cells.")


def _plain_weights(given: Weights | None) -> Weights | None:
    # recipes give keys as text and arrays as lists
    if given is None or isinstance(given, Mapping):
        return by_order("weights", given)
    values = numbers("weights", given)
    if (values < 0).any():
        raise ParameterError("weights must not be negative.")
    return values
