"""What is asked of records as Ibis expressions: bounds, weights, keys and their check, sketches."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import DataError
from discreet.frames import fresh_name
from discreet.ledger.entries import Sketch
from discreet.records.backend import connection_of, fetch
from discreet.tables.keys import SAMPLED, KeyCounts, buckets_of, require_uniform

if TYPE_CHECKING:
    from discreet.records.records import UnitRecords

BUCKETS = 16**3
_BUCKET_DIGITS = 3
_SEPARATOR, _MISSING = "\x1f", "\x1e"


def within_bounds(table: Any, data: UnitRecords) -> Any:
    """The records that are counted: those of each person with the lowest ids, up to the bound."""
    import ibis

    bounds = data.data_set.bounds
    if bounds.person is None:
        return table
    place = fresh_name("record_of_person", table.columns)
    number = ibis.row_number().over(group_by=table[bounds.person], order_by=table[data.id])
    numbered = table.mutate(**{place: number})
    return numbered.filter(numbered[place] < bounds.max_records).drop(place)


def bounded_weights(table: Any, data: UnitRecords) -> tuple[Any, Any]:
    """The weights as they were given, and cut to their bound."""
    import ibis

    given, bound = weights_of(table, data), data.data_set.bounds.weight
    return given, given if bound is None else ibis.least(given, bound)


def weights_of(table: Any, data: UnitRecords) -> Any:
    """The weights as they were given."""
    column = table[data.weight]
    require_numbers(column, "weight")
    return column if column.type().is_float64() else column.cast("float64")


def whole_keys(column: Any, modulus: int) -> tuple[Any, Any]:
    """Keys as whole numbers, and whether they lie in their range."""
    require_numbers(column, "key")
    kind = column.type()
    if kind.is_floating() or (kind.is_decimal() and kind.scale != 0):
        given = column if kind.is_float64() else column.cast("float64")
        return nearest(given * float(modulus)).cast("int64"), (given >= 0) & (given < 1)
    is_safe = kind.is_integer() and not kind.is_uint64()
    given = column if is_safe else column.cast("int64")  # text holds whole numbers
    return given, (given >= 0) & (given < modulus)


def require_numbers(column: Any, role: str) -> None:
    """Refuse a column that cannot be read as numbers."""
    kind = column.type()
    if not (kind.is_numeric() or kind.is_string()) or kind.is_boolean():
        raise DataError(f"{role} column {column.get_name()!r} holds {kind}, not numbers.")


def nearest(number: Any) -> Any:
    """The nearest whole number, halves to the even one: the same on every engine and in NumPy."""
    import ibis

    up = (number + 0.5).floor()
    is_odd_half = (up == number + 0.5) & (up % 2 == 1)
    return ibis.ifelse(is_odd_half, up - 1, up)


class KeyCheck:
    """Looks at given keys once; copies of the records with the same keys share the check."""

    def __init__(self) -> None:
        self._is_done = False

    def __call__(self, data: UnitRecords) -> None:
        """Refuse the keys of the records when they are predictable."""
        if not self._is_done:
            require_uniform(count_keys(data), "record keys")
            self._is_done = True


def count_keys(data: UnitRecords) -> KeyCounts:
    """The counts of the records' keys, in one query that returns at most 64 × 64 of them."""
    import ibis

    table, key = data.join_keys()
    rule, buckets = data.convention, buckets_of(data.convention)
    whole, in_range = whole_keys(table[key], rule.modulus)
    keys = table.filter(in_range).select(k=whole.cast("int64"))
    high, low = (keys.k * buckets // rule.modulus).cast("int64"), (keys.k % buckets).cast("int64")
    sampled = ibis.ifelse(low < SAMPLED, keys.k, ibis.null("int64"))
    once = keys.group_by(high=high, low=low, k=sampled).aggregate(times=keys.count())
    found = once.group_by("high", "low").aggregate(
        n=once.times.sum().cast("int64"), distinct=once.k.count().cast("int64")
    )
    columns = (np.asarray(c) for c in fetch(data.backend, found, data.origin).columns)
    at_high, at_low, n, distinct = columns
    by_high, by_low = np.zeros((2, buckets), dtype=np.int64)
    np.add.at(by_high, at_high, n)
    np.add.at(by_low, at_low, n)
    return KeyCounts(by_high, by_low, int(distinct.sum()), rule)


def sketch_of(data: UnitRecords) -> Sketch:
    """A sketch of the records as they were opened: what a ledger tells editions apart by.

    A record is hashed with all its columns but the record key, and once more by its id alone;
    without an id the second part is empty, and changes are undercounted. Three hexadecimal digits
    of the hash are the bucket and the fourth is the sign. Recodes and the order of records and
    columns make no difference.
    Cost: one query that returns at most 8,192 sums.
    """
    columns = sorted(name for name in data.opened.columns if name != data.key)
    parts = [columns] if data.id is None else [columns, [data.id]]
    queries = [_sums(data, part, i) for i, part in enumerate(parts)]
    found = fetch(data.backend, reduce(lambda a, b: a.union(b), queries), data.origin)
    vectors = np.zeros((2, BUCKETS), dtype=np.int64)
    for row in found.to_pylist():
        vectors[row["part"], int(row["bucket"], 16)] = row["total"]
    return Sketch(ids=vectors[1], rows=vectors[0])


def _sums(data: UnitRecords, columns: Sequence[str], part: int) -> Any:
    """The signed number of records in each bucket, by a hash of some columns."""
    import ibis

    table = data.opened
    texts = [table[name].cast("string").fill_null(_MISSING) for name in columns]
    digest = connection_of(data.backend).digest(ibis.literal(_SEPARATOR).join(texts))
    hashed = table.select(digest=digest)
    sign = ibis.ifelse(hashed.digest.substr(_BUCKET_DIGITS, 1).isin(list("01234567")), 1, -1)
    bucket = hashed.digest.substr(0, _BUCKET_DIGITS)
    sums = hashed.group_by(bucket=bucket).aggregate(total=sign.sum().cast("int64"))
    return sums.select(part=ibis.literal(part, "int64"), bucket=sums.bucket, total=sums.total)
