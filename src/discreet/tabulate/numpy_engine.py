"""The plain engine: loads the records and groups them in NumPy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Array, Index, Real, Whole, Whole32
from discreet.design.codes import factorise
from discreet.errors import DataError
from discreet.microdata.backend import fetch
from discreet.tables.magnitude import Magnitude
from discreet.tabulate.engine import (
    COUNT,
    KEY,
    WEIGHT,
    WEIGHT_SQUARED,
    Groups,
    ValueFacts,
    bad_keys,
    check_weights,
    missing_persons,
)
from discreet.tabulate.numpy_contributions import facts_of, ranked_contributions

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.microdata.records import UnitRecords


class NumpyEngine:
    """A reference for other engines, and a way to count records that are in memory anyway.

    Cost: the columns in use are held in memory, and one sort of the records.
    """

    name = "numpy"

    def group(self, data: UnitRecords, variables: Sequence[str]) -> pa.Table:
        """The cells that occur; see `Engine.group`."""
        import pyarrow as pa

        table, key = data.keyed()
        ids = () if data.person is None else (data.person, data.id)
        used = [c for c in (*variables, data.weight, key, *ids) if c is not None]
        used = used or table.columns[:1]
        records = fetch(data.backend, table.select(*dict.fromkeys(used)), data.origin)
        records = _within_bounds(data, records)
        factors = [factorise(records.column(v)) for v in variables]
        cell, places = _cells([place for _, place in factors], len(records))
        columns = [
            pa.array(codes, pa.string()).take(pa.array(place, mask=place < 0))
            for (codes, _), place in zip(factors, places, strict=True)
        ]
        sums = _sums(data, records, key, cell, len(places[0]) if places else 1)
        return pa.table(
            [*columns, *(pa.array(values) for values in sums.values())], [*variables, *sums]
        )

    def contributions(self, data: UnitRecords, of: Magnitude, groups: Sequence[Groups]) -> pa.Table:
        """The largest contributions to each cell; see `Engine.contributions`."""
        records = _valued(data, of, [group.variable for group in groups])
        amounts = _values(records, of)
        if data.weight is not None:
            amounts = amounts * _weights(data, records.column(data.weight))
        return ranked_contributions(records, amounts.tolist(), of, groups)

    def value_facts(self, data: UnitRecords, of: Magnitude) -> ValueFacts:
        """What is to know of the values before they are summed."""
        records = _valued(data, of, [])
        return facts_of(records, _values(records, of).tolist(), of)


def _values(records: pa.Table, of: Magnitude) -> Real:
    column = _numbers(records.column(of.value), missing=np.nan, role="value")
    return column.astype(np.float64)


def _valued(data: UnitRecords, of: Magnitude, variables: Sequence[str]) -> pa.Table:
    """The records that count, with the columns that contributions need."""
    ids = () if data.person is None else (data.person, data.id)
    used = dict.fromkeys((*variables, *of.columns, data.weight, *ids))
    named = [name for name in used if name is not None]
    records = fetch(data.backend, data.table.select(*named), data.origin)
    return _within_bounds(data, records)


def _within_bounds(data: UnitRecords, records: pa.Table) -> pa.Table:
    """The records that are counted: those of each person with the lowest ids, up to the bound."""
    if data.person is None or data.id is None:
        return records
    people, ids = records.column(data.person), records.column(data.id)
    if people.null_count or ids.null_count:
        raise missing_persons(data)
    seen: Counter[Any] = Counter()
    rows = sorted(zip(ids.to_pylist(), people.to_pylist(), range(len(records)), strict=True))
    kept = []
    for _, person, row in rows:
        seen[person] += 1
        if seen[person] <= data.data_set.bounds.max_records:
            kept.append(row)
    return records.take(sorted(kept))


def _cells(places: list[Whole32], n_records: int) -> tuple[Index, list[Whole32]]:
    """The number of each record's cell, and for each variable the place of each cell's code."""
    if not places:
        return np.zeros(n_records, dtype=np.intp), []
    rows, cell = np.unique(np.stack(places, axis=1), axis=0, return_inverse=True)
    return cell.ravel(), list(rows.T)


def _sums(
    data: UnitRecords, records: pa.Table, key: str | None, cell: Index, n: int
) -> dict[str, Array]:
    sums: dict[str, Array] = {COUNT: np.bincount(cell, minlength=n)}
    if data.weight is not None:
        w = _weights(data, records.column(data.weight))
        sums[WEIGHT] = np.bincount(cell, w, minlength=n)
        sums[WEIGHT_SQUARED] = np.bincount(cell, w * w, minlength=n)
    if key is not None:
        sums[KEY] = np.zeros(n, dtype=np.int64)
        np.add.at(sums[KEY], cell, _keys(data, records.column(key)))
    return sums


def _weights(data: UnitRecords, column: Any) -> Real:
    w = _numbers(column, missing=-np.inf, role="weight")
    if len(w):
        check_weights(data, float(w.min()), w)
    bound = data.data_set.bounds.weight
    return np.minimum(w.astype(np.float64), np.inf if bound is None else bound)


def _keys(data: UnitRecords, column: Any) -> Whole:
    keys = _numbers(column, missing=-1, role="key")
    is_fraction = keys.dtype.kind == "f"
    limit = 1 if is_fraction else data.convention.modulus
    if not ((keys >= 0) & (keys < limit)).all():
        raise bad_keys(data)
    return data.convention.scale(keys) if is_fraction else keys.astype(np.int64)


def _numbers(column: Any, missing: float, role: str) -> Array:
    """A numeric column; keys that are whole numbers stay whole, text included."""
    import pyarrow as pa

    kind = column.type
    is_fraction = pa.types.is_floating(kind) or (pa.types.is_decimal(kind) and kind.scale != 0)
    is_text = pa.types.is_string(kind)
    if not (is_fraction or is_text or pa.types.is_integer(kind) or pa.types.is_decimal(kind)):
        raise DataError(f"{role} column holds {kind}, not numbers.")
    try:
        column = column.cast(pa.float64() if is_fraction or role != "key" else pa.int64())
    except pa.ArrowInvalid:
        raise DataError(f"{role} column could not be read: a value is no number.") from None
    return np.asarray(column.fill_null(missing).to_numpy())
