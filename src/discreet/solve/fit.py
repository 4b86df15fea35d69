"""What every fitter returns: the fit, how it ended, and a certificate that others can check."""

from __future__ import annotations

import enum
import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Array, Mask, Real
from discreet.design.base import Design
from discreet.design.inner import ListedTable, ModelTable, chosen_cells, write_cells
from discreet.display import Display, Displayed
from discreet.errors import DataError, DesignError, NotConvergedError, ParameterError, whole


class Status(enum.Enum):
    """How a fit ended; the value says what to do next."""

    converged = "The fit reached its tolerance."
    max_steps = "The fit stopped at `max_steps`. Raise it, or loosen the tolerance."
    stalled = "The fit stopped making progress before its tolerance. Loosen it."
    infeasible = "No inner table meets the exact margins and bounds. Relax `exact` or the bounds."
    inconsistent = (
        "The margins contradict each other, so no table has them all. "
        "Fit them with `LeastSquares` or `NonNegative` first."
    )


@dataclass(frozen=True)
class Certificate:
    """Numbers that prove how good a fit is, computed from the result alone, not by the solver.

    Every ratio is zero at an exact optimum, and relative to the scale of the cell it was found at.

    Attributes:
      stationarity: Size of the (projected) gradient.
      feasibility: Largest violation of bounds and exact margins.
      gap: Duality gap relative to the objective, where the certificate is a pair of bounds.
      tolerance: What the fitter was asked to reach.
      selection: Distance from the form that singles out one of several optima, such as the
        smallest norm.
      deviation: Largest deviation of a published cell or exact margin from what an optimum
        demands, in counts.
      cell: Published position of that cell.
    """

    stationarity: float = 0.0
    feasibility: float = 0.0
    gap: float | None = None
    tolerance: float = 0.0
    selection: float = 0.0
    deviation: float | None = None
    cell: int | None = None

    @property
    def worst(self) -> float:
        """The largest of its numbers."""
        gap = self.gap or 0.0
        return max(self.stationarity, self.feasibility, gap, self.selection)

    @property
    def holds(self) -> bool:
        """Whether everything lies within the tolerance."""
        return self.worst <= self.tolerance

    def __str__(self) -> str:
        """What was reached, in counts where it is known, and as a ratio."""
        ratio = f"reached {self.worst:.2g}, asked for {self.tolerance:.2g}"
        if self.deviation is None or self.cell is None:
            return ratio
        largest = f"largest deviation {self.deviation:.2g} counts, at published cell {self.cell}"
        return f"{largest}; {ratio}"


@dataclass(frozen=True, eq=False, repr=False)
class Fit(Displayed):
    """Fitted inner cells `y` and published cells `z = X'y`.

    Attributes:
      cells: Fitted inner cells: an array, or the model that gives them.
      z: Their published cells, which add up.
      status: How the fit ended.
      certificate: Proof of how good it is.
      iterations: Steps taken.
      seconds: Time taken.
      notes: Further facts, such as the structure that was used.
      design: The design that was fitted.
    """

    cells: Real | ModelTable | ListedTable
    z: Real
    status: Status
    certificate: Certificate
    iterations: int = 0
    seconds: float = 0.0
    notes: dict[str, Any] = field(default_factory=dict)
    design: Design | None = None

    def __post_init__(self) -> None:
        if isinstance(self.cells, np.ndarray):
            cells = self.cells.view()
            cells.flags.writeable = False
            object.__setattr__(self, "cells", cells)

    @property
    def y(self) -> Array:
        """Fitted inner cells; those of a table that is never stored are computed for each call.

        They cannot be written to: take a copy first.
        """
        return self.cells if isinstance(self.cells, np.ndarray) else self.cells.y

    def inner(self, codes: Mapping[str, Any]) -> Array:
        """Some of the fitted inner cells, in the order of the design.

        Args:
          codes: A code by variable, or a list of codes; a code of a coarser level stands for all
            categories under it. Variables that are left out have all their categories.
        """
        return chosen_cells(self._known_design, self.cells, codes)

    def write(self, path: str | Path) -> Path:
        """Write the fitted inner cells that are not zero to a Parquet file.

        Cost: some hundred megabytes of memory, however large the table is.

        Args:
          path: A name that ends in `.parquet`; the columns are the variables and `value`.
        """
        return write_cells(self._known_design, self.cells, path)

    @property
    def _known_design(self) -> Design:
        if self.design is None:
            raise DesignError("this fit does not say which design it was made for.")
        return self.design

    @property
    def is_converged(self) -> bool:
        """Whether the fit reached its tolerance."""
        return self.status is Status.converged

    def require(self) -> Fit:
        """The fit itself, or an error when it did not converge."""
        if not self.is_converged:
            raise NotConvergedError(
                f"{self.status.value} (After {self.iterations} steps: {self.certificate}.)"
            )
        return self

    def _display(self) -> Display:
        facts = {
            "status": self.status.value,
            "certificate": str(self.certificate),
            "steps": f"{self.iterations:,}",
            "seconds": f"{self.seconds:.2g}",
            **{k: str(said) for k, said in self.notes.items() if isinstance(said, str)},
        }
        sizes = f"{self.cells.size:,} inner and {len(self.z):,} published cells"
        return Display(f"Fit of {sizes}", facts=facts)

    def __repr__(self) -> str:
        """How the fit ended and what it reached, without its cells."""
        return (
            f"Fit of {self.cells.size:,} inner and {len(self.z):,} published cells, "
            f"{self.status.name} after {self.iterations:,} steps: {self.certificate}."
        )


class Prepared(Protocol):
    """A fitter with the work that depends on the design alone already done."""

    def __call__(self, z: Array, *, weights: Array | None = None) -> Fit:
        """Fit one right-hand side."""


class Fitter(Protocol):
    """Options of a solver; calling it joins them with a design and its published cells.

    `weights` are precisions, one over the variance of the noise: squared deviations and
    likelihoods are multiplied by them, absolute deviations by their square root. Weight zero leaves
    a cell out; fits that meet every margin look at nothing else.
    """

    @property
    def name(self) -> str:
        """The fitter's name in the registry."""

    def __call__(self, design: Design, z: Array, *, weights: Array | None = None) -> Fit:
        """Fit the design to the published values."""

    def prepare(self, design: Design) -> Prepared:
        """Do once what depends on the design alone."""


class FitterBase(ABC):
    """A fitter that is called by preparing it first; what there is to write is `prepare`."""

    def __call__(self, design: Design, z: Array, *, weights: Array | None = None) -> Fit:
        """Fit the design to the published values."""
        return self.prepare(design)(z, weights=weights)

    @abstractmethod
    def prepare(self, design: Design) -> Prepared:
        """Do once what depends on the design alone."""


_LARGEST = 1e50  # products of two weights and two values stay far from overflow
# Whole numbers from here on are not all doubles, so that sums of them are not exact: at 10¹⁶ a fit
# that called itself converged was off by 128.
MOST_COUNTS = 2.0**53

# Kinds of arrays that NumPy makes numbers of all the same.
_NO_NUMBERS = {"c": "complex numbers have no order", "M": "they are dates", "m": "they are spans"}
_NO_NUMBERS |= dict.fromkeys("US", "they are texts")


def check_tolerance(tolerance: float, below: float = 1.0) -> None:
    """Refuse a tolerance that makes no sense."""
    if not (isinstance(tolerance, numbers.Real) and 0 < tolerance < below):
        limits = "be positive and finite" if math.isinf(below) else f"lie in (0, {below:g})"
        raise ParameterError(f"tolerance must {limits}, got {tolerance!r}.")


def check_options(tolerance: float, max_steps: int, count: float) -> None:
    """Refuse a tolerance, a number of steps or a unit that makes no sense."""
    check_tolerance(tolerance)
    if not (isinstance(count, numbers.Real) and 0 < count < math.inf):
        raise ParameterError(f"count, the size of one count, must be positive, got {count!r}.")
    whole("max_steps", max_steps, 1)


def checked_weights(design: Design, weights: ArrayLike | None) -> Real:
    """Precisions of the published cells, ones by default; zero leaves a cell out."""
    if weights is None:
        return np.ones(design.n_published)
    w = _vector(design, weights, "weights")
    if not (np.isfinite(w).all() and (w >= 0).all()):
        raise ParameterError(
            "weights are precisions: they must be finite and not negative (zero leaves a cell out)."
        )
    if ((w > 0) & ((w < 1 / _LARGEST) | (w > _LARGEST))).any():
        raise ParameterError(
            f"weights must lie between {1 / _LARGEST:g} and {_LARGEST:g} or be zero, got "
            f"{w[w > 0].min():g} to {w.max():g}. Multiply them all by one factor; a fit depends on "
            "their ratios only."
        )
    return w


def checked_values(design: Design, z: ArrayLike, used: Mask) -> Real:
    """Published values; those that are not used, suppressed ones for example, become zero."""
    values = _vector(design, z, "published values")
    missing = np.flatnonzero(used & ~np.isfinite(values))
    if len(missing):
        raise DataError(
            f"published cell {design.name_of(int(missing[0]))} has no value. "
            "Give cells without a value the weight zero."
        )
    values = np.where(used, values, 0.0)
    if np.abs(values).max(initial=0.0) >= MOST_COUNTS:
        largest = int(np.abs(values).argmax())
        raise DataError(
            f"published cell {design.name_of(largest)} is {values[largest]:g}, but values from "
            "2**53 on are not exact in double precision, so no fit of them could be judged in "
            "counts. Give the values in larger units, thousands for example."
        )
    return values


def checked_counts(design: Design, z: Real, tolerance: float, fitter: str) -> Real:
    """Published values with negative rounding errors set to zero; other negatives are refused."""
    if len(z) and z.min() < -tolerance:
        worst = int(z.argmin())
        raise DataError(
            f"a {fitter} fit needs published values that are not negative, but cell "
            f"{design.name_of(worst)} is {z[worst]:g}. Fit with `NonNegative` or "
            "`LeastAbsolute` first."
        )
    return np.maximum(z, 0.0)


def checked_start(design: Design, start: ArrayLike | None, kind: str = "starting table") -> Real:
    """A starting table, or its variance, ones by default; zeros mark structural zeros."""
    if start is None:
        return np.ones(design.n_inner)
    table = _numbers(start, kind)
    if table.shape != (design.n_inner,):
        raise ParameterError(
            f"the {kind} needs {design.n_inner:,} values, one per inner cell, "
            f"but has shape {table.shape}."
        )
    if not (np.isfinite(table).all() and (table >= 0).all()):
        raise ParameterError(f"the {kind} holds negative or missing values.")
    return table


def _vector(design: Design, values: ArrayLike, kind: str) -> Real:
    vector = _numbers(values, kind)
    if vector.shape != (design.n_published,):
        raise DesignError(
            f"the design has {design.n_published:,} published cells, but the {kind} have shape "
            f"{vector.shape}."
        )
    return vector


def _numbers(values: ArrayLike, kind: str) -> Real:
    try:
        array = np.asarray(values)
        if array.dtype.kind in _NO_NUMBERS:
            raise TypeError(_NO_NUMBERS[array.dtype.kind])
        return np.asarray(array, dtype=float)
    except (TypeError, ValueError, OverflowError) as error:
        raise ParameterError(f"the {kind} must be numbers in one vector: {error}.") from error
