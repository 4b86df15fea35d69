"""Links between indicators: turnover is the sum of domestic turnover and exports.

A value that is the sum of others is tabulated by a further variable whose total it is. The equation
between the indicators is then one of the table's own, so that suppression, audits and fits know it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import TypeVar

from discreet.design.hierarchy import Hierarchy
from discreet.errors import DataError, ParameterError, check_known
from discreet.records.backend import fetch
from discreet.records.query import language_of
from discreet.records.records import UnitRecords

INDICATOR = "indicator"
"""The variable that tells indicators apart."""
SomeRecords = TypeVar("SomeRecords", bound=UnitRecords)
_NEAR = 1e-9  # of a value: sums of decimal fractions end in other digits
_LINK = re.compile(r"\s*([^=+]+?)\s*(?:=\s*(.+))?")


def read_link(text: str) -> tuple[str, tuple[str, ...] | None]:
    """The total and the parts of `turnover = domestic + export`; parts are `None` for a name."""
    match = _LINK.fullmatch(text)
    parts = None if match is None or not match[2] else tuple(p.strip() for p in match[2].split("+"))
    if match is None or (parts is not None and not all(parts)):
        raise ParameterError(
            "a link is written as 'turnover = domestic + export', or as 'turnover' where parts are "
            f"found by name (turnover_domestic, …); got {text!r}."
        )
    return match[1], parts


def find_parts(columns: Sequence[str], total: str) -> tuple[str, ...]:
    """The columns that are parts of a value by their names: `turnover_domestic` of `turnover`."""
    found = tuple(c for c in columns if re.match(rf"{re.escape(total)}[_. ]\S", c))
    if len(found) < 2:
        raise ParameterError(
            f"no two columns are parts of {total!r} by their names ({total + '_domestic'!r}, …). "
            f"Name them: '{total} = domestic + export'. Columns: {', '.join(columns)}."
        )
    return found


def stack_parts(
    data: SomeRecords, total: str, parts: Sequence[str] | None = None, name: str = INDICATOR
) -> SomeRecords:
    """The records once for each part; see `Microdata.with_parts`."""
    chosen = find_parts(data.columns, total) if parts is None else tuple(parts)
    if len(set(chosen)) < 2 or len(set(chosen)) < len(chosen):
        raise ParameterError(f"a value has two or more different parts, got {list(chosen)}.")
    check_known("column", chosen, data.columns)
    if name in data.columns:
        raise ParameterError(f"there is a column {name!r} already; choose another name=.")
    if total in data.columns:
        _check_link(data, total, chosen)
    table = data.table.drop(total) if total in data.columns else data.table
    pieces = [
        table.mutate(**{name: language_of(table).literal(part), total: table[part].cast("float64")})
        for part in chosen
    ]
    tree = Hierarchy.flat(chosen, root=total)
    return replace(
        data,
        table=reduce(lambda one, two: one.union(two), pieces),
        hierarchies={**data.hierarchies, name: (tree,)},
        # A record stands in as many rows as there are parts, so its key would count as often.
        key=None,
        record_keys=None,
    )


def _check_link(data: UnitRecords, total: str, parts: Sequence[str]) -> None:
    """Refuse parts that do not add up to the total in every record."""
    table = data.table
    whole = table[total].cast("float64")
    gap = (reduce(add, (table[part].cast("float64") for part in parts)) - whole).abs()
    apart = (gap > _NEAR * (1 + whole.abs())) | gap.isnull()
    found = fetch(data.backend, table.aggregate(n=apart.sum().cast("int64")), data.origin)
    if n := found.column("n")[0] or 0:
        raise DataError(
            f"{total!r} is not {' + '.join(parts)} in {n:,} records, so no equation holds in the "
            f"table. Correct them, or leave {total!r} out: it is then the sum of its parts."
        )
