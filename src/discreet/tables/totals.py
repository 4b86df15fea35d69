"""Totals in frames that come in: rows that repeat other rows, and published cells that add up.

Everything an error here says is confidential: it names true counts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Mask, Real, Whole
from discreet.design.base import Design
from discreet.design.codes import canonical_array
from discreet.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

LABELS = frozenset(
    ["total", "totals", "_t", "tot", "all", "(all)", "sum", "grand total", "(grand total)"]
    + ["i alt", "alle", "insgesamt", "gesamt"]
)
"""What totals are called, in small letters."""
_SHOWN = 3  # cells that an error names
_FEWEST = 3  # rows that must agree before a code without a telling name is taken for a total


@dataclass(frozen=True, eq=False)
class _Column:
    """A variable of the frame: its codes, the code of each row, and what is known of them."""

    name: str
    codes: list[str]
    index: Whole
    total: str | None  # the code that says that it is the total
    is_declared: bool  # whether the codes are said to be categories


def base_rows(
    rows: pa.Table,
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


def _column(
    rows: pa.Table, name: str, totals: Collection[str] | None, is_declared: bool
) -> _Column:
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
