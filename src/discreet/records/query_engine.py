"""Engines: a database is asked one grouping query, or the cells of an earlier one are grouped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Array, Index, Whole
from discreet.design.axis import OUTSIDE
from discreet.errors import DiscreetError
from discreet.frames import Frame
from discreet.records.backend import fetch
from discreet.records.engine import (
    CONTRIBUTION,
    CONTRIBUTOR,
    COUNT,
    HOLDING,
    KEY,
    WEIGHT,
    WEIGHT_SQUARED,
    Engine,
    ValueFacts,
    ValueGroups,
    as_array,
    bad_keys,
    check_weights,
    missing_persons,
    with_null,
)
from discreet.records.expressions import (
    bounded_weights,
    require_numbers,
    weights_of,
    whole_keys,
    within_bounds,
)
from discreet.records.kinds import kind_name
from discreet.records.query import language_of
from discreet.records.recode import is_missing
from discreet.tables.magnitude import NEGLIGIBLE, Magnitude

if TYPE_CHECKING:
    from discreet.records.records import UnitRecords

_VALID = "valid"
_LARGEST = float(np.finfo(np.float64).max)


MOST_CELLS = 4_000_000
"""Cells that are held at most, some 60 bytes each."""
_PLACES = 2_000_000  # of a crossing: a table of them is cheaper than sorting the cells


class QueryEngine:
    """DuckDB in SQL of our own; PostgreSQL, Spark and others through Ibis.

    Counts, sums of weights and of squared weights, sums of keys and the checks of both are one
    `GROUP BY`. Names of columns are quoted, and the cells come back under names of ours.
    """

    name = "query"

    def group(self, data: UnitRecords, variables: Sequence[str]) -> Frame:
        """The cells that occur; see `Engine.group`."""
        cells = fetch(data.backend, self.query(data, variables), data.origin)
        sums = {name: as_array(cells.column(name)) for name in cells.column_names[len(variables) :]}
        is_finite = WEIGHT not in sums or bool(np.isfinite(sums[WEIGHT]).all())
        if not is_finite or not np.array_equal(sums.get(_VALID, sums[COUNT]), sums[COUNT]):
            raise _fault(data)
        kept = [name for name in cells.column_names if name != _VALID]
        return cells.select(kept)

    def query(self, data: UnitRecords, variables: Sequence[str]) -> Any:
        """The grouping as a query."""
        table, sums = sums_of(data)
        if not variables:
            return table.aggregate(**sums)
        by = {f"v{i}": table[name] for i, name in enumerate(variables)}
        return table.group_by(**by).aggregate(**sums)

    def contributions(
        self, data: UnitRecords, of: Magnitude, groups: Sequence[ValueGroups]
    ) -> Frame:
        """The largest contributions to each cell; see `Engine.contributions`."""
        return fetch(data.backend, contributions_query(data, of, groups), data.origin)

    def value_facts(self, data: UnitRecords, of: Magnitude) -> ValueFacts:
        """What is to know of the values before they are summed."""
        answer = fetch(data.backend, value_facts_query(data, of), data.origin)
        records, finite, owned, lowest = (column[0] for column in answer.columns)
        return ValueFacts(records, finite, owned, 0.0 if lowest is None else float(lowest))


class CondensedCells:
    """**Confidential.** An engine that groups the cells of records that were counted once.

    Counts, weights and keys are sums, so the cells of the crossing of all variables give every
    smaller crossing exactly. A table then costs what those cells cost, not what the records do.

    Promise: what it gives for some variables is what the engine gives for them, whole numbers to
    the last digit; sums of weights may differ by the order in which they were added.

    Args:
      engine: Groups the records, once.
      data: The records.
      variables: All that will be asked for.
    """

    def __init__(self, engine: Engine, data: UnitRecords, variables: Sequence[str]) -> None:
        cells = engine.group(data, variables)
        self._codes: dict[str, tuple[Any, Array]] = {}
        for place, name in enumerate(variables):
            codes, distinct = with_null(cells.column(place))
            smallest = np.min_scalar_type(max(len(distinct) - 1, 0))
            self._codes[name] = (distinct, codes.astype(smallest))
        self._sums = {
            name: as_array(cells.column(len(variables) + place))
            for place, name in enumerate(cells.column_names[len(variables) :])
        }
        if KEY in self._sums:  # a sum that an engine may have written as decimals
            self._sums[KEY] = self._sums[KEY].astype(np.int64)

    def __len__(self) -> int:
        return len(self._sums[COUNT])

    def group(self, data: UnitRecords, variables: Sequence[str]) -> Frame:
        """The cells that occur of some of the variables."""
        sizes = [len(self._codes[name][0]) for name in variables]
        place = np.zeros(len(self), dtype=np.int64)
        for name, size in zip(variables, sizes, strict=True):
            place = place * size + self._codes[name][1]
        found, inverse = _distinct(place, int(np.prod(sizes, dtype=np.int64)))
        columns: dict[str, Any] = {}
        for at, (name, size) in reversed([*enumerate(zip(variables, sizes, strict=True))]):
            below = int(np.prod(sizes[at + 1 :], dtype=np.int64))
            columns[f"v{at}"] = self._codes[name][0].take(found // below % size)
        sums = {name: _sum_by(values, inverse, len(found)) for name, values in self._sums.items()}
        return Frame({**{f"v{at}": columns[f"v{at}"] for at in range(len(variables))}, **sums})


def sums_of(data: UnitRecords) -> tuple[Any, dict[str, Any]]:
    """The records, and what is summed over them: counts, weights, keys, and valid records.

    One count of records whose weight and key are valid is all the checking there is: it costs next
    to nothing beside the sums, unlike a smallest and a largest value for each cell.
    """
    table, key = data.join_keys()
    lang = language_of(table)
    table, bounds = within_bounds(table, data), data.data_set.bounds
    sums, is_valid = {COUNT: table.count()}, []
    if bounds.person is not None:
        is_valid += [table[bounds.person].notnull(), table[data.id].notnull()]
    if data.weight is not None:
        given, w = bounded_weights(table, data)
        sums |= {WEIGHT: w.sum(), WEIGHT_SQUARED: (w * w).sum()}
        is_valid.append((given >= 0) & (given <= _LARGEST))
    if key is not None:
        whole, in_range = whole_keys(table[key], data.convention.modulus)
        sums[KEY] = whole.sum()
        is_valid.append(in_range)
    if is_valid:
        sums[_VALID] = lang.ifelse(lang.and_(*is_valid), 1, lang.null("int64")).count()
    return table, sums


def _fault(data: UnitRecords) -> DiscreetError:
    """The error for records of which a weight, key or person is not valid: asks which it is."""
    table = data.table
    if data.weight is not None:
        w = weights_of(table, data)
        low, total, some, records = _row(data, [w.min(), w.sum(), w.count(), table.count()])
        lowest = float(low) if some == records else float("-inf")
        check_weights(data, lowest, np.array([total], dtype=np.float64))
    if data.person is not None:
        counts = _row(data, [table[data.person].count(), table[data.id].count(), table.count()])
        if len(set(counts)) > 1:
            return missing_persons(data)
    return bad_keys(data)


def _row(data: UnitRecords, sums: Sequence[Any]) -> list[Any]:
    """Some sums over all records."""
    query = data.table.aggregate(**{f"n{i}": one for i, one in enumerate(sums)})
    return [column[0] for column in fetch(data.backend, query, data.origin).columns]


def contributions_query(data: UnitRecords, of: Magnitude, groups: Sequence[ValueGroups]) -> Any:
    """The contributions as a query; see `Engine.contributions`.

    Records are summed by cell and contributor, and a window over each cell ranks the sums.
    """
    table = _records(data, of, groups)
    for i, group in enumerate(groups):
        table = _join_group(table, f"v{i}", f"g{i}", group)
    by = [f"g{i}" for i in range(len(groups))]
    sums = table.group_by(*by, HOLDING, CONTRIBUTOR).aggregate(
        x=table[CONTRIBUTION].sum(), gross=table[CONTRIBUTION].abs().sum()
    )
    some = sums.filter(sums["x"].abs() > NEGLIGIBLE * sums["gross"])
    order = [some["x"].abs().desc(), some[HOLDING], some[CONTRIBUTOR]]
    ranked = some.mutate(
        rank=language_of(some).row_number().over(group_by=by, order_by=order),
        n=some["x"].count().over(group_by=by),
        s=some["x"].sum().over(group_by=by),
        a=some["x"].abs().sum().over(group_by=by),
    )
    kept = ranked.filter(ranked["rank"] < of.largest)
    return kept.select(*by, "rank", "x", HOLDING, CONTRIBUTOR, "n", "s", "a")


def _records(data: UnitRecords, of: Magnitude, groups: Sequence[ValueGroups]) -> Any:
    """Variables, contributor, holding and amount of each record, under names of ours."""
    table = within_bounds(data.table, data)
    lang = language_of(table)
    amount = _numbers(table, of)
    if data.weight is not None:
        amount = amount * bounded_weights(table, data)[1]
    contributor = table[of.contributor]
    holding = lang.null("int64") if of.holding is None else table[of.holding]
    if of.holding is not None:
        contributor = lang.ifelse(holding.isnull(), contributor, lang.null(contributor.type()))
    return table.select(
        **{f"v{i}": table[group.variable] for i, group in enumerate(groups)},
        **{HOLDING: holding, CONTRIBUTOR: contributor, CONTRIBUTION: amount},
    )


def _join_group(table: Any, variable: str, place: str, group: ValueGroups) -> Any:
    """The records in some group of a variable, with its number, through a small side table."""
    lang = language_of(table)
    given = ~group.values.is_null() & (group.number != OUTSIDE)
    old, new = f"old_{variable}", f"new_{variable}"
    values = group.values.filter(given).cast(kind_name(table[variable].type()))
    side = lang.memtable(Frame({old: values, new: group.number[given].astype(np.int64)}))
    joined = table.left_join(side, table[variable] == side[old])
    missing = lang.null("int64") if group.missing == OUTSIDE else lang.literal(group.missing)
    number = lang.ifelse(is_missing(joined[variable]), missing.cast("int64"), joined[new])
    numbered = joined.mutate(**{place: number}).drop(old, new)
    return numbered.filter(numbered[place].notnull())


def value_facts_query(data: UnitRecords, of: Magnitude) -> Any:
    """What `ValueFacts` holds, in one row."""
    table = within_bounds(data.table, data)
    lang = language_of(table)
    value = _numbers(table, of)
    one, none = lang.literal(1, "int64"), lang.null("int64")
    is_finite = (value >= -_LARGEST) & (value <= _LARGEST)
    has_owner = table[of.contributor].notnull()
    if of.holding is not None:
        has_owner = has_owner | table[of.holding].notnull()
    return table.aggregate(
        records=table.count(),
        finite=lang.ifelse(is_finite, one, none).count(),
        owned=lang.ifelse(has_owner, one, none).count(),
        lowest=lang.ifelse(is_finite, value, lang.null("float64")).min(),
    )


def _numbers(table: Any, of: Magnitude) -> Any:
    column = table[of.value]
    require_numbers(column, "value")
    return column if column.type().is_float64() else column.cast("float64")


def _distinct(place: Whole, places: int) -> tuple[Whole, Index]:
    """The places that occur, and for each cell which of them is its own."""
    if places > _PLACES:
        found, inverse = np.unique(place, return_inverse=True)
        return found, inverse
    occurs = np.zeros(places, dtype=bool)
    occurs[place] = True
    found = np.flatnonzero(occurs)
    number = np.zeros(places, dtype=np.int64)
    number[found] = np.arange(len(found))
    return found, number[place]


def _sum_by(values: Array, inverse: Index, n: int) -> Array:
    """Sums over the cells of each group; whole numbers never pass through floats."""
    found = np.zeros(n, dtype=values.dtype)
    np.add.at(found, inverse, values)
    return found
