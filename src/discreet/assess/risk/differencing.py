"""What an intruder learns by subtracting one published table from another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from discreet.arrays import Array, Real, Whole
from discreet.assess.cells import (
    block_name,
    columns,
    released_values,
    require_counts,
    structured,
    true_values,
)
from discreet.assess.listing import grouped
from discreet.assess.measure import BaseMeasure, NotApplicableError, Score
from discreet.assess.utility.additivity import containing
from discreet.design.axis import OUTSIDE
from discreet.design.structured import StructuredDesign
from discreet.facade.table import Table
from discreet.tables.protected import Protected


@dataclass(frozen=True)
class Differencing(BaseMeasure):
    r"""Share of small groups, published nowhere, that subtraction of published cells reveals.

    Two tables that agree in all variables but one are subtracted there: a cell minus each cell
    inside it, and minus all of those together where they leave a remainder, as with two
    geographies that do not nest. The difference d is the number of people in the one and not in
    the other. Over the differences with :math:`1 \le d \le s` in truth, it is the share of those
    that come out right:

    .. math:: \#\{1 \le d \le s, |d^* - d| < \tfrac12\} / \#\{1 \le d \le s\}

    with :math:`d^*` from the released values. Range: 0 to 1. Lower is safer. A withheld cell
    reveals nothing. The breakdown has a row for each pair of tables.

    >>> from discreet.design.base import Design
    >>> from discreet.facade.release import Release
    >>> from discreet.tables.statement import Statement
    >>> table = Table.from_inner(Design.product({"place": 3}, "place"), np.array([40, 7, 1]))
    >>> published = np.array([40, 8, 1, 48])  # 48 − 40 − 8 − 1 is no small group
    >>> release = Release(table.design, published, Statement())
    >>> Differencing(small=8)(table, release).breakdown.to_pylist()
    [{'table': 'total', 'minus': 'place', 'small': 1, 'revealed': 1}]

    Args:
      small: The largest difference that is small.
    """

    name = "differencing"
    kind = "risk"

    small: int = 2

    def __call__(self, table: Table, release: Protected) -> Score:
        """Take the measure."""
        design = structured(release.design)
        require_counts(release)
        f = true_values(table, design, "published")
        g = released_values(release, "published")
        rows = []
        for coarse, fine, places in _inside(design):
            d, shown = (_differences(design, v, coarse, fine, places) for v in (f, g))
            is_small = (d > 0) & (d <= self.small)
            right = np.abs(shown[is_small] - d[is_small]) < 0.5
            names = (block_name(design.blocks[k]) for k in (coarse, fine))
            rows.append((*names, int(is_small.sum()), int(right.sum())))
        parts = columns(("table", "minus", "small", "revealed"), rows)
        if not sum(parts["small"]):
            raise NotApplicableError("no two published cells differ by few people.")
        return self.score(sum(parts["revealed"]) / sum(parts["small"]), "published counts", parts)


def _inside(design: StructuredDesign) -> Iterator[tuple[int, int, Whole]]:
    """Pairs of tables, and for each cell of the second the cell of the first that contains it.

    The tables differ in one variable; cells that lie in no single cell have the place -1.
    """
    alike = grouped(
        ((a, block.levels[:a] + block.levels[a + 1 :]), k)
        for k, block in enumerate(design.blocks)
        for a in range(len(design.axes))
    )
    for (a, _), blocks in alike.items():
        for coarse, fine in permutations(blocks, 2):
            places = _places(design, coarse, fine, a)
            if (places != OUTSIDE).any():
                yield coarse, fine, places


def _places(design: StructuredDesign, coarse: int, fine: int, a: int) -> Whole:
    outer, inner = design.blocks[coarse], design.blocks[fine]
    below, above = inner.levels[a], outer.levels[a]
    cells = design.block_cells(fine)
    if below is None:
        return np.full(len(cells), OUTSIDE, dtype=np.int64)
    up = np.zeros(len(below), np.int32) if above is None else containing(below, above)
    codes: list[Array] = list(np.unravel_index(cells, inner.shape))
    codes[a] = up[codes[a]]
    found = codes[a] != OUTSIDE
    flat = np.ravel_multi_index([np.where(found, c, 0) for c in codes], outer.shape)
    return np.where(found, np.searchsorted(design.block_cells(coarse), flat), OUTSIDE)


def _differences(
    design: StructuredDesign, values: Array, coarse: int, fine: int, places: Whole
) -> Real:
    """Cells minus each cell inside them, then minus the sum where there are several."""
    found = places != OUTSIDE
    at = places[found]
    outer, inner = values[design.slice_of(coarse)], values[design.slice_of(fine)][found]
    together = np.bincount(at, weights=inner, minlength=len(outer))
    several = np.bincount(at, minlength=len(outer)) > 1
    both = [outer[at] - inner, (outer - together)[several]]
    return np.concatenate(both).astype(np.float64)
