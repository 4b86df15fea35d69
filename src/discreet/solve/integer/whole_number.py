"""Fits in whole numbers: the loss of a fit, searched over whole inner cells from the fit itself.

The design is extended by a published cell for each inner one. It draws the inner cell to where the
fit in real numbers has it, so that of tables that fit equally well the search takes one near the
fit, or carries the fit's own ridge.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np

from discreet import registry
from discreet.arrays import Array, Mask, Real, Whole
from discreet.design.base import Design
from discreet.errors import DataError, ParameterError, whole
from discreet.randomness import stream
from discreet.solve.absolute.least_absolute import LeastAbsolute
from discreet.solve.auto import Auto
from discreet.solve.fit import (
    Certificate,
    Fit,
    Fitter,
    FitterBase,
    Prepared,
    Status,
    checked_values,
    checked_weights,
)
from discreet.solve.integer.annealing import MOST_SWEEPS
from discreet.solve.integer.problem import LARGEST, Domain, LatticeProblem, check_size
from discreet.solve.integer.repair import repair_limits
from discreet.solve.integer.rounding import round_controlled
from discreet.solve.integer.search import LatticeSearch
from discreet.solve.least_squares.problem import Prior, positions_of
from discreet.solve.non_negative.non_negative import NonNegative


@dataclass(frozen=True, eq=False)
class WholeNumber(FitterBase):
    r"""The fit in whole numbers, as a restriction of the fit and not of its result.

    .. math:: \min_y \sum_k w_k\,|x_k^\top y - z_k|^p \quad\text{over}\quad y_i \in \{0, 1, \dots\},
              \quad \#\{i : y_i > 0\} \le m

    with the loss of a fitter: squares, or absolute deviations with `LeastAbsolute`, and the
    fitter's ridge where it has one. Tables that fit equally well are told apart by their distance
    from the fit in real numbers, which is the fitter's own choice among them.

    Promise: inner cells are whole and not negative; no more than `max_nonzero` of them are filled;
    exact margins are met, or the status is `stalled`; where the fit in real numbers has not
    converged, the table is whole as well and has the status of that fit, and its bound is zero;
    under a cap counts of 2³¹ and more in an inner cell are refused. Without one the loss is not
    larger than that of `release.fit(fitter).round("margins", seed=seed)`. The notes hold
    the `loss`, the `bound`, which is the loss of the fit in real numbers and which no whole table
    goes below, and `rounded`, the loss of rounding afterwards. `certificate.gap` is the part of the
    loss above the bound: how much is due to whole numbers, and how much to the search, it does not
    say.

    Cost: that of the fit, of rounding it, and some seconds; ten times the last under a cap.

    Args:
      fitter: `NonNegative`, `LeastAbsolute`, a `Chain` that begins with one of them, `Auto`, or
        the name of one.
      max_nonzero: How many inner cells may be filled; all when absent.
      seed: Seed of the search, which works on public values.
      proposals: Effort of the search.

    See Langsrud (2019b), section 5.
    """

    name = "whole-number"
    fitter: Fitter | str = "non-negative"
    max_nonzero: int | None = None
    seed: int = 0
    proposals: float = 2e7

    def __post_init__(self) -> None:
        if isinstance(self.fitter, str):
            object.__setattr__(self, "fitter", registry.build("fitter", self.fitter))
        if not isinstance(self.first, NonNegative | LeastAbsolute | Auto):
            raise ParameterError(
                "whole numbers need a fitter with a loss of published cells: non-negative, "
                f"least-absolute, a chain that begins with one of them, or auto; got {self.fitter}."
            )
        if self.max_nonzero is not None:
            whole("max_nonzero", self.max_nonzero, 0)
        whole("seed", self.seed, 0)
        whole("proposals", int(self.proposals), 1)

    @property
    def fitters(self) -> Sequence[Fitter]:
        """The fitters within."""
        within = cast("Fitter", self.fitter)
        return getattr(within, "fitters", (within,))

    @property
    def first(self) -> Any:
        """The fitter whose loss it is."""
        return self.fitters[0]

    def prepare(self, design: Design) -> Prepared:
        """Prepare the fit in real numbers."""
        return partial(_fit, self, design, cast("Fitter", self.fitter).prepare(design))


# Weight that draws an inner cell to its fit in the search, beside a typical published cell; and the
# weight where it only breaks ties. The first leads to the fit's neighbourhood, where the second
# leaves the loss to decide.
_DRAW, _LOOSE_DRAW = 0.05, 1e-6
# Weight of a published cell in the search, beside a typical one; with more, nothing else would
# move. Losses are judged with the true weights.
_HEAVIEST = 5.0
# First and last temperature near a fit, and where a search only goes downhill.
_NEAR_HEAT, _DOWNHILL_HEAT = (0.1, 0.01), (1e-3, 1e-3)
# Under a cap: the part of the filled cells that are exchanged at first, and small cells that are
# exchanged one by one in the end.
_EXCHANGED_SHARE, _EXCHANGES = 0.25, 20


def _fit(
    own: WholeNumber, design: Design, prepared: Prepared, z: Array, *, weights: Array | None = None
) -> Fit:
    began = time.perf_counter()
    fit = prepared(z, weights=weights)
    most = own.max_nonzero
    # The search holds 32 bits of a cell: of larger ones it looks at what lies around the fit. Under
    # a cap cells may become zero, so that they cannot be cut.
    aside = np.where(fit.y > (np.inf if most is not None else LARGEST), fit.y - LARGEST // 2, 0.0)
    aside = aside.astype(np.int64)
    lattice = WholeTables.of(own.first, design, z, weights, fit.y, aside)
    # The stream is that of `release.round("margins")`: no result is worse than that rounding.
    rounded = round_controlled(design, fit.y, rng=stream(own.seed, "round:margins")).y - aside
    search = stream(own.seed, "whole-number")
    y = lattice.search(rounded, own.proposals, search)
    if most is not None and np.count_nonzero(y) > most:
        y = lattice.search_capped(y, most, own.proposals, search)
    else:
        y = lattice.best([rounded, y])
    loss, after, bound = map(lattice.loss, (y, rounded, lattice.fitted))
    # Only a fit that has converged shows what no whole table goes below.
    bound, missed = min(bound, loss) if fit.is_converged else 0.0, lattice.largest_miss(y)
    gap = (loss - bound) / loss if loss > bound else 0.0
    status = Status.stalled if missed and fit.is_converged else fit.status
    y = y + aside
    return Fit(
        cast(Any, y),
        cast(Any, lattice.plain.aggregate(y)),
        status,
        Certificate(feasibility=missed, gap=gap, tolerance=1.0),
        seconds=time.perf_counter() - began,
        notes={"loss": loss, "bound": bound, "rounded": after},
        design=lattice.plain,
    )


@dataclass(frozen=True, eq=False)
class WholeTables:
    """Whole tables beside a fit in real numbers."""

    plain: Design  # the design as it was given
    fitted: Real  # the fit in real numbers, without what was put aside
    judged: LatticeProblem  # the loss as it is reported
    # The loss as it is searched: no weight far from the others, every cell drawn.
    sought: LatticeProblem

    @classmethod
    def of(
        cls,
        fitter: Any,
        design: Design,
        z: Array,
        weights: Array | None,
        fitted: Real,
        aside: Whole,
    ) -> WholeTables:
        """The whole tables beside what a fitter found, without the counts that were put aside.

        Exact margins, ridge, starting table and variances are read from the fitter.
        """
        from scipy import sparse

        check_size(fitted - aside)
        w = checked_weights(design, weights)
        values = checked_values(design, z, w > 0)
        power = 1.0 if isinstance(fitter, LeastAbsolute) else 2.0
        held = _exact_margins(fitter, design, values)
        values, fitted = values - design.aggregate(aside), fitted - aside
        # Inner cells are drawn to where the fitter's ridge draws them; without one, or in its limit
        # zero, to the fit, and at no cost in the loss that is reported.
        n, ridge = design.n_inner, getattr(fitter, "ridge", None)
        drawn, strength = fitted, np.zeros(n)
        if ridge is not None:
            prior = Prior.of(design, fitter.start, fitter.variance)
            drawn = prior.starts(np.arange(n)) - aside
            strength = ridge**2 * prior.per_variance(np.ones(n))
        target = np.concatenate([values, drawn])
        own = np.concatenate([w ** (power / 2), strength])
        high = np.full(len(target), np.inf)
        high[held] = 0.0
        limits = (-high, high) if len(held) else (None, None)
        each = sparse.identity(n, dtype=np.int64, format="csr")
        X = sparse.hstack([design.matrix().astype(np.int64), each], format="csr")
        extended, domain = Design.from_matrix(X), _domain(fitter, fitted)
        judged = LatticeProblem(extended, target, domain, power, own, *limits)
        return cls(design, fitted, judged, replace(judged, weights=_lighter(own, held, design)))

    def loss(self, y: Array) -> float:
        """The loss of a table."""
        return self.judged.loss(self.judged.deviation(y))

    def largest_miss(self, y: Whole) -> float:
        """By how much an exact margin is missed at most."""
        off = self.judged.deviation(y)[self.judged.limits[1] == 0]
        return float(np.abs(off).max(initial=0.0))

    def best(self, tables: Sequence[Whole]) -> Whole:
        """The table that misses exact margins least, of these the one of least loss."""
        return min(tables, key=lambda y: (self.largest_miss(y), self.loss(y)))

    def search(self, start: Whole, proposals: float, rng: np.random.Generator) -> Whole:
        """A table of small loss near the fit."""
        near = _search(self.sought, start, proposals, rng)
        nearer = _search(self._loose, near, proposals, rng, heat=_DOWNHILL_HEAT)
        return self.best([start, near, nearer])

    def search_capped(
        self, y: Whole, most: int, proposals: float, rng: np.random.Generator
    ) -> Whole:
        """A table with at most so many filled cells, which are exchanged while that helps."""
        effort, loose = proposals / 4, self._loose

        def within(table: Whole, chosen: Mask) -> Whole:
            """A table of small loss among those whose other inner cells are empty."""
            domain = loose.domain
            first, last = (np.where(chosen, limit, 0) for limit in (domain.first, domain.last))
            among = replace(loose, domain=Domain.interval(first, last))
            return _search(among, np.where(chosen, table, 0), effort, rng)

        # Fill more cells than allowed, then only the largest of them: cells change places in bulk.
        # The bulk is halved where it does not help, until single cells are exchanged.
        y = within(y, self._chosen(y, most))
        count = int(np.ceil(_EXCHANGED_SHARE * most))
        while count:
            wide = within(y, self._chosen(y, most + count))
            y, before = self.best([y, within(wide, self._chosen(wide, most))]), y
            count = count // 2 if y is before else count
        while (other := self._exchange_one(y, most, within)) is not None:
            y = other
        return y

    def _exchange_one(
        self, y: Whole, most: int, within: Callable[[Whole, Mask], Whole]
    ) -> Whole | None:
        """A better table in which another cell takes the place of a small one, if there is one."""
        filled = np.flatnonzero(y)
        for i in filled[np.argsort(y[filled], kind="stable")][:_EXCHANGES].tolist():
            without = y.copy()
            without[i] = 0
            other = within(without, self._chosen(without, most, but=i))
            if self.best([y, other]) is other:
                return other
        return None

    def _chosen(self, y: Whole, most: int, but: int | None = None) -> Mask:
        """The cells with the largest values; of empty ones those that lower the loss most."""
        problem, off = self.judged, self.judged.deviation(y)
        change = np.abs(off + 1.0) ** problem.power - np.abs(off) ** problem.power
        gain: Real = problem.design.adjoint(problem.all_weights * change)
        gain = np.where(problem.domain.is_free, gain, np.inf)
        rank = np.where(y > 0, 0.0, gain)
        order = np.lexsort((rank, -y))
        marks = np.zeros(len(y), dtype=bool)
        marks[order[order != but][:most]] = True
        return marks

    @property
    def _loose(self) -> LatticeProblem:
        """The search with inner cells drawn to break ties only, where there is no ridge."""
        weights, own = self.sought.all_weights, self.judged.all_weights
        drawn = np.where(own == 0, np.minimum(weights, _LOOSE_DRAW), weights)
        return replace(self.sought, weights=drawn)


def _search(
    problem: LatticeProblem,
    start: Whole,
    proposals: float,
    rng: np.random.Generator,
    heat: tuple[float, float] = _NEAR_HEAT,
) -> Whole:
    effort = min(proposals, MOST_SWEEPS * max(len(problem.rows), 1))
    search = LatticeSearch(effort, hot=heat[0], cold=heat[1], pairs=0.3)
    found = search(problem, problem.domain.nearest(start), rng=rng)
    return repair_limits(problem, found.y) if found.violations else found.y


def _exact_margins(fitter: Any, design: Design, z: Real) -> Whole:
    """Positions of the exact margins, whose values must be whole."""
    held = positions_of(design, getattr(fitter, "exact", ()))
    broken = held[z[held] != np.rint(z[held])]
    if len(broken):
        raise DataError(
            f"exact margin {design.name_of(int(broken[0]))} is {z[broken[0]]:g}, which whole "
            "numbers cannot meet. Leave it out of `exact`, or round it."
        )
    return held


def _domain(fitter: Any, fitted: Real) -> Domain:
    """Any whole number, but for cells with variance zero, which stay."""
    variance = getattr(fitter, "variance", None)
    variance = getattr(fitter, "start", None) if variance is None else variance
    stays = np.zeros(len(fitted), bool) if variance is None else np.asarray(variance) == 0
    there = np.rint(fitted).astype(np.int64)
    return Domain.interval(np.where(stays, there, 0), np.where(stays, there, LARGEST))


def _lighter(weights: Real, held: Whole, design: Design) -> Real:
    """Weights in the search: in units of a typical one, none far above it, inner cells drawn."""
    given = weights[: design.n_published]
    typical = float(np.median(given[given > 0])) if (given > 0).any() else 1.0
    light = np.minimum(weights / typical, _HEAVIEST)
    light[held] = _HEAVIEST
    drawn = light[design.n_published :]
    drawn[:] = np.where(drawn > 0, drawn, _DRAW)
    return light
