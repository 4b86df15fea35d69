"""Contributions record by record: slow and obvious, the reference for other engines."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from discreet.design.axis import OUTSIDE
from discreet.design.codes import MISSING, canonical
from discreet.tables.magnitude import NEGLIGIBLE, Magnitude
from discreet.tabulate.engine import CONTRIBUTOR, HOLDING, Groups, ValueFacts

if TYPE_CHECKING:
    import pyarrow as pa

Cell = tuple[int, ...]
Owner = tuple[Any, Any]


def ranked_contributions(
    records: pa.Table, amounts: Sequence[float], of: Magnitude, groups: Sequence[Groups]
) -> pa.Table:
    """The largest contributions to each cell; see `Engine.contributions`.

    Args:
      records: The records that count.
      amounts: What each of them contributes.
      of: What is summed, and whose it is.
      groups: For each variable of the cells where its values lie.
    """
    rows: list[dict[str, Any]] = []
    for cell, given in _by_cell(records, amounts, of, groups).items():
        sums = {who: math.fsum(parts) for who, parts in given.items() if _counts(parts)}
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
    return _as_table(rows, records, of, len(groups))


def _by_cell(
    records: pa.Table, amounts: Sequence[float], of: Magnitude, groups: Sequence[Groups]
) -> dict[Cell, dict[Owner, list[float]]]:
    """What each contributor gives to each cell, record by record."""
    columns = [_numbers(records.column(group.variable), group) for group in groups]
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


def _numbers(column: Any, group: Groups) -> list[int]:
    """The group of each record."""
    number = {
        canonical(v): int(g) for v, g in zip(group.values.to_pylist(), group.number, strict=True)
    }
    number[MISSING] = group.missing
    return [number[canonical(value)] for value in column.to_pylist()]


def _counts(parts: Sequence[float]) -> bool:
    """Whether the records of a contributor do not cancel out."""
    return abs(math.fsum(parts)) > NEGLIGIBLE * math.fsum(map(abs, parts))


def _as_table(rows: list[dict[str, Any]], records: pa.Table, of: Magnitude, n: int) -> pa.Table:
    import pyarrow as pa

    holding = pa.int64() if of.holding is None else records.column(of.holding).type
    kinds = [(f"g{i}", pa.int64()) for i in range(n)]
    kinds += [("rank", pa.int64()), ("x", pa.float64()), (HOLDING, holding)]
    kinds += [(CONTRIBUTOR, records.column(of.contributor).type), ("n", pa.int64())]
    kinds += [("s", pa.float64()), ("a", pa.float64())]
    return pa.Table.from_pylist(rows, pa.schema(kinds))


def facts_of(records: pa.Table, values: Sequence[float], of: Magnitude) -> ValueFacts:
    """What is to know of the values before they are summed.

    Args:
      records: The records that count.
      values: Their values, not a number where they are missing.
      of: What is summed, and whose it is.
    """
    finite = [value for value in values if math.isfinite(value)]
    columns = [records.column(name) for name in (of.contributor, of.holding) if name is not None]
    pairs = zip(*(column.to_pylist() for column in columns), strict=True)
    owned = sum(any(one is not None for one in pair) for pair in pairs)
    return ValueFacts(len(records), len(finite), owned, min(finite, default=0.0))
