"""Parts of a design: some of its margins over their own variables, and its tables.

A *table* of a design is a largest margin with the margins inside it, or what was given a name. The
cells of a part are cells of the whole, in the same order within each margin, so that values of the
whole are values of the part without a further computation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Whole
from discreet.design.axis import Axis, Level
from discreet.design.base import MAKERS
from discreet.design.formula import Block, Margins, NamedTerms, Term, parse, resolve, table_name
from discreet.errors import DesignError

if TYPE_CHECKING:
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


@dataclass(frozen=True, eq=False)
class MergedLeaves:
    """The same published cells over as few inner cells as they tell apart."""

    design: StructuredDesign
    inner: Whole  # for each inner cell of the first design its place in this one


def merge_leaves(design: StructuredDesign) -> MergedLeaves:
    """Merge leaves that no published margin tells apart: municipalities, where provinces are shown.

    Published cells are the same ones, in the same order.
    """
    used = [
        list({id(level): level for b in design.blocks if (level := b.levels[a])}.values())
        for a in range(len(design.axes))
    ]
    pairs = [_merged_axis(axis, levels) for axis, levels in zip(design.axes, used, strict=True)]
    axes, places = [axis for axis, _ in pairs], [place for _, place in pairs]
    shape = tuple(map(len, axes))
    codes = [
        place[np.asarray(leaf)] for place, leaf in zip(places, design.inner_codes(), strict=True)
    ]
    flat = np.ravel_multi_index(codes, shape) if axes else np.zeros(1, np.int64)
    cells, inner = np.unique(flat, return_inverse=True)
    if len(cells) == np.prod(shape):
        made: Any = MAKERS["complete"](axes, design.terms, ())
    else:
        made = MAKERS["chosen"](axes, design.terms, np.unravel_index(cells, shape))
    return MergedLeaves(made, inner.astype(np.int64))


def _merged_axis(axis: Axis, used: Sequence[Level]) -> tuple[Axis, Whole]:
    """The axis with classes of leaves as its leaves, and the class of each leaf."""
    if any(level.is_identity for level in used):
        return axis, np.arange(len(axis))
    groups = np.array([level.group for level in used]).reshape(len(used), len(axis)).T
    _, first, place = np.unique(groups, axis=0, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))  # classes in the order of their first leaves
    first, place = np.sort(first), rank[place.ravel()]
    whole = [level for level in used if len(level) == len(first) and level.covers_all]
    named = [level.codes[level.group[k]] for level in whole[:1] for k in first]
    leaves = tuple(named or (axis.leaves[k] for k in first))
    levels = tuple(
        replace(level, group=level.group[first]) for level in axis.levels if level in used
    )
    return replace(axis, leaves=leaves, levels=levels), place


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
