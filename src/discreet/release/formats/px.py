"""PX (PC-Axis): keywords that describe the table, then its figures row by row."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from discreet.release.cube import Cube, CubeEntry
from discreet.release.formats.columns import (
    MEANINGS,
    NOT_AVAILABLE,
    NOT_POSSIBLE,
    Figures,
    decimals_of,
    symbols,
    used_symbols,
)
from discreet.release.formats.write import PLAIN, Options
from discreet.release.layout import TableLayout
from discreet.tables.show import CONFIDENTIAL

_DATA = {NOT_POSSIBLE: ".", CONFIDENTIAL: "..", NOT_AVAILABLE: "..."}
"""Symbols as they stand among the data; the number of dots is that of the keyword."""
_LONGEST_NAME = 20  # of a matrix, by the description of the format
_MOST_DECIMALS = 6


class PxWriter:
    """A PX file in UTF-8; the variables in columns are its heading."""

    name, title = "px", "PX (PC-Axis)"
    ending, media_type = ".px", "application/octet-stream"

    def write(self, cube: Cube, options: Options = PLAIN) -> bytes:
        """The file's content."""
        table = TableLayout.of_file(cube, options)
        head, notes = _head(table, cube, options), _notes(cube, options)
        lines = [*head, *_variables(table, options.time), *notes, *_data(table)]
        return ("\n".join(lines) + "\n").encode("utf-8")


def _head(table: TableLayout, cube: Cube, options: Options) -> Iterator[str]:
    about = options.about
    measure = options.measure_of(cube)
    decimals = _decimals(table)
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", about.name)[:_LONGEST_NAME] or "table"
    yield keyword("CHARSET", ["ANSI"])
    yield keyword("AXIS-VERSION", ["2013"])
    yield keyword("CODEPAGE", ["utf-8"])
    yield keyword("LANGUAGE", [about.language])
    yield f"DECIMALS={decimals};"
    yield f"SHOWDECIMALS={decimals};"
    yield keyword("MATRIX", [name])
    yield "COPYRIGHT=NO;"
    yield keyword("SUBJECT-CODE", [name])
    yield keyword("SUBJECT-AREA", [about.source or name])
    yield keyword("CONTENTS", [measure])
    yield keyword("UNITS", [measure])
    yield keyword("TITLE", [about.title or measure])
    for name, axes in (("STUB", table.row_axes), ("HEADING", table.column_axes)):
        if axes:
            yield keyword(name, [axis.label for axis in axes])


def _variables(table: TableLayout, time: str) -> Iterator[str]:
    axes = (*table.row_axes, *table.column_axes)
    for axis in axes:
        yield keyword("VALUES", _distinct(axis.entries), axis.label)
    for axis in axes:
        if axis.name == time:
            listed = ",".join(f'"{px_text(code)}"' for code in axis.codes)
            yield f'TIMEVAL("{px_text(axis.label)}")=TLIST({time_scale(axis.codes)}),{listed};'
    for axis in axes:
        yield keyword("VARIABLECODE", [axis.name], axis.label)
        yield keyword("CODES", axis.codes, axis.label)
        if axis.total is not None:
            yield keyword("ELIMINATION", [_distinct(axis.entries)[axis.total]], axis.label)


def time_scale(periods: Sequence[str]) -> str:
    """The scale of periods as PX writes it: years, half-years, quarters, months or weeks.

    >>> time_scale(["2025", "2026"]), time_scale(["2025Q1"]), time_scale(["2025-01"])
    ('A1', 'Q1', 'M1')
    """
    scales = {"Q1": r"\d{4}-?[QK][1-4]", "M1": r"\d{4}(M|-)\d{2}", "W1": r"\d{4}-?[WU]\d{2}"}
    scales["H1"] = r"\d{4}-?[HS][12]"
    for scale, pattern in scales.items():
        if all(re.fullmatch(pattern, period) for period in periods):
            return scale
    return "A1"


def _notes(cube: Cube, options: Options) -> Iterator[str]:
    about = options.about
    if about.updated:
        yield keyword("LAST-UPDATED", [f"{about.updated.replace('-', '')} 00:00"])
    for name, text in (("SOURCE", about.source), ("CONTACT", about.contact)):
        if text:
            yield keyword(name, [text])
    for symbol, dots in _DATA.items():
        yield keyword(f"DATASYMBOL{len(dots)}", [symbol])
    notes = [*about.plain_notes(cube), *about.footnotes]
    used = [f"{symbol}: {MEANINGS[symbol]}." for symbol in used_symbols(cube)]
    rest = [text for heading, text in about.said(cube) if heading in ("Citation", "Licence")]
    said = [*notes, *used, *rest]
    if cube.statement.text not in said:
        said.append(cube.statement.text)
    if shown := "#".join(text for text in said if text):  # a hash is a line break in notes
        yield keyword("NOTEX", [shown])


def _data(table: TableLayout) -> Iterator[str]:
    width, cells = len(table.columns), data_texts(table)
    yield "DATA="
    yield from (" ".join(cells[k : k + width]) for k in range(0, len(cells), width))
    yield ";"


def data_texts(cells: Figures) -> list[str]:
    """Figures as they stand in a PX file; symbols are quoted."""
    decimals, shown = _decimals(cells), symbols(cells).reshape(-1)
    flat = cells.values.reshape(-1)
    if decimals == 0:
        found = [str(v) for v in np.where(shown == "", flat, 0).astype(np.int64).tolist()]
    else:
        found = [f"{v:.{decimals}f}" for v in flat.tolist()]
    for place in np.flatnonzero(shown != ""):
        found[place] = f'"{_DATA[str(shown[place])]}"'
    return found


def _decimals(cells: Figures) -> int:
    return decimals_of(cells.values[symbols(cells) == ""], _MOST_DECIMALS)


def keyword(name: str, texts: Sequence[str], of: str = "") -> str:
    """A keyword of a PX file with its quoted texts, for one variable where it is named."""
    about = f'("{px_text(of)}")' if of else ""
    quoted = ",".join(f'"{px_text(text)}"' for text in texts)
    return f"{name}{about}={quoted};"


def px_text(text: str) -> str:
    """A text as PX can hold it: one line, without quotation marks."""
    return " ".join(text.replace('"', "'").split())


def _distinct(entries: Sequence[CubeEntry]) -> list[str]:
    """Labels, with the code behind those that several categories have."""
    labels = [px_text(entry.label) for entry in entries]
    return [
        label if labels.count(label) == 1 else f"{label} ({px_text(entry.code)})"
        for label, entry in zip(labels, entries, strict=True)
    ]
