"""Any Ibis back end as an engine: one grouping query, from which only cells come back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Array, Real
from discreet.microdata.backend import fetch
from discreet.microdata.expressions import bounded_weights, weights_of, whole_keys, within_bounds
from discreet.tables.magnitude import Magnitude
from discreet.tabulate.engine import (
    COUNT,
    KEY,
    WEIGHT,
    WEIGHT_SQUARED,
    Groups,
    ValueFacts,
    as_array,
    bad_keys,
    check_weights,
    missing_persons,
)
from discreet.tabulate.ibis_contributions import (
    contributions_query,
    value_facts,
    value_facts_query,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.microdata.records import UnitRecords

_VALID = "valid"
_LARGEST = float(np.finfo(np.float64).max)


class IbisEngine:
    """DuckDB, PostgreSQL, Spark and whatever else Ibis speaks to.

    Counts, sums of weights and of squared weights, sums of keys and the checks of both are one
    `GROUP BY`. Names of columns are quoted by Ibis, and the cells come back under names of ours.
    """

    name = "ibis"

    def group(self, data: UnitRecords, variables: Sequence[str]) -> pa.Table:
        """The cells that occur; see `Engine.group`."""
        cells = fetch(data.backend, self.query(data, variables), data.origin)
        sums = {name: as_array(cells.column(name)) for name in cells.column_names[len(variables) :]}
        _check(data, sums)
        kept = [name for name in cells.column_names if name != _VALID]
        return cells.select(kept).rename_columns([*variables, *kept[len(variables) :]])

    def query(self, data: UnitRecords, variables: Sequence[str]) -> Any:
        """The grouping as an Ibis expression."""
        table, sums = sums_of(data)
        if not variables:
            return table.aggregate(**sums)
        by = {f"v{i}": table[name] for i, name in enumerate(variables)}
        return table.group_by(**by).aggregate(**sums)

    def contributions(self, data: UnitRecords, of: Magnitude, groups: Sequence[Groups]) -> pa.Table:
        """The largest contributions to each cell; see `Engine.contributions`."""
        return fetch(data.backend, contributions_query(data, of, groups), data.origin)

    def value_facts(self, data: UnitRecords, of: Magnitude) -> ValueFacts:
        """What is to know of the values before they are summed."""
        return value_facts(fetch(data.backend, value_facts_query(data, of), data.origin))


def sums_of(data: UnitRecords) -> tuple[Any, dict[str, Any]]:
    """The records, and what is summed over them: counts, weights, keys, and valid records.

    One count of records whose weight and key are valid is all the checking there is: it costs next
    to nothing beside the sums, unlike a smallest and a largest value for each cell.
    """
    import ibis

    table, key = data.keyed()
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
        sums[_VALID] = ibis.ifelse(ibis.and_(*is_valid), 1, ibis.null("int64")).count()
    return table, sums


def _check(data: UnitRecords, sums: dict[str, Array]) -> None:
    """Refuse records whose weight, key or person is not valid."""
    is_finite = WEIGHT not in sums or bool(np.isfinite(sums[WEIGHT]).all())
    if is_finite and np.array_equal(sums.get(_VALID, sums[COUNT]), sums[COUNT]):
        return
    if data.weight is not None:
        check_weights(data, *_weight_facts(data))
    if data.person is not None and _lacks_persons(data):
        raise missing_persons(data)
    raise bad_keys(data)


def _weight_facts(data: UnitRecords) -> tuple[float, Real]:
    """The smallest weight, minus infinity when one is missing, and the sum of all weights.

    Asked only to explain an error.
    """
    w = weights_of(data.table, data)
    query = data.table.aggregate(low=w.min(), sum=w.sum(), some=w.count(), all=data.table.count())
    low, total, some, all_ = (c[0].as_py() for c in fetch(data.backend, query, data.origin).columns)
    return float(low) if some == all_ else float("-inf"), np.array([total], dtype=np.float64)


def _lacks_persons(data: UnitRecords) -> bool:
    table = data.table
    counts = [table[data.person].count(), table[data.id].count(), table.count()]
    query = table.aggregate(**{f"n{i}": count for i, count in enumerate(counts)})
    found = [c[0].as_py() for c in fetch(data.backend, query, data.origin).columns]
    return len(set(found)) > 1
