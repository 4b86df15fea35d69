"""Records in text files: codes stay text, weights and keys are numbers."""

from __future__ import annotations

import codecs
import csv
import io
import zlib
from collections.abc import Sequence
from typing import Any

from discreet.delimited import read_delimited
from discreet.errors import DataError
from discreet.frames import Frame, concat
from discreet.records.backend import fetch
from discreet.records.query import ifelse, memtable
from discreet.records.text_form import Signs, TextForm, TextLayout, look_at, open_stream

_UTF8 = ("utf-8", "utf-8-sig", "ascii")
_NAMED = 5  # columns that a note names; a survey has dozens


def read_text(
    backend: Any, files: Sequence[Any], form: TextForm, path: str | None
) -> tuple[Any, tuple[str, ...]]:
    """The records of text files, and what was found and done.

    DuckDB reads UTF-8; a file in another encoding is decoded in memory first. All files are
    written like the first. Numbers with a decimal comma or with thousands become `1234.5`, except
    in columns with a code list.

    Args:
      backend: The engine.
      files: The files, in their order.
      form: What is said of them.
      path: The pattern that the engine finds them by, if they lie on the disk.
    """
    found = look_at(files[0], form)
    is_utf8 = codecs.lookup(found.encoding).name in _UTF8 and found.packed != "bz2"
    is_engines = path is not None and is_utf8
    if path is not None and is_utf8:
        table = _read_by_engine(backend, path, form, found)
    else:
        table = _read_decoded(backend, files, found)
    changed = {
        name: _usual(table[name], signs)
        for name, signs in found.signs.items()
        if not (signs.is_usual or name in (*form.coded, *form.kept))
        and table[name].type().is_string()
    }
    table = table.mutate(**changed) if changed else table
    if not is_engines:
        table = _as_numbers(table, form, found)
    candidates = [n for n in found.signs if n not in form.numbers and n not in form.kept]
    table, notes = one_spelling(backend, table, candidates, str(files[0]))
    return table, (*found.notes, *notes)


def _read_by_engine(backend: Any, path: str, form: TextForm, found: TextLayout) -> Any:
    """The file as the engine reads it.

    The engine reads numbers itself, because its errors then have the line.
    """
    types = dict.fromkeys(found.columns, "VARCHAR")
    options: dict[str, Any] = {}
    for name in form.numbers:
        if name in found.signs:
            signs = found.signs[name]
            if options.setdefault("decimal_separator", signs.decimal) == signs.decimal:
                types[name] = "BIGINT" if signs.is_whole and signs.is_usual else "DOUBLE"
                if signs.thousands:
                    options["thousands"] = signs.thousands
    return backend.read_csv(
        path,
        auto_detect=False,
        columns=types,
        header=True,
        skip=found.skipped,
        delim=found.delimiter,
        quote='"',
        escape='"',
        compression=found.packed or "none",
        **options,
    )


def _read_decoded(backend: Any, files: Sequence[Any], found: TextLayout) -> Any:
    table = memtable(concat(_decode(file, found) for file in files))
    fetch(backend, table.limit(0), str(files[0]))
    return table


def _decode(file: Any, found: TextLayout) -> Frame:
    """A file with every column as text."""
    try:
        with (
            open_stream(file, found.packed) as stream,
            io.TextIOWrapper(stream, found.encoding, newline="") as lines,
        ):
            for _ in range(found.skipped):
                next(lines)
            read = csv.reader(lines, delimiter=found.delimiter)
            next(read)  # the names, which may go on for lines
            return read_delimited(lines, found.delimiter, found.columns)
    except (OSError, EOFError, zlib.error):
        if found.packed is None:
            raise
        raise DataError(
            f"{file} is cut off or damaged: its {found.packed} data cannot be unpacked. Copy it "
            "again."
        ) from None
    except UnicodeError:
        raise DataError(
            f"{file} is not text in encoding={found.encoding!r}; name the encoding it has."
        ) from None
    except DataError as error:
        raise DataError(
            f"{file} is not a regular CSV file with the delimiter {found.delimiter!r}: {error}."
        ) from None


def _usual(column: Any, signs: Signs) -> Any:
    """Texts with their numbers written as `1234.5`; what is no number stays as it is."""
    plain = column.strip()
    if signs.thousands:
        plain = plain.replace(signs.thousands, "")
    if signs.decimal == ",":
        plain = plain.replace(",", ".")
    return ifelse(column.re_search(signs.pattern), plain, column)


def _as_numbers(table: Any, form: TextForm, found: TextLayout) -> Any:
    """The records with weights and keys as numbers, where the sample has nothing else."""
    kinds = {n: "int64" if found.signs[n].is_whole else "float64" for n in found.signs}
    changed = {n: table[n].strip().cast(kinds[n]) for n in form.numbers if n in kinds}
    return table.mutate(**changed) if changed else table


def one_spelling(
    backend: Any, table: Any, columns: Sequence[str], origin: str
) -> tuple[Any, tuple[str, ...]]:
    """The records with codes `47.0` written `47`, where a column holds whole numbers only.

    Programs that know no missing whole numbers write `47.0` in columns with blanks. A column is
    changed when all its values are whole numbers without leading zeros, some with `.0`, and some
    are blank or without it. Whatever else it holds (`1.10`, `01`, `A`) makes it text.
    Cost: one query that looks at the ends of texts, and a second where some end in `.0`.
    """
    ends = {n: (table[n].endswith(".0") | table[n].endswith(",0")).any() for n in columns}
    hits = fetch(backend, table.aggregate(**ends), origin).to_pylist()[0] if columns else {}
    columns = [name for name in columns if hits[name]]
    whole = "^-?(0|[1-9][0-9]*)"
    counts: dict[str, Any] = {}
    for k, name in enumerate(columns):
        text = table[name]
        is_plain = text.re_search(f"{whole}$")
        is_long = text.re_search(f"{whole}[.,]0$")
        kinds = {"other": ~(is_plain | is_long), "long": is_long, "rest": is_plain | text.isnull()}
        for part, kind in kinds.items():
            counts[f"{part}{k}"] = ifelse(kind, 1, 0).sum()
    found = fetch(backend, table.aggregate(**counts), origin).to_pylist()[0] if columns else {}
    changed = {
        name: table[name].re_replace("[.,]0$", "")
        for k, name in enumerate(columns)
        if not found[f"other{k}"] and found[f"long{k}"] and found[f"rest{k}"]
    }
    if not changed:
        return table, ()
    named = ", ".join(map(repr, list(changed)[:_NAMED]))
    named += f" and {len(changed) - _NAMED} more columns" if len(changed) > _NAMED else ""
    note = f"whole numbers with and without '.0' are one code in {named}: 47.0 is 47"
    return table.mutate(**changed), (note,)
