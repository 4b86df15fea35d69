"""Protected values: what a method is, what it makes of a table, and the two sides of the result."""

from __future__ import annotations

import enum
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Array, Mask, Real, Whole
from discreet.design.base import Design
from discreet.display import Display, Displayed, Mark
from discreet.errors import ConfidentialError, DesignError
from discreet.frames import Frame
from discreet.tables import show
from discreet.tables.show import CONFIDENTIAL as CONFIDENTIAL_SIGN
from discreet.tables.show import NO_QUALITY
from discreet.tables.statement import Statement

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.tables.truth import TrueTable


COUNT, WEIGHT, VALUE = "count", "weight", "value"
"""What methods can publish: numbers of records, sums of their weights, sums of a value.

The unit of sums of a value is the value's name.
"""


def mean_unit(value: str) -> str:
    """The unit of means of a value."""
    return f"mean {value}"


class CellStatus(enum.IntEnum):
    """Why a published cell shows what it shows."""

    published = 0
    suppressed = 1
    structural_zero = 2
    below_threshold = 3
    decimal = 4


STATUS_NAMES = tuple(status.name.replace("_", " ") for status in CellStatus)
"""What frames and files call each status."""
HIDDEN = (CellStatus.suppressed, CellStatus.below_threshold)
_SIGNS = {
    CellStatus.suppressed: Mark(CONFIDENTIAL_SIGN, "suppressed"),
    CellStatus.below_threshold: Mark(CONFIDENTIAL_SIGN, "below the threshold"),
    CellStatus.structural_zero: Mark("–", "cannot occur"),
}
_LEGEND = {CONFIDENTIAL_SIGN: "a figure that is not published", "–": "a cell that nobody can be in"}
_OUTSIDE = {"status": CellStatus.published, "quality": NO_QUALITY, "precision": 0.0}
"""What cells get that a release has and its table, read from the records, had not."""


@dataclass(frozen=True, eq=False, repr=False)
class Protected:
    """A design with protected values and the statement that goes with them.

    Methods return it; `Table.protect` makes a `Release` of it, `Table.simulate` a `Trial`. It can
    be measured and attacked, but neither shown nor written; what is made of it can be looked at.

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
        embedding = design.public()
        if embedding.design is design:
            return cls(design, z, statement, **parts)
        for name, outside in _OUTSIDE.items():
            if parts.get(name) is not None:
                parts[name] = embedding.to_public_cells(parts[name], outside)
        if parts.get("y") is not None:
            parts["y"] = embedding.to_public_support(parts["y"])
        return cls(embedding.design, embedding.to_public_cells(z), statement, **parts)

    @classmethod
    def wrap(cls, protected: Protected) -> Self:
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

    def fit_weights(self) -> Real | None:
        """Weights of the published cells in a fit, from what is public."""
        precision = self.precision
        if precision is None:
            return None if self.status is None else np.where(self.hidden, 0.0, 1.0)
        finite = np.isfinite(precision)
        most = float(precision[finite].max(initial=0.0)) or 1.0
        weights = np.where(finite, precision / most, _EXACT)
        return np.where(self.hidden, 0.0, weights)

    def _visible(self) -> Array:
        """Published values, masked where a cell is not shown."""
        hidden = self.hidden
        return np.ma.array(self.z, mask=hidden) if hidden.any() else self.z

    def _signs(self) -> list[Mark | None]:
        """For each cell the mark that stands in place of its value; none where all are figures."""
        if self.status is None:
            return []
        return [_SIGNS.get(CellStatus(status)) for status in self.status.tolist()]

    def _legend(self) -> list[str]:
        """What the signs in place of figures mean, each once."""
        found = {mark.text for mark in self._signs() if mark is not None}
        return [
            f"{sign} stands for {meaning}." for sign, meaning in _LEGEND.items() if sign in found
        ]

    def with_parts(self, **parts: Any) -> Self:
        """The same with other contents; what was said of single cells before is gone."""
        return replace(self, **{"status": None, "quality": None, **parts})


CONFIDENTIAL = (
    "CONFIDENTIAL. A trial of discreet: one draw of an experiment from a seed that anybody can use "
    "again. Many of them give the true table away. Do not publish it."
)
"""What stands at the beginning of a pickled trial."""
_TRIAL = (
    "One draw of an experiment, for the custodian to look at and to measure. Many draws together "
    "give the true table away, so that a trial cannot be written or handed out."
)
_EXACT = 1e6  # weight of values without noise beside the most precise noisy ones
_WIDTH = 100  # of a printed statement


@dataclass(frozen=True, eq=False, repr=False)
class PublicTable(Displayed, show.Frames, Protected):
    """**Public.** Protected values that may be shown and handed out; never the truth, never keys.

    What floors pass to each other; users hold a `Release`, which adds the verbs.

    Attributes:
      table_name: Which table of a larger release this is; empty for a whole release.
    """

    table_name: str = ""

    @classmethod
    def wrap(cls, protected: Protected) -> Self:
        """A public table of what a method made for publication; an experiment never becomes one."""
        if isinstance(protected, Experiment):
            raise ConfidentialError("a trial cannot be published; protect the table instead.")
        return replace(super().wrap(protected), table_name=getattr(protected, "table_name", ""))

    def to_frame(self) -> Frame:
        """Published cells as a frame: code columns and protected values.

        The column of values is named after their unit. Cells that are not shown are null; their
        status says why.
        """
        columns = {self.unit: self.z, "quality": show.mask_missing_quality(self.quality)}
        given = {name: values for name, values in columns.items() if values is not None}
        if self.status is None:
            return show.frame_of(self.design, given)
        hidden = self.hidden
        shown = {
            name: np.ma.array(v, mask=hidden | np.ma.getmaskarray(v)) for name, v in given.items()
        }
        status = np.array(STATUS_NAMES)[self.status]
        return show.frame_of(self.design, {**shown, "status": status})

    def inner_to_frame(self) -> Frame:
        """Protected inner cells that are not zero, as a frame."""
        if self.y is None:
            raise DesignError("inner cells are not part of this release; fit them first.")
        return show.inner_frame_of(self.design, {self.unit: self.y}, np.flatnonzero(self.y))

    def inner_to_arrow(self) -> pa.Table:
        """Protected inner cells that are not zero, as a table of pyarrow."""
        return self.inner_to_frame().to_arrow()

    def __repr__(self) -> str:
        title = self.table_name or "Release"
        shown = show.text(self.design, self._visible(), title=title, unit=self.unit)
        legend = [line for line in self._legend() if line.startswith(CONFIDENTIAL_SIGN)]
        note = textwrap.fill(self.statement.plain, _WIDTH)
        return "\n".join([shown, *legend, f"\n{note}"]).rstrip()

    def _display(self) -> Display:
        values = show.grids(self.design, self._visible(), self.unit, self._signs())
        note = self.statement.plain
        title = self.table_name or "Release"
        return Display(title, "public", grids=values, lines=self._legend(), note=note)


@dataclass(frozen=True, eq=False, repr=False)
class Experiment(Displayed, Protected):
    """**Confidential.** One draw of an experiment, to be measured and thrown away.

    What a seed draws can be drawn again, and many draws together give the truth away; so it shows
    itself to the custodian, marked as confidential, and cannot be written or handed out. Users hold
    a `Trial`, which adds the verbs.
    """

    def __repr__(self) -> str:
        values = self._visible()
        return show.text(self.design, values, title="Trial (confidential)", unit=self.unit)

    def _display(self) -> Display:
        values = show.grids(self.design, self._visible(), self.unit, self._signs())
        return Display("Trial", "confidential", grids=values, lines=self._legend(), note=_TRIAL)

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled, for workers; whoever opens the file reads first what it is."""
        return {"": CONFIDENTIAL, **self.__dict__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """The trial that was pickled; one without its mark is not believed."""
        if state.get("") != CONFIDENTIAL:
            raise ConfidentialError("this is no pickled trial; simulate the table again.")
        self.__dict__.update({name: part for name, part in state.items() if name})


@dataclass(frozen=True)
class Claims:
    """Promises of a method about every table it protects.

    Attributes:
      additive: Published cells are sums of one protected inner table.
      unbiased: The expected value of a cell is its true count.
      keeps_zeros: A true zero stays zero.
      keeps_positive: A positive count stays positive.
      max_move: No cell moves further than this.
      blocked: Values that never appear in the release.
      variance: Variance of the noise of a large count, where the method fixes it.
      consistent: The same cell has the same value in every table it appears in.
      follows_truth: Laws of the battery that the method cannot keep, because what it publishes of
        a cell follows from true values; its statement says so.
    """

    additive: bool
    unbiased: bool
    keeps_zeros: bool
    keeps_positive: bool = False
    max_move: float = math.inf
    blocked: Sequence[int] = ()
    variance: float | None = None
    consistent: bool = False
    follows_truth: tuple[str, ...] = ()


class Draws(Protocol):
    """Where a method's random choices come from: a secret and the system, or an experiment's seed.

    A method draws from nothing else.
    """

    def generator(self, method: Any, table: TrueTable) -> np.random.Generator:
        """The generator of a table-wise method, for this method on this table."""

    def laplace(self, n: int, scale: float, cap: int | None = None) -> Whole:
        """Discrete Laplace noise, none beyond the cap."""

    def gaussian(self, n: int, scale: float) -> Whole:
        """Discrete Gaussian noise."""


class Method(Protocol):
    """What protects a table.

    `source` says where the noise comes from: `"keys"` (looked up by the table's cell keys, so the
    same records get the same noise in every table), `"table"` (a generator made from the secret and
    this very table) or `"system"` (the operating system, through a vetted library). A method may
    also offer `units`, what it can publish; `cell_law(table, position)`, the deviations of one
    published cell and their probabilities (or `None`); and `in_order(inner, published)`, the method
    for a table whose cells are in another order.
    """

    @property
    def name(self) -> str:
        """The method's name in the registry."""

    @property
    def source(self) -> str:
        """`"keys"`, `"table"` or `"system"`."""

    @property
    def claims(self) -> Claims:
        """What the method promises for every table."""

    def __call__(self, table: TrueTable, *, draws: Draws) -> Protected:
        """Protect the table."""
