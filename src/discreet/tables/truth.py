"""The confidential side: a design with true values, and which records they come from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from discreet.arrays import Array, Real, Whole
from discreet.design.base import Cell, Design
from discreet.display import Display, Displayed
from discreet.errors import DataError, DesignError, KeysError, ParameterError
from discreet.frames import Frame
from discreet.tables import show
from discreet.tables.editions import EditionMode
from discreet.tables.keys import CONVENTIONS, KeyConvention, convention
from discreet.tables.magnitude import Contributions, contribution_columns
from discreet.tables.sketches import Passage, RecordSketches

if TYPE_CHECKING:
    import pyarrow as pa


UNNAMED = "unnamed"


@dataclass(frozen=True)
class Bounds:
    """What one unit can contribute to a table, as the engine enforces it.

    Attributes:
      weight: Largest weight of a record; larger ones are cut to it. `None`: no bound.
      person: Column that identifies the unit of protection; each record is a unit when absent.
      max_records: Records of one unit that are counted at most.
      mean_weight: What a record stands for on average, population over sample size; declared.
      weight_variance: Variance of the weights over their squared mean; declared.
    """

    weight: float | None = None
    person: str | None = None
    max_records: int = 1
    mean_weight: float | None = None
    weight_variance: float | None = None


@dataclass(frozen=True)
class DataSet:
    """The name of some records, which of their editions this is, and how editions are drawn.

    Attributes:
      name: The name under which the custodian's ledger counts releases and budget.
      edition: Changes whenever the records do.
      keys: The mode of editions, which decides about record keys (`tables/editions.py`), or
        `"given"` where they came with the records.
      bounds: What one unit can contribute.
      churn: Declared share of the records that change from one edition to the next; a public
        figure, never counted from the records.
      planned: Declared number of editions.
      units: What the records are of, in the plural, as public statements call them:
        `"enterprises"`; empty for the usual word, people.
    """

    name: str = UNNAMED
    edition: str = "1"
    keys: str = "given"
    bounds: Bounds = field(default_factory=Bounds)
    churn: float | None = None
    planned: int | None = None
    units: str = ""

    def __post_init__(self) -> None:
        for what in ("name", "edition"):
            value = getattr(self, what)
            if not isinstance(value, str) or not value.strip():
                raise ParameterError(f"the {what} of a data set must be a text, got {value!r}.")
        object.__setattr__(self, "keys", str(EditionMode.parse(self.keys)))
        if self.churn is not None and not 0 < self.churn <= 1:
            raise ParameterError(
                f"churn is the share of records that change between editions, above 0 and at most "
                f"1, got {self.churn!r}."
            )
        if self.planned is not None and self.planned < 1:
            raise ParameterError(f"at least one edition is planned, got {self.planned!r}.")
        if not isinstance(self.units, str) or self.units != self.units.strip():
            raise ParameterError(
                f"units is a word such as 'enterprises', what records are of; got {self.units!r}."
            )

    @property
    def mode(self) -> EditionMode:
        """How this edition is drawn after others."""
        return EditionMode.parse(self.keys)


@dataclass(frozen=True, eq=False)
class CellValues:
    """Counts and, optionally, weight sums, sums of squared weights and cell keys."""

    count: Whole
    weight: Real | None = None
    weight_squared: Real | None = None
    key: Whole | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", whole_counts(self.count))

    def apply_linear(
        self, change: Callable[[Array], Array], convention: KeyConvention
    ) -> CellValues:
        """The same linear map applied to every kind of value; keys are reduced afterwards."""
        key = None if self.key is None else convention.reduce(change(self.key))
        weight = None if self.weight is None else change(self.weight)
        squared = None if self.weight_squared is None else change(self.weight_squared)
        return CellValues(sum_counts(self.count, change), weight, squared, key)

    def rearrange(self, change: Callable[[Array], Array]) -> CellValues:
        """Values of every kind in other places; nothing is summed."""
        parts: dict[str, Any] = {k: v if v is None else change(v) for k, v in vars(self).items()}
        return CellValues(**parts)


class SecretLike(Protocol):
    """What a table needs of the custodian's secret; it holds no more than keyed hashes."""

    @property
    def is_public(self) -> bool:
        """Whether everybody knows the secret, as that of the demo data."""

    @property
    def mark(self) -> str:
        """A keyed hash of a constant: tells one secret from another and nothing else."""

    def zero_key(self, cells: Sequence[Cell], rule: str | KeyConvention) -> Whole:
        """The key of each cell without records, from its definition."""

    def mix_keys(self, keys: Whole, purpose: str) -> Whole:
        """A keyed hash of each cell key: whole numbers below 2³², unrelated between purposes."""

    def cell_marks(self, cells: Sequence[Cell]) -> Whole:
        """A keyed hash of each cell's definition: by it a cell is known in other editions."""

    def generator(self, message: bytes) -> np.random.Generator:
        """A generator that depends on the secret and the message only."""


@dataclass(frozen=True, eq=False, repr=False)
class TrueTable(Displayed, show.Frames):
    """**Confidential.** A design with true published values, and inner ones where they are known.

    What floors pass to each other; users hold a `Table`, which adds the verbs.

    Attributes:
      design: Which inner cells make up which published cells.
      published: True values of the published cells.
      inner: True values of the inner cells; `None` when only margins were read.
      convention: What the cell keys mean.
      data_set: The records' name and edition, and what bounds one unit of them.
      unit: What is to be published, `"count"` or `"weight"`; undecided when absent.
      secret: The custodian's secret, behind a face that gives no more than keyed hashes; never
        stored.
      ledger: Where the custodian enters what is released; a stored table keeps its address.
      contributions: Sums of a value and the largest contributions to each cell, for magnitudes.
      passage: What passes by itself from one edition to the next.
      sketches: Sketches of the records by their keys, for a ledger that compares editions.
      adds_up: Whether published cells are sums of one inner table.
    """

    design: Design
    published: CellValues
    inner: CellValues | None = None
    convention: KeyConvention = CONVENTIONS["discreet"]
    data_set: DataSet = field(default_factory=DataSet)
    unit: str | None = None
    secret: SecretLike | None = field(default=None, repr=False)
    ledger: Any = field(default=None, repr=False)
    contributions: Contributions | None = None
    passage: Passage = field(default_factory=Passage)
    sketches: RecordSketches | None = field(default=None, repr=False)
    adds_up: bool = True

    def __post_init__(self) -> None:
        _check_length(self.published, self.design.n_published, "published")
        if self.inner is not None:
            _check_length(self.inner, self.design.n_inner, "inner")
        if self.contributions is not None:
            self.contributions.check_length(self.design.n_published, self.design.n_inner)

    @classmethod
    def from_inner(
        cls,
        design: Design,
        inner: CellValues | Whole,
        convention_: str | KeyConvention = "discreet",
    ) -> Self:
        """A table from the values of its inner cells, in the design's order."""
        values = inner if isinstance(inner, CellValues) else CellValues(np.asarray(inner))
        rule = convention(convention_)
        return cls(design, values.apply_linear(design.aggregate, rule), values, rule)

    @property
    def ledger_path(self) -> str | None:
        """Where the ledger is, for a table that leaves this program."""
        return None if self.ledger is None else str(getattr(self.ledger, "path", self.ledger))

    @property
    def z(self) -> Whole:
        """True counts of the published cells."""
        return self.published.count

    @property
    def y(self) -> Whole:
        """True counts of the inner cells."""
        return self.require_inner().count

    @property
    def cell_keys(self) -> Whole:
        """Keys of the published cells."""
        if self.published.key is None:
            raise KeysError(
                "this table has no cell keys. Tabulate again from records with an id and a secret "
                "(`id=...`, `secret=...`), with keys drawn once where there are no ids "
                "(`random_keys=...`), or with a column of keys (`key=...`)."
            )
        return self.published.key

    @property
    def weights(self) -> Real:
        """Weight sums of the published cells."""
        if self.published.weight is None:
            raise DesignError("this table has no weights; name the weight column when tabulating.")
        return self.published.weight

    @property
    def weight_variance(self) -> float:
        r"""**Confidential.** Variance of the records' weights over their squared mean.

        :math:`n\sum w^2 / (\sum w)^2 - 1`, what Kish's design effect of weighting has above one.
        """
        values = self.require_inner()
        if values.weight is None or values.weight_squared is None:
            raise DesignError("sums of squared weights are needed: tabulate records with weights.")
        square = float(values.weight.sum()) ** 2
        return float(values.count.sum()) * float(values.weight_squared.sum()) / square - 1

    def require_contributions(self) -> Contributions:
        """The contributions, or a clear error when the table has counts only."""
        if self.contributions is None:
            raise DesignError(
                "this table has counts only, and nobody's contributions. Name the value and whose "
                "it is: `people.tabulate(…, value='turnover', contributor='enterprise')`."
            )
        return self.contributions

    def require_inner(self) -> CellValues:
        """The inner values, or a clear error when only margins were read."""
        if self.inner is None:
            raise DesignError(
                "this table holds published cells only; its inner cells were not read. "
                "Tabulate fewer variables at once, or with support='occurring'."
            )
        return self.inner

    def rekeyed(self, rng: np.random.Generator) -> Self:
        """The table with new random keys, as if the records had been given other keys.

        A sum of uniform keys is uniform, so each non-empty inner cell gets one uniform key; where
        inner cells are not known, each published cell does.
        """
        if self.inner is None:
            first = self.design.duplicates()
            key = rng.integers(self.convention.modulus, size=len(self.z))[first]
            key[self.z == 0] = 0
            return replace(self, published=replace(self.published, key=key))
        fresh = rng.integers(self.convention.modulus, size=self.design.n_inner)
        fresh[self.inner.count == 0] = 0
        key = self.convention.reduce(self.design.aggregate(fresh))
        inner, published = replace(self.inner, key=fresh), replace(self.published, key=key)
        return replace(self, inner=inner, published=published)

    def with_secret(self, secret: SecretLike) -> Self:
        """The table with the custodian's secret, for one that was read from a file or a frame."""
        return replace(self, secret=secret)

    def to_frame(self) -> Frame:
        """Published cells as a frame: code columns and true values. Confidential.

        Magnitudes follow: the sum under the value's name, `contributors`, and the largest
        contributions with whose they are, `largest_1`, `owner_1`, ….
        """
        columns = _value_columns(self.published)
        if self.contributions is not None:
            columns |= contribution_columns(self.contributions, self.contributions.published)
        return show.frame_of(self.design, columns)

    def inner_to_frame(self) -> Frame:
        """Non-empty inner cells as a frame. Confidential."""
        inner = self.require_inner()
        some, columns = np.flatnonzero(inner.count), _value_columns(inner)
        given = self.contributions
        if given is not None and given.inner is not None:
            columns |= contribution_columns(given, given.inner)
        return show.inner_frame_of(self.design, columns, some)

    def inner_to_arrow(self) -> pa.Table:
        """Non-empty inner cells as a table of pyarrow. Confidential."""
        return self.inner_to_frame().to_arrow()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "secret": None, "ledger": self.ledger_path}

    def __repr__(self) -> str:
        return show.text(self.design, *self._view())

    def _display(self) -> Display:
        values, title, unit = self._view()
        title = title.removesuffix(" (confidential)")
        return Display(title, "confidential", grids=show.grids(self.design, values, unit))

    def _view(self) -> tuple[Any, str, str]:
        """What a table shows of itself: counts, or magnitudes where it has some."""
        if self.contributions is None:
            return self.z, "Table (confidential)", "count"
        value = self.contributions.value
        return self.contributions.sum, f"Table of {value} (confidential)", value


def _check_length(values: CellValues, expected: int, kind: str) -> None:
    for name, array in vars(values).items():
        if array is not None and len(array) != expected:
            raise DesignError(
                f"the design has {expected:,} {kind} cells, but {len(array):,} values of "
                f"{name!r} were given."
            )


VALUE_COLUMNS = {
    "count": "count",
    "weight": "weight",
    "weight_squared": "weight_squared",
    "cell_key": "key",
}
"""Columns of frames and files, and which of a cell's values they hold."""


def _value_columns(values: CellValues) -> dict[str, Any]:
    found = {column: getattr(values, name) for column, name in VALUE_COLUMNS.items()}
    return {column: array for column, array in found.items() if array is not None}


_TOO_LARGE = 2.0**63 * (1 - 1e-9)  # a sum of real numbers below this fits into 64 bits


def sum_counts(counts: Whole, change: Callable[[Array], Array]) -> Whole:
    """Sums of counts that a linear map makes; those that 64 bits do not hold are an error.

    Cost: the sum of all counts in real numbers; the map is made twice only where that is too large.
    """
    if counts.sum(dtype=np.float64) >= _TOO_LARGE:
        _check_size(change(counts.astype(np.float64)))
    return change(counts)


def whole_counts(counts: Array) -> Whole:
    """Counts as int64; negative or fractional ones are an error."""
    counts = np.asarray(counts)
    if counts.dtype.kind == "f":
        if not np.isfinite(counts).all() or (counts != np.rint(counts)).any():
            raise DataError("counts must be whole numbers; found fractional or missing ones.")
    elif counts.dtype.kind not in "iu":
        raise DataError(f"counts must be whole numbers, got values of type {counts.dtype}.")
    _check_size(counts)
    counts = counts.astype(np.int64)
    if counts.size and counts.min() < 0:
        raise DataError("counts must not be negative; found at least one that is.")
    return counts


def _check_size(counts: Array) -> None:
    if counts.size and float(counts.max()) >= _TOO_LARGE:
        raise DataError(
            "a count or a sum of counts is 2**63 or more, which 64 bits do not hold. "
            "Count in larger units, or look for a code such as 999… in the counts."
        )
