"""The confidential side: a design with true values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from discreet.arrays import Real, Whole
from discreet.design.base import Design
from discreet.errors import DesignError, KeysError
from discreet.tables import show
from discreet.tables.data_set import DataSet, SecretLike
from discreet.tables.keys import CONVENTIONS, KeyConvention, convention
from discreet.tables.magnitude import Contributions, contribution_columns
from discreet.tables.values import CellValues

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False, repr=False)
class TrueTable(show.Frames):
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
      ledger: Where the custodian enters what is released; never stored.
      contributions: Sums of a value and the largest contributions to each cell, for magnitudes.
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
        return cls(design, values.mapped(design.aggregate, rule), values, rule)

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
                "this table has no cell keys. Give the records keys before tabulating "
                "(`people.with_keys(secret)`), or name the column (`key=...`)."
            )
        return self.published.key

    @property
    def weights(self) -> Real:
        """Weight sums of the published cells."""
        if self.published.weight is None:
            raise DesignError("this table has no weights; name the weight column when tabulating.")
        return self.published.weight

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

    def to_arrow(self) -> pa.Table:
        """Published cells as an Arrow table: code columns and true values. Confidential.

        Magnitudes follow: the sum under the value's name, `contributors`, and the largest
        contributions with whose they are, `largest_1`, `owner_1`, ….
        """
        columns = _value_columns(self.published)
        if self.contributions is not None:
            columns |= contribution_columns(self.contributions, self.contributions.published)
        return show.frame_of(self.design, columns)

    def inner_to_arrow(self) -> pa.Table:
        """Non-empty inner cells as an Arrow table. Confidential."""
        inner = self.require_inner()
        some, columns = np.flatnonzero(inner.count), _value_columns(inner)
        given = self.contributions
        if given is not None and given.inner is not None:
            columns |= contribution_columns(given, given.inner)
        return show.inner_frame_of(self.design, columns, some)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "secret": None, "ledger": None}

    def __repr__(self) -> str:
        return show.text(self.design, *self._shown())

    def _repr_html_(self) -> str:
        values, title, unit = self._shown()
        return show.html(self.design, values, title, unit=unit)

    def _shown(self) -> tuple[Any, str, str]:
        """What a table shows of itself: counts, or magnitudes where it has some."""
        if self.contributions is None:
            return self.z, "Table (confidential)", "count"
        value = self.contributions.value
        return self.contributions.sum, f"Table of {value} (confidential)", value


def _check_length(values: CellValues, expected: int, kind: str) -> None:
    for name in ("count", "weight", "weight_squared", "key"):
        array = getattr(values, name)
        if array is not None and len(array) != expected:
            raise DesignError(
                f"the design has {expected:,} {kind} cells, but {len(array):,} values of "
                f"{name!r} were given."
            )


def _value_columns(values: CellValues) -> dict[str, Any]:
    named = {
        "count": values.count,
        "weight": values.weight,
        "weight_squared": values.weight_squared,
        "cell_key": values.key,
    }
    return {name: column for name, column in named.items() if column is not None}
