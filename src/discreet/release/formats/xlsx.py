"""XLSX: figures as numbers on the first sheet, notes and statement on the second."""

from __future__ import annotations

import datetime
import io
from typing import TYPE_CHECKING, Any

from discreet.errors import MissingDependencyError, ParameterError
from discreet.release.cube import Cube
from discreet.release.formats.columns import MEANINGS, long_table, used_symbols
from discreet.release.formats.write import PLAIN, Options
from discreet.release.layout import Cell, TableLayout

if TYPE_CHECKING:
    from xlsxwriter.workbook import Workbook
    from xlsxwriter.worksheet import Worksheet

_TABLE, _NOTES = "Table", "Notes"
_WIDEST = 40
# A sheet has 1,048,576 rows, of which title and headings take some.
_MOST_ROWS, _MOST_COLUMNS = 1_048_000, 16_384
_FIRST_ROW = 2  # title and an empty line stand above
_CREATED = datetime.datetime(2000, 1, 1)  # so that equal tables are equal files


class XlsxWriter:
    """An Excel workbook; a wide table unless a long one is asked for."""

    name, title = "xlsx", "Excel (XLSX)"
    ending = ".xlsx"
    media_type = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

    def write(self, cube: Cube, options: Options = PLAIN) -> bytes:
        """The file's content."""
        chosen = options.with_defaults("wide", "labels")
        try:
            import xlsxwriter
        except ImportError as error:
            raise MissingDependencyError("an Excel file", "xlsxwriter", "xlsx") from error
        target = io.BytesIO()
        # Texts stay texts: nothing a visitor or a code list says becomes a formula or a link.
        safe = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
        with xlsxwriter.Workbook(target, safe) as book:
            book.set_properties({"title": chosen.about.title, "created": _CREATED})
            sheet, bold = book.add_worksheet(_TABLE), book.add_format({"bold": True})
            sheet.write_string(0, 0, chosen.about.title or chosen.measure_of(cube), bold)
            fill = _fill_long if chosen.layout == "long" else _fill_wide
            fill(sheet, book, cube, chosen)
            _add_notes(book, cube, chosen)
        return target.getvalue()


def _fill_long(sheet: Worksheet, book: Workbook, cube: Cube, options: Options) -> None:
    cells = long_table(cube, options)
    _check_size(len(cells), len(cells.column_names))
    number = book.add_format({"num_format": _number_format(cube)})
    head = book.add_format({"bold": True, "bottom": 1})
    for j, name in enumerate(cells.column_names):
        values = cells.column(j).to_pylist()
        sheet.write_string(_FIRST_ROW, j, name, head)
        for k, value in enumerate(values):
            _write_cell(sheet, _FIRST_ROW + 1 + k, j, value, number)
        sheet.set_column(j, j, _width([name, *values[:100]]))
    sheet.freeze_panes(_FIRST_ROW + 1, 0)
    if len(cells):
        last = _FIRST_ROW + len(cells)
        sheet.autofilter(_FIRST_ROW, 0, last, len(cells.column_names) - 1)


def _fill_wide(sheet: Worksheet, book: Workbook, cube: Cube, options: Options) -> None:
    table = TableLayout.of_file(cube, options)
    head = book.add_format({"bold": True, "bottom": 1, "align": "right"})
    side = book.add_format({"bold": True, "bottom": 1})
    number = book.add_format({"num_format": _number_format(cube), "align": "right"})
    stub, columns = len(table.row_axes), table.headings(options, cube.unit)
    _check_size(len(table.rows), stub + len(columns))
    depth = len(columns[0])
    for j, name in enumerate(table.stub_names(options.labels)):
        sheet.write_string(_FIRST_ROW + depth - 1, j, name, side)
    for j, texts in enumerate(columns):
        for line, text in enumerate(texts):
            sheet.write_string(_FIRST_ROW + line, stub + j, text, head)
    for k, (heads, figures) in enumerate(table.lines(options.labels)):
        row = _FIRST_ROW + depth + k
        for j, text in enumerate(heads):
            sheet.write_string(row, j, text)
        for j, figure in enumerate(figures):
            _write_cell(sheet, row, stub + j, figure, number)
    for j, axis in enumerate(table.row_axes):
        sheet.set_column(j, j, _width([e.label for e in axis.entries]))
    sheet.freeze_panes(_FIRST_ROW + depth, stub)


def _add_notes(book: Workbook, cube: Cube, options: Options) -> None:
    sheet = book.add_worksheet(_NOTES)
    bold = book.add_format({"bold": True, "valign": "top"})
    wrapped = book.add_format({"text_wrap": True, "valign": "top"})
    used = [(symbol, MEANINGS[symbol]) for symbol in used_symbols(cube)]
    said = [*options.about.said(cube), *used]
    for row, (heading, text) in enumerate(said):
        sheet.write_string(row, 0, heading, bold)
        sheet.write_string(row, 1, text, wrapped)
    sheet.set_column(0, 0, 14)
    sheet.set_column(1, 1, 100)


def _check_size(rows: int, columns: int) -> None:
    """Refuse a table that a sheet cannot hold, rather than write a part of it."""
    if rows > _MOST_ROWS or columns > _MOST_COLUMNS:
        raise ParameterError(
            f"the table has {rows:,} rows and {columns:,} columns, but a sheet holds "
            f"{_MOST_ROWS:,} and {_MOST_COLUMNS:,}. Choose another layout, or .csv or .parquet."
        )


def _write_cell(sheet: Worksheet, row: int, column: int, value: Cell | None, number: Any) -> None:
    if isinstance(value, str):
        sheet.write_string(row, column, value, number if value in MEANINGS else None)
    elif value is not None:
        sheet.write_number(row, column, value, number)


def _number_format(cube: Cube) -> str:
    return "#,##0.0" if cube.values.dtype.kind == "f" else "#,##0"


def _width(texts: list[Any]) -> int:
    return min(_WIDEST, max(len(str(text)) for text in texts) + 2)
