"""XLSX: contents where there are several tables, a sheet for each of them, and one of notes."""

from __future__ import annotations

import datetime
import io
import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

from discreet.errors import MissingDependencyError, ParameterError
from discreet.release.cube import Cube, CubeEntry
from discreet.release.formats.columns import MEANINGS, decimals_of, long_table, used_symbols
from discreet.release.formats.write import PLAIN, About, Options, TablePage
from discreet.release.layout import Cell, TableLayout

if TYPE_CHECKING:
    from xlsxwriter.workbook import Workbook
    from xlsxwriter.worksheet import Worksheet

_TABLE, _NOTES, _CONTENTS = "Table", "Notes", "Contents"
_WIDEST, _NARROWEST = 40, 9  # characters of a column
_WIDE = 8  # columns from which on a page is printed across
_PAGE, _LINE = 95, 15  # characters of a line across a page, and its height in points
_MOST_HEADS = 12  # columns of figures that can be read on a printed page
# A sheet has 1,048,576 rows, of which title and headings take some.
_MOST_ROWS, _MOST_COLUMNS = 1_048_000, 16_384
_FIRST_ROW = 2  # title and an empty line stand above
_CREATED = datetime.datetime(2000, 1, 1)  # so that equal tables are equal files


class XlsxWriter:
    """An Excel workbook; wide tables unless long ones are asked for."""

    name, title = "xlsx", "Excel (XLSX)"
    ending = ".xlsx"
    media_type = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

    def write(self, cube: Cube, options: Options = PLAIN) -> bytes:
        """The file's content."""
        return self.write_tables([TablePage("", cube, options)], options)

    def write_tables(self, pages: Sequence[TablePage], options: Options = PLAIN) -> bytes:
        """A workbook of several tables; of one alone without a sheet of contents."""
        try:
            import xlsxwriter
        except ImportError as error:
            raise MissingDependencyError("an Excel file", "xlsxwriter", "xlsx") from error
        target = io.BytesIO()
        # Texts stay texts: nothing a visitor or a code list says becomes a formula or a link.
        safe = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
        with xlsxwriter.Workbook(target, safe) as made:
            made.set_properties({"title": options.about.title, "created": _CREATED})
            book = _Book(made)
            one = options.about.word(_TABLE)
            names = [one] if len(pages) == 1 else [f"{one} {k + 1}" for k in range(len(pages))]
            if len(pages) > 1:
                _add_contents(book, names, pages, options)
            for name, page in zip(names, pages, strict=True):
                _add_table(book, name, page.cube, page.options.with_defaults("wide", "labels"))
            _add_notes(book, pages, options)
        return target.getvalue()


class _Book:
    """A workbook and the formats of its cells, each made once."""

    def __init__(self, book: Workbook) -> None:
        self.book = book
        self._formats: dict[tuple[tuple[str, Any], ...], Any] = {}

    def style(self, **given: Any) -> Any:
        """The format with these properties."""
        key = tuple(sorted(given.items()))
        if key not in self._formats:
            self._formats[key] = self.book.add_format(given)
        return self._formats[key]

    @cached_property
    def title(self) -> Any:
        """The format of titles."""
        return self.style(**_LOOKS[0])


def _add_contents(
    book: _Book, names: Sequence[str], pages: Sequence[TablePage], options: Options
) -> None:
    about, notes = options.about, options.about.word(_NOTES)
    sheet = book.book.add_worksheet(about.word(_CONTENTS))
    sheet.write_string(0, 0, about.title or about.word(_CONTENTS), book.title)
    sheet.write_string(1, 0, _under_title(about))
    link = book.style(font_color="#0563C1", underline=1)
    for row, (name, page) in enumerate(zip(names, pages, strict=True), start=3):
        sheet.write_url(row, 0, f"internal:'{name}'!A1", link, name)
        sheet.write_string(row, 1, page.options.about.title or page.name)
    last = 3 + len(pages)
    sheet.write_url(last, 0, f"internal:'{notes}'!A1", link, notes)
    sheet.set_column(0, 0, 12)
    sheet.set_column(1, 1, 90)
    sheet.print_area(0, 0, last, 1)
    sheet.fit_to_pages(1, 0)


def _add_table(book: _Book, name: str, cube: Cube, options: Options) -> None:
    sheet = book.book.add_worksheet(name)
    fill = _fill_long if options.layout == "long" else _fill_wide
    row, widths, below = fill(sheet, book, cube, options)
    title = options.about.title or options.measure_of(cube)
    texts = {0: title, 1: _under_title(options.about)}
    texts |= {row + 1 + k: text for k, text in enumerate(below)}
    last = _write_texts(sheet, book, widths, {k: text for k, text in texts.items() if text})
    sheet.set_paper(9)  # A4
    if len(widths) >= _WIDE:
        sheet.set_landscape()
    sheet.fit_to_pages(1, 0)
    sheet.print_area(0, 0, row + len(below), last)


def _under_title(about: About) -> str:
    return " · ".join(text for text in (*about.notices, about.imprint) if text)


def _write_texts(
    sheet: Worksheet, book: _Book, widths: Sequence[int], texts: Mapping[int, str]
) -> int:
    """Write texts over and under a table by their rows, and return the last column to be printed.

    Columns beside a table are printed where texts need them; longer texts have several lines.
    """
    extents = {row: len(text) + (len(text) // 3 if row == 0 else 0) for row, text in texts.items()}
    missing = min(_PAGE, max(extents.values(), default=0)) - sum(widths)
    beside = max(0, math.ceil(missing / _NARROWEST))
    last, room = len(widths) + beside - 1, sum(widths) + beside * _NARROWEST
    for row, text in texts.items():
        looks = _LOOKS[row] if row < _FIRST_ROW else {"italic": True}
        lines = math.ceil(extents[row] / room)
        if lines > 1:
            wrapped = book.style(**{**looks, "text_wrap": True, "valign": "top"})
            sheet.merge_range(row, 0, row, last, text, wrapped)
        else:
            sheet.write_string(row, 0, text, book.style(**looks))
        if lines > 1 or row == 1:  # which has some space below
            sheet.set_row(row, _LINE * lines + (3, 6, 0)[min(row, _FIRST_ROW)])
    return last


_LOOKS: tuple[dict[str, Any], ...] = ({"bold": True, "font_size": 13}, {"valign": "top"})
"""Of the title, and of what stands under it."""
_Filled = tuple[int, list[int], list[str]]
"""The row under a table, the widths of its columns, and what is to stand below."""


def _fill_long(sheet: Worksheet, book: _Book, cube: Cube, options: Options) -> _Filled:
    cells = long_table(cube, options)
    _check_size(len(cells), len(cells.column_names))
    number = book.style(num_format=_number_format(cube))
    head, widths = book.style(bold=True, bottom=1), []
    for j, name in enumerate(cells.column_names):
        values = cells.column(j).to_pylist()
        sheet.write_string(_FIRST_ROW, j, name, head)
        for k, value in enumerate(values):
            _write_cell(sheet, _FIRST_ROW + 1 + k, j, value, number)
        widths.append(_width([name, *values[:100]]))
        sheet.set_column(j, j, widths[j])
    sheet.freeze_panes(_FIRST_ROW + 1, 0)
    sheet.repeat_rows(_FIRST_ROW)
    last = _FIRST_ROW + len(cells)
    if len(cells):
        sheet.autofilter(_FIRST_ROW, 0, last, len(cells.column_names) - 1)
    return last, widths, []


def _fill_wide(sheet: Worksheet, book: _Book, cube: Cube, options: Options) -> _Filled:
    table = TableLayout.of_file(cube, options, _MOST_HEADS)
    stub, columns = len(table.row_axes), table.headings(options, cube.unit)
    _check_size(len(table.rows), stub + len(columns))
    depth = len(columns[0])
    side = book.style(bold=True, bottom=1)
    for j, name in enumerate(table.stub_names(options.labels)):
        sheet.write_string(_FIRST_ROW + depth - 1, j, name, side)
    _write_heads(sheet, book, stub, columns)
    number = book.style(num_format=_number_format(cube), align="right")
    first, signs = _FIRST_ROW + depth, tuple(MEANINGS)
    lines = list(table.lines(options.labels))
    for k, ((heads, figures), entries) in enumerate(zip(lines, table.rows, strict=True)):
        for j, (text, entry) in enumerate(zip(heads, entries, strict=True)):
            sheet.write_string(first + k, j, text, _side_style(book, entry))
        for j, figure in enumerate(figures):
            _write_cell(sheet, first + k, stub + j, figure, number)
    names = table.stub_names(options.labels)
    widths = [
        _width([name, *("  " * e.depth + e.label for e in axis.entries)])
        for name, axis in zip(names, table.row_axes, strict=True)
    ]
    for j, texts in enumerate(columns):
        # by what is shown: widths must not tell what lies under a hidden cell
        shown = [figures[j] for _, figures in lines[:200]]
        widths.append(_width([texts[-1], *map(_display_text, shown)]))
    for j, width in enumerate(widths):
        sheet.set_column(j, j, width)
    sheet.freeze_panes(first, stub)
    sheet.repeat_rows(_FIRST_ROW, first - 1)
    word, used = options.about.word, used_symbols(cube)
    below = [f"{sign}  {word(MEANINGS[sign])}" for sign in signs if sign in used]
    return first + len(table.rows), widths, [*below, *options.about.footnotes]


def _side_style(book: _Book, entry: CubeEntry) -> Any:
    """Rows under others are set in; the total stands out."""
    return book.style(bold=True) if entry.is_total else book.style(indent=max(entry.depth - 1, 0))


def _write_heads(
    sheet: Worksheet, book: _Book, stub: int, columns: Sequence[tuple[str, ...]]
) -> None:
    """Headings of columns; what stands over several columns spans them."""
    depth = len(columns[0])
    over = book.style(bold=True, align="center", bottom=1)
    for line in range(depth - 1):
        place = stub
        # columns are spanned within those of the heading above them
        for texts, group in groupby(heads[: line + 1] for heads in columns):
            width = len([*group])
            row, last = _FIRST_ROW + line, place + width - 1
            if width == 1:
                sheet.write_string(row, place, texts[-1], over)
            else:
                sheet.merge_range(row, place, row, last, texts[-1], over)
            place += width
    head = book.style(bold=True, bottom=1, align="right")
    for j, texts in enumerate(columns):
        sheet.write_string(_FIRST_ROW + depth - 1, stub + j, texts[-1], head)


def _add_notes(book: _Book, pages: Sequence[TablePage], options: Options) -> None:
    word = options.about.word
    sheet = book.book.add_worksheet(word(_NOTES))
    bold = book.style(bold=True, valign="top")
    wrapped = book.style(text_wrap=True, valign="top")
    used = {symbol for page in pages for symbol in used_symbols(page.cube)}
    said = [*options.about.told(pages[0].cube)]
    for heading, texts in options.about.methods_of(pages[0].cube):
        said += [(heading if k == 0 else "", text) for k, text in enumerate(texts)]
    said += [
        (page.options.about.title or page.name, text)
        for page in pages
        for text in page.options.about.footnotes
        if page.name and text not in options.about.footnotes
    ]
    said += [(symbol, word(MEANINGS[symbol])) for symbol in sorted(used)]
    for row, (heading, text) in enumerate(said):
        sheet.write_string(row, 0, heading, bold)
        sheet.write_string(row, 1, text, wrapped)
        # programs other than Excel do not make room for a text of several lines by themselves
        sheet.set_row(row, _LINE * math.ceil(len(text) / _PAGE))
    sheet.set_column(0, 0, _width([heading for heading, _ in said]))
    sheet.set_column(1, 1, _PAGE + 5)
    sheet.print_area(0, 0, len(said), 1)
    sheet.fit_to_pages(1, 0)


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


def _display_text(figure: Cell) -> str:
    return figure if isinstance(figure, str) else f"{figure:,.1f}"


def _number_format(cube: Cube) -> str:
    return "#,##0.0" if decimals_of(cube.values[cube.is_shown]) else "#,##0"


def _width(texts: list[Any]) -> int:
    return max(_NARROWEST, min(_WIDEST, max(len(str(text)) for text in texts) + 2))
