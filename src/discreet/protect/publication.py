"""What is published of cells with noise: their margins, weighted counts, and what is hidden."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.design.release import CellStatus, Release, Statement
from discreet.design.table import Table
from discreet.design.values import Real
from discreet.errors import ParameterError
from discreet.noise.checks import whole
from discreet.protect.cells import Cells
from discreet.protect.margins import (
    Margins,
    cells_of,
    check_margins,
    margins_sentence,
    shows_inner_cells,
)
from discreet.protect.weights import (
    Weighting,
    check_weighting,
    mean_weight_of,
    weighted,
    weighting_sentence,
)


@dataclass(frozen=True)
class Publication:
    """The choices that noise methods share.

    Attributes:
      margins: ``"own"``, ``"summed"`` or ``"adjusted"``.
      weighting: How noise carries over to weighted counts; counts are published when absent.
      mean_weight: The public mean weight; taken from the table when absent.
      threshold: Published counts below it are hidden.
    """

    margins: Margins = "own"
    weighting: Weighting | None = None
    mean_weight: float | None = None
    threshold: int | None = None

    def __post_init__(self) -> None:
        check_margins(self.margins)
        check_weighting(self.weighting, self.mean_weight)
        if self.margins == "adjusted" and self.weighting is not None:
            raise ParameterError(
                "margins='adjusted' makes whole counts add up; it cannot go with weighting=. "
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
        if self.weighting is not None:
            raise ParameterError("threshold compares counts; it cannot go with weighting=.")

    @property
    def is_plain(self) -> bool:
        """Whether every published value is a count with noise of its own."""
        return self.margins == "own" and self.weighting is None

    def cells(self, table: Table, *, touches_zeros: bool) -> Cells:
        """The cells that get noise."""
        scale = self.weighting == "scale"
        return cells_of(table, self.margins, touches_zeros=touches_zeros, on_weighted_scale=scale)

    def values(self, table: Table, cells: Cells, change: NDArray[Any]) -> NDArray[Any]:
        """Counts with noise, or the weighted counts they lead to."""
        if self.weighting is None:
            return np.asarray(cells.count + change)
        mean = mean_weight_of(table) if self.mean_weight is None else self.mean_weight
        return weighted(cells, change, self.weighting, mean)

    def release(
        self,
        cells: Cells,
        values: NDArray[Any],
        statement: Statement,
        precision: Real | None = None,
    ) -> Release:
        """The release of published cells, or of sums of inner cells."""
        design, z = cells.table.design, cells.published(values)
        z, status = self._shown(cells, z)
        return Release.of(
            design,
            z,
            statement,
            y=values if cells.are_inner and shows_inner_cells(design) else None,
            weighted=None if self.weighting is None else z.astype(np.float64),
            status=status if status.any() else None,
            precision=precision,
        )

    def _shown(self, cells: Cells, z: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int8]]:
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
        names = ("margins", "weighting", "mean_weight", "threshold")
        return {name: getattr(self, name) for name in names}

    def sentences(self) -> list[str]:
        """What the choices mean for the reader of a release."""
        lines = [margins_sentence(self.margins)]
        if self.weighting is not None:
            lines.append(weighting_sentence(self.weighting))
        if self.threshold is not None:
            lines.append(f"Perturbed counts below {self.threshold} are not shown.")
        return lines
