"""True and released values side by side: what every measure looks at."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from discreet.arrays import Array, Index, Mask, Whole, Whole32
from discreet.assessment.measure import BaseMeasure, NotApplicableError
from discreet.design.axis import OUTSIDE, Level
from discreet.design.base import Design
from discreet.design.formula import Block
from discreet.design.parts import sum_to_levels
from discreet.design.structured import StructuredDesign
from discreet.design.support import spread
from discreet.errors import DesignError, ParameterError
from discreet.facade.release import Release
from discreet.facade.table import Table
from discreet.tables.protected import COUNT, Protected, mean_unit
from discreet.tables.statement import Statement

Cells = Literal["published", "inner"]
Part = tuple[str, slice]
CLASS_STARTS = (0, 1, 3, 10, 100)
NEARLY_ZERO = 1e-6  # fits stop this near to the zeros that they mean


@dataclass(frozen=True, eq=False)
class Pairs:
    """True values `f` and released values `g` of the cells that are shown."""

    f: Array  # true values
    g: Array  # released values
    shown: Mask  # which of the design's cells they belong to
    design: Design  # the design of the release
    cells: Cells  # whether these are published or inner cells
    on: str  # both choices in words

    def blocks(self) -> list[tuple[str, Array, Array]]:
        """Name, true and released values of every published table; inner cells are one."""
        if self.cells == "inner":
            return [("inner", self.f, self.g)]
        found, start = [], 0
        for name, part in published_parts(self.design):  # one after another, without gaps
            stop = start + int(np.count_nonzero(self.shown[part]))
            found.append((name, self.f[start:stop], self.g[start:stop]))
            start = stop
        return found

    def orders(self) -> Whole:
        """Number of crossed variables of each cell; all of them where nothing is known."""
        if self.cells == "inner" or not self.design.axes:
            return np.full(len(self.f), len(self.design.axes))
        return self.design.orders[self.shown]


@dataclass(frozen=True)
class PairMeasure(BaseMeasure):
    """A measure of true against released values, cell by cell.

    Args:
      cells: `"published"` cells, or `"inner"` ones where they are part of the release.
    """

    cells: Cells = "published"

    def pairs(self, table: Table, release: Protected) -> Pairs:
        """The values that the measure compares."""
        return pairs(table, release, self.cells)

    def counts(self, table: Table, release: Protected) -> Pairs:
        """The same for measures of single records, which weighted counts do not tell."""
        require_counts(release)
        return self.pairs(table, release)


def pairs(table: Table, release: Protected, cells: Cells = "published") -> Pairs:
    """True and released values of the same cells, in the release's unit, without withheld ones."""
    g = released_values(release, cells)
    f = true_values(table, release.design, cells, release.unit)
    shown = ~np.isnan(g) if g.dtype.kind == "f" else np.ones(len(g), dtype=bool)
    if not shown.any():
        raise NotApplicableError("every cell is withheld, so there is nothing to compare.")
    on = f"{cells} {release.unit}s"
    if shown.all():
        return Pairs(f, g, shown, release.design, cells, on)
    return Pairs(f[shown], g[shown], shown, release.design, cells, on)


def true_values(table: Table, design: Design, cells: Cells, unit: str = COUNT) -> Array:
    """True values in the order of the release's design; cells outside the support are zero."""
    check_choice("cells", cells, get_args(Cells))
    held = table.published if cells == "published" else table.inner
    if held is None:
        raise NotApplicableError("the table holds published cells only; inner ones were not read.")
    given = table.contributions
    found: Array | None = held.count if unit == COUNT else held.weight
    if given is not None and unit in (given.value, mean_unit(given.value)):
        sums = given.sum if cells == "published" else given.require_inner().sum
        found = sums if unit == given.value else sums / np.maximum(held.count, 1)
    if found is None:
        raise NotApplicableError("the table has no weights.")
    return _reorder(found, table.design, design, cells)


def require_counts(release: Protected) -> None:
    """Refuse values that are no numbers of records."""
    if release.unit != COUNT:
        raise NotApplicableError(
            f"the measure is about numbers of records, and the release publishes {release.unit}s."
        )


def released_values(release: Protected, cells: Cells) -> Array:
    """Released values, not-a-number where a cell is withheld.

    Inner cells are the fitted ones, or those that are published as they stand.
    """
    if cells == "published":
        return without_withheld(release, release.z)
    if release.y is not None:
        return release.y
    design = release.design.over_variables
    if design is not None:
        for k, block in enumerate(design.blocks):
            if all(level is not None and level.is_identity for level in block.levels):
                places = design.published_at(k, design.flat_cells())
                return without_withheld(release, release.z)[places]
    raise NotApplicableError(
        "inner cells are not part of the release. Fit them first: `release.fit()`, or "
        "`discreet fit` on the command line."
    )


def without_withheld(release: Protected, published: Array) -> Array:
    """Values of the published cells, not-a-number where they are withheld."""
    hidden = release.hidden
    return np.where(hidden, np.nan, published) if hidden.any() else published


def require_structured(design: Design) -> StructuredDesign:
    """The design, if it has tables of variables; one made from a matrix has none."""
    if design.over_variables is None:
        raise NotApplicableError("a design made from a matrix has no tables and no variables.")
    return design.over_variables


def published_parts(design: Design) -> list[Part]:
    """Name and positions of each published table; a general matrix is one."""
    tables = design.over_variables
    if tables is None:
        return [("published", slice(0, design.n_published))]
    return [(block.name, tables.slice_of(k)) for k, block in enumerate(tables.blocks)]


def finest_parts(design: Design) -> list[Part]:
    """The published tables that no other published table sums up to."""
    parts = published_parts(design)
    if design.over_variables is None:
        return parts
    refined = np.flatnonzero(finer(design.over_variables).any(axis=0))
    return [part for k, part in enumerate(parts) if k not in refined]


def finer(design: StructuredDesign) -> Mask:
    """At `[j, k]` whether block `j` sums up to block `k`; of equal blocks the first is finer."""
    refines = relate_blocks(
        design, lambda fine, coarse: design.lattice.refines(Block((fine,)), Block((coarse,)))
    )
    n = len(design.blocks)
    before = np.arange(n)[:, None] < np.arange(n)
    return np.asarray(refines & (before | ~refines.T) & ~np.eye(n, dtype=bool))


def relate_blocks(
    design: StructuredDesign, holds: Callable[[Level | None, Level | None], bool]
) -> Mask:
    """At `[j, k]` whether a relation holds between the levels of blocks `j` and `k` on every axis.

    Cost: a look at every pair of levels of an axis, then array operations on pairs of blocks.
    """
    n = len(design.blocks)
    everywhere = np.ones((n, n), dtype=bool)
    for a in range(len(design.axes)):
        of_block = [block.levels[a] for block in design.blocks]
        levels = list(dict.fromkeys(of_block))
        place = [levels.index(level) for level in of_block]
        pairs = np.array([[holds(first, second) for second in levels] for first in levels])
        everywhere &= pairs[np.ix_(place, place)]
    return everywhere


def containing(fine: Level, coarse: Level) -> Whole32:
    """The coarse group that holds all of a fine one; -1 where there is none."""
    inside = fine.group != OUTSIDE
    low = np.full(len(fine), len(coarse), dtype=np.int32)
    high = np.full(len(fine), OUTSIDE, dtype=np.int32)
    np.minimum.at(low, fine.group[inside], coarse.group[inside])
    np.maximum.at(high, fine.group[inside], coarse.group[inside])
    return np.where(low == high, high, OUTSIDE)


def hellinger(f: Array, g: Array) -> float:
    r"""The distance :math:`\sqrt{\tfrac12\sum(\sqrt{f} - \mathrm{sign}(g)\sqrt{|g|})^2}`.

    The sign lets released values be negative; without negative ones it changes nothing.
    """
    difference = np.sqrt(f) - np.sign(g) * np.sqrt(np.abs(g))
    return math.sqrt(0.5 * float(difference @ difference))


def count_classes(f: Array, starts: Sequence[int] = CLASS_STARTS) -> tuple[Index, list[str]]:
    """The class of each true value, and the names of the classes.

    >>> count_classes(np.array([0, 2, 40, 3]))[0].tolist(), count_classes(np.array([0]))[1]
    ([0, 1, 3, 2], ['0', '1-2', '3-9', '10-99', '100+'])
    """
    if list(starts) != sorted(set(starts)) or not starts or starts[0] != 0:
        raise ParameterError(f"classes must be increasing and begin with 0, got {tuple(starts)}.")
    names = [
        f"{low}" if high == low + 1 else f"{low}-{high - 1}"
        for low, high in zip(starts, starts[1:], strict=False)
    ]
    return np.searchsorted(starts, f, side="right") - 1, [*names, f"{starts[-1]}+"]


def columns(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, list[Any]]:
    """Rows of a breakdown as its columns."""
    return {name: [row[k] for row in rows] for k, name in enumerate(names)}


def by_class(
    values: Array,
    scores: Array,
    starts: Sequence[int],
    summaries: Mapping[Any, Callable[[Array], Any]],
) -> dict[str, list[Any]]:
    """Number of cells and summaries of their scores by class of a value, for a breakdown."""
    index, names = count_classes(values, starts)
    used = [k for k in range(len(names)) if (index == k).any()]
    inside = [scores[index == k] for k in used]
    return {
        "class": [names[k] for k in used],
        "cells": [len(part) for part in inside],
        **{name: [np.asarray(take(p)).item() for p in inside] for name, take in summaries.items()},
    }


def toy(true: npt.ArrayLike, released: npt.ArrayLike) -> tuple[Table, Protected]:
    """A table and a release of bare counts, for trying a measure out.

    The axes of the arrays become variables a, b, c, …; their full crossing is published.
    """
    f, g = np.asarray(true), np.asarray(released)
    if f.shape != g.shape:
        raise ParameterError(f"the arrays have different shapes, {f.shape} and {g.shape}.")
    names = [chr(ord("a") + k) for k in range(f.ndim)]
    design = Design.product(dict(zip(names, f.shape, strict=True)), [tuple(names)])
    table = Table.from_inner(design, f.ravel())
    return table, Release(design, g.ravel(), Statement(), y=g.ravel())


def _reorder(values: Array, source: Design, target: Design, cells: Cells) -> Array:
    """Values of one design's cells in the other's order."""
    if source is target:
        return values
    lift = source.public()
    where = lift.published if cells == "published" else lift.inner
    if where is not None and _has_same_cells(lift.design, target):
        size = target.n_published if cells == "published" else target.n_inner
        return spread(values, where, size)
    coarse = lift.design.at_published_levels()  # what fits are made over
    if where is not None and coarse is not None and _has_same_cells(coarse, target):
        if cells == "published":
            return spread(values, where, target.n_published)
        return sum_to_levels(lift.design, coarse, spread(values, where, lift.design.n_inner))
    raise DesignError(
        "the table and the release are not about the same cells. Assess a release against the "
        "table it was made from."
    )


def _has_same_cells(a: Design, b: Design) -> bool:
    """Whether two designs list the same cells in the same order, as far as names tell."""
    if (a.n_inner, a.n_published) != (b.n_inner, b.n_published):
        return False
    leaves = [[axis.leaves for axis in design.axes] for design in (a, b)]
    names = [[name for name, _ in published_parts(design)] for design in (a, b)]
    return leaves[0] == leaves[1] and names[0] == names[1]


def check_choice(option: str, given: Any, known: tuple[str, ...]) -> None:
    """Refuse a value that is none of those an option can take."""
    if given not in known:
        raise ParameterError(f"{option} must be one of {', '.join(known)}; got {given!r}.")
