"""The confidential side: a design with true values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Real, Whole
from discreet.design import show, storage
from discreet.design.assembly import HierarchiesLike, cells_to_table
from discreet.design.base import Design
from discreet.design.contribution_frame import contributions_to_table
from discreet.design.data_set import DataSet, SecretLike
from discreet.design.formula import Margins
from discreet.design.keys import CONVENTIONS, KeyConvention, convention
from discreet.design.magnitude import (
    LARGEST,
    Contributions,
    Magnitude,
    Negative,
    contribution_columns,
)
from discreet.design.published_frame import published_to_table
from discreet.design.support import Support
from discreet.design.values import CellValues
from discreet.errors import DesignError, KeysError

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from discreet.design.method import Method
    from discreet.design.release import Release, Trial


@dataclass(frozen=True, eq=False, repr=False)
class Table(show.Frames):
    """**Confidential.** A design with true published values, and inner ones where they are known.

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
    ) -> Table:
        """A table from the values of its inner cells, in the design's order."""
        values = inner if isinstance(inner, CellValues) else CellValues(np.asarray(inner))
        rule = convention(convention_)
        return cls(design, values.mapped(design.aggregate, rule), values, rule)

    @classmethod
    def from_counts(
        cls,
        frame: Any,
        count: str,
        margins: Margins,
        *,
        key: str | None = None,
        weight: str | None = None,
        hierarchies: HierarchiesLike | None = None,
        support: Support = "all",
        structural_zeros: Sequence[Mapping[str, Any]] = (),
        convention: str | KeyConvention = "discreet",
        declared: bool | Sequence[str] = False,
        name: str = "unnamed",
        edition: str = "1",
    ) -> Table:
        """A table from a frame of inner cells: a row per combination, with its count.

        Combinations that are absent have count zero; rows of the same combination are summed.

        Args:
          frame: Any data frame or Arrow table.
          count: Column of counts.
          margins: What is published: a formula, or a list of tuples.
          key: Column of cell keys (whole numbers of the convention, or fractions).
          weight: Column of weight sums.
          hierarchies: By variable: a `Hierarchy`, several of them, or a file.
          support: Which combinations are inner cells: `"all"`, those `"occurring"`, or those
            `"listed"` (the occurring ones and the zeros that have a row).
          structural_zeros: Combinations that cannot occur, as {variable: codes}.
          convention: What the keys mean.
          declared: Variables whose codes in the frame are the public code list, or `True` for all
            of them. Codes of hierarchies and of categorical columns are declared anyway; others
            count as found in the records, which differentially private methods refuse.
          name: Name of the data set.
          edition: Its edition.
        """
        table = cells_to_table(
            frame,
            margins,
            count=count,
            key=key,
            weight=weight,
            hierarchies=hierarchies,
            support=support,
            structural_zeros=structural_zeros,
            convention=convention,
            declared=declared,
        )
        return replace(table, data_set=DataSet(name, edition))

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        margins: Margins,
        *,
        count: str = "count",
        key: str | None = None,
        hierarchies: HierarchiesLike | None = None,
        convention: str | KeyConvention = "discreet",
    ) -> Table:
        """A table from a frame of *published* cells, the inverse of `to_pandas` and its friends.

        Totals carry the total's code. The inner cells stay unknown unless they are published.
        """
        return published_to_table(
            frame, margins, count=count, key=key, hierarchies=hierarchies, convention=convention
        )

    @classmethod
    def from_contributions(
        cls,
        frame: Any,
        margins: Margins,
        *,
        value: str,
        contributor: str,
        holding: str | None = None,
        weight: str | None = None,
        negative: Negative = "refuse",
        largest: int = LARGEST,
        hierarchies: HierarchiesLike | None = None,
        support: Support = "all",
        structural_zeros: Sequence[Mapping[str, Any]] = (),
        declared: bool | Sequence[str] = False,
        name: str = "unnamed",
        edition: str = "1",
    ) -> Table:
        """A table of magnitudes from a frame of contributions: rows with a value and whose it is.

        Rows of one contributor in one cell are one contribution. Counts are numbers of rows.

        Args:
          frame: Any data frame or Arrow table.
          margins: What is published: a formula, or a list of tuples.
          value: Column that is summed.
          contributor: Column that says whose a row is.
          holding: Column of groups; contributors of one holding count as one.
          weight: Column of weights; contributions are then sums of weight times value.
          negative: `"refuse"` negative values, or judge contributions by their `"absolute"` value.
          largest: How many of the largest contributions to each cell are kept.
          hierarchies: As for `from_counts`.
          support: As for `from_counts`.
          structural_zeros: As for `from_counts`.
          declared: As for `from_counts`.
          name: Name of the data set.
          edition: Its edition.
        """
        table = contributions_to_table(
            frame,
            margins,
            Magnitude(value, contributor, holding, negative, largest),
            weight=weight,
            hierarchies=hierarchies,
            support=support,
            structural_zeros=structural_zeros,
            declared=declared,
        )
        return replace(table, data_set=DataSet(name, edition))

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

    def protect(
        self,
        method: Method | str,
        *,
        unit: str | None = None,
        ledger: Any = None,
        again: bool = False,
        **parameters: Any,
    ) -> Release:
        """Protect the table for publication.

        Noise comes from the custodian's secret or from the operating system, never from a seed.

        Args:
          method: A method, or the name of a registered one.
          unit: What is published, `"count"` or `"weight"`; must be said when the table has weights.
          ledger: A `Ledger`, or its file, that the release is entered in; the data's own when
            absent.
          again: Whether a table-wise release may differ from the one that was registered before
            for this edition. Several of them can be averaged.
          **parameters: Parameters of a method that is given by name.
        """
        from discreet.protect.publish import publish

        return publish(self, method, parameters, unit=unit, ledger=ledger, again=again)

    def simulate(
        self, method: Method | str, *, seed: int, unit: str | None = None, **parameters: Any
    ) -> Trial:
        """Protect the table as an experiment: keys, secret and noise are drawn from a seed.

        The result can be fitted, rounded, measured and attacked, but not published.

        Args:
          method: A method, or the name of a registered one.
          seed: Seed of the experiment.
          unit: As for `protect`.
          **parameters: Parameters of a method that is given by name.
        """
        from discreet.protect.simulate import simulate

        return simulate(self, method, parameters, seed=seed, unit=unit)

    def rekeyed(self, rng: np.random.Generator) -> Table:
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

    def with_secret(self, secret: SecretLike) -> Table:
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

    def save(self, path: str | Path) -> Path:
        """Write the table to a Parquet file that only its owner can read, marked confidential.

        Args:
          path: A name that ends in `.parquet`.
        """
        return storage.save_table(self, path)

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
