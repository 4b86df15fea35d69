"""How far published cells are from adding up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.assess.cells import block_name, finer, without_withheld
from discreet.assess.measure import POSITIVE, BaseMeasure, NotApplicableError, Score
from discreet.design.axis import OUTSIDE, Level
from discreet.design.base import Vector
from discreet.design.blocks import Block, Lattice
from discreet.design.release import Release
from discreet.design.structured import StructuredDesign
from discreet.design.table import Table

Real = NDArray[np.float64]
Gap = tuple[str, str, Real]
_SPARE = 4  # a crossing at most this many times larger than its cells is marked in an array


@dataclass(frozen=True)
class AdditivityError(BaseMeasure):
    r"""Mean disagreement between sums that should be the same.

    With released inner cells, the mean of :math:`|X^\top y - z|`. Without, published tables are
    summed to what they have in common: each to the next coarser one, and two that only overlap to
    their common margin; the mean is over all these sums. On complete designs without hierarchies
    it is zero exactly when :math:`z = X^\top y` for some :math:`y`. Range: 0 upwards. Lower is
    better. The breakdown gives, for each pair of tables, the sums compared, how many disagree and
    by how much.

    >>> from discreet.design.base import Design
    >>> from discreet.design.release import Release, Statement
    >>> from discreet.design.table import Table
    >>> design = Design.product({"a": 2}, "a")
    >>> table = Table.from_inner(design, np.array([4, 5]))
    >>> AdditivityError()(table, Release(design, np.array([4, 6, 7]), Statement((), ""))).value
    3.0

    Cost: a pass over both tables for each pair.

    Args:
      tolerance: Differences up to this size count as agreement in the breakdown.
    """

    name = "additivity-error"
    kind = "utility"
    range = POSITIVE
    direction = "lower"

    tolerance: float = 1e-6

    def __call__(self, table: Table, release: Release) -> Score:
        """Take the measure."""
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


def _gaps(release: Release) -> Iterator[Gap]:
    """Absolute disagreements, not-a-number where a withheld cell takes part."""
    design = release.design
    z = without_withheld(release, release.z).astype(np.float64)
    if release.y is not None:
        yield "inner", "published", np.abs(design.residual(release.y, z))
        return
    if not isinstance(design, StructuredDesign):
        raise NotApplicableError(
            "a design made from a matrix has no tables to sum; fit inner cells first."
        )
    for j, k, target in _links(design):
        names = block_name(design.blocks[j]), block_name(design.blocks[k])
        yield *names, _disagreement(design, z, (j, k), target)


def _links(design: StructuredDesign) -> Iterator[tuple[int, int, Block]]:
    """Pairs of tables and what both sum up to, without pairs that others make superfluous."""
    blocks, order = design.blocks, finer(design)
    steps = order.astype(np.float32)
    for j, k in np.argwhere(order & ~(steps @ steps > 0)).tolist():
        yield j, k, blocks[k]
    published = {block.levels for block in blocks}
    finest = np.flatnonzero(~order.any(axis=0)).tolist()
    for j, k in combinations(finest, 2):
        target = common_margin(design.lattice, blocks[j], blocks[k])
        if target is not None and target.levels not in published:
            yield j, k, target


def common_margin(lattice: Lattice, first: Block, second: Block) -> Block | None:
    """The finest block that both sum up to; `None` when their levels leave categories out."""
    levels: list[Level | None] = []
    for one, other in zip(first.levels, second.levels, strict=True):
        if one is not None and other is not None:
            if lattice.step(one, other) is not None:
                levels.append(other)
                continue
            if lattice.step(other, one) is not None:
                levels.append(one)
                continue
        if any(level is not None and not level.covers_all for level in (one, other)):
            return None
        levels.append(None)
    return Block(tuple(levels))


def _disagreement(design: StructuredDesign, z: Real, pair: tuple[int, int], target: Block) -> Real:
    """Differences of the sums of two tables over the cells of the target that either reaches."""
    places = [_places(design, k, target) for k in pair]
    cells = _reached(places, target.size)
    sums = []
    for k, place in zip(pair, places, strict=True):
        inside = place != OUTSIDE
        where = np.searchsorted(cells, place[inside])
        values = z[design.slice_of(k)][inside]
        sums.append(np.bincount(where, weights=values, minlength=len(cells)))
    return np.abs(np.subtract(*sums))


def _reached(places: list[Vector], size: int) -> Vector:
    """The different positions in increasing order; marked in an array where that is not large."""
    inside = np.concatenate([place[place != OUTSIDE] for place in places])
    if size > _SPARE * len(inside) + 1024:
        return np.unique(inside)
    mark = np.zeros(size, dtype=bool)
    mark[inside] = True
    return np.flatnonzero(mark)


def _places(design: StructuredDesign, k: int, target: Block) -> Vector:
    """Where each cell of block `k` lies in the crossing of a coarser one; -1: outside."""
    block = design.blocks[k]
    groups = np.unravel_index(design.block_cells(k), block.shape)
    flat = np.zeros(len(design.block_cells(k)), dtype=np.int64)
    inside = np.ones(len(flat), dtype=bool)
    for fine, coarse, group in zip(block.levels, target.levels, groups, strict=True):
        if fine is not None and coarse is not None:
            up = np.asarray(design.lattice.step(fine, coarse))[group]
            inside &= up != OUTSIDE
            flat = flat * len(coarse) + up
    return np.where(inside, flat, OUTSIDE)
