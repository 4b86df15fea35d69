"""The confidential side: a design with true values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from discreet.design import show, storage
from discreet.design.assembly import HierarchiesLike, Support, cells_to_table, published_to_table
from discreet.design.base import Cell, Design
from discreet.design.formula import Margins
from discreet.design.keys import CONVENTIONS, KeyConvention, convention
from discreet.design.values import CellValues, Real, Whole
from discreet.errors import DesignError, KeysError, ParameterError
from discreet.randomness import stream

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from discreet.design.release import Release


class Method(Protocol):
    """What protects a table.

    `source` says where the noise comes from: `"keys"` (the table's cell keys), `"seed"` (an
    experiment's stream) or `"system"` (the operating system, through a vetted library).
    """

    @property
    def name(self) -> str:
        """The method's name in the registry."""

    @property
    def source(self) -> str:
        """`"keys"`, `"seed"` or `"system"`."""

    def __call__(self, table: Table, *, rng: np.random.Generator | None = None) -> Release:
        """Protect the table; the generator is given exactly when the source is `"seed"`."""


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """**Confidential.** A design with true published values, and inner ones where they are known.

    Attributes:
      design: Which inner cells make up which published cells.
      published: True values of the published cells.
      inner: True values of the inner cells; `None` when only margins were read.
      convention: What the cell keys mean.
      zero_key: Gives the key of a cell without records; made from a secret, never stored.
    """

    design: Design
    published: CellValues
    inner: CellValues | None = None
    convention: KeyConvention = CONVENTIONS["discreet"]
    zero_key: Callable[[Sequence[Cell]], Whole] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        _check_length(self.published, self.design.n_published, "published")
        if self.inner is not None:
            _check_length(self.inner, self.design.n_inner, "inner")

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
        """
        return cells_to_table(
            frame,
            margins,
            count=count,
            key=key,
            weight=weight,
            hierarchies=hierarchies,
            support=support,
            structural_zeros=structural_zeros,
            convention=convention,
        )

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

    def require_inner(self) -> CellValues:
        """The inner values, or a clear error when only margins were read."""
        if self.inner is None:
            raise DesignError(
                "this table holds published cells only; its inner cells were not read. "
                "Tabulate fewer variables at once, or with support='occurring'."
            )
        return self.inner

    def protect(self, method: Method, *, seed: int | None = None) -> Release:
        """Protect the table; a seed is required by methods that draw, refused by the others."""
        if method.source == "seed":
            if seed is None:
                raise ParameterError(f"method {method.name!r} draws at random: give it a seed=.")
            return method(self, rng=stream(seed, f"protect:{method.name}"))
        if seed is not None:
            where = "cell keys" if method.source == "keys" else "the operating system"
            raise ParameterError(
                f"method {method.name!r} takes its noise from {where}; remove seed=."
            )
        return method(self)

    def rekeyed(self, rng: np.random.Generator) -> Table:
        """The table with new random keys, as if the records had been given other keys.

        A sum of uniform keys is uniform, so each non-empty inner cell gets one uniform key.
        """
        inner = self.require_inner()
        fresh = rng.integers(self.convention.modulus, size=self.design.n_inner)
        fresh[inner.count == 0] = 0
        key = self.convention.reduce(self.design.aggregate(fresh))
        return replace(
            self,
            inner=replace(inner, key=fresh),
            published=replace(self.published, key=key),
            zero_key=None,
        )

    def with_zero_key(self, zero_key: Callable[[Sequence[Cell]], Whole]) -> Table:
        """The table with a rule that gives cells without records a key."""
        return replace(self, zero_key=zero_key)

    def to_arrow(self) -> pa.Table:
        """Published cells as an Arrow table: code columns and true values. Confidential."""
        return show.frame_of(self.design, _value_columns(self.published))

    def inner_to_arrow(self) -> pa.Table:
        """Non-empty inner cells as an Arrow table. Confidential."""
        inner = self.require_inner()
        some = np.flatnonzero(inner.count)
        return show.inner_frame_of(self.design, _value_columns(inner), some)

    def to_pandas(self) -> pd.DataFrame:
        """Published cells as a pandas frame. Confidential."""
        return show.to_pandas(self.to_arrow())

    def to_polars(self) -> pl.DataFrame:
        """Published cells as a polars frame. Confidential."""
        return show.to_polars(self.to_arrow())

    def save(self, path: str | Path) -> Path:
        """Write the table to a Parquet file that only its owner can read, marked confidential."""
        return storage.save_table(self, path)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "zero_key": None}

    def __repr__(self) -> str:
        return show.text(self.design, self.z, title="Table (confidential)")

    def _repr_html_(self) -> str:
        return show.html(self.design, self.z, title="Table (confidential)")


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
