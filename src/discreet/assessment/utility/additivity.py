"""How far published cells are from adding up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import combinations
from typing import Any

import numpy as np

from discreet.arrays import Array, Mask, Real, Whole32
from discreet.assessment.cells import (
    containing,
    finer,
    relate_blocks,
    require_structured,
    without_withheld,
)
from discreet.assessment.measure import POSITIVE, BaseMeasure, NotApplicableError, Score
from discreet.design.axis import OUTSIDE, Level
from discreet.design.formula import Block
from discreet.design.structured import StructuredDesign, rank_positions
from discreet.facade.table import Table
from discreet.tables.protected import Protected

Gap = tuple[str, str, Real]
Steps = Callable[[Level, Level], tuple[Whole32, Mask]]


@dataclass(frozen=True)
class AdditivityError(BaseMeasure):
    r"""Mean disagreement between sums that should be the same.

    With released inner cells, the mean of :math:`|X^\top y - z|`. Without, published tables are
    summed to what they have in common: each to the next coarser one (every branch of a hierarchy
    to the node above it), and two that only overlap to their common margin; the mean is over all
    these sums. On complete designs without hierarchies
    it is zero exactly when :math:`z = X^\top y` for some :math:`y`. Range: 0 upwards. Lower is
    better. The breakdown gives, for each pair of tables, the sums compared, how many disagree and
    by how much.

    >>> from discreet.design.base import Design
    >>> from discreet.facade.release import Release
    >>> from discreet.tables.statement import Statement
    >>> from discreet.facade.table import Table
    >>> design = Design.product({"a": 2}, "a")
    >>> table = Table.from_inner(design, np.array([4, 5]))
    >>> AdditivityError()(table, Release(design, np.array([4, 6, 7]), Statement())).value
    3.0

    Cost: a pass over both tables for each pair.

    Args:
      tolerance: Differences up to this size count as agreement in the breakdown.
    """

    name = "additivity-error"
    kind = "utility"
    range = POSITIVE

    tolerance: float = 1e-6

    def __call__(self, table: Table, release: Protected) -> Score:
        known = [(first, second, d[~np.isnan(d)]) for first, second, d in _gaps(release)]
        gaps = [gap for gap in known if len(gap[2])]
        if not gaps:
            raise NotApplicableError("the published tables have no sums in common.")
        value = np.concatenate([d for _, _, d in gaps]).mean()
        return self.score(value, "published values", self._parts(gaps))

    def _parts(self, gaps: list[Gap]) -> dict[str, list[Any]]:
        return {
            "table": [first for first, _, _ in gaps],
            "against": [second for _, second, _ in gaps],
            "sums": [len(d) for _, _, d in gaps],
            "disagreeing": [int(np.count_nonzero(d > self.tolerance)) for _, _, d in gaps],
            "mean": [float(d.mean()) for _, _, d in gaps],
            "max": [float(d.max()) for _, _, d in gaps],
        }


def _gaps(release: Protected) -> Iterator[Gap]:
    """Absolute disagreements, not-a-number where a withheld cell takes part."""
    design = release.design
    z = without_withheld(release, release.z).astype(np.float64)
    if release.y is not None:
        yield "inner", "published", np.abs(design.residual(release.y, z))
        return
    design = require_structured(design)
    steps = cache(_step)  # many blocks share their levels
    for j, k, target in _links(design, steps):
        names = design.blocks[j].name, design.blocks[k].name
        yield *names, _disagreement(design, z, (j, k), target, steps)


def _is_summed(steps: Steps, fine: Level | None, coarse: Level | None) -> bool:
    """Whether some group of the coarse level, or the total, is a sum of fine groups."""
    if coarse is None:
        return fine is None or fine.covers_all
    return fine is not None and bool(steps(fine, coarse)[1].any())


def _step(fine: Level, coarse: Level) -> tuple[Whole32, Mask]:
    """The coarse group of each fine one (-1: none), and the coarse groups that are covered.

    A coarse group is covered when it is a union of whole fine groups.

    Branches of unequal depth cover some groups of the level above and not others.
    """
    up = containing(fine, coarse)
    whole = np.append(up != OUTSIDE, False)  # the last entry stands for leaves in no fine group
    broken = coarse.group[~whole[fine.group]]
    covered = np.ones(len(coarse), dtype=bool)
    covered[broken[broken != OUTSIDE]] = False
    return np.where((up != OUTSIDE) & covered[up], up, OUTSIDE), covered


def _links(design: StructuredDesign, steps: Steps) -> Iterator[tuple[int, int, Block]]:
    """Pairs of tables and what both sum up to, without pairs that others make superfluous."""
    blocks = design.blocks
    linked = relate_blocks(design, partial(_is_summed, steps)) & ~np.eye(len(blocks), dtype=bool)
    strictly = (linked & ~linked.T).astype(np.float32)
    for j, k in np.argwhere(linked & ~(strictly @ strictly > 0)).tolist():
        yield j, k, blocks[k]
    published = {block.levels for block in blocks}
    finest = np.flatnonzero(~finer(design).any(axis=0)).tolist()
    for j, k in combinations(finest, 2):
        target = None if linked[j, k] or linked[k, j] else common_margin(blocks[j], blocks[k])
        if target is not None and target.levels not in published:
            yield j, k, target


def common_margin(first: Block, second: Block) -> Block | None:
    """The block of the levels that both have; `None` when a level to be summed has gaps."""
    levels = [
        one if one is other else None
        for one, other in zip(first.levels, second.levels, strict=True)
    ]
    for block in (first, second):
        for own, kept in zip(block.levels, levels, strict=True):
            if own is not None and kept is None and not own.covers_all:
                return None
    return Block(tuple(levels))


def _disagreement(
    design: StructuredDesign, z: Real, pair: tuple[int, int], target: Block, steps: Steps
) -> Real:
    """Differences of the sums of two tables over the cells of the target that both cover."""
    places = [_places(design, k, target, steps) for k in pair]
    inside = np.concatenate([place[place != OUTSIDE] for place in places])
    cells = rank_positions(inside, target.size)[0]
    covered = np.ones(len(cells), dtype=bool)
    sums = []
    for k, place in zip(pair, places, strict=True):
        inside = place != OUTSIDE
        where = np.searchsorted(cells, place[inside])
        values = z[design.slice_of(k)][inside]
        sums.append(np.bincount(where, weights=values, minlength=len(cells)))
        covered &= _is_covered(design.blocks[k], target, cells, steps)
    return np.abs(np.subtract(*sums))[covered]


def _places(design: StructuredDesign, k: int, target: Block, steps: Steps) -> Array:
    """Where each cell of block `k` lies in the crossing of a coarser one; -1: outside."""
    block = design.blocks[k]
    groups = np.unravel_index(design.block_cells(k), block.shape)
    flat = np.zeros(len(design.block_cells(k)), dtype=np.int64)
    inside = np.ones(len(flat), dtype=bool)
    for fine, coarse, group in zip(block.levels, target.levels, groups, strict=True):
        if fine is not None and coarse is not None:
            up = steps(fine, coarse)[0][group]
            inside &= up != OUTSIDE
            flat = flat * len(coarse) + up
    return np.where(inside, flat, OUTSIDE)


def _is_covered(block: Block, target: Block, cells: Array, steps: Steps) -> Mask:
    """Which cells of the target are sums of cells of the block."""
    whole = np.ones(len(cells), dtype=bool)
    groups = np.unravel_index(cells, target.shape)
    for fine, coarse, group in zip(block.levels, target.levels, groups, strict=True):
        if fine is not None and coarse is not None:
            whole &= steps(fine, coarse)[1][group]
    return whole
