"""What is asked of records as queries: bounds, weights, keys and their check, sketches."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Whole
from discreet.errors import DataError
from discreet.frames import fresh_name
from discreet.records.backend import connection_of, fetch
from discreet.records.query import language_of
from discreet.tables.keys import SAMPLED, KeyCounts, buckets_of, require_uniform
from discreet.tables.sketches import BUCKETS, Labels, RecordSketches, Sketch

if TYPE_CHECKING:
    from discreet.records.records import UnitRecords

_BUCKET_DIGITS = 3
_SEPARATOR, _MISSING = "\x1f", "\x1e"


def within_bounds(table: Any, data: UnitRecords) -> Any:
    """The records that are counted: those of each person with the lowest ids, up to the bound."""
    bounds = data.data_set.bounds
    if bounds.person is None:
        return table
    place = fresh_name("record_of_person", table.columns)
    number = (
        language_of(table).row_number().over(group_by=table[bounds.person], order_by=table[data.id])
    )
    numbered = table.mutate(**{place: number})
    return numbered.filter(numbered[place] < bounds.max_records).drop(place)


def bounded_weights(table: Any, data: UnitRecords) -> tuple[Any, Any]:
    """The weights as they were given, and cut to their bound."""
    given, bound = weights_of(table, data), data.data_set.bounds.weight
    return given, given if bound is None else language_of(table).least(given, bound)


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
    up = (number + 0.5).floor()
    is_odd_half = (up == number + 0.5) & (up % 2 == 1)
    return language_of(number).ifelse(is_odd_half, up - 1, up)


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
    table, key = data.join_keys()
    lang = language_of(table)
    rule, buckets = data.convention, buckets_of(data.convention)
    whole, in_range = whole_keys(table[key], rule.modulus)
    keys = table.filter(in_range).select(k=whole.cast("int64"))
    high, low = (keys.k * buckets // rule.modulus).cast("int64"), (keys.k % buckets).cast("int64")
    sampled = lang.ifelse(low < SAMPLED, keys.k, lang.null("int64"))
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


def record_sketches(data: UnitRecords, tables: Sequence[Labels]) -> RecordSketches | None:
    """Sketches of the records as they were opened: their keys with the codes of each table.

    A record's key is hashed with its codes of a table's variables; three hexadecimal digits of the
    hash are the bucket and the fourth is the sign. Neither a secret nor a key becomes part of the
    query. Variables of time are left out, those that move are moved back.
    Cost: one query, with a pass over the records for each table, that returns at most 4,096 sums
    for each.

    Args:
      data: The records; those without keys have no such sketches.
      tables: The variables of each table.
    """
    if not data.has_keys:
        return None
    wanted = list(dict.fromkeys([(), *(tuple(sorted(names)) for names in tables)]))
    opened, key = data.opened, data.key
    if data.record_keys is not None:
        opened, key = data.record_keys.join(opened)
    whole = whole_keys(opened[key], data.convention.modulus)[0].cast("string")
    texts = [[whole, *(_moved_back(opened, data, name) for name in names)] for names in wanted]
    vectors = _sums(data, opened, texts)
    total = int(fetch(data.backend, opened.aggregate(n=opened.count()), data.origin).column(0)[0])
    mark = "" if data.secret is None else data.secret.mark
    by_variables = {names: Sketch(v, total) for names, v in zip(wanted, vectors, strict=True)}
    return RecordSketches(f"{mark}/{data.convention.name}", by_variables)


def content_sums(data: UnitRecords) -> Whole:
    """Sums over hashes of whole records, record keys left out: the same for the same records.

    They are without a key, so they serve one comparison and are never stored.
    """
    columns = sorted(name for name in data.opened.columns if name != data.key)
    return _sums(data, data.opened, [[data.opened[name] for name in columns]])[0]


def _moved_back(table: Any, data: UnitRecords, name: str) -> Any:
    """A variable as it was at the start; what is no whole number stays as it is."""
    lang = language_of(table)
    column, shift = table[name], data.passage.shift(name, data.data_set.edition)
    if shift is None:
        return column
    text = column.cast("string")
    whole = lang.ifelse(text.re_search(r"^-?[0-9]+$"), text, lang.null("string")).cast("int64")
    return lang.coalesce((whole - shift).cast("string"), text)


def _sums(data: UnitRecords, table: Any, parts: Sequence[Sequence[Any]]) -> list[Whole]:
    """For each part the signed number of records in each bucket, by a hash of some columns."""
    queries, connection, lang = [], connection_of(data.backend), language_of(table)
    for part, columns in enumerate(parts):
        texts = [column.cast("string").fill_null(_MISSING) for column in columns]
        hashed = table.select(digest=connection.digest(lang.literal(_SEPARATOR).join(texts)))
        sign = lang.ifelse(hashed.digest.substr(_BUCKET_DIGITS, 1).isin(list("01234567")), 1, -1)
        bucket = hashed.digest.substr(0, _BUCKET_DIGITS)
        sums = hashed.group_by(bucket=bucket).aggregate(total=sign.sum().cast("int64"))
        place = lang.literal(part, "int64")
        queries.append(sums.select(part=place, bucket=sums.bucket, total=sums.total))
    found = fetch(data.backend, reduce(lambda a, b: a.union(b), queries), data.origin)
    vectors = np.zeros((len(parts), BUCKETS), dtype=np.int64)
    for row in found.to_pylist():
        vectors[row["part"], int(row["bucket"], 16)] = row["total"]
    return list(vectors)
