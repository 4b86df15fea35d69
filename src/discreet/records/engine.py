"""What an engine is, and the checks every engine makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from discreet.arrays import Array, Mask, Real, Whole, Whole32
from discreet.columns import Column
from discreet.design.axis import OUTSIDE
from discreet.errors import DataError, KeysError
from discreet.frames import Frame
from discreet.tables.magnitude import Magnitude
from discreet.tables.truth import CellValues

if TYPE_CHECKING:
    from discreet.records.records import UnitRecords

COUNT, WEIGHT, WEIGHT_SQUARED, KEY = "n", "w", "w2", "k"
HOLDING, CONTRIBUTOR, CONTRIBUTION = "h", "c", "amount"


@dataclass(frozen=True, eq=False)
class ValueGroups:
    """Where the values of a variable lie along one margin."""

    variable: str
    values: Column  # its distinct values as the engine wrote them; null when missing values occur
    number: Whole  # for each value the number of its group, -1 for values in none

    @property
    def missing(self) -> int:
        """The group of missing values."""
        found = self.number[np.flatnonzero(missing_values(self.values))]
        return int(found[0]) if len(found) else OUTSIDE


@dataclass(frozen=True)
class ValueFacts:
    """What is to know of values before they are summed."""

    records: int  # number of records
    finite: int  # number of them with a finite value
    owned: int  # number of them with a contributor or a holding
    lowest: float  # the smallest finite value


class Engine(Protocol):
    """What groups records into cells."""

    def group(self, data: UnitRecords, variables: Sequence[str]) -> Frame:
        r"""The cells that occur: a row for each combination of values of the variables.

        The first columns are the variables, in the order asked for, under the names `v0`, `v1`, …
        and with any values the engine likes to write them in. Then follow, as far as the data have
        weights and keys, `n` (the number of records), `w` and `w2` (:math:`\sum w`,
        :math:`\sum w^2`) and `k` (the exact sum of record keys, not yet reduced). Two rows may be
        of the same cell; they are added up.
        Without variables there is one row.

        All of them follow the data's bounds: of each person only as many records are grouped as
        the bound allows, those with the lowest ids, and weights above their bound are cut to it.

        Raises:
          DataError: A weight is missing, negative or not finite; or a person is missing.
          KeysError: A record key is missing or outside the range of the convention.
        """

    def contributions(
        self, data: UnitRecords, of: Magnitude, groups: Sequence[ValueGroups]
    ) -> Frame:
        """The largest contributions to each cell, a row for each.

        A contribution is the sum of a contributor's records in the cell, of weight times value
        where the data have weights. Columns: `g0`, `g1`, … (the cell, by numbers of groups), `rank`
        (from 0, by absolute value), `x` (the contribution, with its sign), `h` and `c` (holding, or
        contributor where there is no holding), and of the whole cell `n` (contributors), `s` and
        `a` (the sums of contributions and of their absolute values). Contributions of zero do not
        count. Records outside the groups are in no cell; the data's bounds hold.

        Args:
          data: The records.
          of: What is summed, and whose it is.
          groups: For each variable of the cells where its values lie.
        """

    def value_facts(self, data: UnitRecords, of: Magnitude) -> ValueFacts:
        """What is to know of the values before they are summed."""


def values_of(cells: Frame, n_variables: int) -> CellValues:
    """The counts and sums of a grouping."""
    names = cells.column_names[n_variables:]
    found = {name: as_array(cells.column(n_variables + i)) for i, name in enumerate(names)}
    weight, squared = (
        None if name not in found else found[name].astype(np.float64)
        for name in (WEIGHT, WEIGHT_SQUARED)
    )
    key = found[KEY].astype(np.int64) if KEY in found else None
    return CellValues(found[COUNT], weight, squared, key)


def as_array(column: Column) -> Array:
    """A column of numbers; the sum over no records is zero."""
    return column.fill_null(0).to_numpy()


def with_null(column: Column) -> tuple[Whole32, Column]:
    """The place of each value among the distinct ones, a null among them as the last."""
    codes, distinct = column.encoded()
    if not (codes < 0).any():
        return codes, distinct
    places = [*range(len(distinct)), -1]
    return np.where(codes < 0, len(distinct), codes), distinct.take(places)


def missing_values(values: Column) -> Mask:
    """Which values are null or not a number."""
    gaps = values.is_null()
    if values.kind.startswith("float"):
        gaps |= np.isnan(values.to_numpy())
    return gaps


def check_weights(data: UnitRecords, lowest: float, sums: Real) -> None:
    """Refuse weights that are missing (`lowest` is then −∞), negative or not finite."""
    if lowest == -np.inf:
        raise DataError(
            f"weight column {data.weight!r} has missing or infinite values; every record needs "
            "a weight."
        )
    if lowest < 0:
        raise DataError(
            f"weight column {data.weight!r} has negative values (down to {lowest:g}); weights must "
            "be at least 0."
        )
    if not np.isfinite(sums).all():
        raise DataError(f"weight column {data.weight!r} has values that are not finite numbers.")


def check_values(of: Magnitude, facts: ValueFacts) -> None:
    """Refuse values that are missing or not finite, that nobody contributed, or are negative."""
    if facts.finite < facts.records:
        raise DataError(
            f"value column {of.value!r} has {facts.records - facts.finite:,} missing or infinite "
            "values. Give every record a value, zero where it contributes nothing."
        )
    if facts.owned < facts.records:
        raise DataError(
            f"{facts.records - facts.owned:,} records have no {of.contributor!r}"
            + (f" and no {of.holding!r}" if of.holding else "")
            + "; every record needs a contributor."
        )
    if facts.lowest < 0 and of.negative == "refuse":
        raise DataError(
            f"value column {of.value!r} has negative values. If they are right, say "
            "negative='absolute': contributors are then ranked and judged by the absolute value of "
            "what they contribute to a cell, while sums keep their signs."
        )


def missing_persons(data: UnitRecords) -> DataError:
    """The error for records that are nobody's."""
    return DataError(
        f"some records have no {data.person!r} or no {data.id!r}; where the records of one person "
        "are bounded, every record needs both."
    )


def bad_keys(data: UnitRecords) -> KeysError:
    """The error for record keys that are missing or out of range."""
    if data.record_keys is not None:
        return KeysError(
            f"some records have no valid key in the side table: their {data.record_keys.id!r} is "
            "not in it. Make keys for all records (`people.with_keys(secret)`)."
        )
    return KeysError(
        f"record keys of the {data.convention.name!r} convention are whole numbers in "
        f"0..{data.convention.modulus - 1}, or fractions in [0, 1), one for every record; "
        f"in column {data.key!r} some are missing or lie outside."
    )
