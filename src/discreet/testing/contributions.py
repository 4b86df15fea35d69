"""The part of the battery for engines that is about magnitudes: sums and largest contributions."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.design.codes import canonical
from discreet.design.hierarchy import Hierarchy
from discreet.errors import DataError, EngineError
from discreet.facade.microdata import Microdata
from discreet.randomness import stream
from discreet.records.engine import Engine
from discreet.tables.magnitude import CellContributions, Contributions

Given = dict[str, float]
_TOLERANCE = 1e-9
_WHOLE = pa.int64()
_TREE = Hierarchy.from_dict({"Total": {"North": ["a", "b"], "South": ["c"], "d": []}})


def compare_contributions(frame: pa.Table, data: Microdata, engine: Engine) -> None:
    """Tabulate magnitudes in several ways, and compare every cell with adding up by hand."""
    if "weight" in frame.column_names:
        data = data.with_roles(weight="weight")
    options: dict[str, Any] = {"value": "value", "contributor": "who", "negative": "absolute"}
    if "holding" in frame.column_names:
        options["holding"] = "holding"
    for margins, largest in (("v*u", 3), ("u + v", 2)):
        options |= {"hierarchies": {"v": _TREE}, "support": "occurring", "largest": largest}
        table = data.tabulate(margins, engine=engine, **options)
        given, design = table.require_contributions(), table.design
        cells = [(given.published, k, design.cell(k)) for k in range(design.n_published)]
        inner = given.require_inner()
        cells += [(inner, k, design.inner_cell(k)) for k in range(design.n_inner)]
        for where, k, cell in cells:
            check_cell(given, where, k, by_hand(frame, cell), largest, cell)


def refuses_contributions(frame: pa.Table, data: Microdata, engine: Engine) -> None:
    """Tabulate values that cannot be summed; the engine must object."""
    try:
        data.tabulate("v*u", value="value", contributor="who", engine=engine)
    except DataError:
        return
    raise EngineError(f"tabulating does not object to {frame.to_pylist()}.")


def by_hand(frame: pa.Table, cell: Mapping[str, str]) -> Given:
    """What each contributor gives to a cell, record by record; zeros are left out."""
    parts: dict[str, list[float]] = defaultdict(list)
    for row in frame.to_pylist():
        own = {name: canonical(row[name]) for name in cell}
        if all(
            own[name] == code or (code in _TREE and own[name] in _TREE.leaves_of(code))
            for name, code in cell.items()
        ):
            who = row.get("holding")
            amount = float(row["value"]) * float(row.get("weight", 1.0))
            parts[canonical(row["who"] if who is None else who)].append(amount)
    sums = {who: math.fsum(each) for who, each in parts.items()}
    return {who: x for who, x in sums.items() if abs(x) > 1e-12 * sum(map(abs, parts[who]))}


def check_cell(
    given: Contributions,
    cells: CellContributions,
    k: int,
    expected: Given,
    largest: int,
    name: Mapping[str, str],
) -> None:
    """Refuse a cell whose sums, numbers or largest contributions are not as expected."""
    top = sorted(map(abs, expected.values()), reverse=True)[:largest]
    owners = [given.owners[i] if i >= 0 else None for i in cells.owner[k].tolist()]
    found = [abs(expected.get(who, math.nan)) for who in owners if who is not None]
    pairs = [
        (cells.sum[k], math.fsum(expected.values())),
        (cells.absolute[k], math.fsum(map(abs, expected.values()))),
        (cells.count[k], len(expected)),
        *zip(cells.largest[k], [*top, *[0.0] * (largest - len(top))], strict=True),
        *zip(found, top, strict=len(found) == len(top)),
    ]
    close = all(np.isclose(a, b, rtol=_TOLERANCE, atol=_TOLERANCE) for a, b in pairs)
    if not close or len(found) != len(top) or len(set(owners[: len(top)])) != len(top):
        raise EngineError(
            f"cell {dict(name)} has {cells.count[k]} contributors, sum {cells.sum[k]:g} and "
            f"largest {cells.largest[k].tolist()} of {owners}; by hand they are {expected}."
        )


def _frame(
    value: Any, who: pa.DataType = _WHOLE, v: Any = None, u: Any = None, **more: Any
) -> pa.Table:
    """Records of a few contributors in a few cells, with several records each."""
    n = len(value)
    rng = stream(9, "contributions")
    codes = list("abcd") if v is None else v
    return pa.table(
        {
            "v": pa.array([codes[i] for i in rng.integers(0, len(codes), n)]),
            "u": [i % 2 for i in range(n)] if u is None else u,
            "who": pa.array((rng.integers(0, 8, n) ** 2 // 7).tolist()).cast(who),
            "value": value,
            **more,
        }
    )


def _amounts(n: int = 60) -> Any:
    rng = stream(10, "contributions")
    amounts = np.round(rng.lognormal(3.0, 1.5, n), 2)
    amounts[::7] = 0.0
    return amounts


def _many() -> pa.Table:
    rng = stream(11, "contributions")
    n = 3_000
    who = pa.array([f"Ü{i:03d}" for i in range(400)]).take(rng.zipf(1.3, n) % 400)
    frame = _frame(np.round(rng.lognormal(4.0, 2.0, n), 3))
    return frame.set_column(2, "who", who)


MAGNITUDES: Mapping[str, Callable[[], pa.Table]] = {
    "contributions": lambda: _frame(_amounts()),
    "contributions of names": lambda: _frame(_amounts(), pa.string()),
    "whole contributions": lambda: _frame(pa.array([3, 0, 5, 8, 1, 13] * 8, pa.int32())),
    "decimal contributions": lambda: _frame(
        pa.array([Decimal("1.50"), Decimal("0.00"), Decimal("7.25")] * 10, pa.decimal128(12, 2))
    ),
    "contributions in text": lambda: _frame(pa.array(["1.5", "20", "0"] * 10)),
    "contributions of holdings": lambda: _frame(
        _amounts(), pa.string(), holding=pa.array([None, "h1", "h1", "h2"] * 15, pa.string())
    ),
    "weighted contributions": lambda: _frame(_amounts(), weight=np.tile([1.0, 2.5, 0.0, 4.0], 15)),
    "negative contributions": lambda: _frame(
        np.array([0.1, 0.2, -0.3, 5.0, -7.0, 7.0, -2.5, 0.0, 1.0, -12.0] * 4)
    ),
    "contributions to missing codes": lambda: _frame(_amounts(), v=["a", "b", "c", None]),
    "contributions by numbers": lambda: _frame(
        _amounts(), u=pa.array([1.0, float("nan"), 2.5, None] * 15, pa.float64())
    ),
    "contributions of nothing": lambda: _frame(np.zeros(8)),
    "many contributions": _many,
}
"""Frames whose magnitudes are summed, by name.

Columns are `v` and `u` (variables), `who`, `value`, and perhaps `weight` and `holding`.
"""


def _bad(**roles: list[Any]) -> Callable[[], pa.Table]:
    right = {"who": ["x", "y"], "value": [1.0, 2.0]}
    return lambda: pa.table({"v": ["a", "b"], "u": [1, 2], **right, **roles})


REFUSED_MAGNITUDES: Mapping[str, Callable[[], pa.Table]] = {
    "missing value": _bad(value=[1.0, None]),
    "infinite value": _bad(value=[1.0, float("inf")]),
    "value that is no number": _bad(value=[1.0, float("nan")]),
    "negative value": _bad(value=[1.0, -2.0]),
    "value that is a word": _bad(value=["1", "two"]),
    "missing contributor": _bad(who=["x", None]),
}
"""Frames whose magnitudes an engine must refuse, by name."""
