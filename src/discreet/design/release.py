"""Protected values: public ones in a `Release`, those of an experiment in a `Trial`."""

from __future__ import annotations

import enum
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from discreet import registry
from discreet.arrays import Array, Mask, Real
from discreet.design import show
from discreet.design.base import Design
from discreet.design.formula import Margins
from discreet.design.statement import Statement
from discreet.errors import ConfidentialError, DesignError, ParameterError
from discreet.randomness import stream

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from discreet.solve.fit import Fitter

COUNT, WEIGHT, VALUE = "count", "weight", "value"
"""What methods can publish: numbers of records, sums of their weights, sums of a value.

The unit of sums of a value is the value's name.
"""


class CellStatus(enum.IntEnum):
    """Why a published cell shows what it shows."""

    published = 0
    suppressed = 1
    structural_zero = 2
    below_threshold = 3
    decimal = 4


HIDDEN = (CellStatus.suppressed, CellStatus.below_threshold)
_WIDTH = 100  # of a printed statement
_OUTSIDE = {"status": CellStatus.published, "quality": show.NO_QUALITY, "precision": 0.0}
"""What cells get that a release has and its table, read from the records, had not."""


@dataclass(frozen=True, eq=False, repr=False)
class Protected:
    """A design with protected values and the statement that goes with them.

    Methods return it; `Table.protect` makes a `Release` of it, `Table.simulate` a `Trial`. It can
    be fitted and rounded, measured and attacked, but neither shown nor written.

    Attributes:
      design: The public design.
      z: Protected values of the published cells.
      statement: What was done and what it promises.
      unit: What the values are: `"count"`, `"weight"`, or the name of a value.
      y: Protected inner cells, where they are part of the release.
      status: A `CellStatus` for each published cell; all published when absent.
      precision: One over the variance of each published value's noise, infinite where there is
        none; a function of design and method alone. `None` where it is not known.
      quality: Perturbed class of each published cell's deviation; −1 where none is given.
      fit_result: The fit that made `y`, with its certificate.
    """

    design: Design
    z: Array
    statement: Statement
    unit: str = COUNT
    y: Array | None = None
    status: NDArray[np.int8] | None = None
    precision: Real | None = None
    quality: Array | None = None
    fit_result: Any = None

    def __post_init__(self) -> None:
        if self.design.is_confidential:
            raise ConfidentialError(
                "protected values need a design with public support, but this one was read from "
                "the records. Use `Protected.of`, which puts them on the full crossing."
            )
        if len(self.z) != self.design.n_published:
            raise DesignError(
                f"the design has {self.design.n_published:,} published cells, "
                f"but {len(self.z):,} values were given."
            )

    @classmethod
    def of(cls, design: Design, z: Array, statement: Statement, **parts: Any) -> Self:
        """Values on the design's public support; cells outside the given one are zero."""
        lift = design.public()
        if lift.design is design:
            return cls(design, z, statement, **parts)
        for name, outside in _OUTSIDE.items():
            if parts.get(name) is not None:
                parts[name] = lift.publish(parts[name], outside)
        if parts.get("y") is not None:
            parts["y"] = lift.lift(parts["y"])
        return cls(lift.design, lift.publish(z), statement, **parts)

    @classmethod
    def holding(cls, protected: Protected) -> Self:
        """An object of this class with the same contents."""
        return cls(**{f.name: getattr(protected, f.name) for f in fields(Protected)})

    @property
    def hidden(self) -> Mask:
        """Which published cells are not shown."""
        if self.status is None:
            return np.zeros(len(self.z), dtype=bool)
        return np.isin(self.status, HIDDEN)

    @property
    def replaced(self) -> Mask:
        """Which published cells hold decimal numbers in place of suppressed values."""
        if self.status is None:
            return np.zeros(len(self.z), dtype=bool)
        return np.asarray(self.status == CellStatus.decimal)

    def fit(
        self, fitter: Fitter | str = "auto", *, zeros: str = "all", require: bool = True
    ) -> Self:
        """Recover inner cells from the released ones; the result adds up.

        Cells that are not published have weight zero; the others weigh by their public precision.

        Args:
          fitter: A fitter, or the name of a registered one with its defaults.
          zeros: Which inner cells may be filled: ``"all"``, or ``"margins"`` for those that do not
            lie in a published cell with released value zero; the others are zero.
          require: Whether a fit that did not converge is an error.
        """
        from discreet.release.fitting import fitted

        if isinstance(fitter, str):
            fitter = cast("Fitter", registry.build("fitter", fitter))
        if not callable(fitter):
            raise ParameterError(f"a fitter or its name was expected, got {fitter!r}.")
        return fitted(self, fitter, zeros=zeros, require=require)

    def round(self, method: str = "margins", *, seed: int) -> Self:
        """Round the inner cells down or up to whole numbers; published cells are their sums.

        The seed need not be secret: what is rounded is public already.

        Args:
          method: ``"margins"`` (published cells within one wherever possible), ``"unbiased"``,
            ``"total"`` (unbiased, the total kept) or ``"cube"`` (unbiased, sums kept as far as
            possible).
          seed: Seed of the random choices.
        """
        from discreet.release.rounding import rounded

        return rounded(self, method, rng=stream(seed, f"round:{method}"))

    def standard_errors(self) -> Real:
        """The standard deviation of each published cell's noise; zero where there is none.

        Not a number for known margins whose small counts were rounded.

        Known for differentially private values as they are, and after a least squares fit of
        values that were not cut at zero. Where negative results were set to zero it is that of the
        noise before, which the error does not exceed.
        """
        from discreet.release.uncertainty import standard_errors

        return standard_errors(self)

    def intervals(self, level: float = 0.95) -> tuple[Real, Real]:
        """Lower and upper confidence limits of each published cell, cut at zero.

        Exact where a value has a single draw of noise: each interval holds the truth with at least
        this probability. After a fit, and for sums of noisy cells, they go by the normal law.

        Args:
          level: Probability that one interval holds the true value.
        """
        from discreet.release.uncertainty import intervals

        return intervals(self, level)

    def fit_weights(self) -> Real | None:
        """Weights of the published cells in a fit, from what is public."""
        precision = self.precision
        if precision is None:
            return None if self.status is None else np.where(self.hidden, 0.0, 1.0)
        finite = np.isfinite(precision)
        most = float(precision[finite].max(initial=0.0)) or 1.0
        weights = np.where(finite, precision / most, _EXACT)
        return np.where(self.hidden, 0.0, weights)

    def with_parts(self, **parts: Any) -> Self:
        """The same with other contents; what was said of single cells before is gone."""
        return replace(self, **{"status": None, "quality": None, **parts})


_EXACT = 1e6  # weight of values without noise beside the most precise noisy ones


@dataclass(frozen=True, eq=False, repr=False)
class Release(show.Frames, Protected):
    """**Public.** Protected values that may be shown and handed out; never the truth, never keys.

    Made by `Table.protect`.
    """

    @classmethod
    def holding(cls, protected: Protected) -> Self:
        """A release of what a method made for publication; an experiment never becomes one."""
        if isinstance(protected, Trial):
            raise ConfidentialError("a trial cannot be published; protect the table instead.")
        return super().holding(protected)

    def tabulate(self, margins: Margins) -> Release:
        """A public table of other margins, summed from the released inner cells.

        Where decimals stand in place of suppressed cells, the table's cells are true where shown
        cells give them, and decimals elsewhere.

        Args:
          margins: What the table shows: a formula, or a list of tuples.
        """
        from discreet.release.tabulate import tabulate

        return tabulate(self, margins)

    def publish(self, cells: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> float | None:
        """The true value of a sum of cells, or `None` where published cells do not give it.

        A release with suppressed cells, or with decimals in their place, gives a sum exactly when
        it is a combination of cells that are shown. One whose values were changed gives none.

        Args:
          cells: Codes by variable, one or a list of them, of the cells to be summed; variables
            left out are totals. Several such cells that do not overlap are given as a list.

        Raises:
          DesignError: The release changes values, so that none of its sums is known to be true.
        """
        from discreet.release.sums import published_sum

        return published_sum(self, cells)

    def to_microdata(self) -> pa.Table:
        """Released inner cells as records: a row for each person, with a code for each variable."""
        from discreet.release.microdata import to_microdata

        return to_microdata(self)

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

    def save(self, path: str | Path) -> Path:
        """Write the release to a file, marked public.

        Args:
          path: A name that ends in `.parquet`, or in `.csv` for the published cells as CSV with
            statement and inner cells in files beside it; `discreet.read_release` reads both.
        """
        from discreet.release.files import save

        return save(self, path)

    def write(self, path: str | Path, **options: Any) -> Path:
        """Write the published cells for other programs, in the format that the name asks for.

        Statement and notes are part of every format; those of a CSV file lie beside it, in
        `table.csv-metadata.json`. What `discreet.read_release` reads back, with all that a
        release holds, is written by `save`.

        Args:
          path: A name that ends in `.csv`, `.parquet`, `.xlsx`, `.json`, `.jsonstat.json`,
            `.sdmx.csv`, `.px` or `.html`.
          **options: Fields of `discreet.release.formats.options.Options`, such as
            `layout="wide"`, `labels="labels"` or `columns=("sex",)`, and of `About` beside it,
            such as `title=` and `source=`.
        """
        from discreet.release.formats.write import write

        return write(self, path, **options)

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
class Trial(Protected):
    """**Confidential.** One draw of an experiment, to be measured and thrown away.

    What a seed draws can be drawn again, and many draws together give the truth away; so a trial
    cannot be shown, written or handed out. Made by `Table.simulate`.
    """

    def __repr__(self) -> str:
        return f"Trial (confidential): {self.design.n_published:,} published cells"
