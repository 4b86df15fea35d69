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
from discreet.errors import DataError, ParameterError
from discreet.randomness import stream
from discreet.solve.absolute.least_absolute import LeastAbsolute
from discreet.solve.auto import Auto
from discreet.solve.fit import Certificate, Fit, Fitter, FitterBase, Prepared, Status
from discreet.solve.inputs import check_whole, checked_values, checked_weights, name_of
from discreet.solve.integer.problem import LARGEST, Domain, LatticeProblem, check_size
from discreet.solve.integer.programs import repair_limits
from discreet.solve.integer.rounding import round_controlled
from discreet.solve.integer.schedule import SCHEDULE
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
    exact margins are met, or the status is `stalled`; without a cap the loss is not larger than
    that of `release.fit(fitter).round("margins", seed=seed)`. The notes hold the `loss`, the
    `bound`, which is the loss of the fit in real numbers and which no whole table goes below, and
    `rounded`, the loss of rounding afterwards. `certificate.gap` is the part of the loss above the
    bound: how much is due to whole numbers, and how much to the search, it does not say.

    Cost: that of the fit, of rounding it, and some seconds; ten times the last under a cap.

    Args:
      fitter: `NonNegative`, `LeastAbsolute`, a `Chain` that begins with one of them, `Auto`, or
        the name of one.
      max_nonzero: How many inner cells may be filled; all when absent.
      seed: Seed of the search, which works on public values.
      proposals: Effort of the search.

    See Langsrud (2019b), section 5.
    """

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
            check_whole("max_nonzero", self.max_nonzero, 0)
        check_whole("seed", self.seed, 0)
        check_whole("proposals", int(self.proposals), 1)

    @property
    def name(self) -> str:
        """The fitter's name in the registry."""
        return "whole-number"

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


def _fit(
    options: WholeNumber,
    design: Design,
    prepared: Prepared,
    z: Array,
    *,
    weights: Array | None = None,
) -> Fit:
    began = time.perf_counter()
    fit = prepared(z, weights=weights)
    if not fit.is_converged:
        return fit
    lattice = WholeTables.of(options.first, design, z, weights, fit.y)
    rounded = round_controlled(design, fit.y, rng=stream(options.seed, "round:margins")).y
    search, most = stream(options.seed, "whole-number"), options.max_nonzero
    found = lattice.searched(rounded, options.proposals, search)
    if most is not None and np.count_nonzero(found) > most:
        y = lattice.filled(found, most, options.proposals, search)
    else:
        y = lattice.best([rounded, found])
    return _whole_fit(lattice, y, rounded, time.perf_counter() - began)


def _whole_fit(lattice: WholeTables, y: Whole, rounded: Whole, seconds: float) -> Fit:
    """The whole table as a fit, with losses beside those of the fit and of rounding it."""
    loss, after, bound = map(lattice.loss, (y, rounded, lattice.fitted))
    bound, missed = min(bound, loss), lattice.missed(y)
    certificate = Certificate(
        feasibility=missed, gap=(loss - bound) / loss if loss > bound else 0.0, tolerance=1.0
    )
    return Fit(
        cast(Any, y),
        cast(Any, lattice.plain.aggregate(y)),
        Status.stalled if missed else Status.converged,
        certificate,
        seconds=seconds,
        notes={"loss": loss, "bound": bound, "rounded": after},
        design=lattice.plain,
    )


@dataclass(frozen=True, eq=False)
class WholeTables:
    """Whole tables beside a fit in real numbers.

    Attributes:
      plain: The design as it was given.
      fitted: The fit in real numbers.
      judged: The loss as it is reported.
      sought: The loss as it is searched: no weight far from the others, every cell drawn.
    """

    plain: Design
    fitted: Real
    judged: LatticeProblem
    sought: LatticeProblem

    @classmethod
    def of(
        cls,
        fitter: Any,
        design: Design,
        z: Array,
        weights: Array | None,
        fitted: Real,
    ) -> WholeTables:
        """The whole tables beside the fit of a fitter.

        Args:
          fitter: The fitter whose loss it is; exact margins, ridge, starting table and variances
            are read from it.
          design: The design.
          z: Published values.
          weights: Their precisions.
          fitted: What the fitter found.
        """
        check_size(fitted)
        w = checked_weights(design, weights)
        values = checked_values(design, z, w > 0)
        power = 1.0 if isinstance(fitter, LeastAbsolute) else 2.0
        held = _exact_margins(fitter, design, values)
        drawn, ridge = _ridge(fitter, design)
        target = np.concatenate([values, fitted if drawn is None else drawn])
        own = np.concatenate([w ** (power / 2), ridge])
        judged = LatticeProblem(
            _extend_by_inner_cells(design),
            target,
            _domain(fitter, fitted),
            power,
            own,
            *_limits(held, target),
        )
        return cls(design, fitted, judged, replace(judged, weights=_lighter(own, held, design)))

    def loss(self, y: Array) -> float:
        """The loss of a table."""
        return self.judged.loss(self.judged.deviation(y))

    def missed(self, y: Whole) -> float:
        """By how much an exact margin is missed at most."""
        off = self.judged.deviation(y)[self.judged.limits[1] == 0]
        return float(np.abs(off).max(initial=0.0))

    def best(self, tables: Sequence[Whole]) -> Whole:
        """The table that misses exact margins least, of these the one of least loss."""
        return min(tables, key=lambda y: (self.missed(y), self.loss(y)))

    def searched(self, start: Whole, proposals: float, rng: np.random.Generator) -> Whole:
        """A table of small loss near the fit."""
        near = _search(self.sought, start, proposals, rng)
        nearer = _search(self._loose, near, proposals, rng, heat=SCHEDULE.downhill_heat)
        return self.best([start, near, nearer])

    def filled(self, y: Whole, most: int, proposals: float, rng: np.random.Generator) -> Whole:
        """A table with at most so many filled cells, which are exchanged while that helps."""
        effort, loose = proposals / 4, self._loose

        def within(table: Whole, chosen: Mask) -> Whole:
            return _search(_among(loose, chosen), np.where(chosen, table, 0), effort, rng)

        y = within(y, self._chosen(y, most))
        count = int(np.ceil(SCHEDULE.exchanged_share * most))
        while count:
            wide = within(y, self._chosen(y, most + count))
            y, before = self.best([y, within(wide, self._chosen(wide, most))]), y
            count = count // 2 if y is before else count
        while (other := self._exchanged(y, most, within)) is not None:
            y = other
        return y

    def _exchanged(
        self, y: Whole, most: int, within: Callable[[Whole, Mask], Whole]
    ) -> Whole | None:
        """A better table in which another cell takes the place of a small one, if there is one."""
        filled = np.flatnonzero(y)
        for i in filled[np.argsort(y[filled], kind="stable")][: SCHEDULE.exchanges].tolist():
            without = y.copy()
            without[i] = 0
            other = within(without, self._chosen(without, most, but=i))
            if self.best([y, other]) is other:
                return other
        return None

    def _chosen(self, y: Whole, most: int, but: int | None = None) -> Mask:
        """The cells with the largest values; of empty ones those that lower the loss most."""
        rank = np.where(y > 0, 0.0, self._gain(y))
        order = np.lexsort((rank, -y))
        marks = np.zeros(len(y), dtype=bool)
        marks[order[order != but][:most]] = True
        return marks

    def _gain(self, y: Whole) -> Real:
        """How much the loss changes when one is added to an inner cell; infinite where it stays."""
        problem, off = self.judged, self.judged.deviation(y)
        change = np.abs(off + 1.0) ** problem.power - np.abs(off) ** problem.power
        gain: Real = problem.design.adjoint(problem.all_weights * change)
        return np.where(problem.domain.is_free, gain, np.inf)

    @property
    def _loose(self) -> LatticeProblem:
        """The search with inner cells drawn to break ties only, where there is no ridge."""
        weights, own = self.sought.all_weights, self.judged.all_weights
        drawn = np.where(own == 0, np.minimum(weights, SCHEDULE.loose_draw), weights)
        return replace(self.sought, weights=drawn)


def _search(
    problem: LatticeProblem,
    start: Whole,
    proposals: float,
    rng: np.random.Generator,
    heat: tuple[float, float] = SCHEDULE.near_heat,
) -> Whole:
    effort = min(proposals, SCHEDULE.most_sweeps * max(len(problem.rows), 1))
    search = LatticeSearch(effort, hot=heat[0], cold=heat[1], pairs=0.3)
    found = search(problem, problem.domain.nearest(start), rng=rng)
    return repair_limits(problem, found.y) if found.violations else found.y


def _among(problem: LatticeProblem, chosen: Mask) -> LatticeProblem:
    """The problem with all other inner cells empty."""
    domain = problem.domain
    first, last = (np.where(chosen, limit, 0) for limit in (domain.first, domain.last))
    return replace(problem, domain=Domain.interval(first, last))


def _extend_by_inner_cells(design: Design) -> Design:
    """The design with a published cell for each inner cell added."""
    from scipy import sparse

    own = sparse.identity(design.n_inner, dtype=np.int64, format="csr")
    return Design.from_matrix(sparse.hstack([design.matrix().astype(np.int64), own], format="csr"))


def _exact_margins(fitter: Any, design: Design, z: Real) -> Whole:
    """Positions of the exact margins, whose values must be whole."""
    held = positions_of(design, getattr(fitter, "exact", ()))
    broken = held[z[held] != np.rint(z[held])]
    if len(broken):
        raise DataError(
            f"exact margin {name_of(design, int(broken[0]))} is {z[broken[0]]:g}, which whole "
            "numbers cannot meet. Leave it out of `exact`, or round it."
        )
    return held


def _limits(held: Whole, target: Real) -> tuple[Real | None, Real | None]:
    if not len(held):
        return None, None
    high = np.full(len(target), np.inf)
    high[held] = 0.0
    return -high, high


def _ridge(fitter: Any, design: Design) -> tuple[Real | None, Real]:
    """Where the fitter's ridge draws inner cells, and how strongly; nowhere in the limit zero."""
    n, ridge = design.n_inner, getattr(fitter, "ridge", None)
    if ridge is None:
        return None, np.zeros(n)
    prior = Prior.of(design, fitter.start, fitter.variance)
    return prior.starts(np.arange(n)), ridge**2 * prior.per_variance(np.ones(n))


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
    light = np.minimum(weights / typical, SCHEDULE.heaviest)
    light[held] = SCHEDULE.heaviest
    drawn = light[design.n_published :]
    drawn[:] = np.where(drawn > 0, drawn, SCHEDULE.draw)
    return light
