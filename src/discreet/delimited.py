"""Text with delimiters between values: read as texts, written so that texts stay texts."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import islice

from discreet.columns import Column
from discreet.errors import DataError
from discreet.frames import Frame, concat

_READ = 2_000  # rows that are Python's lists at once: its collector walks over more of them often
_WRITTEN = 50_000  # rows that are lines of text at the same time


def read_delimited(
    lines: Iterable[str], delimiter: str = ",", names: Sequence[str] | None = None
) -> Frame:
    """The values of a text by column, null where there is nothing; blank lines are left out.

    Args:
      lines: The text.
      delimiter: The sign between values.
      names: Names of the columns; by default the first line has them.

    Raises:
      DataError: A record has more or fewer values than there are columns.
    """
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    records = filter(None, reader)
    try:
        named = list(next(records, []) if names is None else names)
        parts = [_texts(named, [])]
        done = 0
        while rows := list(islice(records, _READ)):
            if set(map(len, rows)) != {len(named)}:
                wrong = next(k for k, row in enumerate(rows) if len(row) != len(named))
                found = f"record {done + wrong + 2} has {len(rows[wrong])} values"
                raise DataError(f"{found}, not {len(named)}")
            parts.append(_texts(named, rows))
            done += len(rows)
    except csv.Error as error:
        raise DataError(str(error)) from None
    return concat(parts)


def _texts(names: Sequence[str], rows: Sequence[Sequence[str]]) -> Frame:
    columns = zip(*rows, strict=True) if rows else ([] for _ in names)
    found = ([text or None for text in column] for column in columns)
    return Frame(dict(zip(names, found, strict=True)), dict.fromkeys(names, "string"))


def write_delimited(frame: Frame, delimiter: str = ",", *, header: bool = True) -> Iterator[bytes]:
    """A frame as lines of text, some of them at a time.

    Names and texts are quoted, so that no reader takes them for numbers; nothing is written where a
    value is missing.
    """
    if header:
        yield (delimiter.join(map(_quoted, frame.column_names)) + "\n").encode()
    for start in range(0, len(frame), _WRITTEN):
        columns = (_written(column) for column in frame.slice(start, _WRITTEN).columns)
        lines = map(delimiter.join, zip(*columns, strict=True))
        yield ("\n".join(lines) + "\n").encode()


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _written(column: Column) -> list[str]:
    if column.kind != "string":
        return ["" if value is None else _plain(value) for value in column.to_pylist()]
    codes, distinct = column.encoded()
    shown = [*map(_quoted, distinct.to_pylist()), ""]
    return [shown[code] for code in codes.tolist()]


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        is_usual = 1e-4 <= abs(value) < 1e10
        return repr(value).removesuffix(".0") if is_usual else _decimal_text(value)
    return str(value)


def _decimal_text(value: float) -> str:
    """A float in its shortest form: powers of ten from 1e10 and below 1e-6, as the browser has it.

    >>> [_decimal_text(value) for value in (1.0, 0.1, 1e10, 0.00001)]
    ['1', '0.1', '1e+10', '0.00001']
    """
    if not math.isfinite(value):
        return str(value)
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    told = Decimal(repr(abs(value))).as_tuple()
    digits = "".join(map(str, told.digits)).rstrip("0") or "0"
    exponent = len(told.digits) + int(told.exponent) - 1 if value else 0
    if not -6 <= exponent < 10:
        rest = f".{digits[1:]}" if digits[1:] else ""
        return f"{sign}{digits[0]}{rest}e{exponent:+d}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    whole, rest = digits[: exponent + 1].ljust(exponent + 1, "0"), digits[exponent + 1 :]
    return f"{sign}{whole}.{rest}" if rest else f"{sign}{whole}"
