"""The loss of a fit over whole tables: how it is judged, how it is searched, how cells are capped.

The design is extended by a published cell for each inner one. It draws the inner cell to where the
fit in real numbers has it, so that of tables that fit equally well the search takes one near the
fit, or carries the fit's own ridge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.arrays import Array, Mask, Real, Whole
from discreet.design.base import Design
from discreet.errors import DataError
from discreet.solve.absolute.least_absolute import LeastAbsolute
from discreet.solve.inputs import checked_values, checked_weights, name_of
from discreet.solve.integer.domain import LARGEST, Domain, check_size
from discreet.solve.integer.neighbourhood import repaired
from discreet.solve.integer.problem import Problem
from discreet.solve.integer.schedule import SCHEDULE
from discreet.solve.integer.search import Search
from discreet.solve.least_squares.problem import Prior, positions_of


@dataclass(frozen=True, eq=False)
class Lattice:
    """Whole tables beside a fit in real numbers.

    Attributes:
      plain: The design as it was given.
      fitted: The fit in real numbers.
      judged: The loss as it is reported.
      sought: The loss as it is searched: no weight far from the others, every cell drawn.
    """

    plain: Design
    fitted: Real
    judged: Problem
    sought: Problem

    @classmethod
    def of(
        cls,
        fitter: Any,
        design: Design,
        z: Array,
        weights: Array | None,
        fitted: Real,
    ) -> Lattice:
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
        held = _held(fitter, design, values)
        drawn, ridge = _ridge(fitter, design)
        target = np.concatenate([values, fitted if drawn is None else drawn])
        own = np.concatenate([w ** (power / 2), ridge])
        judged = Problem(
            _extended(design), target, _domain(fitter, fitted), power, own, *_limits(held, target)
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
    def _loose(self) -> Problem:
        """The search with inner cells drawn to break ties only, where there is no ridge."""
        weights, own = self.sought.all_weights, self.judged.all_weights
        drawn = np.where(own == 0, np.minimum(weights, SCHEDULE.loose_draw), weights)
        return replace(self.sought, weights=drawn)


def _search(
    problem: Problem,
    start: Whole,
    proposals: float,
    rng: np.random.Generator,
    heat: tuple[float, float] = SCHEDULE.near_heat,
) -> Whole:
    effort = min(proposals, SCHEDULE.most_sweeps * max(len(problem.rows), 1))
    search = Search(effort, hot=heat[0], cold=heat[1], pairs=0.3)
    found = search(problem, problem.domain.nearest(start), rng=rng)
    return repaired(problem, found.y) if found.violations else found.y


def _among(problem: Problem, chosen: Mask) -> Problem:
    """The problem with all other inner cells empty."""
    domain = problem.domain
    first, last = (np.where(chosen, limit, 0) for limit in (domain.first, domain.last))
    return replace(problem, domain=Domain.interval(first, last))


def _extended(design: Design) -> Design:
    """The design with a published cell for each inner cell added."""
    from scipy import sparse

    own = sparse.identity(design.n_inner, dtype=np.int64, format="csr")
    return Design.from_matrix(sparse.hstack([design.matrix().astype(np.int64), own], format="csr"))


def _held(fitter: Any, design: Design, z: Real) -> Whole:
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
