"""Tables for people: Arrow and frames, text for the terminal, HTML for notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Array
from discreet.display import Grid, Mark, align_columns
from discreet.errors import MissingDependencyError
from discreet.frames import value_names
from discreet.tables.crossed import crossed_grid, number

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from discreet.design.base import Design

HEAD = 12
CONFIDENTIAL = ":c"
"""What stands in place of a figure that is not shown, as statistical offices write it."""
NO_QUALITY = -1
"""In place of the quality of a cell that has none."""


class Frames:
    """Something that is a table: frames of other libraries from its Arrow table."""

    if TYPE_CHECKING:

        def to_arrow(self) -> pa.Table:
            """The Arrow table."""

    def to_pandas(self) -> pd.DataFrame:
        """The same as a pandas frame; as confidential as it is."""
        return to_pandas(self.to_arrow())

    def to_polars(self) -> pl.DataFrame:
        """The same as a polars frame; as confidential as it is."""
        return to_polars(self.to_arrow())


def frame_of(design: Design, columns: Mapping[str, Array]) -> pa.Table:
    """Code columns of the published cells followed by columns of values."""
    return _beside(design.label_columns(), {k: _column(v) for k, v in columns.items()})


def _beside(labels: Mapping[str, pa.Array], values: Mapping[str, pa.Array]) -> pa.Table:
    """Columns of codes and of values; see `value_names` for names that both would have."""
    import pyarrow as pa

    names = value_names(labels, values)
    return pa.table({**labels, **{names[k]: column for k, column in values.items()}})


def _column(values: Array) -> pa.Array:
    """An Arrow column; masked entries are null."""
    import pyarrow as pa

    kind = pa.string() if values.dtype == object else None
    if isinstance(values, np.ma.MaskedArray):
        return pa.array(values.data, kind, mask=np.ma.getmaskarray(values))
    return pa.array(values, kind)


def mask_missing_quality(quality: Array | None) -> Array | None:
    """Quality with the cells masked that have none."""
    return None if quality is None else np.ma.array(quality, mask=quality == NO_QUALITY)


def inner_frame_of(design: Design, columns: Mapping[str, Array], positions: Array) -> pa.Table:
    """Code columns of some inner cells followed by columns of values."""
    values = {k: _column(v[positions]) for k, v in columns.items()}
    return _beside(design.inner_label_columns(positions), values)


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """An Arrow table as a pandas frame."""
    try:
        import pandas  # noqa: F401  (its absence is an error with a remedy)
    except ImportError as error:
        raise MissingDependencyError("to_pandas", "pandas") from error
    frame: pd.DataFrame = table.to_pandas()
    return frame


def to_polars(table: pa.Table) -> pl.DataFrame:
    """An Arrow table as a polars frame."""
    try:
        import polars
    except ImportError as error:
        raise MissingDependencyError("to_polars", "polars") from error
    frame = polars.from_arrow(table)
    if not isinstance(frame, polars.DataFrame):
        raise TypeError("polars did not return a frame for an Arrow table.")
    return frame


def text(design: Design, z: Array, title: str, unit: str = "count") -> str:
    """A title and the tables, laid out in rows and columns where they have two variables."""
    head = f"{title}: {design.n_published:,} published cells, {design.n_inner:,} inner cells"
    return "\n".join([head, *_table_lines(design, z, unit)])


def _table_lines(design: Design, z: Array, unit: str) -> list[str]:
    lines = []
    for name, part, values in parts(design, z):
        rows = _rows(part, values, unit)
        n_codes = 1 if _is_crosstab(part) else len(part.axes)
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


def _is_crosstab(design: Design) -> bool:
    """Two variables, every crossing of their codes and totals published, few enough columns."""
    if len(design.axes) != 2:
        return False
    codes = design.published_codes()
    full = len(codes[0][1]) * len(codes[1][1])
    return design.n_published == full and len(codes[1][1]) <= HEAD


def _rows(design: Design, z: Array, unit: str) -> list[list[str]]:
    """A header and the rows; of many, the first and the last three."""
    if not _is_crosstab(design):
        return _long_rows(design, z, unit)
    (rows, row_codes), (columns, column_codes) = design.published_codes()
    grid = np.ma.empty((len(row_codes), len(column_codes)), dtype=z.dtype)
    grid[rows, columns] = z
    name = f"{design.axes[0].name} \\ {design.axes[1].name}"
    body = [
        [design.axes[0].describe(code), *map(_number, line)]
        for code, line in zip(row_codes, grid, strict=True)
    ]
    if len(body) > 2 * HEAD:
        body[HEAD:-3] = [["…"] * len(body[0])]
    return [[name, *column_codes], *body]


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
