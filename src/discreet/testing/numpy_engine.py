"""The plain engine: loads the records and groups them in NumPy."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.arrays import Array, Index, Real, Whole, Whole32
from discreet.columns import Column, is_number_kind, is_whole_kind
from discreet.design.axis import OUTSIDE
from discreet.design.codes import MISSING, canonical, factorise
from discreet.errors import ColumnError, DataError
from discreet.frames import Frame
from discreet.records.backend import fetch
from discreet.records.engine import (
    CONTRIBUTOR,
    COUNT,
    HOLDING,
    KEY,
    WEIGHT,
    WEIGHT_SQUARED,
    ValueFacts,
    ValueGroups,
    bad_keys,
    check_weights,
    missing_persons,
)
from discreet.records.records import UnitRecords
from discreet.tables.magnitude import NEGLIGIBLE, Magnitude

Cell = tuple[int, ...]
Owner = tuple[Any, Any]  # holding and contributor; one of them is None


class NumpyEngine:
    """A reference for other engines, and a way to count records that are in memory anyway.

    Cost: the columns in use are held in memory, and one sort of the records.
    """

    name = "numpy"

    def group(self, data: UnitRecords, variables: Sequence[str]) -> Frame:
        """The cells that occur; see `Engine.group`."""
        table, key = data.join_keys()
        ids = () if data.person is None else (data.person, data.id)
        used = [c for c in (*variables, data.weight, key, *ids) if c is not None]
        used = used or table.columns[:1]
        records = fetch(data.backend, table.select(*dict.fromkeys(used)), data.origin)
        records = _within_bounds(data, records)
        factors = [factorise(records.column(v)) for v in variables]
        # The number of each record's cell, and for each variable the place of each cell's code.
        cell: Index = np.zeros(len(records), dtype=np.intp)
        places: list[Whole32] = []
        if factors:
            stacked = np.stack([place for _, place in factors], axis=1)
            rows, inverse = np.unique(stacked, axis=0, return_inverse=True)
            cell, places = inverse.ravel(), list(rows.T)
        columns = [
            Column(codes, "string").take(place)
            for (codes, _), place in zip(factors, places, strict=True)
        ]
        sums = _sums(data, records, key, cell, len(places[0]) if places else 1)
        return Frame({**{f"v{k}": column for k, column in enumerate(columns)}, **sums})

    def contributions(
        self, data: UnitRecords, of: Magnitude, groups: Sequence[ValueGroups]
    ) -> Frame:
        """The largest contributions to each cell; see `Engine.contributions`."""
        records = _fetch_values(data, of, [group.variable for group in groups])
        amounts = _values(records, of)
        if data.weight is not None:
            amounts = amounts * _weights(data, records.column(data.weight))
        return ranked_contributions(records, amounts.tolist(), of, groups)

    def value_facts(self, data: UnitRecords, of: Magnitude) -> ValueFacts:
        """What is to know of the values before they are summed."""
        records = _fetch_values(data, of, [])
        return facts_of(records, _values(records, of).tolist(), of)


def _values(records: Frame, of: Magnitude) -> Real:
    return _numbers(records.column(of.value), missing=np.nan, role="value").astype(np.float64)


def _fetch_values(data: UnitRecords, of: Magnitude, variables: Sequence[str]) -> Frame:
    """The records that count, with the columns that contributions need."""
    ids = () if data.person is None else (data.person, data.id)
    used = dict.fromkeys((*variables, *of.columns, data.weight, *ids))
    named = [name for name in used if name is not None]
    records = fetch(data.backend, data.table.select(*named), data.origin)
    return _within_bounds(data, records)


def _within_bounds(data: UnitRecords, records: Frame) -> Frame:
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


def _sums(
    data: UnitRecords, records: Frame, key: str | None, cell: Index, n: int
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


def _weights(data: UnitRecords, column: Column) -> Real:
    w = _numbers(column, missing=-np.inf, role="weight")
    if len(w):
        check_weights(data, float(w.min()), w)
    bound = data.data_set.bounds.weight
    return np.minimum(w.astype(np.float64), np.inf if bound is None else bound)


def _keys(data: UnitRecords, column: Column) -> Whole:
    keys = _numbers(column, missing=-1, role="key")
    is_fraction = keys.dtype.kind == "f"
    limit = 1 if is_fraction else data.convention.modulus
    if not ((keys >= 0) & (keys < limit)).all():
        raise bad_keys(data)
    return data.convention.scale(keys) if is_fraction else keys.astype(np.int64)


def _numbers(column: Column, missing: float, role: str) -> Array:
    """A numeric column; keys that are whole numbers stay whole, text included."""
    kind = column.kind
    is_fraction = is_number_kind(kind) and not (is_whole_kind(kind) or kind.endswith(" 0)"))
    if not (is_number_kind(kind) or kind == "string"):
        raise DataError(f"{role} column holds {kind}, not numbers.")
    try:
        column = column.cast("float64" if is_fraction or role != "key" else "int64")
    except ColumnError:
        raise DataError(f"{role} column could not be read: a value is no number.") from None
    return column.fill_null(missing).to_numpy()


def ranked_contributions(
    records: Frame, amounts: Sequence[float], of: Magnitude, groups: Sequence[ValueGroups]
) -> Frame:
    """The largest contributions to each cell, from what each record that counts contributes."""
    rows: list[dict[str, Any]] = []
    for cell, given in _by_cell(records, amounts, of, groups).items():
        sums = {who: math.fsum(parts) for who, parts in given.items()}
        gross = {who: math.fsum(map(abs, parts)) for who, parts in given.items()}
        # Records of a contributor that cancel out do not count.
        sums = {who: x for who, x in sums.items() if abs(x) > NEGLIGIBLE * gross[who]}
        ordered = sorted(sums, key=lambda who: (-abs(sums[who]), *map(str, who)))
        facts = {
            "n": len(sums),
            "s": math.fsum(sums.values()),
            "a": math.fsum(map(abs, sums.values())),
        }
        for rank, who in enumerate(ordered[: of.largest]):
            owner = {HOLDING: who[0], CONTRIBUTOR: who[1]}
            place = {f"g{i}": number for i, number in enumerate(cell)}
            rows.append({**place, "rank": rank, "x": sums[who], **owner, **facts})
    kinds = {f"g{i}": "int64" for i in range(len(groups))} | {"rank": "int64", "x": "float64"}
    kinds[HOLDING] = "int64" if of.holding is None else records.column(of.holding).kind
    kinds[CONTRIBUTOR] = records.column(of.contributor).kind
    return Frame.from_rows(rows, kinds | {"n": "int64", "s": "float64", "a": "float64"})


def _by_cell(
    records: Frame, amounts: Sequence[float], of: Magnitude, groups: Sequence[ValueGroups]
) -> dict[Cell, dict[Owner, list[float]]]:
    """What each contributor gives to each cell, record by record."""
    columns = []
    for group in groups:
        pairs = zip(group.values.to_pylist(), group.number, strict=True)
        number = {canonical(value): int(at) for value, at in pairs} | {MISSING: group.missing}
        values = records.column(group.variable).to_pylist()
        columns.append([number[canonical(value)] for value in values])
    cells = list(zip(*columns, strict=True)) if columns else [()] * len(records)
    contributors = records.column(of.contributor).to_pylist()
    holdings = [None] * len(records)
    if of.holding is not None:
        holdings = records.column(of.holding).to_pylist()
    found: dict[Cell, dict[Owner, list[float]]] = defaultdict(lambda: defaultdict(list))
    for cell, contributor, holding, x in zip(cells, contributors, holdings, amounts, strict=True):
        if OUTSIDE not in cell:
            who = (None, contributor) if holding is None else (holding, None)
            found[cell][who].append(x)
    return found


def facts_of(records: Frame, values: Sequence[float], of: Magnitude) -> ValueFacts:
    """What is to know of the values before they are summed; missing ones are not a number."""
    finite = [value for value in values if math.isfinite(value)]
    columns = [records.column(name) for name in (of.contributor, of.holding) if name is not None]
    pairs = zip(*(column.to_pylist() for column in columns), strict=True)
    owned = sum(any(one is not None for one in pair) for pair in pairs)
    return ValueFacts(len(records), len(finite), owned, min(finite, default=0.0))
