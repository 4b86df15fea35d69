"""Tables for people: frames, text for the terminal, crossed trees for notebooks.

A crossed tree has headings that fold, and the figures between them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from discreet.arrays import Array, Index
from discreet.columns import Column
from discreet.design.axis import Axis
from discreet.design.base import Design
from discreet.display import Grid, Heading, Mark, align_columns
from discreet.frames import Frame, value_names

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

HEAD = 12
CONFIDENTIAL = ":c"
"""What stands in place of a figure that is not shown, as statistical offices write it."""
NO_QUALITY = -1
"""In place of the quality of a cell that has none."""


class Frames:
    """Something that is a table: frames of any library from its own.

    Every library that reads Arrow takes it as it is: `polars.DataFrame(table)`.
    """

    if TYPE_CHECKING:

        def to_frame(self) -> Frame:
            """The table as a frame."""

    def to_arrow(self) -> pa.Table:
        """The same as a table of pyarrow; as confidential as it is."""
        return self.to_frame().to_arrow()

    def to_pandas(self) -> pd.DataFrame:
        """The same as a pandas frame; as confidential as it is."""
        return self.to_frame().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """The same as a polars frame; as confidential as it is."""
        return self.to_frame().to_polars()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_frame().__arrow_c_stream__(requested_schema)


def frame_of(design: Design, columns: Mapping[str, Array]) -> Frame:
    """Code columns of the published cells followed by columns of values."""
    return _beside(design.label_columns(), columns)


def _beside(labels: Mapping[str, Column], values: Mapping[str, Array]) -> Frame:
    """Columns of codes and of values; see `value_names` for names that both would have."""
    names = value_names(labels, values)
    return Frame({**labels, **{names[k]: column for k, column in values.items()}})


def mask_missing_quality(quality: Array | None) -> Array | None:
    """Quality with the cells masked that have none."""
    return None if quality is None else np.ma.array(quality, mask=quality == NO_QUALITY)


def inner_frame_of(design: Design, columns: Mapping[str, Array], positions: Array) -> Frame:
    """Code columns of some inner cells followed by columns of values."""
    values = {k: v[positions] for k, v in columns.items()}
    return _beside(design.inner_label_columns(positions), values)


def text(design: Design, z: Array, title: str, unit: str = "count") -> str:
    """A title and the tables, laid out in rows and columns where they have two variables."""
    head = f"{title}: {design.n_published:,} published cells, {design.n_inner:,} inner cells"
    return "\n".join([head, *_table_lines(design, z, unit)])


def _table_lines(design: Design, z: Array, unit: str) -> list[str]:
    lines = []
    for name, part, values in parts(design, z):
        rows = _rows(part, values, unit)
        n_codes = 1 if _crossed_sides(part) else len(part.axes)
        lines += [f"\n{name}: {part.n_published:,} cells"] if name else []
        lines += align_columns(rows, right=range(n_codes, len(rows[0])))
    return lines


def parts(design: Design, z: Array) -> list[tuple[str, Design, Array]]:
    """Each table of a design over its own variables, by name; one alone needs no name."""
    structured = design.over_variables
    if structured is None or len(design.tables) < 2:
        return [("", design, z)]
    found = ((name, structured.part(terms)) for name, terms in design.tables.items())
    return [(name, part.design, z[part.cells]) for name, part in found]


def grids(
    design: Design, z: Array, unit: str = "count", signs: Sequence[Mark | None] = ()
) -> list[Grid]:
    """The same tables as crossed trees, for a notebook.

    Args:
      design: The design.
      z: Values.
      unit: What they are.
      signs: For each cell the mark that stands in place of its value, if any; none when empty.
    """
    made = []
    for name, part, cells in parts(design, np.arange(len(z))):
        sign_of = partial(_sign, signs, cells)
        counted = f"{part.n_published:,} published cells"
        caption = f"{name}: {counted}" if name else counted
        made.append(crossed_grid(part, z[cells], caption, unit, sign_of))
    return made


def _sign(signs: Sequence[Mark | None], cells: Array, k: int) -> Mark | None:
    return signs[cells[k]] if len(signs) else None


def _crossed_sides(design: Design) -> tuple[int, int] | None:
    """Which of two variables are rows and columns, where every crossing of theirs is published.

    The last one is in columns unless it is too long for a line and the first one is not.
    """
    if len(design.axes) != 2:
        return None
    sizes = [len(names) for _, names in design.published_codes()]
    fitting = [k for k in (1, 0) if sizes[k] <= HEAD]
    if design.n_published != sizes[0] * sizes[1] or not fitting:
        return None
    return 1 - fitting[0], fitting[0]


def _rows(design: Design, z: Array, unit: str) -> list[list[str]]:
    """A header and the rows; of many, the first and the last three."""
    sides = _crossed_sides(design)
    if sides is None:
        return _long_rows(design, z, unit)
    (rows, row_codes), (columns, column_codes) = (design.published_codes()[k] for k in sides)
    row_axis, column_axis = (design.axes[k] for k in sides)
    grid = np.ma.empty((len(row_codes), len(column_codes)), dtype=z.dtype)
    grid[rows, columns] = z
    down, across = _reading_order(row_axis, row_codes), _reading_order(column_axis, column_codes)
    is_long = len(down) > 2 * HEAD
    shown = [*[*down][:HEAD], *[*down][-3:]] if is_long else [*down]
    body = [
        ["  " * down[k] + row_axis.describe(row_codes[k]), *map(_number, grid[k, [*across]])]
        for k in shown
    ]
    if is_long:
        body.insert(HEAD, ["…"] * (1 + len(across)))
    head = [f"{row_axis.name} \\ {column_axis.name}", *(column_codes[k] for k in across)]
    return [head, *body]


def _reading_order(axis: Axis, names: Sequence[str]) -> dict[int, int]:
    """Places of codes with how far each is set in: parts below their group, the total last."""
    tree = _tree_of(axis, names)
    place = {name: k for k, name in enumerate(names)}
    depths = dict(zip((place[name] for name in tree.codes), tree.depth, strict=True))
    if tree.codes[0] != axis.total:
        return depths
    total = place[axis.total]
    return {**{k: d - 1 for k, d in depths.items() if k != total}, total: 0}


def _long_rows(design: Design, z: Array, unit: str) -> list[list[str]]:
    codes, n = design.published_codes(), design.n_published
    shown = list(range(n)) if n <= 2 * HEAD else [*range(HEAD), *range(n - 3, n)]
    variables = [axis.name for axis in design.axes]
    header = [*variables, value_names(variables, [unit])[unit]]
    body = [
        [
            *(
                axis.describe(names[index[k]])
                for axis, (index, names) in zip(design.axes, codes, strict=True)
            ),
            _number(z[k]),
        ]
        for k in shown
    ]
    if len(shown) < n:
        body.insert(HEAD, ["…"] * len(header))
    return [header, *body]


def _number(value: Any) -> str:
    return CONFIDENTIAL if value is np.ma.masked else number(value)


SignOf = Callable[[int], Mark | None]
_MOST_CELLS = 6_000  # of a piece of HTML, some 400 kB; notebooks become slow with more
_FEW_CELLS = 60
_MOST_COLUMNS = 40
_OPEN_ROWS, _OPEN_COLUMNS = 30, 10  # what stands open at first: a screen


class _Tree(NamedTuple):
    """The published codes of a variable in reading order, each over its parts, the total first."""

    codes: list[str]
    parent: list[int]  # place of the code above, −1 for the total
    depth: list[int]
    place: dict[str, int]


def crossed_grid(
    design: Design, z: Array, caption: str, unit: str, sign_of: SignOf = lambda k: None
) -> Grid:
    """The published cells of a design, its last variable in columns where it is short enough.

    Of many cells the deepest levels are left out first, and the note says how many.

    Args:
      design: The design.
      z: Values.
      caption: What the table is.
      unit: What the values are.
      sign_of: For the place of a cell a mark that stands instead of its value, or nothing.
    """
    codes = design.published_codes()
    if not codes:
        return _list_cells(z, caption, unit, sign_of)
    trees = [_tree_of(axis, names) for axis, (_, names) in zip(design.axes, codes, strict=True)]
    cells, places = _coarse_cells(trees, codes)
    beside = len(trees) > 1 and len(_coarsest(trees[-1].depth, _MOST_COLUMNS)) > 1
    n = len(trees) - beside
    across = _column_headings(trees[-1], design.axes[-1]) if beside else [Heading(unit)]
    across, column_of = _kept_columns(across, places[:, -1] if beside else 0 * places[:, 0])
    cells, places = cells[column_of >= 0], places[column_of >= 0]
    rows, row_of = np.unique(places[:, :n], axis=0, return_inverse=True)
    up = _row_headings(rows, trees[:n], design.axes)
    made: list[list[str | Mark]] = [[""] * len(across) for _ in up]
    columns = column_of[column_of >= 0].tolist()
    for k, i, j in zip(cells.tolist(), row_of.ravel().tolist(), columns, strict=True):
        made[i][j] = sign_of(k) or number(z[k])
    names = [axis.name for axis in design.axes]
    corner = " \\ ".join([" × ".join(names[:n]), *names[n:]])
    unfolded = _open_depth(up, _OPEN_ROWS), _open_depth(across, _OPEN_COLUMNS)
    rest = design.n_published - len(cells)
    note = f"Not shown here: {rest:,} cells, those of the deepest levels." if rest else ""
    return Grid(up, across, made, caption, corner, unfolded, note=note)


def _coarse_cells(
    trees: Sequence[_Tree], codes: Sequence[tuple[Array, list[str]]]
) -> tuple[Index, Index]:
    """The cells that are shown, the deepest levels left out, and the place of each code."""
    found, depth = [], np.zeros(len(codes[0][0]), dtype=np.int64)
    for tree, (index, names) in zip(trees, codes, strict=True):
        place = np.array([tree.place[name] for name in names], dtype=np.int64)[index]
        depth += np.array(tree.depth, dtype=np.int64)[place]
        found.append(place)
    kept = _coarsest(depth, _MOST_CELLS)
    if len(kept) < min(_FEW_CELLS, len(depth)):  # a long list under a total: its beginning
        kept += np.flatnonzero(depth == depth[kept].max() + 1)[:_FEW_CELLS].tolist()
    cells = np.array(kept, dtype=np.int64)
    return cells, np.column_stack([place[cells] for place in found])


def _tree_of(axis: Axis, names: Sequence[str]) -> _Tree:
    """Codes above their parts, by the categories that each one has."""
    leaves = axis.code_leaves
    sets = {name: frozenset(leaves[name].tolist()) for name in names}
    rest = [name for name in names if name != axis.total]
    rest.sort(key=lambda name: (min(sets[name]), -len(sets[name])))
    order = [axis.total, *rest] if axis.total in sets else rest
    parent, depth, path = [], [], list[int]()
    for k, name in enumerate(order):
        while path and not sets[name] <= sets[order[path[-1]]]:
            path.pop()
        parent.append(path[-1] if path else -1)
        depth.append(len(path))
        path.append(k)
    return _Tree(order, parent, depth, {name: k for k, name in enumerate(order)})


def _row_headings(rows: Index, trees: Sequence[_Tree], axes: Sequence[Axis]) -> list[Heading]:
    """One tree out of several: under each code of a variable lie those of the next one."""
    place = {tuple(row): k for k, row in enumerate(rows.tolist())}
    found: list[Heading] = []
    for row in place:
        above = _above(row, trees, place)
        below = found[above] if above is not None else None
        path = () if below is None or above is None else (*below.above, above)
        own = next((a for a in reversed(range(len(row))) if trees[a].parent[row[a]] >= 0), 0)
        text = axes[own].describe(trees[own].codes[row[own]])
        found.append(Heading(text, len(path), path))
    return found


def _above(
    row: tuple[int, ...], trees: Sequence[_Tree], place: dict[tuple[int, ...], int]
) -> int | None:
    """The nearest published row above: the last variable that is no total goes up one step."""
    while True:
        a = next((a for a in reversed(range(len(row))) if trees[a].parent[row[a]] >= 0), None)
        if a is None:
            return None
        row = (*row[:a], trees[a].parent[row[a]], *row[a + 1 :])
        if row in place:
            return place[row]


def _column_headings(tree: _Tree, axis: Axis) -> list[Heading]:
    found: list[Heading] = []
    for k, code in enumerate(tree.codes):
        above = tree.parent[k]
        path = (*found[above].above, above) if above >= 0 else ()
        found.append(Heading(axis.describe(code), len(path), path))
    return found


def _coarsest(depths: Array | Sequence[int], most: int) -> list[int]:
    """Places down to the deepest level that fits; of one level that does not, the first."""
    depth = np.asarray(depths)
    for deepest in np.unique(depth)[::-1]:
        kept = np.flatnonzero(depth <= deepest)
        if len(kept) <= most:
            break
    return [int(k) for k in kept[:most]]


def _kept_columns(across: list[Heading], column_of: Index) -> tuple[list[Heading], Index]:
    """The headings that are shown, and for each cell its column, −1 where that is left out."""
    kept = _coarsest([heading.depth for heading in across], _MOST_COLUMNS)
    new = np.full(len(across), -1, dtype=np.int64)
    new[kept] = np.arange(len(kept))
    chosen = [
        Heading(head.text, head.depth, tuple(int(new[a]) for a in head.above if new[a] >= 0))
        for head in (across[k] for k in kept)
    ]
    return chosen, new[column_of]


def _open_depth(headings: Sequence[Heading], most: int) -> int:
    """The level down to which headings stand open at first, at least that under the total."""
    sizes = np.bincount([h.depth for h in headings]).cumsum()
    return max(1, int((sizes <= most).sum()) - 1)


def number(value: object) -> str:
    """A figure with its thousands apart; of decimals two."""
    return f"{value:,.2f}" if isinstance(value, (float, np.floating)) else f"{value:,}"


def _list_cells(z: Array, caption: str, unit: str, sign_of: SignOf) -> Grid:
    """The cells of a matrix, which have numbers for names."""
    shown = range(min(len(z), _OPEN_ROWS))
    rest = len(z) - len(shown)
    return Grid(
        [Heading(f"cell {k + 1}") for k in shown],
        [Heading(unit)],
        [[sign_of(k) or number(z[k])] for k in shown],
        caption,
        note=f"Not shown here: {rest:,} further cells." if rest else "",
    )
