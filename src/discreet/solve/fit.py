r"""What every fitter returns: the fit, how it ended, and a certificate that others can check."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from discreet.arrays import Array, Real
from discreet.design.base import Design
from discreet.design.inner import ModelTable, chosen_cells, write_cells
from discreet.errors import DesignError, NotConvergedError


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
class Fit:
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

    cells: Real | ModelTable
    z: Real
    status: Status
    certificate: Certificate
    iterations: int = 0
    seconds: float = 0.0
    notes: dict[str, Any] = field(default_factory=dict)
    design: Design | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.cells, ModelTable):
            cells = self.cells.view()
            cells.flags.writeable = False
            object.__setattr__(self, "cells", cells)

    @property
    def y(self) -> Real:
        """Fitted inner cells; those of a table that is never stored are computed for each call.

        They cannot be written to: take a copy first.
        """
        return self.cells.y if isinstance(self.cells, ModelTable) else self.cells

    def inner(self, codes: Mapping[str, Any]) -> Real:
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

    def __repr__(self) -> str:
        """How the fit ended and what it reached, without its cells."""
        return (
            f"Fit of {len(self.cells):,} inner and {len(self.z):,} published cells, "
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
