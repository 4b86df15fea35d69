"""Risk across tables: crossings that were not published, and differences of published cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from discreet.arrays import Array, Index, Mask, Real, Whole
from discreet.assessment.assess import group_by_key
from discreet.assessment.cells import (
    NEARLY_ZERO,
    columns,
    containing,
    released_values,
    require_counts,
    require_structured,
    true_values,
    without_withheld,
)
from discreet.assessment.measure import NO_SENSITIVE, BaseMeasure, NotApplicableError, Score
from discreet.assessment.risk.diversity import Exact, GroupMeasure
from discreet.design.axis import OUTSIDE
from discreet.design.structured import StructuredDesign
from discreet.design.support import LARGEST_DENSE
from discreet.errors import check_known
from discreet.facade.table import Table
from discreet.tables.protected import Protected


@dataclass(frozen=True)
class TableDisclosure(GroupMeasure):
    r"""Groups disclosed by one published table alone, true against released: the F score.

    In each published table with the sensitive variable and at least one other, a group is a
    combination of the others; it is disclosed when all of it lies in one sensitive category. With
    a such groups in truth, b in the release (where there are records) and c in both with the
    same category, over all tables, :math:`F_\beta = (1 + \beta^2)c/(\beta^2 a + b)`.
    Range: 0 to 1. Lower is safer. The breakdown gives a, b and c for each table. For tables on
    grids, where variables are published side by side with the place.

    >>> from discreet.assessment.cells import NEARLY_ZERO, toy
    >>> score = TableDisclosure(sensitive="b")(*toy([[3, 1], [0, 2]], [[3, 0], [0, 2]]))
    >>> score.breakdown.to_pylist()
    [{'table': 'a×b', 'a': 1, 'b': 2, 'c': 1}]

    Args:
      quasi: Tables with other variables than these are left out; none is by default.
      beta: Weight of recall against precision.
      tolerance: Released values up to this size are zeros, for fits with decimals.

    See Langsrud & Lupp (2021), section 8.
    """

    name = "table-disclosure"

    beta: float = 0.5
    tolerance: float = NEARLY_ZERO

    def __call__(self, table: Table, release: Protected) -> Score:
        design = require_structured(release.design)
        sensitive, known = self._axes(design)
        f = true_values(table, design, "published")
        g = without_withheld(release, release.z)
        rows = []
        for k, block in enumerate(design.blocks):
            others = {a for a, level in enumerate(block.levels) if level is not None} - {sensitive}
            if block.levels[sensitive] is not None and others and others <= known:
                rows.append((block.name, *self._count(design, k, sensitive, f, g)))
        if not rows:
            raise NotApplicableError("no table crosses the sensitive variable with another.")
        parts = columns(("table", "a", "b", "c"), rows)
        total = Exact(*(sum(parts[letter]) for letter in "abc"))
        return self.score(total.f_score(self.beta), f"{self.sensitive} in each table", parts)

    def _axes(self, design: StructuredDesign) -> tuple[int, set[int]]:
        names = [axis.name for axis in design.axes]
        if self.sensitive is None:
            raise NotApplicableError(NO_SENSITIVE)
        check_known("variable", (self.sensitive, *(self.quasi or ())), names)
        known = names if self.quasi is None else self.quasi
        return names.index(self.sensitive), {names.index(name) for name in known}

    def _count(self, design: StructuredDesign, k: int, sensitive: int, f: Array, g: Array) -> Exact:
        """Disclosed groups of one table; a withheld cell leaves its category possible."""
        codes = list(np.unravel_index(design.block_cells(k), design.blocks[k].shape))
        category = codes[sensitive]
        codes[sensitive] = np.zeros_like(category)
        group = np.ravel_multi_index(codes, design.blocks[k].shape)
        part = design.slice_of(k)
        occurs = np.unique(group[f[part] > 0])
        true = _single(group, category, f[part] > 0)
        shown = _single(group, category, ~(g[part] <= self.tolerance))
        return _match_disclosures(true, shown, occurs)


@dataclass(frozen=True)
class IntersectionDisclosure(GroupMeasure):
    r"""Groups disclosed by all published tables together, true against released: the F score.

    A sensitive category is possible for a combination of all quasi-identifiers when no published
    cell that holds both is zero: the intersection of what each table allows, though no table
    crosses them. A group with one possible category is disclosed. With a such groups in truth, b
    in the release (where there are records) and c in both with the same category,
    :math:`F_\beta = (1 + \beta^2)c/(\beta^2 a + b)`. Range: 0 to 1. Lower is safer. The breakdown
    gives a, b, c, precision and recall.

    >>> from discreet.design.base import Design
    >>> from discreet.facade.release import Release
    >>> from discreet.tables.statement import Statement
    >>> from discreet.facade.table import Table
    >>> design = Design.product({"party": 3, "age": 2, "sex": 2}, "party*age + party*sex")
    >>> y = np.array([[[1, 0], [0, 2]], [[0, 0], [0, 3]], [[2, 0], [0, 0]]])
    >>> table = Table.from_inner(design, y.ravel())
    >>> release = Release(design, table.z, Statement())
    >>> IntersectionDisclosure(sensitive="party")(table, release).breakdown.to_pylist()[0]["a"]
    0

    Args:
      beta: Weight of recall against precision.
      tolerance: Released values up to this size are zeros, for fits with decimals.

    See Langsrud & Lupp (2021), section 8.
    """

    name = "intersection-disclosure"

    beta: float = 0.5
    tolerance: float = NEARLY_ZERO

    def __call__(self, table: Table, release: Protected) -> Score:
        design = require_structured(release.design)
        if design.is_complete and design.n_inner > LARGEST_DENSE:
            raise NotApplicableError("the variables have too many combinations to go through.")
        where = self.layout(design)
        f = true_values(table, design, "published")
        g = without_withheld(release, release.z)
        true, shown = f == 0, g <= self.tolerance
        possible = [design.adjoint(zero.astype(np.int64)) == 0 for zero in (true, shown)]
        occurs = np.unique(where.group[self._cells_with_records(table, release, possible[0])])
        found = [_single(where.group, where.category, p) for p in possible]
        counts = _match_disclosures(found[0], found[1], occurs)
        return self.score(counts.f_score(self.beta), where.on, counts.parts(self.beta))

    def _cells_with_records(self, table: Table, release: Protected, possible: Mask) -> Mask:
        """Inner cells with records; those that may have some where inner cells are unknown."""
        if table.inner is None:
            return possible
        return np.asarray(true_values(table, release.design, "inner") > 0)


Found = tuple[Whole, Whole]


def _single(group: Array, category: Array, possible: Array) -> Found:
    """Groups that have one possible category, and which one it is."""
    order = np.lexsort((category[possible], group[possible]))
    groups, categories = group[possible][order], category[possible][order]
    first, last = _ends(groups)
    one = categories[first] == categories[last]
    return groups[first][one], categories[first][one]


def _ends(groups: Array) -> tuple[Index, Index]:
    """First and last position of every run of equal entries."""
    change = np.flatnonzero(np.diff(groups)) + 1
    if not len(groups):
        return change, change
    return np.append(0, change), np.append(change - 1, len(groups) - 1)


def _match_disclosures(true: Found, shown: Found, occurs: Array) -> Exact:
    """Disclosures in truth and in the release among groups with records, and the common ones."""
    real, seen = (np.isin(groups, occurs) for groups, _ in (true, shown))
    _, i, j = np.intersect1d(true[0][real], shown[0][seen], return_indices=True)
    both = np.count_nonzero(true[1][real][i] == shown[1][seen][j])
    return Exact(int(real.sum()), int(seen.sum()), int(both))


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
        design = require_structured(release.design)
        require_counts(release)
        f = true_values(table, design, "published")
        g = released_values(release, "published")
        rows = []
        for coarse, fine, places in _inside(design):
            d, shown = (_differences(design, v, coarse, fine, places) for v in (f, g))
            is_small = (d > 0) & (d <= self.small)
            right = np.abs(shown[is_small] - d[is_small]) < 0.5
            names = (design.blocks[k].name for k in (coarse, fine))
            rows.append((*names, int(is_small.sum()), int(right.sum())))
        parts = columns(("table", "minus", "small", "revealed"), rows)
        if not sum(parts["small"]):
            raise NotApplicableError("no two published cells differ by few people.")
        return self.score(sum(parts["revealed"]) / sum(parts["small"]), "published counts", parts)


def _inside(design: StructuredDesign) -> Iterator[tuple[int, int, Whole]]:
    """Pairs of tables, and for each cell of the second the cell of the first that contains it.

    The tables differ in one variable; cells that lie in no single cell have the place -1.
    """
    alike = group_by_key(
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
