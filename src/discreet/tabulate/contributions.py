"""Contributions to the cells of a table, asked of the engine margin by margin.

The largest contributors of a margin are not to be had from those of its inner cells: someone who is
small in each of them can be large in their sum. So the engine is asked once for every margin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Whole
from discreet.design.axis import OUTSIDE
from discreet.design.blocks import Block
from discreet.design.codes import factorise
from discreet.design.structured import StructuredDesign
from discreet.progress import report
from discreet.tables.magnitude import CellContributions, Contributions, Magnitude, named_owners
from discreet.tables.truth import TrueTable
from discreet.tabulate.cells import Reader
from discreet.tabulate.engine import CONTRIBUTOR, HOLDING, Groups, as_array, check_values

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class _Ranked:
    """The answer for one margin: where each contribution belongs, and what is said of it."""

    place: Whole
    rank: Whole
    answer: pa.Table


def contributions_of(reader: Reader, table: TrueTable, of: Magnitude) -> Contributions:
    """The contributions to a table's cells.

    Args:
      reader: What read the table's cells; it knows the values of its variables.
      table: The table, on a structured design.
      of: What is summed, and whose it is.
    """
    check_values(of, reader.engine.value_facts(reader.data, of))
    design = table.design.structured("contributions to its cells")
    places = None if table.inner is None else design.inner_in_published()
    lacks_inner = places is not None and bool((places == OUTSIDE).any())
    asked = [*design.blocks, *([design.inner_block] if lacks_inner else [])]
    found = []
    for k, block in enumerate(asked):
        report("contributions", k / len(asked))
        found.append(_ranked(reader, design, of, block, k))
    report("contributions", 1.0)
    owners, codes = _owners([one.answer for one in found])
    published = _filled(found[: len(design.blocks)], codes, design.n_published, of.largest)
    inner = None if places is None else published.taken(places)
    if lacks_inner:
        inner = _filled(found[-1:], codes[-1:], design.n_inner, of.largest)
    return Contributions(
        of.value,
        published,
        inner,
        owners,
        is_weighted=reader.data.weight is not None,
        may_be_negative=of.negative == "absolute",
    )


def _ranked(
    reader: Reader, design: StructuredDesign, of: Magnitude, block: Block, k: int
) -> _Ranked:
    """The largest contributions to the cells of one margin."""
    pairs = list(zip(design.axes, block.levels, strict=True))
    groups = [
        Groups(axis.name, *reader.grouped(axis.name, level.group))
        for axis, level in pairs
        if level is not None
    ]
    answer = reader.engine.contributions(reader.data, of, groups)
    flat = np.zeros(len(answer), dtype=np.int64)
    sizes = [len(level) for _, level in pairs if level is not None]
    for i, size in enumerate(sizes):
        flat = flat * size + as_array(answer.column(f"g{i}")).astype(np.int64)
    rank = as_array(answer.column("rank")).astype(np.int64)
    return _Ranked(_position(design, k, flat), rank, answer)


def _position(design: StructuredDesign, k: int, flat: Whole) -> Whole:
    """Positions of cells of a block's crossing among the published cells, or the inner ones."""
    if k < len(design.blocks):
        return design.published_at(k, flat)
    return design.inner_at(flat)


def _owners(
    answers: Sequence[pa.Table],
) -> tuple[tuple[str, ...], list[Whole]]:
    """The identifiers of all owners, and for each answer the place of each row's owner."""
    import pyarrow as pa

    coded = []
    for name in (HOLDING, CONTRIBUTOR):
        columns = [answer.column(name) for answer in answers]
        chunks = [chunk for column in columns for chunk in column.chunks]
        coded.append(factorise(pa.chunked_array(chunks, columns[0].type)))
    owners, codes = named_owners(*coded)
    return owners, np.split(codes, np.cumsum([len(answer) for answer in answers])[:-1])


def _filled(
    found: Sequence[_Ranked], codes: Sequence[Whole], n: int, largest: int
) -> CellContributions:
    """Contributions in their places."""
    cells = CellContributions.none(n, largest)
    for one, owner in zip(found, codes, strict=False):
        columns: dict[str, Any] = {c: as_array(one.answer.column(c)) for c in ("x", "n", "s", "a")}
        cells.sum[one.place] = columns["s"]
        cells.absolute[one.place] = columns["a"]
        cells.count[one.place] = columns["n"]
        cells.largest[one.place, one.rank] = np.abs(columns["x"].astype(np.float64))
        cells.owner[one.place, one.rank] = owner
    return cells
