"""Nine ways of releasing a table with Laplace noise, and what each does to its margins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from discreet import registry
from discreet.arrays import Array, Real, Whole
from discreet.assessment.cells import hellinger
from discreet.design.axis import Axis
from discreet.design.base import Design
from discreet.errors import DataError
from discreet.facade.table import Table
from discreet.progress import report
from discreet.protect.private_methods import Laplace
from discreet.protect.publish import simulate
from discreet.solve.fit import Fit

PARTS = ("inner", "2-way", "3-way")
TOTAL_EXACT = "3-way (total exact)"
WEIGHT = 1000.0
"""By which the equations of exact totals are multiplied."""
ACCEPTED = 0.5
"""Certificate of a fit, in counts: a twentieth of the smaller noise. Three-way margins fitted to a
hundredth of it differ by 0.00005 in utility and by 0.0003 in mean deviation, less than is shown."""
_NO_NOISE = 0.05  # margins without noise are met, and a coarser fit would show
_SIGHT = 0.01  # fitted cells below this are shown as zero


class Released(dict[str, Real]):
    """Released values of some of the parts, and in which way their fit fell short, if it did."""

    shortfall: str = ""


@dataclass(frozen=True, eq=False)
class Data:
    """A table of several variables, with or without its empty cells.

    Attributes:
      axes: The variables.
      y: Counts of the inner cells.
      complete: The table with its empty cells, where they are left out.
    """

    axes: Sequence[Axis]
    y: Real
    complete: Data | None = None

    @classmethod
    def of(cls, design: Design, y: Array) -> Data:
        """A complete table; in an experiment its codes count as declared."""
        if len(design.axes) < 4:
            raise DataError("the study needs a table of at least four variables.")
        axes = [replace(axis, declared=True) for axis in design.axes]
        return cls(axes, y.astype(np.float64))

    def without_zeros(self) -> Data:
        """The same table with its non-empty cells alone."""
        return Data(self.axes, self.y[self.y > 0], self)

    def noisy(self, part: str, epsilon: float, seed: int) -> Real:
        """A part with Laplace noise; a cell has the same noise with and without empty cells."""
        if self.complete is not None:
            return self.complete.noisy(part, epsilon, seed)[self.complete.true[part] > 0]
        names = [tuple(axis.name for axis in self.axes)]
        design = Design.product(self.axes, names if part == "inner" else self.margins(int(part[0])))
        table = Table.from_inner(design, self.y.astype(np.int64))
        name = f"inner frequencies, {part}, {epsilon}"
        z: Real = simulate(table, Laplace(epsilon), {}, seed=seed, name=name).z
        return z

    def margins(self, order: int) -> list[tuple[str, ...]]:
        """All margins with so many variables."""
        return list(combinations([axis.name for axis in self.axes], order))

    def design(self, margins: list[tuple[str, ...]]) -> Design:
        """The margins, published, on the cells that the table has."""
        if self.complete is None:
            return Design.product(self.axes, margins)
        sizes = [len(axis) for axis in self.axes]
        codes = np.unravel_index(np.flatnonzero(self.complete.y), sizes)
        return Design.sparse(self.axes, margins, codes)

    @cached_property
    def two(self) -> Design:
        """All two-way margins."""
        return self.design(self.margins(2))

    @cached_property
    def three(self) -> Design:
        """All three-way margins."""
        return self.design(self.margins(3))

    @cached_property
    def both(self) -> Design:
        """All two-way and three-way margins."""
        return self.design(self.margins(2) + self.margins(3))

    @cached_property
    def order(self) -> Whole:
        """Number of variables of each published cell of `both`."""
        return self.both.orders

    @cached_property
    def true(self) -> Released:
        """The true values."""
        return self.with_margins(self.y)

    @cached_property
    def from_two_way(self) -> Released:
        """What follows from the true two-way margins alone."""
        exact = self.margins(2)  # a fit without constraints stalls at two counts on the stand-in
        return fit_margins(self, self.two, self.true["2-way"], exact=exact, tolerance=_NO_NOISE)

    def with_margins(self, y: Real) -> Released:
        """Inner values with the margins that they add up to."""
        margins = {"2-way": self.two.aggregate(y), "3-way": self.three.aggregate(y)}
        return Released({"inner": y, **margins})


def fit_margins(
    data: Data, design: Design, z: Real, weights: Real | None = None, **options: Any
) -> Released:
    """Inner cells estimated without negative values, and their margins."""
    fitter = registry.build("fitter", "non-negative", {"tolerance": ACCEPTED, **options})
    fit: Fit = fitter(design, z, weights=weights)
    released = data.with_margins(fit.y)
    if not fit.is_converged:
        reached, asked = fit.certificate.worst, fit.certificate.tolerance
        released.shortfall = f"{fit.status.name}, reached {reached:.1e} instead of {asked:.0e}"
    return released


def utility(f: Real, g: Real) -> float:
    """Hellinger utility, with a sign for negative values."""
    return 1 - hellinger(f, g) / float(np.sqrt(f.sum()))


def deviation(f: Real, g: Real) -> float:
    """Mean absolute deviation."""
    return float(np.abs(f - g).mean())


@dataclass(frozen=True, eq=False)
class Schemes:
    """All schemes on one table at one ε, with the same noise wherever they share it.

    Attributes:
      data: The table.
      epsilon: The privacy budget.
      seed: Root of the streams of random numbers.
    """

    data: Data
    epsilon: float
    seed: int

    def all(self, quick: bool = False) -> Iterator[tuple[str, Released]]:
        """Every scheme's name and what it releases, in the paper's order.

        Args:
          quick: Leave out schemes with exact two-way margins, which take most of the time.
        """
        noisy = {"2-way": self.noisy_two, "3-way": self.noisy_three}
        steps: list[tuple[str, Callable[[], Released]]] = [
            ("inner cells", self._inner),
            ("3-way (no fitting)", lambda: Released({"3-way": noisy["3-way"]})),
            ("3-way (zero replace)", lambda: Released({"3-way": np.maximum(noisy["3-way"], 0)})),
            ("3-way", lambda: fit_margins(self.data, self.data.three, noisy["3-way"])),
            ("3-way (2-way exact)", self._two_way_exact),
            ("nothing (2-way exact)", lambda: self.data.from_two_way),
            ("2-way", lambda: fit_margins(self.data, self.data.two, noisy["2-way"])),
            ("2-way (no fitting)", lambda: Released({"2-way": noisy["2-way"]})),
            ("2-way (zero replace)", lambda: Released({"2-way": np.maximum(noisy["2-way"], 0)})),
            (TOTAL_EXACT, self._total_exact),
        ]
        if quick:
            steps = [(name, release) for name, release in steps if "2-way exact" not in name]
        for done, (name, release) in enumerate(steps, start=1):
            yield name, release()
            report(f"schemes at ε = {self.epsilon}", done / len(steps))

    @cached_property
    def noisy_two(self) -> Real:
        """Two-way margins with noise."""
        return self.data.noisy("2-way", self.epsilon, self.seed)

    @cached_property
    def noisy_three(self) -> Real:
        """Three-way margins with noise."""
        return self.data.noisy("3-way", self.epsilon, self.seed)

    def _inner(self) -> Released:
        return self.data.with_margins(self.data.noisy("inner", self.epsilon, self.seed))

    def _both(self) -> Real:
        """True two-way and noisy three-way margins."""
        z = np.empty(self.data.both.n_published)
        z[self.data.order == 2] = self.data.true["2-way"]
        z[self.data.order == 3] = self.noisy_three
        return z

    def _two_way_exact(self) -> Released:
        return fit_margins(self.data, self.data.both, self._both(), exact=self.data.margins(2))

    def _total_exact(self) -> Released:
        """Not among the paper's nine ways: noisy three-way margins beside the true total.

        The total has the paper's weight and is no constraint, so that it could be missed.
        """
        design = self.data.design([(), *self.data.margins(3)])
        is_total = design.orders == 0
        z = np.where(is_total, self.data.y.sum(), 0.0)
        z[~is_total] = self.noisy_three
        return fit_margins(self.data, design, z, np.where(is_total, WEIGHT, 1.0))

    def weigh_margins(self, weight: float) -> Released:
        """Noisy three-way margins, and true two-way margins with a weight (Table 14)."""
        weights = np.where(self.data.order == 2, weight, 1.0)
        return fit_margins(self.data, self.data.both, self._both(), weights)


def zeros_kept(data: Data, released: Released) -> tuple[int, int]:
    """How many empty inner cells stay empty, of how many."""
    empty = data.y == 0
    return int(np.count_nonzero(released["inner"][empty] < _SIGHT)), int(np.count_nonzero(empty))
