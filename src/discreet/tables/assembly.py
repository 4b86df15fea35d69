"""From coded cells to a table: axes, support, and values in their places; totals among the cells.

Totals in frames that come in: rows that repeat other rows, and published cells that add up.

Everything an error here says is confidential: it names true counts.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet.arrays import Array, Mask, Real, Whole
from discreet.design.axis import Axis
from discreet.design.base import Design
from discreet.design.codes import canonical_array, natural_order
from discreet.design.formats.tables import frame_categories
from discreet.design.formula import Margins, Term, unknown_name
from discreet.design.hierarchy import Hierarchy
from discreet.design.sparse import SparseDesign, complete_design
from discreet.design.structured import StructuredDesign
from discreet.design.support import CombinationMask, Support, check_support
from discreet.errors import CodeError, DataError, ParameterError
from discreet.frames import Frame, is_frame
from discreet.tables.keys import KeyConvention
from discreet.tables.truth import CellValues, TrueTable

HierarchyLike = Hierarchy | str | Path | Sequence[Hierarchy | str | Path] | Any  # or a frame
HierarchiesLike = Mapping[str, HierarchyLike]
Hierarchies = dict[str, tuple[Hierarchy, ...]]
TOTALS = ("Total", "_T", "(all)", "(grand total)")
"""Codes of the total, the usual one first."""
LABELS = frozenset(
    ["total", "totals", "_t", "tot", "all", "(all)", "sum", "grand total", "(grand total)"]
    + ["i alt", "alle", "insgesamt", "gesamt"]
)
"""What totals are called, in small letters."""
_SHOWN = 3  # cells that an error names
_FEWEST = 3  # rows that must agree before a code without a telling name is taken for a total


def as_hierarchies(given: HierarchiesLike | None) -> Hierarchies:
    """Hierarchies by variable, read from files where a path is given."""
    found: Hierarchies = {}
    if given is not None and not isinstance(given, Mapping):
        raise ParameterError(f"hierarchies are given by variable, {{name: …}}; got {given!r:.60}.")
    for variable, value in (given or {}).items():
        is_one = isinstance(value, (Hierarchy, str, Path)) or is_frame(value)
        several = [value] if is_one else value
        if not isinstance(several, Sequence) or not all(
            isinstance(h, (Hierarchy, str, Path)) or is_frame(h) for h in several
        ):
            raise ParameterError(
                f"variable {variable!r} needs a Hierarchy, the name of a file or a frame, or "
                f"several; got {value!r:.60}."
            )
        trees = [h if isinstance(h, Hierarchy) else Hierarchy.read(h) for h in several]
        if not trees:
            raise ParameterError(f"no hierarchy is given for variable {variable!r}.")
        found[variable] = tuple(trees)
    return found


def frame_hierarchies(frame: object) -> Hierarchies:
    """Code lists that come with a frame: the categories of pandas categoricals and polars enums."""
    return {
        name: (Hierarchy.flat(codes, root=free_total(codes)),)
        for name, codes in frame_categories(frame).items()
    }


def variables_of(
    terms: Iterable[Term], columns: Sequence[str], hierarchies: Hierarchies
) -> list[str]:
    """The variables that the terms speak of, in order of appearance.

    A name is a level of a hierarchy before it is a column: a coarser column that is also a level
    belongs to the variable it groups.
    """
    owner = {
        level: variable
        for variable, trees in hierarchies.items()
        for tree in trees
        for level in tree.level_names[1:]
        if variable in columns
    }
    found: dict[str, None] = {}
    for name in dict.fromkeys(name for term in terms for name in term):
        base = name.split("[", 1)[0] if name.endswith("]") else name
        if name in hierarchies and name in columns:
            found[name] = None
        elif base in owner:
            found[owner[base]] = None
        elif base in columns:
            found[base] = None
        else:
            raise unknown_name(base, [*columns, *owner])
    return list(found)


@dataclass(frozen=True, eq=False)
class CodedCells:
    """Cells from a frame: an axis and leaf positions for each variable, and their values."""

    axes: tuple[Axis, ...]
    leaves: tuple[Whole, ...]
    values: CellValues

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of categories of each variable."""
        return tuple(len(axis) for axis in self.axes)

    @property
    def crossing(self) -> int:
        """Number of combinations of categories."""
        return math.prod(self.shape)


def axis_of_codes(variable: str, codes: Sequence[str], *, declared: bool = False) -> Axis:
    """The axis of a variable without a code list, whose records hold these codes."""
    if not codes:
        raise DataError(
            f"variable {variable!r} has no records and no code list, so it has no categories. "
            "Give it a hierarchy or code list."
        )
    return Axis.flat(variable, natural_order(codes), free_total(codes), declared=declared)


def free_total(codes: Iterable[str]) -> str:
    """A code for the total that is not a category."""
    taken = set(codes)
    return next(c for c in TOTALS if c not in taken)


def build_table(
    coded: CodedCells,
    margins: Margins,
    rule: KeyConvention,
    support: Support = "all",
    structural_zeros: Sequence[Mapping[str, Any]] = (),
) -> TrueTable:
    """A table with inner cells from coded cells; rows of the same cell are summed."""
    check_support(support)
    if support == "all" or not coded.axes:  # a total alone has one inner cell
        design: StructuredDesign = complete_design(coded.axes, margins, structural_zeros)
    else:
        chosen = coded.values.count > 0 if support == "occurring" else slice(None)
        leaves = np.unravel_index(np.unique(_flat_places(coded)[chosen]), coded.shape)
        design = SparseDesign(coded.axes, margins, leaves, occurring=True)
    design.require_dense()
    where, n = inner_positions(coded, design), design.n_inner

    def scatter(values: Array) -> Array:
        out = np.zeros(n + 1, dtype=values.dtype)  # rows outside the design fall behind the end
        np.add.at(out, where, values)
        return out[:n]

    return TrueTable.from_inner(design, coded.values.apply_linear(scatter, rule), rule)


def inner_positions(coded: CodedCells, design: Design) -> Whole:
    """The inner position of each row, one past the end outside the design.

    Only rows without records may be outside.
    """
    where = design.require_variables("codes").inner_at(_flat_places(coded))
    _refuse_rows(coded, where == design.n_inner)
    return where


def check_possible(coded: CodedCells, masks: Sequence[CombinationMask]) -> None:
    """Refuse records in structural zeros, where cells are not listed."""
    for mask in masks:
        _refuse_rows(coded, ~mask.at(coded.leaves))


def _refuse_rows(coded: CodedCells, impossible: Mask) -> None:
    outside = np.flatnonzero(impossible & (coded.values.count > 0))
    if len(outside):
        row = int(outside[0])
        cell = {a.name: a.leaves[p[row]] for a, p in zip(coded.axes, coded.leaves, strict=True)}
        raise CodeError(
            f"records fall into cell {cell}, which was declared a structural zero. "
            "Correct the records or the declaration."
        )


def _flat_places(coded: CodedCells) -> Whole:
    """Position of each row in the full crossing."""
    if not coded.axes:
        return np.zeros(len(coded.values.count), dtype=np.int64)
    return np.ravel_multi_index(coded.leaves, coded.shape)


@dataclass(frozen=True, eq=False)
class _Column:
    """A variable of the frame: its codes, the code of each row, and what is known of them."""

    name: str
    codes: list[str]
    index: Whole
    total: str | None  # the code that says that it is the total
    is_declared: bool  # whether the codes are said to be categories


def base_rows(
    rows: Frame,
    count: Whole,
    variables: Sequence[str],
    totals: Mapping[str, Collection[str]],
    declared: Collection[str],
) -> Mask:
    """Which rows are inner cells; the others repeat them as totals.

    A total is known by the code list (`totals`), or by its name. Its rows must then be the sums of
    the rows they stand for. A declared category that only sounds like a total, and is no sum, stays
    a category.

    Args:
      rows: The frame.
      count: Its counts.
      variables: Its variables, also those that no margin names.
      totals: Codes of the total of variables with a code list.
      declared: Variables whose codes are said to be the public list of categories.

    Raises:
      DataError: A row sounds like a total and is no sum, or is a sum and does not sound like one.
    """
    columns = [_column(rows, v, totals.get(v), v in declared or v in totals) for v in variables]
    is_total = np.zeros((len(columns), len(count)), dtype=bool)
    for k, column in enumerate(columns):
        if column.total is not None:
            is_total[k] = column.index == column.codes.index(column.total)
    base: Mask = np.logical_not(is_total.any(axis=0))
    for pattern in np.unique(is_total[:, ~base], axis=1).T:
        chosen = (is_total == pattern[:, None]).all(axis=0)
        wrong = _unlike_sums(columns, pattern, chosen, base, count)
        if wrong is None:
            continue
        sounding = [c for c, named in zip(columns, pattern, strict=True) if named]
        if all(c.is_declared and c.name not in totals for c in sounding):
            return np.ones(len(count), dtype=bool)  # categories that are named like totals
        raise DataError(
            f"rows that sound like totals ({_totals_of(sounding)}) are not the sums of the others: "
            f"{wrong} (confidential). Correct the counts, leave these rows out, or, if they are "
            "categories, say so with declared=."
        )
    _refuse_unnamed(columns, base, count)
    return base


def _column(rows: Frame, name: str, totals: Collection[str] | None, is_declared: bool) -> _Column:
    codes, index = canonical_array(rows.column(name))
    known = LABELS if totals is None else totals
    found = [c for c in codes if (c.casefold() if totals is None else c) in known]
    if len(found) > 1 and totals is None:
        raise DataError(
            f"codes {found[0]!r} and {found[1]!r} of variable {name!r} both sound like its total. "
            "Leave the rows of one of them out, or give the variable a code list."
        )
    return _Column(name, codes, index.astype(np.int64), found[0] if found else None, is_declared)


def _unlike_sums(
    columns: Sequence[_Column], pattern: Mask, chosen: Mask, base: Mask, count: Whole
) -> str | None:
    """The first totals of one kind that are not the sums of their rows, with both sums."""
    kept = [c for c, is_total in zip(columns, pattern, strict=True) if not is_total]
    groups = _groups(kept, len(count))
    sums = np.bincount(groups[base], weights=count[base], minlength=int(groups.max()) + 1)
    given = np.bincount(groups[chosen], weights=count[chosen], minlength=len(sums))
    wrong = [k for k in np.unique(groups[chosen]).tolist() if given[k] != sums[k]]
    if not wrong:
        return None
    shown = []
    for k in wrong[:_SHOWN]:
        row = int(np.flatnonzero(chosen & (groups == k))[0])
        cell = ", ".join(f"{c.name} {c.codes[c.index[row]]}" for c in kept) or "all"
        shown.append(f"{cell}: {given[k]:g} given, {sums[k]:g} summed")
    return "; ".join(shown) + (f"; and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else "")


def _groups(columns: Sequence[_Column], n: int) -> Whole:
    """A number for each combination of codes that occurs."""
    found = np.zeros(n, dtype=np.int64)
    for column in columns:
        joint = found * len(column.codes) + column.index
        found = np.unique(joint, return_inverse=True)[1].reshape(n)
    return found


def _refuse_unnamed(columns: Sequence[_Column], base: Mask, count: Whole) -> None:
    """Refuse a code that is the sum of all others wherever there are records, by any name."""
    for column in columns:
        if column.is_declared or column.total is not None or len(column.codes) < _FEWEST:
            continue
        others = _groups([c for c in columns if c is not column], len(count))[base]
        n, width = int(others.max(initial=-1)) + 1, len(column.codes)
        places = others * width + column.index[base]
        square = np.bincount(places, weights=count[base], minlength=n * width).reshape(n, width)
        square = square[square.any(axis=1)]
        is_sum = (2 * square == square.sum(axis=1, keepdims=True)).all(axis=0)
        if len(square) >= _FEWEST and is_sum.any():
            code = column.codes[int(np.argmax(is_sum))]
            raise DataError(
                f"code {code!r} of variable {column.name!r} is the sum of all others in every "
                "row, but nothing says that it is a total. Leave its rows out or name it 'Total'; "
                f"if it is a category, say so with declared=[{column.name!r}]."
            )


def _totals_of(columns: Sequence[_Column]) -> str:
    return ", ".join(f"{c.name} {c.total!r}" for c in columns)


def check_adds_up(design: Design, z: Whole) -> None:
    """Refuse published cells of which some are not the sums of finer ones, naming both sums."""
    blocks, wrong = list(design.member_blocks()), dict[int, float]()
    for fine, parts in blocks:
        for coarse, cells in blocks:
            if parts != cells:
                sums = _sums(coarse, cells, fine, parts, z)
                unlike = np.flatnonzero(np.isfinite(sums) & (sums != z[cells])).tolist()
                wrong |= {cells.start + k: float(sums[k]) for k in unlike}
    if not wrong:
        return
    # the smallest first: what is wrong there is wrong in the cells above it
    order = sorted(wrong, key=lambda k: (design.column_sizes[k], k))
    shown = [
        f"{design.cell(k) or 'total'}: {z[k]} given, {wrong[k]:g} summed" for k in order[:_SHOWN]
    ]
    more = f"; and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
    raise DataError(
        f"published cells do not add up (confidential): {'; '.join(shown)}{more}. Correct them; if "
        "the table is meant not to add up (rounded or changed before), say adds_up=False, and "
        "protect it by a method that takes each cell by itself: cell-key, drop-add or pram with "
        "margins of their own."
    )


def _sums(coarse: Whole, cells: slice, fine: Whole, parts: slice, z: Whole) -> Real:
    """The cells of a block as sums of those of another; not a number where they are no such sums.

    A cell is a sum where the other block has cells for all its inner cells and for no others.
    """
    inside, known = coarse >= 0, fine >= 0
    owner = np.full(parts.stop - parts.start, -1, dtype=np.int64)
    both = inside & known
    owner[fine[both] - parts.start] = coarse[both]
    torn = known & (owner[np.where(known, fine - parts.start, 0)] != coarse)
    owner_of_torn = owner[fine[torn] - parts.start]
    n = cells.stop - cells.start
    used = owner >= 0
    added = np.bincount(owner[used] - cells.start, weights=z[parts][used], minlength=n)
    sums = added.astype(np.float64)
    unlike = np.concatenate([coarse[inside & (~known | torn)], owner_of_torn])
    sums[unlike[unlike >= 0] - cells.start] = np.nan
    return sums
