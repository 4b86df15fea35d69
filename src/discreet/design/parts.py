"""Parts of a design: some of its margins over their own variables, and its tables.

A *table* of a design is a largest margin with the margins inside it, or what was given a name. The
cells of a part are cells of the whole, in the same order within each margin, so that values of the
whole are values of the part without a further computation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Array, Index, Whole
from discreet.design.formula import Block, Margins, NamedTerms, Term, parse, resolve, table_name
from discreet.errors import DesignError

if TYPE_CHECKING:
    from discreet.design.axis import Axis, Level
    from discreet.design.structured import StructuredDesign


@dataclass(frozen=True, eq=False)
class DesignPart:
    """Some margins of a design as a design of their own."""

    design: StructuredDesign  # the margins over the variables that they name
    cells: Whole  # for each published cell of the part its position in the whole
    axes: tuple[int, ...]  # the places of its variables among those of the whole


def part_of(design: StructuredDesign, margins: Margins) -> DesignPart:
    """Some of the published margins over their own variables.

    Raises:
      DesignError: One of the margins is not published by the design.
    """
    terms = parse(margins)
    blocks = resolve(design.axes, terms)
    used = [a for a in range(len(design.axes)) if any(b.levels[a] is not None for b in blocks)]
    places = {block.levels: k for k, block in enumerate(design.blocks)}
    for block in blocks:
        if block.levels not in places:
            raise DesignError(
                f"the margin {block.name} is not among the published ones. Published are: "
                f"{', '.join(dict.fromkeys(b.name for b in design.blocks))}."
            )
    slices = [design.slice_of(places[block.levels]) for block in blocks]
    whole = [np.arange(part.start, part.stop) for part in slices]
    return DesignPart(design.over_axes(used, terms), np.concatenate(whole), tuple(used))


def coarsen_axes(design: StructuredDesign) -> list[tuple[Axis, Index]] | None:
    """Axes whose leaves are the finest published groups, with the group of each former leaf.

    A fit cannot tell apart leaves that no published level and no structural zero tells apart, and
    a country has hundreds of municipalities for a handful of provinces. `None` where that joins
    nothing. Only one level of an axis can take the place of its leaves: it covers all of them, and
    every other published level is a sum of its groups.
    """
    found = [_coarsen_axis(design, a) for a in range(len(design.axes))]
    return None if tuple(axis for axis, _ in found) == design.axes else found


def sum_to_levels(design: StructuredDesign, coarse: StructuredDesign, values: Array) -> Array:
    """Sums of inner values over the inner cells of `design.at_published_levels()`."""
    joined = coarsen_axes(design) or []
    groups = [up[leaf] for (_, up), leaf in zip(joined, design.inner_codes(), strict=True)]
    cells = coarse.inner_at(np.ravel_multi_index(groups, coarse.shape))
    found = np.zeros(coarse.n_inner, dtype=values.dtype)
    np.add.at(found, cells, values)
    return found


def _coarsen_axis(design: StructuredDesign, a: int) -> tuple[Axis, Index]:
    axis, step = design.axes[a], design.lattice.step
    used = {level: None for block in design.blocks if (level := block.levels[a]) is not None}
    for top in used:
        steps = {level: step(top, level) for level in axis.levels}
        kept = {level: up for level, up in steps.items() if up is not None}
        joins = top.covers_all and not top.is_identity and len(top) < len(axis)
        if joins and used.keys() <= kept.keys() and _is_blind(design, a, top):
            return axis.coarsen(top, kept), top.group.astype(np.int64)
    return axis, np.arange(len(axis))


def _is_blind(design: StructuredDesign, a: int, level: Level) -> bool:
    """Whether structural zeros are the same for all leaves of a group."""
    first = np.array([places[0] for places in level.members().values()])[level.group]
    return all(
        np.array_equal(mask.possible, np.take(mask.possible, first, axis=mask.axes.index(a)))
        for mask in design.masks or ()
        if a in mask.axes
    )


def named_terms(design: StructuredDesign) -> dict[str, list[Term]]:
    """The margins of each table by its name: the given ones, or those of each largest margin."""
    if isinstance(design.terms, NamedTerms):
        return design.terms.tables
    blocks = [resolve(design.axes, [term]) for term in design.terms]
    everyone = range(len(blocks))
    inside = [[k for k in everyone if _lies_in(design, blocks[k], blocks[top])] for top in everyone]
    found: dict[str, list[Term]] = {}
    for top in everyone:
        # of two margins that hold each other, `a:b` and `b:a`, the first is a table
        if any(
            top in inside[k] and (k not in inside[top] or k < top) for k in everyone if k != top
        ):
            continue
        name = table_name(design.terms[top])
        if name in found:  # levels of the same variables in other crossings
            name = f"{name} ({len(found) + 1})"
        found[name] = [design.terms[k] for k in [top, *(k for k in inside[top] if k != top)]]
    return found


def _lies_in(design: StructuredDesign, lower: Sequence[Block], upper: Sequence[Block]) -> bool:
    """Whether each block is one of the upper ones with groups joined or variables summed over."""
    return all(any(_is_coarser(design, b, top) for top in upper) for b in lower)


def _is_coarser(design: StructuredDesign, block: Block, top: Block) -> bool:
    return all(
        coarse is None or (fine is not None and design.lattice.step(fine, coarse) is not None)
        for fine, coarse in zip(top.levels, block.levels, strict=True)
    )
