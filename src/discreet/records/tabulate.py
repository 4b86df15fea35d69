"""Records to a table: which groupings an engine is asked for, and how large the table becomes."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from discreet import registry
from discreet.arrays import Array, Whole
from discreet.design.formula import Margins, Term, parse
from discreet.design.product import ProductDesign
from discreet.design.sparse import complete_design
from discreet.design.support import LARGEST_DENSE, Support, check_support, declared_masks
from discreet.errors import DesignError, ParameterError, check_known
from discreet.progress import notice, report
from discreet.records.cells import Reader, contributions_of
from discreet.records.engine import Engine
from discreet.records.expressions import record_sketches
from discreet.tables.assembly import (
    CodedCells,
    Hierarchies,
    build_table,
    check_possible,
    variables_of,
)
from discreet.tables.keys import KeyConvention
from discreet.tables.magnitude import Magnitude
from discreet.tables.sketches import RecordSketches, tables_of
from discreet.tables.truth import CellValues, TrueTable

if TYPE_CHECKING:
    from discreet.records.records import UnitRecords

HELD = 8_000_000
"""Inner cells that are read and held whatever is published."""
_AFFORDABLE = 8  # the crossing may be this many times larger than the margins that are asked for
ANNOUNCED = 20_000_000
"""Cells of a table from which on its memory is announced."""
REFUSED = LARGEST_DENSE
"""Cells beyond which a table is refused."""
Variables = tuple[str, ...]


def tabulate(
    data: UnitRecords,
    margins: Margins,
    *,
    hierarchies: Hierarchies | None = None,
    support: Support = "all",
    structural_zeros: Sequence[Mapping[str, Any]] | None = None,
    engine: str | Engine | None = None,
    of: Magnitude | None = None,
    inner: bool = True,
) -> TrueTable:
    """A table of the records; see `Microdata.tabulate`."""
    check_support(support, ("all", "occurring"))
    check_known("variable", hierarchies or {}, data.dimensions)
    data, terms = data.with_hierarchies(hierarchies), parse(margins)
    variables = variables_of(terms, data.dimensions, data.hierarchies)
    given = data.structural_zeros if structural_zeros is None else structural_zeros
    rules = [rule for rule in given if set(rule) <= set(variables)]
    needs_inner = support == "occurring" or (inner and bool(structural_zeros))
    if isinstance(engine, str) or engine is None:
        engine = cast("Engine", registry.build("engine", engine or "query"))
    if not hasattr(engine, "group"):
        raise ParameterError(f"engine= takes an engine or its name, got {engine!r:.60}.")
    reader = Reader(engine, data)
    is_announced = not inner or _announce_size(reader, terms, tuple(variables), support)
    groupings = _read(reader, terms, tuple(variables), needs_inner)
    if not is_announced:
        _announce_size(reader, terms, tuple(variables), support)
    if len(groupings) == 1 and (
        needs_inner
        or (inner and holds_inner(tuple(variables), _sets(reader, terms), _sizes(reader)))
    ):
        table = build_table(groupings[0], terms, data.convention, support, rules)
    else:
        table = margins_table(groupings, terms, data.convention, rules)
    if of is not None:
        table = replace(table, contributions=contributions_of(reader, table, of))
    found = replace(table, data_set=data.data_set, secret=data.secret, passage=data.passage)
    if data.ledger is None:
        return found
    return replace(found, ledger=data.ledger, sketches=_record_sketches(data, found))


def _record_sketches(data: UnitRecords, table: TrueTable) -> RecordSketches | None:
    """Sketches of the records for the tables of a design; the total alone needs none."""
    tables = tables_of(table.design, table.z, data.passage, data.data_set.edition)
    return record_sketches(data, [t.variables for t in tables]) if tables else None


def _announce_size(
    reader: Reader, terms: list[Term], variables: Variables, support: Support
) -> bool:
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
    plain = replace(reader.data, weight=None, key=None, record_keys=None)
    bare = Reader(reader.engine, plain, reader.axes)
    records = int(bare.read(()).values.count[0])
    if records <= HELD:
        return True
    for name in variables:
        if name not in trees:
            bare.read((name,))
    sizes = {v: len(t[0].leaves) for v, t in trees.items() if v in variables}
    return holds_inner(variables, sets, {**sizes, **_sizes(reader)})


def largest_sets(sets: Sequence[Variables]) -> list[Variables]:
    """The sets of variables that lie in no other, each once."""
    unique = list({frozenset(s): s for s in sets}.values())
    return [s for s in unique if not any(set(s) < set(other) for other in unique)]


def crossing(variables: Variables, sizes: Mapping[str, int]) -> int:
    """Number of combinations of categories."""
    return math.prod(sizes[v] for v in variables)


def holds_inner(variables: Variables, sets: Sequence[Variables], sizes: Mapping[str, int]) -> bool:
    """Whether the full crossing of the variables is worth holding.

    It is when it has at most `HELD` cells, or at most eight times the cells of the largest margins
    asked for, and in any case at most `LARGEST_DENSE`.
    """
    inner = crossing(variables, sizes)
    asked = sum(crossing(s, sizes) for s in sets)
    return inner <= LARGEST_DENSE and (inner <= HELD or inner <= _AFFORDABLE * asked)


@dataclass(frozen=True)
class Size:
    """How large a table becomes, counted on the leaves of its variables."""

    inner: int  # inner cells that are held
    published: int  # cells of the largest margins
    values: int  # kinds of value for each cell: counts, keys, weights and their squares

    @property
    def memory(self) -> int:
        """Bytes that the table takes while it is made: inner values are held twice for a moment."""
        return 8 * self.values * (2 * self.inner + self.published)

    def announce(self) -> None:
        """Say what a large table takes before it is built; refuse one that cannot be held."""
        most, gigabytes, there = max(self.inner, self.published), self.memory / 1e9, _memory()
        if most > REFUSED:
            reason = f"more than the {REFUSED:,} that are held in memory"
        elif self.memory > there:
            reason = f"about {gigabytes:.1f} GB of memory; this machine has {there / 1e9:.1f} GB"
        elif most >= ANNOUNCED:
            notice(f"the table has {most:,} cells and takes about {gigabytes:.1f} GB of memory.")
            return
        else:
            return
        raise DesignError(
            f"the table would have {most:,} cells, {reason}. Publish fewer variables in one "
            "margin, recode some to coarser codes, or count with support='occurring'."
        )


def _memory() -> float:
    """Bytes of memory of this machine, as far as it tells."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return math.inf


def margins_table(
    groupings: Sequence[CodedCells],
    terms: list[Term],
    rule: KeyConvention,
    structural_zeros: Sequence[Mapping[str, Any]] = (),
) -> TrueTable:
    """A table without inner cells, from groupings that between them have all margins.

    Blocks that no other refines are filled from the smallest grouping that has their variables;
    the others are summed from them. Work and memory grow with the groupings and the published
    cells, never with the crossing of the leaves.
    """
    axes = {axis.name: axis for coded in groupings for axis in coded.axes}
    full = ProductDesign(tuple(axes.values()), terms)
    if full.n_published > LARGEST_DENSE:
        raise DesignError(
            f"{full.n_published:,} published cells are more than the {LARGEST_DENSE:,} that are "
            "held in memory. Publish fewer margins, or use support='occurring'."
        )
    for coded in groupings:
        check_possible(coded, declared_masks(coded.axes, structural_zeros))
    design = complete_design(full.axes, terms, structural_zeros)
    blocks = [_place_block(full, k, groupings) for k in full.root_blocks]
    kept = design.crossing.published
    first = groupings[0].values
    parts: dict[str, Any] = {
        part: _fill(full, blocks, part)[kept]
        for part in ("count", "weight", "weight_squared", "key")
        if getattr(first, part) is not None
    }
    values = CellValues(**parts)
    return TrueTable(design, values.apply_linear(lambda array: array, rule), None, rule)


def _place_block(
    design: ProductDesign, k: int, groupings: Sequence[CodedCells]
) -> tuple[CodedCells, Whole]:
    """The smallest grouping that has a block's variables, and where its cells lie in the block."""
    levels = zip(design.axes, design.blocks[k].levels, strict=True)
    needed = {axis.name for axis, level in levels if level is not None}
    fits = [coded for coded in groupings if needed <= {axis.name for axis in coded.axes}]
    coded = min(fits, key=lambda c: len(c.values.count))
    leaves = {axis.name: leaf for axis, leaf in zip(coded.axes, coded.leaves, strict=True)}
    return coded, design.places(k, leaves, len(coded.values.count))


def _fill(design: ProductDesign, blocks: Sequence[tuple[CodedCells, Whole]], part: str) -> Array:
    """One kind of value for all published cells."""
    z = np.zeros(design.n_published, dtype=getattr(blocks[0][0].values, part).dtype)
    for coded, where in blocks:
        inside = where >= 0
        np.add.at(z, where[inside], getattr(coded.values, part)[inside])
    return design.complete(z)
