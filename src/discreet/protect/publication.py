"""What is published of cells with noise: their margins, their unit, and what is hidden."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Array, Index, Real, Whole
from discreet.errors import ConfidentialError, DesignError, ParameterError, positive, whole
from discreet.protect.cells import NoiseCells, on_public_support
from discreet.protect.sentences import none_below, process
from discreet.tables.protected import COUNT, WEIGHT, CellStatus, Draws, Method, Protected
from discreet.tables.statement import Sentence, Statement
from discreet.tables.truth import TrueTable

Margins = Literal["own", "summed", "adjusted"]


@dataclass(frozen=True)
class CellPublication:
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
        if self.margins not in get_args(Margins):
            raise ParameterError(
                f"margins must be 'own', 'summed' or 'adjusted', got {self.margins!r}."
            )
        if self.grid is not None:
            positive("grid", self.grid)
            if self.margins == "adjusted":
                raise ParameterError(
                    "margins='adjusted' makes whole counts add up; it cannot go with grid=. "
                    "Use margins='own' and a fitter (`release.fit(...)`)."
                )
        if self.threshold is None:
            return
        whole("threshold", self.threshold, 1)
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

    def cells(self, table: TrueTable, *, touches_zeros: bool) -> NoiseCells:
        """The cells that get noise, on public support wherever empty cells matter."""
        if self.margins != "summed":
            return NoiseCells(on_public_support(table), False, self.grid)
        table.require_inner()
        whole = on_public_support(table, with_inner=True) if touches_zeros else table
        return NoiseCells(whole, True, self.grid)

    def protect(
        self,
        cells: NoiseCells,
        noise: Whole | Real,
        statement: Statement,
        precision: Real | None = None,
    ) -> Protected:
        """The cells with their noise, in steps of the grid, or the sums of inner cells with theirs.

        The precision is one over the variance of each value, where it is known.
        """
        design, values = cells.table.design, np.asarray(cells.count + noise)
        if cells.table.unit == WEIGHT and self.grid is not None:
            # a whole step keeps whole numbers, which are exact and print without decimals
            step = int(self.grid) if float(self.grid).is_integer() else self.grid
            values = np.asarray(step * values)
        z, status = self._hide_small(cells, cells.to_published(values))
        return Protected.of(
            design,
            z,
            statement,
            unit=cells.table.unit or COUNT,
            y=values if cells.are_inner and design.shows_inner_cells else None,
            status=status if status.any() else None,
            precision=precision,
        )

    def _hide_small(self, cells: NoiseCells, z: Array) -> tuple[Array, NDArray[np.int8]]:
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


class WrappingMethod:
    """A method around another one; a dataclass with a field `method`.

    What it adds follows from true counts, so that neither differentially private nor weighted
    releases can be wrapped. The texts of the refusals are those of the method.
    """

    name: ClassVar[str]
    wraps: ClassVar[str]
    private_method: ClassVar[str]
    private_release: ClassVar[str]
    counts_only: ClassVar[str]
    remedy: ClassVar[str] = ""
    method: Method

    def __post_init__(self) -> None:
        if not callable(self.method) or not hasattr(self.method, "claims"):
            raise ParameterError(f"{type(self).__name__} wraps {self.wraps}, got {self.method!r}.")
        if self.method.source == "system":
            raise ParameterError(
                f"method {self.method.name!r} is differentially private{self.private_method}"
            )
        if COUNT not in getattr(self.method, "units", (COUNT,)):
            raise ParameterError(
                f"{self.counts_only}, but this method cannot publish counts.{self.remedy}"
            )

    def protect_first(self, table: TrueTable, draws: Draws) -> Protected:
        """What the wrapped method makes of the table; checked again, since methods may not say."""
        protected = self.method(table, draws=draws)
        if protected.statement.privacy is not None:
            raise ConfidentialError(
                f"this release is differentially private, and {self.private_release}"
            )
        if protected.unit != COUNT or protected.z.dtype.kind == "f":
            raise DesignError(
                f"{self.counts_only}, but this release has weighted counts or real numbers."
                f"{self.remedy}"
            )
        return protected

    def in_order(self, inner: Index, published: Index) -> Self:
        """The method for a table whose cells are in another order."""
        if not hasattr(self.method, "in_order"):
            return self
        ordered = self.method.in_order(inner, published)
        return replace(self, method=ordered)  # type: ignore[type-var]


def by_mean(weight: Real, change: Whole, mean_weight: float) -> Real:
    r"""Equation (4): :math:`\max(0, W + p\,\bar w)`."""
    return np.asarray(np.maximum(weight + change * mean_weight, 0.0))


def by_cell(weight: Real, count: Whole, change: Whole, mean_weight: float) -> Real:
    """Equation (5): `W + p W/n`; equation (4) in empty cells."""
    own = np.divide(weight, count, out=np.full(len(weight), float(mean_weight)), where=count > 0)
    return np.asarray(np.maximum(weight + change * own, 0.0))
