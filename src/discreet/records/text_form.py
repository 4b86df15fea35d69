"""How a text file is written: encoding, delimiter, signs of numbers; said or found in a sample."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.errors import DataError, ParameterError, whole
from discreet.frames import needs_arrow
from discreet.records.records import check_spelling

_SAMPLE = 2**20  # bytes that are looked at; some ten thousand records
_DELIMITERS = ",;\t|"
_THOUSANDS = ".,' \u00a0\u202f\u2019"
_BOMS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # begins like UTF-16
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2"}
"""How compressed files begin that are read as they are."""
_DOS = re.compile(rb"[A-Za-z][\x84\x93\x94\x99][A-Za-z]")
"""Quotation marks within words: umlauts of DOS, read as cp1252."""
_IN_WORDS = {"\t": "tab", " ": "space", "\u00a0": "fixed space", "\u202f": "narrow space"}
_EXCEL_LINE = re.compile(r"sep=(.)\r?\n", re.I)
_MOST = 1.1  # values of a column of numbers, by those that look like numbers
_LIKELY = re.compile(r"[+-]?[0-9][0-9.,' \u00a0\u202f\u2019]*([eE][+-]?[0-9]+)?$")
_SIGN = re.compile(r"[.,' \u00a0\u202f\u2019]")


@dataclass(frozen=True)
class TextForm:
    """What is said of a text file of records; whatever is not said is found in a sample."""

    numbers: Collection[str] = ()  # columns of numbers, weights and keys
    kept: Collection[str] = ()  # columns of codes that stay as they are spelt
    coded: Collection[str] = ()  # columns with declared codes, which are never numbers
    encoding: str | None = None
    decimal: str | None = None  # `"."` or `","`
    delimiter: str | None = None
    thousands: str | None = None  # the sign between groups of three digits; `""` for none
    header: int | None = None  # the line or row with the names of the columns, from 1
    metadata: str | Path | None = None  # the `.rda` that describes a file of fixed width

    def __post_init__(self) -> None:
        if self.decimal not in (None, ".", ","):
            raise ParameterError(f"decimal= must be '.' or ',', got {self.decimal!r}.")
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise ParameterError(f"delimiter= must be one character, got {self.delimiter!r}.")
        if self.thousands not in (None, "", *_THOUSANDS):
            raise ParameterError(
                f"thousands= must be one of . , ' or a space, got {self.thousands!r}."
            )
        if self.thousands and self.thousands == self.decimal:
            raise ParameterError("thousands= and decimal= must be different signs.")
        if self.header is not None:
            whole("header", self.header, 1)
        try:
            codecs.lookup(self.encoding or "utf-8")
        except LookupError:
            raise ParameterError(
                f"encoding={self.encoding!r} is unknown; common ones are 'utf-8', 'cp1252' and "
                "'latin-1'."
            ) from None

    @property
    def said(self) -> list[str]:
        """The options that were said."""
        options = ("encoding", "decimal", "delimiter", "thousands", "header", "metadata")
        return [option for option in options if getattr(self, option) is not None]


@dataclass(frozen=True)
class Signs:
    """How the numbers of a column are written."""

    decimal: str = "."
    thousands: str = ""
    is_whole: bool = False  # whether all numbers of the sample are whole

    @property
    def is_usual(self) -> bool:
        """Whether engines read these numbers as they are."""
        return self.decimal == "." and not self.thousands

    @property
    def pattern(self) -> str:
        """A regular expression of numbers that are written so."""
        group = f"{re.escape(self.thousands)}[0-9]{{3}}"
        whole = f"([0-9]+|[1-9][0-9]{{0,2}}({group})+)" if self.thousands else "[0-9]+"
        return rf"^\s*[+-]?{whole}({re.escape(self.decimal)}[0-9]+)?([eE][+-]?[0-9]+)?\s*$"


@dataclass(frozen=True)
class TextLayout:
    """How a text file is written."""

    columns: tuple[str, ...]
    encoding: str
    delimiter: str
    packed: str | None  # how the file is compressed
    skipped: int  # lines before the names of the columns
    signs: dict[str, Signs]  # of columns that hold numbers alone, as far as the sample goes
    notes: tuple[str, ...]  # what was found and not said


def look_at(file: Any, form: TextForm) -> TextLayout:
    """How a file is written, by what is said and by its beginning.

    Raises:
      DataError: The file is empty, no text, or not in the encoding that is said.
      ParameterError: Numbers such as 1.234 could be a thousand or a decimal, and nothing tells.
    """
    packed, sample, is_whole = _beginning(file)
    encoding = form.encoding or _encoding_of(sample, file)
    text = _decode_sample(sample, encoding, file, is_whole)
    line = _EXCEL_LINE.match(text)
    skipped = int(line is not None) if form.header is None else form.header - 1
    lines = text.splitlines(keepends=True)
    if is_whole and 0 < len(lines) <= skipped:
        raise DataError(
            f"{file} has {len(lines)} lines; header= names the one with the names of the columns."
        )
    text = "".join(lines[skipped:])
    if not text.strip():
        raise DataError(f"{file} is empty; a line with the names of the columns was expected.")
    said = form.delimiter or (line[1] if line else None)
    delimiter = said or _delimiter_of(text)
    header, *rows = _records(text, delimiter, is_whole)
    columns = _names(header, file)
    if form.delimiter and len(columns) == 1:
        _check_said_delimiter(text, delimiter, file)
    signs = _signs(columns, rows, delimiter, form, file)
    notes = _said(file, form, encoding, delimiter if said is None else None, signs)
    return TextLayout(columns, encoding, delimiter, packed, skipped, signs, notes)


def open_stream(file: Any, packed: str | None) -> Any:
    """The content of a file on the disk or in a store, unpacked."""
    if not isinstance(file, Path):
        return file.stream(packed)
    if packed == "zstd":
        return needs_arrow("a text packed by zstd").input_stream(str(file), compression=packed)
    openers: dict[str | None, Callable[..., Any]] = {"gzip": gzip.open, "bz2": bz2.open}
    return openers.get(packed, open)(file, "rb")


def _beginning(file: Any) -> tuple[str | None, bytes, bool]:
    """How the file is compressed, its first bytes as text, and whether these are all."""
    with open_stream(file, None) as opened:
        first = opened.read(4)
    packed = next((name for mark, name in PACKED.items() if first.startswith(mark)), None)
    try:
        with open_stream(file, packed) as stream:
            sample = stream.read(_SAMPLE)
    except (OSError, EOFError, zlib.error):
        if packed is None:
            raise
        raise DataError(
            f"{file} is cut off or damaged: its {packed} data cannot be unpacked. Copy it again."
        ) from None
    return packed, sample, len(sample) < _SAMPLE


def _encoding_of(sample: bytes, file: Any) -> str:
    for mark, name in _BOMS.items():
        if sample.startswith(mark):
            return name
    zeros = [sample[k:2000:2].count(0) for k in (0, 1)]
    if any(zeros):
        if not zeros[0]:
            return "utf-16-le"
        if not zeros[1]:
            return "utf-16-be"
        raise DataError(f"{file} is not text: it holds zero bytes.")
    for name in ("utf-8",) if _DOS.search(sample) else ("utf-8", "cp1252"):
        try:
            codecs.getincrementaldecoder(name)().decode(sample)
            return name
        except UnicodeError:
            continue
    raise DataError(
        f"{file} is text in neither UTF-8 nor cp1252; name its encoding, e.g. encoding='cp850'."
    )


def _decode_sample(sample: bytes, encoding: str, file: Any, is_whole: bool) -> str:
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(sample, is_whole)
    except UnicodeError:
        raise DataError(
            f"{file} is not text in encoding={encoding!r}; name the encoding it has."
        ) from None
    return text.removeprefix("\ufeff")


def _delimiter_of(text: str) -> str:
    """The sign that cuts most records into as many values as there are names."""

    def fit(sign: str) -> tuple[float, int]:
        header, *rows = _records(text[:65_536], sign, is_whole=len(text) <= 65_536)
        same = list(map(len, rows)).count(len(header))
        return (same / len(rows) if rows else 1.0) * (len(header) > 1), len(header)

    return max(_DELIMITERS, key=fit)


def _check_said_delimiter(text: str, said: str, file: Any) -> None:
    """Refuse a delimiter that leaves one column of what another cuts into three or more.

    Two parts prove nothing: a column 'Turnover, net' of 1,5 and 2,5 has them as well.
    """
    other = _delimiter_of(text)
    header, *rows = _records(text[:65_536], other, is_whole=len(text) <= 65_536)
    if len(header) > 2 and all(len(row) == len(header) for row in rows):
        raise DataError(
            f"{file} has one column with the delimiter {said!r}, and {len(header)} with {other!r}: "
            f"say delimiter={other!r} or leave it out, since it is found."
        )


def _records(text: str, delimiter: str, is_whole: bool) -> list[list[str]]:
    """The records of a text; the last one is left out where it may be cut off."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows: list[list[str]] = []
    with suppress(csv.Error):  # a very long value; the engine will say in which line
        rows.extend(filter(None, reader))
    return rows if is_whole or len(rows) < 2 else rows[:-1]


def _names(header: Sequence[str], file: Any) -> tuple[str, ...]:
    names = [name if name.strip() else f"column{k}" for k, name in enumerate(header)]
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"{file} has two columns with the name {name!r}; rename one.")
    check_spelling(names)
    return tuple(names)


def _signs(
    columns: Sequence[str], rows: Sequence[Sequence[str]], delimiter: str, form: TextForm, file: Any
) -> dict[str, Signs]:
    """The signs of each column of numbers."""
    possible: dict[str, list[Signs]] = {}
    for k, name in enumerate(columns):
        values = {row[k].strip() for row in rows if k < len(row)} - {""}
        likely = {value for value in values if _LIKELY.match(value)}
        # A few texts among numbers, such as "n/a", do not change how the numbers are written.
        is_number = name in form.numbers or len(values) <= _MOST * len(likely)
        if is_number and (found := _possible(likely, form)):
            possible[name] = found
    decimals = {ways[0].decimal for ways in possible.values() if len(ways) == 1}
    chosen: dict[str, Signs] = {}
    for name, ways in possible.items():
        if len(ways) > 1 and name not in form.coded and name not in form.kept:
            ways = [_told_apart(ways, decimals, delimiter) or _ask(name, ways[0], file)]
        chosen[name] = ways[0]
    return chosen


def _possible(values: Collection[str], form: TextForm) -> list[Signs]:
    """The ways to read all values as numbers: none, one, or two for numbers such as 1.234."""
    marks = {mark for value in values for mark in _SIGN.findall(value)}
    ways: dict[tuple[bool, str], Signs] = {}
    for decimal in form.decimal or ".,":
        for thousands in ("", *(marks - {decimal})):
            known = {decimal, thousands} >= marks and form.thousands in (None, thousands)
            signs = Signs(decimal, thousands, decimal not in marks)
            if known and values and all(map(re.compile(signs.pattern).match, values)):
                ways.setdefault((decimal in marks, thousands), signs)
    if len(ways) > 1 and any(re.search("[0-9]{4}", value) for value in values):
        return [signs for signs in ways.values() if not signs.thousands]
    return list(ways.values())


def _told_apart(ways: Sequence[Signs], decimals: Collection[str], delimiter: str) -> Signs | None:
    """The way to read 1.234 or 1,234 that the rest of the file suggests, if it does.

    Codes such as 47.11 stand in files with a decimal comma too, so a decimal point elsewhere
    suggests something only in files that cannot have decimal commas without quotation marks.
    """
    by_decimal = {signs.decimal: signs for signs in ways}
    if "," in decimals:
        return by_decimal[","]
    return by_decimal["."] if delimiter == "," else None


def _ask(name: str, way: Signs, file: Any) -> Signs:
    mark = way.decimal if not way.thousands else way.thousands
    raise ParameterError(
        f"the numbers in column {name!r} of {file} have three digits behind each '{mark}', which "
        "may be thousands or decimals: say decimal=',' or decimal='.'. Columns with a code list "
        "are left as they are."
    )


def _said(
    file: Any, form: TextForm, encoding: str, delimiter: str | None, signs: dict[str, Signs]
) -> tuple[str, ...]:
    """One line on what was found and is not what one expects of such a file."""
    found = []
    if form.encoding is None and not encoding.startswith("utf-8"):
        found.append(f"encoding {encoding}")
    usual = "\t" if ".tsv" in file.name.lower() else ","
    if delimiter not in (None, usual):
        found.append(f"delimiter {_word(delimiter or '')}")
    by_form: dict[str, list[str]] = {}
    for name, way in signs.items():
        if way.is_usual or name in form.coded or name in form.kept:
            continue
        comma = form.decimal is None and way.decimal == "," and not way.is_whole
        parts = ["decimal comma"] * comma
        if way.thousands and form.thousands is None:
            parts.append(f"thousands {_word(way.thousands)}")
        if parts:
            by_form.setdefault(" and ".join(parts), []).append(repr(name))
    found += [f"{form_} in {', '.join(names)}" for form_, names in by_form.items()]
    return (f"found {'; '.join(found)}",) if found else ()


def _word(sign: str) -> str:
    return _IN_WORDS.get(sign, f"'{sign}'")
