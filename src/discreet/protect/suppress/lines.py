"""Lines of a table: a published cell and its parts along one variable, one level down."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from discreet.arrays import Whole
from discreet.design.axis import OUTSIDE, Level
from discreet.design.base import Design
from discreet.design.structured import StructuredDesign


@dataclass(frozen=True, eq=False)
class Lines:
    """Published cells with the nearest published cell they are part of along one variable.

    Attributes:
      axis: The variable, by its place.
      child: Positions of the parts.
      parent: Positions of the cells they are part of.
    """

    axis: int
    child: Whole
    parent: Whole


def lines(design: Design) -> list[Lines]:
    """All lines of a design, by variable and level; a matrix has no variables and no lines."""
    if (over := design.over_variables) is None:
        return []
    found = [_between(over, *pair) for pair in _pairs(over)]
    return [line for line in found if len(line.child)]


def _pairs(design: StructuredDesign) -> Iterator[tuple[int, int, int, Whole]]:
    """Blocks that differ along one variable, fine and coarse, with none of them in between.

    With each pair comes the variable, and the coarse group of each fine one.
    """
    blocks = design.blocks
    for fine, block in enumerate(blocks):
        for a, level in enumerate(block.levels):
            above = {
                k: up
                for k, other in enumerate(blocks)
                if _differ_only_in(a, block.levels, other.levels)
                and (up := _parents(level, other.levels[a])) is not None
            }
            for k, up in above.items():
                between = (_parents(blocks[m].levels[a], blocks[k].levels[a]) for m in above)
                if all(found is None for found in between):
                    yield a, fine, k, up


def _differ_only_in(a: int, one: tuple[Level | None, ...], two: tuple[Level | None, ...]) -> bool:
    return one[a] is not two[a] and all(
        here is there for b, (here, there) in enumerate(zip(one, two, strict=True)) if b != a
    )


def _parents(fine: Level | None, coarse: Level | None) -> Whole | None:
    """The group of a coarser level that each group of a fine one lies in, −1 if in none.

    `None` where the level is not coarser.
    """
    if fine is None or fine is coarse:
        return None
    if coarse is None:
        return np.zeros(len(fine), dtype=np.int64)
    up = np.full(len(fine), OUTSIDE, dtype=np.int64)
    inside = fine.group != OUTSIDE
    up[fine.group[inside]] = coarse.group[inside]
    is_nested = bool((up[fine.group[inside]] == coarse.group[inside]).all())
    return up if is_nested and len(coarse) < len(fine) else None


def _between(design: StructuredDesign, a: int, fine: int, coarse: int, up: Whole) -> Lines:
    """The lines from a fine block to a coarse one."""
    groups = list(np.unravel_index(design.block_cells(fine), design.blocks[fine].shape))
    groups[a] = up[groups[a]]
    inside = groups[a] != OUTSIDE
    flat = np.ravel_multi_index([g[inside] for g in groups], design.blocks[coarse].shape)
    child = np.flatnonzero(inside) + design.offsets[fine]
    cells = design.block_cells(coarse)
    place = np.searchsorted(cells, flat)
    present = cells[np.minimum(place, len(cells) - 1)] == flat
    return Lines(a, child[present], place[present] + design.offsets[coarse])
