"""Workbooks as their readers see them."""

import io

import openpyxl


def looks(cell):
    """What a reader sees of a cell."""
    font, at = cell.font, cell.alignment
    edge = cell.border.bottom.style if cell.border and cell.border.bottom else None
    text = "" if cell.value is None else cell.value
    value = float(text) if isinstance(text, int) else text
    return (
        *(value, cell.number_format, font.b, font.i, font.sz, edge),
        *(at.horizontal, at.vertical, at.indent, at.wrap_text),
    )


def widths(sheet):
    """The width of every column, however they are grouped."""
    found = {}
    for one in sheet.column_dimensions.values():
        found |= dict.fromkeys(range(one.min, one.max + 1), one.width)
    return found


def read_sheet(sheet):
    """A sheet as its reader sees it."""
    setup = sheet.page_setup
    return {
        "cells": [[looks(cell) for cell in row] for row in sheet.iter_rows()],
        "merged": sorted(map(str, sheet.merged_cells.ranges)),
        "widths": widths(sheet),
        "heights": {k: v.height for k, v in sheet.row_dimensions.items() if v.height},
        "frozen": sheet.freeze_panes,
        "printed": (sheet.print_area, sheet.print_title_rows, sheet.sheet_properties.pageSetUpPr),
        "paper": (setup.orientation, setup.paperSize, setup.fitToHeight),
    }


def read_book(content):
    book = openpyxl.load_workbook(io.BytesIO(content))
    told = (book.properties.title, book.properties.created)
    return told, {sheet.title: read_sheet(sheet) for sheet in book}
