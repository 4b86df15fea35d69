"""Columns of a streamed model: the engine tells their means, spreads and levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import ConfidentialError, DataError, ParameterError, UnknownNameError
from discreet.microdata.backend import fetch
from discreet.microdata.records import UnitRecords
from discreet.synthesize.tolerances import LEAST_FREEDOM

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Term:
    """A column of a model: a number, centred and scaled, or the indicator of a level.

    Attributes:
      name: Column of the records.
      level: The level, for an indicator.
      centre: Subtracted from the numbers.
      scale: The numbers are divided by it.
    """

    name: str
    level: Any = None
    centre: float = 0.0
    scale: float = 1.0

    def values(self, batch: pa.RecordBatch) -> np.ndarray:
        """The column of some rows in memory."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column = batch.column(self.name)
        if self.level is not None:
            return np.asarray(pc.equal(column, self.level).cast(pa.float64()))
        return (np.asarray(column.cast(pa.float64())) - self.centre) / self.scale


def terms_of(data: UnitRecords, names: Sequence[str], *, factors: bool) -> list[Term]:
    """The terms of some columns: numbers, or all levels but one of `factors`, columns of text."""
    for name in names:
        if name not in data.columns:
            raise UnknownNameError("column", name, data.columns)
    schema = data.table.schema()
    numbers = [name for name in names if schema[name].is_numeric() or schema[name].is_boolean()]
    for name in names:
        if name not in numbers and not (factors and schema[name].is_string()):
            expected = "numbers or text" if factors else "numbers"
            raise ParameterError(f"column {name!r} holds {schema[name]}, expected {expected}.")
    spread = _spread(data, numbers) if numbers else {}
    return [
        t for name in names for t in ([spread[name]] if name in spread else _levels(data, name))
    ]


def _spread(data: UnitRecords, names: Sequence[str]) -> dict[str, Term]:
    asked: dict[str, Any] = {}
    for i, name in enumerate(names):
        column = data.table[name].cast("float64")
        asked |= {
            f"n{i}": column.count(),
            f"mean{i}": column.mean(),
            f"sd{i}": column.std(how="pop"),
        }
    answer = fetch(
        data.backend, data.table.aggregate(rows=data.table.count(), **asked), data.origin
    ).to_pylist()[0]
    made = {}
    for i, name in enumerate(names):
        mean, spread = answer[f"mean{i}"], answer[f"sd{i}"]
        if not answer["rows"] or answer[f"n{i}"] < answer["rows"] or not np.isfinite(mean):
            raise DataError(
                f"column {name!r} holds missing or infinite values, or no rows. Leave such rows "
                "out first; streamed records are not filled in."
            )
        made[name] = Term(name, centre=mean, scale=spread if spread > 0 else 1.0)
    return made


def _levels(data: UnitRecords, name: str) -> list[Term]:
    counted = data.table.group_by(name).aggregate(rows=data.table.count())
    found = fetch(data.backend, counted.order_by(name), data.origin).to_pylist()
    if any(row[name] is None for row in found):
        raise DataError(
            f"column {name!r} holds missing values. Make them a level of their own first."
        )
    fewest = 1 + LEAST_FREEDOM
    if min(row["rows"] for row in found) < fewest:
        raise ConfidentialError(
            f"levels of {name!r} with fewer than {fewest} rows would come out as they went in, or "
            "mirrored. Use coarser codes."
        )
    return [Term(name, level=row[name]) for row in found[1:]]
