"""PX (PC-Axis): keywords that describe the table, then its figures row by row."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

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
_NO_DIGIT = re.compile(r"[^0-9]")  # PX writes periods as digits alone: 20261 is the first quarter


class PxWriter:
    """A PX file in UTF-8; the variables in columns are its heading."""

    name, title = "px", "PX (PC-Axis)"
    ending, media_type = ".px", "application/octet-stream"
    languages = True  # one file holds several

    def write(self, cube: Cube, options: Options = PLAIN) -> bytes:
        """The file's content."""
        table = TableLayout.of_file(cube, options)
        codes = [options.about.language, *(page.options.about.language for page in options.others)]
        lines = [*_head(table, options, codes), *_said(table, cube, options)]
        for page in options.others:
            columns = tuple(axis.name for axis in table.column_axes)
            chosen = replace(page.options, columns=columns)
            layout = TableLayout.of_file(page.cube, chosen)
            lines += _said(layout, page.cube, chosen, f"[{chosen.about.language}]")
        return ("\n".join([*lines, *_data(table)]) + "\n").encode("utf-8")


def _head(table: TableLayout, options: Options, languages: Sequence[str]) -> Iterator[str]:
    """What holds in every language."""
    about, decimals = options.about, _decimals(table)
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", about.name)[:_LONGEST_NAME] or "table"
    yield keyword("CHARSET", ["ANSI"])
    yield keyword("AXIS-VERSION", ["2013"])
    yield keyword("CODEPAGE", ["utf-8"])
    yield keyword("LANGUAGE", languages[:1])
    if len(languages) > 1:
        yield keyword("LANGUAGES", languages)
    yield f"DECIMALS={decimals};"
    yield f"SHOWDECIMALS={decimals};"
    yield keyword("MATRIX", [name])
    yield "COPYRIGHT=NO;"
    yield keyword("SUBJECT-CODE", [name])
    if about.updated:
        yield keyword("LAST-UPDATED", [f"{about.updated.replace('-', '')} 00:00"])


def _said(table: TableLayout, cube: Cube, options: Options, mark: str = "") -> Iterator[str]:
    """What each language says; keywords of further languages are marked, `TITLE[nb]`."""
    about, measure = options.about, options.measure_of(cube)
    yield keyword(f"SUBJECT-AREA{mark}", [about.source or about.name])
    yield keyword(f"CONTENTS{mark}", [measure])
    yield keyword(f"UNITS{mark}", [measure])
    yield keyword(f"TITLE{mark}", [about.title or measure])
    for name, axes in (("STUB", table.row_axes), ("HEADING", table.column_axes)):
        if axes:
            yield keyword(f"{name}{mark}", [axis.label for axis in axes])
    yield from _variables(table, options.time, mark)
    for name, text in (("SOURCE", about.source), ("CONTACT", about.contact)):
        if text:
            yield keyword(f"{name}{mark}", [text])
    for symbol, dots in _DATA.items():
        yield keyword(f"DATASYMBOL{len(dots)}{mark}", [symbol])
    used = [f"{symbol}: {about.word(MEANINGS[symbol])}." for symbol in used_symbols(cube)]
    edition = about.edition and f"{about.word('Edition')} {about.edition}"
    notes = [edition, *about.plain_notes(cube), *about.footnotes, *used]
    notes += [about.citation, about.licence]
    notes += [text for text in [about.statement_of(cube)] if text not in notes]
    if shown := "#".join(text for text in notes if text):  # a hash is a line break in notes
        yield keyword(f"NOTEX{mark}", [shown])


def _variables(table: TableLayout, time: str, mark: str) -> Iterator[str]:
    axes = (*table.row_axes, *table.column_axes)
    for axis in axes:
        yield keyword(f"VALUES{mark}", _distinct(axis.entries), axis.label)
    for axis in axes:
        if axis.name == time and (scale := time_scale(axis.codes)):
            of = f'TIMEVAL{mark}("{px_text(axis.label)}")'
            listed = ",".join(f'"{re.sub(_NO_DIGIT, "", code)}"' for code in axis.codes)
            yield f"{of}=TLIST({scale}),{listed};"
    for axis in axes:
        yield keyword(f"VARIABLECODE{mark}", [axis.name], axis.label)
        yield keyword(f"CODES{mark}", axis.codes, axis.label)
        if axis.total is not None:
            total = _distinct(axis.entries)[axis.total]
            yield keyword(f"ELIMINATION{mark}", [total], axis.label)


def time_scale(periods: Sequence[str]) -> str:
    """The scale of periods as PX writes it: years, half-years, quarters, months or weeks.

    It is empty where periods are none of these.

    >>> time_scale(["2025", "2026"]), time_scale(["2025Q1"]), time_scale(["2025-01"])
    ('A1', 'Q1', 'M1')
    """
    scales = {
        "A1": r"\d{4}",
        "Q1": r"\d{4}-?[QK][1-4]",
        "M1": r"\d{4}(M|-)\d{2}",
        "W1": r"\d{4}-?[WU]\d{2}",
    }
    scales["H1"] = r"\d{4}-?[HS][12]"
    for scale, pattern in scales.items():
        if all(re.fullmatch(pattern, period) for period in periods):
            return scale
    return ""


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
