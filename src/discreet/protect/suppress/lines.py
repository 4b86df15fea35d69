"""Lines of a table: a published cell and its parts along one variable, one level down."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.design.axis import OUTSIDE, Level
from discreet.design.base import Design
from discreet.design.structured import StructuredDesign

Positions = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Lines:
    """Published cells with the nearest published cell they are part of along one variable.

    Attributes:
      axis: The variable, by its place.
      child: Positions of the parts.
      parent: Positions of the cells they are part of.
    """

    axis: int
    child: Positions
    parent: Positions


def lines(design: Design) -> list[Lines]:
    """All lines of a design, by variable and level; a matrix has no variables and no lines."""
    if (over := design.over_variables) is None:
        return []
    return [found for pair in _pairs(over) for found in [_between(over, *pair)] if len(found.child)]


def _pairs(design: StructuredDesign) -> Iterator[tuple[int, int, int]]:
    """Blocks that differ along one variable, fine and coarse, with none of them in between."""
    blocks = design.blocks
    for fine, block in enumerate(blocks):
        for a, level in enumerate(block.levels):
            if level is None:
                continue
            above = [
                k
                for k, other in enumerate(blocks)
                if _differ_only_in(a, block.levels, other.levels)
                and _is_coarser(design, level, other.levels[a])
            ]
            for k in above:
                between = (
                    m
                    for m in above
                    if m != k and _is_coarser(design, _level(design, m, a), blocks[k].levels[a])
                )
                if next(between, None) is None:
                    yield a, fine, k


def _level(design: StructuredDesign, block: int, a: int) -> Level | None:
    return design.blocks[block].levels[a]


def _differ_only_in(a: int, one: tuple[Level | None, ...], two: tuple[Level | None, ...]) -> bool:
    return one[a] is not two[a] and all(
        here is there for b, (here, there) in enumerate(zip(one, two, strict=True)) if b != a
    )


def _is_coarser(design: StructuredDesign, fine: Level | None, coarse: Level | None) -> bool:
    if fine is None or fine is coarse:
        return False
    return coarse is None or (
        len(coarse) < len(fine) and _parents(design, fine, coarse) is not None
    )


def _parents(
    design: StructuredDesign, fine: Level, coarse: Level | None
) -> NDArray[np.int64] | None:
    """The group of the coarse level that each group of the fine one lies in, −1 if in none."""
    if coarse is None:
        return np.zeros(len(fine), dtype=np.int64)
    up = np.full(len(fine), OUTSIDE, dtype=np.int64)
    inside = fine.group != OUTSIDE
    up[fine.group[inside]] = coarse.group[inside]
    same = up[fine.group[inside]] == coarse.group[inside]
    return up if bool(same.all()) else None


def _between(design: StructuredDesign, a: int, fine: int, coarse: int) -> Lines:
    """The lines from a fine block to a coarse one."""
    source, target = design.blocks[fine], design.blocks[coarse]
    groups = list(np.unravel_index(design.block_cells(fine), source.shape))
    level = source.levels[a]
    up = None if level is None else _parents(design, level, target.levels[a])
    if up is None:
        return Lines(a, np.empty(0, np.int64), np.empty(0, np.int64))
    groups[a] = up[groups[a]]
    inside = groups[a] != OUTSIDE
    flat = np.ravel_multi_index([group[inside] for group in groups], target.shape)
    child = np.flatnonzero(inside) + design.offsets[fine]
    cells = design.block_cells(coarse)
    place = np.searchsorted(cells, flat)
    present = cells[np.minimum(place, len(cells) - 1)] == flat
    return Lines(a, child[present], place[present] + design.offsets[coarse])
