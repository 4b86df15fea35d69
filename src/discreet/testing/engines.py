"""A battery for engines: does an Ibis back end count as it should?

import ibis
from discreet.testing.engines import check_engine

print(check_engine(ibis.duckdb.connect()))
"""

from __future__ import annotations

import math
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np

from discreet import registry
from discreet.columns import Column
from discreet.design.codes import canonical
from discreet.design.hierarchy import Hierarchy
from discreet.errors import DataError, DiscreetError, EngineError, KeysError
from discreet.facade.microdata import Microdata
from discreet.frames import Frame
from discreet.randomness import stream
from discreet.records.backend import connection_of
from discreet.records.connection import attempt
from discreet.records.engine import Engine, values_of
from discreet.records.secret import Secret
from discreet.tables.magnitude import CellContributions, Contributions

Sums = tuple[int, float, float, int]
CellSums = dict[tuple[str, ...], Sums]
_TOLERANCE = 1e-12
_LARGEST_KEY = 2**32 - 1
PERSON = "person"


@dataclass(frozen=True)
class EngineReport:
    """What an engine can count.

    Attributes:
      passed: Names of the cases that came out right.
      unsupported: Cases whose types the back end does not hold, with its reason.
    """

    passed: tuple[str, ...]
    unsupported: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"{len(self.passed)} cases counted as they should."]
        lines += [f"not supported: {name} ({why})" for name, why in self.unsupported.items()]
        return "\n".join(lines)


def check_engine(
    backend: Any, *, engine: Engine | None = None, cases: Iterable[str] | None = None
) -> EngineReport:
    """Count small tables of every kind on a back end, and compare with counting by hand.

    Counts and key sums must be equal, weight sums equal to 1e-12. Tables are created under random
    names and dropped.

    Args:
      backend: An Ibis back end that can create tables.
      engine: The engine to test on it, Ibis by default.
      cases: Names of some of `ALL_CASES`; all by default.

    Raises:
      EngineError: A case came out wrong; the message names every one that did.
    """
    passed: list[str] = []
    unsupported: dict[str, str] = {}
    wrong: dict[str, str] = {}
    for name in ALL_CASES if cases is None else cases:
        (check, make), table = ALL_CASES[name], f"discreet_check_{secrets.token_hex(6)}"
        frame = make()
        connection = connection_of(backend)
        try:
            stored = attempt(partial(connection.store, table, frame), "the case")
            records = Microdata(connection.exact(stored), connection.backend, "the case")
        except DiscreetError as error:  # the back end cannot even hold the records
            unsupported[name] = str(error.__cause__ or error).splitlines()[0][:100]
            continue
        try:
            check(frame, records, engine or registry.build("engine", "query"))
            passed.append(name)
        except Exception as error:  # any failure of the engine is a finding
            wrong[name] = f"{type(error).__name__}: {error}"
        finally:
            connection.backend.drop_table(table, force=True)
    if wrong:
        found = "; ".join(f"{name}: {what}" for name, what in wrong.items())
        raise EngineError(f"{len(wrong)} cases were counted wrongly. {found}")
    return EngineReport(tuple(passed), unsupported)


def compare(frame: Frame, data: Microdata, engine: Engine) -> None:
    """Group the records by no column, one, and all, within bounds too, and compare by hand."""
    variables = [c for c in frame.column_names if c not in ("id", "weight", "key", PERSON)]
    data = data.with_roles(weight="weight", key="key", id="id")
    for some in [[], variables[:1], variables]:
        check_same(cells_of_engine(data, some, engine), cells_by_hand(frame, some), some)
    secret = Secret.generate()
    keys = secret.keys_for_ids(frame.column("id")).tolist()
    keyed = cells_of_engine(data.with_keys(secret, editions="kept"), variables, engine)
    check_same(keyed, cells_by_hand(frame, variables, keys), variables)
    if PERSON not in frame.column_names:
        return
    for weight, records in ((2.5, 1), (4.0, 2), (1e6, 100)):
        bounded = data.with_roles(person=PERSON, weight_bound=weight, max_records=records)
        kept = within(frame, weight, records)
        for some in ([], ["v"]):
            check_same(cells_of_engine(bounded, some, engine), cells_by_hand(kept, some), some)


def within(frame: Frame, weight_bound: float, max_records: int) -> Frame:
    """The records within bounds, picked person by person; slow and obvious."""
    rows = sorted(frame.to_pylist(), key=lambda row: row["id"])
    kept: list[dict[str, Any]] = []
    for row in rows:
        if sum(other[PERSON] == row[PERSON] for other in kept) < max_records:
            kept.append({**row, "weight": min(row["weight"], weight_bound)})
    return Frame.from_rows(kept, frame.kinds)


def refuses(frame: Frame, data: Microdata, engine: Engine) -> None:
    """Group records that have a role they must not have; the engine must object, bound or not."""
    data = data.with_roles(weight="weight", key="key", id="id")
    bounded = data.with_roles(weight_bound=1.5, person=PERSON, max_records=2)
    for some in ([], ["v"]):
        for one in (bounded,) if frame.column(PERSON).null_count else (data, bounded):
            try:
                engine.group(one, some)
            except (DataError, KeysError):
                continue
            raise EngineError(f"grouping by {some} does not object to {frame.to_pylist()}.")


def cells_of_engine(data: Microdata, variables: Sequence[str], engine: Engine) -> CellSums:
    """An engine's cells by canonical codes; rows of one cell are added up."""
    cells = engine.group(data, variables)
    values = values_of(cells, len(variables))
    codes = [[canonical(v) for v in cells.column(i).to_pylist()] for i in range(len(variables))]
    rows = list(zip(*codes, strict=True)) if codes else [()]
    return _add_up(rows, values.count, values.weight, values.weight_squared, values.key)


def cells_by_hand(
    frame: Frame, variables: Sequence[str], keys: Iterable[int] | None = None
) -> CellSums:
    """The cells of a frame, counted record by record; slow and obvious."""
    codes = [[canonical(v) for v in frame.column(name).to_pylist()] for name in variables]
    n = frame.num_rows
    rows = list(zip(*codes, strict=True)) if codes else [()] * n
    w = [float(v) for v in frame.column("weight").to_pylist()]
    k = [int(v) for v in (frame.column("key").to_pylist() if keys is None else keys)]
    cells = _add_up(rows, [1] * n, w, [v * v for v in w], k)
    return cells or ({} if variables else {(): (0, 0.0, 0.0, 0)})


def _add_up(rows: Sequence[tuple[str, ...]], *columns: Any) -> CellSums:
    sums: CellSums = {}
    for row, n, w, w2, k in zip(rows, *columns, strict=True):
        a, b, c, d = sums.get(row, (0, 0.0, 0.0, 0))
        sums[row] = (a + int(n), b + float(w), c + float(w2), d + int(k))
    return sums


def check_same(found: CellSums, expected: CellSums, variables: Sequence[str]) -> None:
    """Refuse cells that differ, counts and keys at all, weights by more than 1e-12."""
    if found.keys() != expected.keys():
        odd = sorted(found.keys() ^ expected.keys())[:3]
        raise EngineError(f"grouping by {list(variables)} gives other cells, e.g. {odd}.")
    for cell, (n, w, w2, k) in expected.items():
        a, b, c, d = found[cell]
        close = np.allclose((b, c), (w, w2), rtol=_TOLERANCE, atol=0)
        if (a, d) != (n, k) or not close:
            raise EngineError(f"cell {cell} is {found[cell]} and should be {expected[cell]}.")


def _frame(columns: Mapping[str, Any], weight: Any = None) -> Frame:
    """A frame with some columns, and an id, a weight and a key for each record."""
    n = len(next(iter(columns.values())))
    rng = stream(7, "engine battery")
    key = rng.integers(0, 2**32, n)
    key[: n // 2] = _LARGEST_KEY
    drawn = rng.gamma(2.0, 3.0, n) if weight is None else weight
    return Frame({**columns, "id": np.arange(n) + 1, "weight": drawn, "key": key})


def _of(kind: str, *values: Any, is_listed: bool = False) -> Callable[[], Frame]:
    """Some values, each several times, beside a second variable."""

    def make() -> Frame:
        several = [*values, *values, values[0], None]
        other = ["a", "b", "b"] * len(several)
        column = Column(several, kind)
        column = column.dictionary_encode() if is_listed else column
        return _frame({"v": column, "other": other[: len(several)]})

    return make


def _whole(kind: str) -> Callable[[], Frame]:
    bounds = np.iinfo(kind)
    return _of(kind, 0, 1, int(bounds.min), int(bounds.max))


def _weights(kind: str) -> Callable[[], Frame]:
    return lambda: _frame({"v": list("abcab")}, Column([0, 1, 2, 3, 100]).cast(kind))


def _persons(kind: str) -> Callable[[], Frame]:
    """Persons with one to five records in different cells, the ids in no order."""

    def make() -> Frame:
        persons = Column([1, 2, 2, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 5]).cast(kind)
        frame = _frame({"v": list("abcab" * 3), PERSON: persons}, [0.5 * i for i in range(15)])
        return frame.with_column("id", [(7 * i) % 15 for i in range(15)])

    return make


def _many(n: int) -> Frame:
    rng = stream(8, "engine battery")
    regions = Column([f"R{i:03d}" for i in range(300)])
    return _frame({"region": regions.take(rng.integers(0, 300, n)), "sex": rng.integers(1, 3, n)})


_STRANGE = (
    "select", "group", "n", "w", "k", "v0", 'a"b', "a`b", "it's", "x; DROP TABLE y; --", "Größe",
    " ",
)  # fmt: skip
_TEXTS = (
    "", " ", "a", "A", "ä", "Ä", "a ", "å̊", "ß", "ss", "数", "\N{GRINNING FACE}", "%", "\\", "'",
)  # fmt: skip

CASES: Mapping[str, Callable[[], Frame]] = {
    "text": _of("string", *_TEXTS),
    "long labels": _of("string", "x" * 10_000, "x" * 9_999 + "y"),
    "digits as text": _of("string", "1", "01", "1.0", "10"),
    "dictionary": _of("string", "b", "a", "c", is_listed=True),
    **{kind: _whole(kind) for kind in ("int8", "int16", "int32", "int64")},
    **{kind: _whole(kind) for kind in ("uint8", "uint16", "uint32", "uint64")},
    "boolean": _of("boolean", True, False),
    "date": _of("date", date(1900, 2, 28), date(2024, 2, 29)),
    "timestamp": _of("timestamp(6)", datetime(2024, 1, 1), datetime(2024, 1, 1, 12, 30, 1, 5)),
    "decimal": _of("decimal(12, 2)", Decimal("1.50"), Decimal("-0.01"), Decimal("7.00")),
    "float": _of("float64", 1.0, -2.0, 0.5, 0.1, float("nan")),
    "strange names": lambda: _frame({name: [name, "x", None] for name in _STRANGE}),
    "all missing": lambda: _frame({"v": Column([None, None], "string")}),
    "one record": lambda: _frame({"v": ["a"]}),
    "no records": lambda: _frame({"v": Column([], "string"), "u": Column([], "int64")}),
    "whole weights": _weights("int32"),
    "decimal weights": _weights("decimal(22, 1)"),
    "single precision weights": _weights("float32"),
    "records of one person": _persons("int64"),
    "records of a person with a name": _persons("string"),
    "many records": lambda: _many(20_000),
}
"""Frames to count, by name: columns `id`, `weight` and `key`, and one or more variables.

A column `person` stands for units that have several records.
"""


def _bad(**roles: list[Any]) -> Callable[[], Frame]:
    right = {"id": [1, 2], "weight": [1.0, 2.0], "key": [1, 2], PERSON: ["x", "y"]}
    return lambda: Frame({"v": ["a", "b"], **right, **roles})


REFUSED: Mapping[str, Callable[[], Frame]] = {
    "negative weight": _bad(weight=[1.0, -0.5]),
    "missing weight": _bad(weight=[1.0, None]),
    "infinite weight": _bad(weight=[1.0, float("inf")]),
    "weight that is no number": _bad(weight=[1.0, float("nan")]),
    "missing person": _bad(person=["x", None]),
    "negative key": _bad(key=[1, -1]),
    "missing key": _bad(key=[None, 2]),
    "key out of range": _bad(key=[2**32, 2]),
}
"""Frames an engine must refuse, by name."""

Given = dict[str, float]
_CLOSE = 1e-9
_WHOLE = "int64"
_TREE = Hierarchy.from_dict({"Total": {"North": ["a", "b"], "South": ["c"], "d": []}})


def compare_contributions(frame: Frame, data: Microdata, engine: Engine) -> None:
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


def refuses_contributions(frame: Frame, data: Microdata, engine: Engine) -> None:
    """Tabulate values that cannot be summed; the engine must object."""
    try:
        data.tabulate("v*u", value="value", contributor="who", engine=engine)
    except DataError:
        return
    raise EngineError(f"tabulating does not object to {frame.to_pylist()}.")


def by_hand(frame: Frame, cell: Mapping[str, str]) -> Given:
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
    close = all(np.isclose(a, b, rtol=_CLOSE, atol=_CLOSE) for a, b in pairs)
    if not close or len(found) != len(top) or len(set(owners[: len(top)])) != len(top):
        raise EngineError(
            f"cell {dict(name)} has {cells.count[k]} contributors, sum {cells.sum[k]:g} and "
            f"largest {cells.largest[k].tolist()} of {owners}; by hand they are {expected}."
        )


def _giving(value: Any, who: str = _WHOLE, v: Any = None, u: Any = None, **more: Any) -> Frame:
    """Records of a few contributors in a few cells, with several records each."""
    n = len(value)
    rng = stream(9, "contributions")
    codes = list("abcd") if v is None else v
    return Frame(
        {
            "v": [codes[i] for i in rng.integers(0, len(codes), n)],
            "u": [i % 2 for i in range(n)] if u is None else u,
            "who": Column((rng.integers(0, 8, n) ** 2 // 7).tolist()).cast(who),
            "value": value,
            **more,
        }
    )


def _amounts(n: int = 60) -> Any:
    rng = stream(10, "contributions")
    amounts = np.round(rng.lognormal(3.0, 1.5, n), 2)
    amounts[::7] = 0.0
    return amounts


def _many_giving() -> Frame:
    rng = stream(11, "contributions")
    n = 3_000
    who = Column([f"Ü{i:03d}" for i in range(400)]).take(rng.zipf(1.3, n) % 400)
    frame = _giving(np.round(rng.lognormal(4.0, 2.0, n), 3))
    return frame.with_column("who", who)


MAGNITUDES: Mapping[str, Callable[[], Frame]] = {
    "contributions": lambda: _giving(_amounts()),
    "contributions of names": lambda: _giving(_amounts(), "string"),
    "whole contributions": lambda: _giving(Column([3, 0, 5, 8, 1, 13] * 8, "int32")),
    "decimal contributions": lambda: _giving(
        Column([Decimal("1.50"), Decimal("0.00"), Decimal("7.25")] * 10, "decimal(12, 2)")
    ),
    "contributions in text": lambda: _giving(["1.5", "20", "0"] * 10),
    "contributions of holdings": lambda: _giving(
        _amounts(), "string", holding=Column([None, "h1", "h1", "h2"] * 15, "string")
    ),
    "weighted contributions": lambda: _giving(_amounts(), weight=np.tile([1.0, 2.5, 0.0, 4.0], 15)),
    "negative contributions": lambda: _giving(
        np.array([0.1, 0.2, -0.3, 5.0, -7.0, 7.0, -2.5, 0.0, 1.0, -12.0] * 4)
    ),
    "contributions to missing codes": lambda: _giving(_amounts(), v=["a", "b", "c", None]),
    "contributions by numbers": lambda: _giving(
        _amounts(), u=Column([1.0, float("nan"), 2.5, None] * 15, "float64")
    ),
    "contributions of nothing": lambda: _giving(np.zeros(8)),
    "many contributions": _many_giving,
}
"""Frames whose magnitudes are summed, by name.

Columns are `v` and `u` (variables), `who`, `value`, and perhaps `weight` and `holding`.
"""


def _bad_giving(**roles: list[Any]) -> Callable[[], Frame]:
    right = {"who": ["x", "y"], "value": [1.0, 2.0]}
    return lambda: Frame({"v": ["a", "b"], "u": [1, 2], **right, **roles})


REFUSED_MAGNITUDES: Mapping[str, Callable[[], Frame]] = {
    "missing value": _bad_giving(value=[1.0, None]),
    "infinite value": _bad_giving(value=[1.0, float("inf")]),
    "value that is no number": _bad_giving(value=[1.0, float("nan")]),
    "negative value": _bad_giving(value=[1.0, -2.0]),
    "value that is a word": _bad_giving(value=["1", "two"]),
    "missing contributor": _bad_giving(who=["x", None]),
}
"""Frames whose magnitudes an engine must refuse, by name."""

Check = Callable[[Frame, Microdata, Engine], None]
ALL_CASES: Mapping[str, tuple[Check, Callable[[], Frame]]] = {
    **{name: (compare, make) for name, make in CASES.items()},
    **{name: (refuses, make) for name, make in REFUSED.items()},
    **{name: (compare_contributions, make) for name, make in MAGNITUDES.items()},
    **{name: (refuses_contributions, make) for name, make in REFUSED_MAGNITUDES.items()},
}
"""Every case with what checks it."""
