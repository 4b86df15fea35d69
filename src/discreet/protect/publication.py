"""What is published of cells with noise: their margins, their unit, and what is hidden."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Array, Real, Whole
from discreet.errors import ParameterError
from discreet.parameters import positive, whole
from discreet.protect.cells import Cells, on_public_support
from discreet.protect.sentences import none_below, process
from discreet.tables.protected import COUNT, WEIGHT, CellStatus, Protected
from discreet.tables.statement import Sentence, Statement
from discreet.tables.truth import TrueTable

Margins = Literal["own", "summed", "adjusted"]


@dataclass(frozen=True)
class Publication:
    """The choices that noise methods share.

    Attributes:
      margins: ``"own"``, ``"summed"`` or ``"adjusted"``.
      grid: Weighted counts are published in whole steps of it.
      threshold: Published counts below it are hidden.
    """

    margins: Margins = "own"
    grid: float | None = None
    threshold: int | None = None

    def __post_init__(self) -> None:
        check_margins(self.margins)
        if self.grid is not None:
            positive("grid", self.grid)
            if self.margins == "adjusted":
                raise ParameterError(
                    "margins='adjusted' makes whole counts add up; it cannot go with grid=. "
                    "Use margins='own' and a fitter (`release.fit(...)`)."
                )
        if self.threshold is not None:
            self._check_threshold(self.threshold)

    def _check_threshold(self, threshold: int) -> None:
        whole("threshold", threshold, 1)
        if self.margins != "own":
            raise ParameterError(
                "threshold needs margins='own': in a table that adds up, what is hidden can be "
                "subtracted from what is shown."
            )
        if self.grid is not None:
            raise ParameterError("threshold compares counts; it cannot go with grid=.")

    @property
    def is_plain(self) -> bool:
        """Whether every published value is a count with noise of its own."""
        return self.margins == "own" and self.grid is None

    def cells(self, table: TrueTable, *, touches_zeros: bool) -> Cells:
        """The cells that get noise."""
        return cells_of(table, self.margins, touches_zeros=touches_zeros, grid=self.grid)

    def protected(
        self, cells: Cells, noise: Whole | Real, statement: Statement, precision: Real | None = None
    ) -> Protected:
        """The cells with their noise, or the sums of inner cells with theirs.

        Args:
          cells: The cells that get noise.
          noise: Their noise, in steps of the grid.
          statement: What goes with the values.
          precision: One over the variance of each value, where it is known.
        """
        design, values = cells.table.design, self._in_unit(cells, cells.count + noise)
        z, status = self._shown(cells, cells.published(values))
        return Protected.of(
            design,
            z,
            statement,
            unit=cells.table.unit or COUNT,
            y=values if cells.are_inner and design.shows_inner_cells else None,
            status=status if status.any() else None,
            precision=precision,
        )

    def _in_unit(self, cells: Cells, steps: Array) -> Array:
        if cells.table.unit != WEIGHT or self.grid is None:
            return steps
        step = int(self.grid) if float(self.grid).is_integer() else self.grid
        return np.asarray(step * steps)

    def _shown(self, cells: Cells, z: Array) -> tuple[Array, NDArray[np.int8]]:
        """Values without those that are hidden, and the status of every published cell."""
        status = np.zeros(len(z), dtype=np.int8)
        if not cells.are_inner:
            status[cells.impossible] = CellStatus.structural_zero
        if self.threshold is None:
            return z, status
        hidden = (z < self.threshold) & ~cells.impossible
        status[hidden] = CellStatus.below_threshold
        return np.where(hidden, 0, z), status

    def parameters(self) -> dict[str, Any]:
        """The choices as plain public data."""
        return {name: getattr(self, name) for name in ("margins", "grid", "threshold")}

    def sentences(self) -> list[Sentence]:
        """What the choices mean for the reader of a release."""
        said = []
        if self.margins == "summed":
            said.append(
                process(
                    "summed-margins",
                    "Noise was added to the inner cells, and totals are their sums; the same total "
                    "may differ in a table over other variables.",
                )
            )
        if self.grid is not None:
            said.append(
                process(
                    "weighted",
                    f"Weighted counts were rounded to multiples of {self.grid:g} and changed in "
                    "whole steps of it. Numbers of sampled records are not published.",
                    f"Figures are estimates for the population, changed in steps of {self.grid:g}.",
                )
            )
        if self.threshold is not None:
            said.append(none_below(self.threshold))
        return said


def check_margins(choice: str) -> None:
    """Raise a clear error when the choice is not one of the three."""
    if choice not in get_args(Margins):
        raise ParameterError(f"margins must be 'own', 'summed' or 'adjusted', got {choice!r}.")


def cells_of(
    table: TrueTable, margins: Margins, *, touches_zeros: bool, grid: float | None = None
) -> Cells:
    """The cells that get noise, on public support wherever empty cells matter."""
    if margins == "summed":
        table.require_inner()
        whole = on_public_support(table, with_inner=True) if touches_zeros else table
        return Cells(whole, True, grid)
    return Cells(on_public_support(table), False, grid)


class Noise(ABC):
    """A method that adds noise; a dataclass whose own fields are the parameters of its law."""

    name: ClassVar[str]
    plain: ClassVar[str] = "Each figure was changed by a small random amount."

    @property
    @abstractmethod
    def done(self) -> str:
        """What was done, in a sentence for methodologists."""

    def parameters(self) -> dict[str, Any]:
        """The method's own parameters as plain public data, without those of the frame."""
        own = (field.name for field in fields(self) if not field.kw_only)  # type: ignore[arg-type]
        return {name: getattr(self, name) for name in own}

    def what_was_done(self) -> list[Sentence]:
        """The sentences of the method itself."""
        return [process(self.name, self.done, self.plain)]


def by_mean(weight: Real, change: Whole, mean_weight: float) -> Real:
    r"""Equation (4): :math:`\max(0, W + p\,\bar w)`."""
    return np.asarray(np.maximum(weight + change * mean_weight, 0.0))


def by_cell(weight: Real, count: Whole, change: Whole, mean_weight: float) -> Real:
    """Equation (5): `W + p W/n`; equation (4) in empty cells."""
    own = np.divide(weight, count, out=np.full(len(weight), float(mean_weight)), where=count > 0)
    return np.asarray(np.maximum(weight + change * own, 0.0))
