"""What is published of cells with noise: their margins, their unit, and what is hidden."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Array, Index, Real, Whole
from discreet.errors import ConfidentialError, DesignError, ParameterError, whole
from discreet.protect.cells import NoiseCells, on_public_support
from discreet.protect.options import Grid, RecordSteps, check_grid, step_of_grid
from discreet.protect.sentences import limit, none_below, process
from discreet.tables.protected import COUNT, WEIGHT, CellStatus, Draws, Method, Protected
from discreet.tables.statement import Sentence, Statement
from discreet.tables.truth import Bounds, TrueTable

Margins = Literal["own", "summed", "adjusted"]
LARGEST_VARIANCE = 0.1
"""Relative variance of weights below which Shlomo, Krenzke & Li (2019) take the mean weight for
what one record can change."""


@dataclass(frozen=True)
class CellPublication:
    """The choices that noise methods share."""

    margins: Margins = "own"  # ``"own"``, ``"summed"`` or ``"adjusted"``
    grid: Grid = None  # weighted counts are published in whole steps of it
    threshold: int | None = None  # cells whose changed count is below it are hidden

    def __post_init__(self) -> None:
        if self.margins not in get_args(Margins):
            raise ParameterError(
                f"margins must be 'own', 'summed' or 'adjusted', got {self.margins!r}."
            )
        check_grid(self.grid)
        if self.grid is not None and self.margins == "adjusted":
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
        if self.grid is not None and not isinstance(self.grid, (str, RecordSteps)):
            raise ParameterError(
                "threshold compares counts; it cannot go with a number as grid=. With "
                "grid='mean-weight' it compares changed numbers of sampled records."
            )

    @property
    def is_plain(self) -> bool:
        """Whether every published value is a count with noise of its own."""
        return self.margins == "own" and self.grid is None

    @property
    def step(self) -> float | None:
        """What one step of noise stands for; `None` where counts are published."""
        return step_of_grid(self.grid)

    def cells(self, table: TrueTable, *, touches_zeros: bool) -> NoiseCells:
        """The cells that get noise, on public support wherever empty cells matter."""
        is_by_records = isinstance(self.grid, RecordSteps)
        if self.margins != "summed":
            return NoiseCells(on_public_support(table), False, self.step, is_by_records)
        table.require_inner()
        whole = on_public_support(table, with_inner=True) if touches_zeros else table
        return NoiseCells(whole, True, self.step, is_by_records)

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
        design, changed = cells.table.design, np.asarray(cells.count + noise)
        values = changed
        if cells.goes_by_records:
            values = self._move_by_records(cells, np.asarray(noise))
        if cells.table.unit == WEIGHT and self.step is not None:
            # a whole step keeps whole numbers, which are exact and print without decimals
            step = int(self.step) if float(self.step).is_integer() else self.step
            values = np.asarray(step * values)
        z, status = self._hide_small(cells, cells.to_published(values), changed)
        return Protected.of(
            design,
            z,
            statement,
            unit=cells.table.unit or COUNT,
            y=values if cells.are_inner and design.shows_inner_cells else None,
            status=status if status.any() else None,
            precision=precision,
        )

    def _move_by_records(self, cells: NoiseCells, noise: Whole) -> Whole:
        """Steps of weighted counts, moved as their sample counts were; none is negative."""
        count = cells.count
        if isinstance(self.grid, RecordSteps) and self.grid.by == "cell-weight":
            exact = by_cell(cells.weight, count, noise, self.grid.size)
            return np.floor(exact / self.grid.size + 0.5).astype(np.int64)
        return np.where(count + noise > 0, np.maximum(cells.steps + noise, 0), 0)

    def _hide_small(
        self, cells: NoiseCells, z: Array, changed: Array
    ) -> tuple[Array, NDArray[np.int8]]:
        """Values without those that are hidden, and the status of every published cell."""
        status = np.zeros(len(z), dtype=np.int8)
        if not cells.are_inner:
            status[cells.impossible] = CellStatus.structural_zero
        if self.threshold is None:
            return z, status
        hidden = (changed < self.threshold) & ~cells.impossible
        status[hidden] = CellStatus.below_threshold
        return np.where(hidden, 0, z), status

    def parameters(self) -> dict[str, Any]:
        """The choices as plain public data."""
        by = self.grid.by if isinstance(self.grid, RecordSteps) else None
        return {
            "margins": self.margins,
            "grid": self.grid if isinstance(self.grid, str) else self.step,
            "steps": by,
            "threshold": self.threshold,
        }

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
        if self.step is not None:
            how = f"rounded to multiples of {self.step:g} and changed in whole steps of it"
            if isinstance(self.grid, RecordSteps):
                how = _BY_RECORDS[self.grid.by].format(f"{self.step:g}")
            said.append(
                process(
                    "weighted",
                    f"Weighted counts were {how}. Numbers of sampled records are not published.",
                    f"Figures are estimates for the population, changed in steps of {self.step:g}.",
                )
            )
        if isinstance(self.grid, RecordSteps) and self.grid.by == "cell-weight":
            said.append(_BY_OWN_RECORDS)
        if self.threshold is not None:
            said.append(_hidden_below(self.threshold) if self.step else none_below(self.threshold))
        return said


_BY_RECORDS = {
    "mean-weight": "rounded to multiples of {0}, the declared mean weight, and moved by one such "
    "step for each record that noise added to or took from the sampled ones of the cell; a cell "
    "in which noise left no record is published as 0",
    "cell-weight": "multiplied by what noise made of the number of sampled records in the cell, "
    "over that number, and rounded to multiples of {0}, the declared mean weight",
}
_BY_OWN_RECORDS = limit(
    "moved-by-own-weights",
    "The change of a weighted count depends on the weights of its own records, so whoever knows "
    "the weight of the only record of a cell can tell how noise changed the number of records.",
)


def _hidden_below(threshold: int) -> Sentence:
    return process(
        "hidden-by-records",
        f"Cells in which noise left fewer than {threshold} sampled records are not shown.",
    )


def spread_of_weights(bounds: Bounds) -> Sentence:
    """Whether weights vary little enough for steps of the mean weight, by declared figures alone.

    Weights between 0 and `b` with mean `w` have a relative variance of at most `b/w - 1`.
    """
    declared, mean = bounds.weight_variance, bounds.mean_weight
    if declared is None and bounds.weight is not None and mean is not None:
        follows = bounds.weight / mean - 1
        declared = follows if follows < LARGEST_VARIANCE else None
    needed = (
        f"Steps of the mean weight are meant for weights whose relative variance is below {_TEN}"
    )
    heavy = "records of larger weight than the mean are hidden less well than others."
    if declared is None:
        text = f"{needed}. That of these weights was not declared; where it is larger, {heavy}"
    elif declared < LARGEST_VARIANCE:
        return process("weights-vary-little", f"{needed}; that of these is {declared:.2%} at most.")
    else:
        text = f"{needed}, and that of these is declared as {declared:.0%}: {heavy}"
    return limit("weights-vary", text)


_TEN = f"{LARGEST_VARIANCE:.0%}"


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
