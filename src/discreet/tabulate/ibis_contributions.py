"""The largest contributions to each cell, found by the engine that holds the records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.design.axis import OUTSIDE
from discreet.microdata.expressions import bounded_weights, require_numbers, within_bounds
from discreet.microdata.recode import is_missing
from discreet.tables.magnitude import NEGLIGIBLE, Magnitude
from discreet.tabulate.engine import CONTRIBUTION, CONTRIBUTOR, HOLDING, Groups, ValueFacts

if TYPE_CHECKING:
    from discreet.microdata.records import UnitRecords

_LARGEST = float(np.finfo(np.float64).max)


def contributions_query(data: UnitRecords, of: Magnitude, groups: Sequence[Groups]) -> Any:
    """The contributions as an Ibis expression; see `Engine.contributions`.

    Records are summed by cell and contributor, and a window over each cell ranks the sums.
    """
    import ibis

    table = _placed(_records(data, of, groups), groups)
    by = [f"g{i}" for i in range(len(groups))]
    sums = table.group_by(*by, HOLDING, CONTRIBUTOR).aggregate(
        x=table[CONTRIBUTION].sum(), gross=table[CONTRIBUTION].abs().sum()
    )
    some = sums.filter(sums["x"].abs() > NEGLIGIBLE * sums["gross"])
    cell = ibis.window(group_by=by)
    order = [some["x"].abs().desc(), some[HOLDING], some[CONTRIBUTOR]]
    ranked = some.mutate(
        rank=ibis.row_number().over(group_by=by, order_by=order),
        n=some["x"].count().over(cell),
        s=some["x"].sum().over(cell),
        a=some["x"].abs().sum().over(cell),
    )
    kept = ranked.filter(ranked["rank"] < of.largest)
    return kept.select(*by, "rank", "x", HOLDING, CONTRIBUTOR, "n", "s", "a")


def _records(data: UnitRecords, of: Magnitude, groups: Sequence[Groups]) -> Any:
    """Variables, contributor, holding and amount of each record, under names of ours."""
    import ibis

    table = within_bounds(data.table, data)
    amount = _numbers(table, of)
    if data.weight is not None:
        amount = amount * bounded_weights(table, data)[1]
    contributor = table[of.contributor]
    holding = ibis.null("int64") if of.holding is None else table[of.holding]
    if of.holding is not None:
        contributor = ibis.ifelse(holding.isnull(), contributor, ibis.null(contributor.type()))
    return table.select(
        **{f"v{i}": table[group.variable] for i, group in enumerate(groups)},
        **{HOLDING: holding, CONTRIBUTOR: contributor, CONTRIBUTION: amount},
    )


def _placed(table: Any, groups: Sequence[Groups]) -> Any:
    """The records that lie in some cell, with the number of their group for each variable."""
    for i, group in enumerate(groups):
        table = _joined(table, f"v{i}", f"g{i}", group)
    return table


def _joined(table: Any, variable: str, place: str, group: Groups) -> Any:
    """The number of each record's group, through a small side table."""
    import ibis
    import pyarrow as pa

    kind = table[variable].type().to_pyarrow()
    given = np.asarray(group.values.is_valid()) & (group.number != OUTSIDE)
    old, new = f"old_{variable}", f"new_{variable}"
    values = group.values.filter(pa.array(given)).cast(kind)
    side = ibis.memtable(pa.table({old: values, new: pa.array(group.number[given], pa.int64())}))
    joined = table.left_join(side, table[variable] == side[old])
    missing = ibis.null("int64") if group.missing == OUTSIDE else ibis.literal(group.missing)
    number = ibis.ifelse(is_missing(joined[variable]), missing.cast("int64"), joined[new])
    numbered = joined.mutate(**{place: number}).drop(old, new)
    return numbered.filter(numbered[place].notnull())


def value_facts_query(data: UnitRecords, of: Magnitude) -> Any:
    """What `ValueFacts` holds, in one row."""
    import ibis

    table = within_bounds(data.table, data)
    value = _numbers(table, of)
    one, none = ibis.literal(1, "int64"), ibis.null("int64")
    is_finite = (value >= -_LARGEST) & (value <= _LARGEST)
    has_owner = table[of.contributor].notnull()
    if of.holding is not None:
        has_owner = has_owner | table[of.holding].notnull()
    return table.aggregate(
        records=table.count(),
        finite=ibis.ifelse(is_finite, one, none).count(),
        owned=ibis.ifelse(has_owner, one, none).count(),
        lowest=ibis.ifelse(is_finite, value, ibis.null("float64")).min(),
    )


def value_facts(answer: Any) -> ValueFacts:
    """The facts from the answer to `value_facts_query`."""
    records, finite, owned, lowest = (column[0].as_py() for column in answer.columns)
    return ValueFacts(records, finite, owned, 0.0 if lowest is None else float(lowest))


def _numbers(table: Any, of: Magnitude) -> Any:
    column = table[of.value]
    require_numbers(column, "value")
    return column if column.type().is_float64() else column.cast("float64")
