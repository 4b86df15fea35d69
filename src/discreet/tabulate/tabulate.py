"""Records to a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from discreet import registry
from discreet.design.formula import Margins, Term, parse
from discreet.design.support import Support, check_support
from discreet.errors import UnknownNameError
from discreet.progress import report
from discreet.tables.assembly import CodedCells, Hierarchies, build_table, variables_of
from discreet.tables.magnitude import Magnitude
from discreet.tables.truth import TrueTable
from discreet.tabulate.cells import Reader
from discreet.tabulate.contributions import contributions_of
from discreet.tabulate.engine import Engine
from discreet.tabulate.margins import margins_table
from discreet.tabulate.plan import HELD, Size, Variables, crossing, holds_inner, largest_sets

if TYPE_CHECKING:
    from discreet.microdata.records import UnitRecords


def tabulate(
    data: UnitRecords,
    margins: Margins,
    *,
    hierarchies: Hierarchies | None = None,
    support: Support = "all",
    structural_zeros: Sequence[Mapping[str, Any]] | None = None,
    engine: str | Engine | None = None,
    of: Magnitude | None = None,
) -> TrueTable:
    """A table of the records; see `Microdata.tabulate`."""
    check_support(support, ("all", "occurring"))
    for name in hierarchies or {}:
        if name not in data.dimensions:
            raise UnknownNameError("variable", name, data.dimensions)
    data, terms = data.with_hierarchies(hierarchies), parse(margins)
    variables = variables_of(terms, data.dimensions, data.hierarchies)
    given = data.structural_zeros if structural_zeros is None else structural_zeros
    rules = [rule for rule in given if set(rule) <= set(variables)]
    needs_inner = support == "occurring" or bool(structural_zeros)
    reader = Reader(_engine(engine), data)
    is_announced = _announced(reader, terms, tuple(variables), support)
    groupings = _read(reader, terms, tuple(variables), needs_inner)
    if not is_announced:
        _announced(reader, terms, tuple(variables), support)
    if len(groupings) == 1 and (needs_inner or _holds_inner(reader, terms, tuple(variables))):
        table = build_table(groupings[0], terms, data.convention, support, rules)
    else:
        table = margins_table(groupings, terms, data.convention)
    if of is not None:
        table = replace(table, contributions=contributions_of(reader, table, of))
    return replace(table, data_set=data.data_set, secret=data.secret, ledger=data.ledger)


def _engine(engine: str | Engine | None) -> Engine:
    if isinstance(engine, str) or engine is None:
        built: Engine = registry.build("engine", engine or "ibis")
        return built
    return engine


def _announced(reader: Reader, terms: list[Term], variables: Variables, support: Support) -> bool:
    """Announce or refuse a large table; not yet while some variable's codes are unknown."""
    trees = reader.data.hierarchies
    sizes = {v: len(t[0].leaves) for v, t in trees.items() if v in variables} | _sizes(reader)
    if support == "occurring" or not sizes.keys() >= set(variables):
        return support == "occurring"
    sets, data = _sets(reader, terms), reader.data
    inner = crossing(variables, sizes) if holds_inner(variables, sets, sizes) else 0
    values = 1 + data.has_keys + 2 * (data.weight is not None)
    Size(inner, sum(crossing(s, sizes) for s in sets), values).announce()
    return True


def _read(
    reader: Reader, terms: list[Term], variables: Variables, needs_inner: bool
) -> list[CodedCells]:
    """One grouping by all variables, or one for each largest margin."""
    sets = _sets(reader, terms)
    if needs_inner or len(sets) == 1 or _asks_once(reader, variables, sets):
        return [reader.read(variables)]
    found = []
    for done, some in enumerate(sets):
        report("tabulate", done / len(sets))
        found.append(reader.read(some))
    report("tabulate", 1.0)
    return found


def _holds_inner(reader: Reader, terms: list[Term], variables: Variables) -> bool:
    return holds_inner(variables, _sets(reader, terms), _sizes(reader))


def _sets(reader: Reader, terms: list[Term]) -> list[Variables]:
    columns, trees = reader.data.dimensions, reader.data.hierarchies
    return largest_sets([tuple(variables_of([term], columns, trees)) for term in terms])


def _sizes(reader: Reader) -> dict[str, int]:
    return {name: len(axis) for name, axis in reader.axes.items()}


def _asks_once(reader: Reader, variables: Variables, sets: Sequence[Variables]) -> bool:
    """Whether grouping by all variables gives few enough cells.

    There are no more than records. When those are many and a variable has no code list, its codes
    are read first.
    """
    trees = reader.data.hierarchies
    bare = Reader(reader.engine, without_sums(reader.data), reader.axes)
    records = int(bare.read(()).values.count[0])
    if records <= HELD:
        return True
    for name in variables:
        if name not in trees:
            bare.read((name,))
    sizes = {v: len(t[0].leaves) for v, t in trees.items() if v in variables}
    return holds_inner(variables, sets, {**sizes, **_sizes(reader)})


def without_sums(data: UnitRecords) -> UnitRecords:
    """The records without weights and keys, for questions that need none."""
    return replace(data, weight=None, key=None, record_keys=None)
