"""What tables that are published side by side, not crossed, say about a sensitive variable.

Inner cells need not be released: a reader of the published tables sees which categories are
possible. A zero rules a category out; a group in which one category is left is disclosed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.arrays import Array, Index, Mask, Whole
from discreet.assess.cells import (
    NEARLY_ZERO,
    block_name,
    columns,
    structured,
    true_values,
    without_withheld,
)
from discreet.assess.measure import NO_SENSITIVE, NotApplicableError, Score
from discreet.assess.risk.exact import Exact
from discreet.assess.risk.groups import GroupMeasure
from discreet.design.structured import StructuredDesign
from discreet.design.support import LARGEST_DENSE
from discreet.errors import UnknownNameError
from discreet.facade.table import Table
from discreet.tables.protected import Protected


@dataclass(frozen=True)
class TableDisclosure(GroupMeasure):
    r"""Groups disclosed by one published table alone, true against released, :math:`F_\beta`.

    In each published table with the sensitive variable and at least one other, a group is a
    combination of the others; it is disclosed when all of it lies in one sensitive category. With
    a such groups in truth, b in the release (where there are records) and c in both with the
    same category, over all tables, :math:`F_\beta = (1 + \beta^2)c/(\beta^2 a + b)`.
    Range: 0 to 1. Lower is safer. The breakdown gives a, b and c for each table. For tables on
    grids, where variables are published side by side with the place.

    >>> from discreet.assess.cells import NEARLY_ZERO, toy
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
        """Take the measure."""
        design = structured(release.design)
        sensitive, known = self._axes(design)
        f = true_values(table, design, "published")
        g = without_withheld(release, release.z)
        rows = []
        for k, block in enumerate(design.blocks):
            others = {a for a, level in enumerate(block.levels) if level is not None} - {sensitive}
            if block.levels[sensitive] is not None and others and others <= known:
                rows.append((block_name(block), *self._count(design, k, sensitive, f, g)))
        if not rows:
            raise NotApplicableError("no table crosses the sensitive variable with another.")
        parts = columns(("table", "a", "b", "c"), rows)
        total = Exact(*(sum(parts[letter]) for letter in "abc"))
        return self.score(total.f_score(self.beta), f"{self.sensitive} in each table", parts)

    def _axes(self, design: StructuredDesign) -> tuple[int, set[int]]:
        names = [axis.name for axis in design.axes]
        if self.sensitive is None:
            raise NotApplicableError(NO_SENSITIVE)
        for name in (self.sensitive, *(self.quasi or ())):
            if name not in names:
                raise UnknownNameError("variable", name, names)
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
        return _matched(true, shown, occurs)


@dataclass(frozen=True)
class IntersectionDisclosure(GroupMeasure):
    r"""Groups disclosed by all published tables together, true against released, :math:`F_\beta`.

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
        """Take the measure."""
        design = structured(release.design)
        if design.is_complete and design.n_inner > LARGEST_DENSE:
            raise NotApplicableError("the variables have too many combinations to go through.")
        where = self.layout(design)
        f = true_values(table, design, "published")
        g = without_withheld(release, release.z)
        true, shown = f == 0, g <= self.tolerance
        possible = [design.adjoint(zero.astype(np.int64)) == 0 for zero in (true, shown)]
        occurs = np.unique(where.group[self._filled(table, release, possible[0])])
        found = [_single(where.group, where.category, p) for p in possible]
        counts = _matched(found[0], found[1], occurs)
        return self.score(counts.f_score(self.beta), where.on, counts.parts(self.beta))

    def _filled(self, table: Table, release: Protected, possible: Mask) -> Mask:
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


def _matched(true: Found, shown: Found, occurs: Array) -> Exact:
    """Disclosures in truth and in the release among groups with records, and the common ones."""
    real, seen = (np.isin(groups, occurs) for groups, _ in (true, shown))
    _, i, j = np.intersect1d(true[0][real], shown[0][seen], return_indices=True)
    both = np.count_nonzero(true[1][real][i] == shown[1][seen][j])
    return Exact(int(real.sum()), int(seen.sum()), int(both))
