"""Protected values on their two sides: those that may be shown, and those of an experiment."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from discreet.arrays import Array
from discreet.errors import ConfidentialError, DesignError
from discreet.tables import show
from discreet.tables.protected import CellStatus, Protected

if TYPE_CHECKING:
    import pyarrow as pa

_WIDTH = 100  # of a printed statement


@dataclass(frozen=True, eq=False, repr=False)
class PublicTable(show.Frames, Protected):
    """**Public.** Protected values that may be shown and handed out; never the truth, never keys.

    What floors pass to each other; users hold a `Release`, which adds the verbs.
    """

    @classmethod
    def wrap(cls, protected: Protected) -> Self:
        """A public table of what a method made for publication; an experiment never becomes one."""
        if isinstance(protected, Experiment):
            raise ConfidentialError("a trial cannot be published; protect the table instead.")
        return super().wrap(protected)

    def to_arrow(self) -> pa.Table:
        """Published cells as an Arrow table: code columns and protected values.

        The column of values is named after their unit. Cells that are not shown are null; their
        status says why.
        """
        columns = {self.unit: self.z, "quality": show.graded(self.quality)}
        given = {name: values for name, values in columns.items() if values is not None}
        if self.status is None:
            return show.frame_of(self.design, given)
        hidden = self.hidden
        shown = {
            name: np.ma.array(v, mask=hidden | np.ma.getmaskarray(v)) for name, v in given.items()
        }
        names = np.array([s.name.replace("_", " ") for s in CellStatus])
        return show.frame_of(self.design, {**shown, "status": names[self.status]})

    def inner_to_arrow(self) -> pa.Table:
        """Protected inner cells that are not zero, as an Arrow table."""
        if self.y is None:
            raise DesignError("inner cells are not part of this release; fit them first.")
        return show.inner_frame_of(self.design, {self.unit: self.y}, np.flatnonzero(self.y))

    def __repr__(self) -> str:
        shown = show.text(self.design, self._visible(), title="Release", unit=self.unit)
        return f"{shown}\n{textwrap.fill(self.statement.text, _WIDTH)}"

    def _repr_html_(self) -> str:
        return show.html(
            self.design, self._visible(), "Release", note=self.statement.text, unit=self.unit
        )

    def _visible(self) -> Array:
        """Published values, masked where a cell is not shown."""
        hidden = self.hidden
        return np.ma.array(self.z, mask=hidden) if hidden.any() else self.z


@dataclass(frozen=True, eq=False, repr=False)
class Experiment(Protected):
    """**Confidential.** One draw of an experiment, to be measured and thrown away.

    What a seed draws can be drawn again, and many draws together give the truth away; so it cannot
    be shown, written or handed out. Users hold a `Trial`, which adds the verbs.
    """

    def __repr__(self) -> str:
        return f"Trial (confidential): {self.design.n_published:,} published cells"
