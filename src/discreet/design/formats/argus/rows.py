"""The rows of a file that τ-ARGUS metadata describe."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.design.formats.argus.metadata import Metadata, Variable
from discreet.design.formats.hrc import read_text
from discreet.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

Row = tuple[int, list[str]]
"""A row with the number of its line."""


def read_rows(path: str | Path, metadata: Metadata, *, decimal: str = ".") -> pa.Table:
    """The rows of a table or of records, codes as text and numbers as numbers.

    Codes that stand for missing values are null.

    Args:
      path: The file.
      metadata: Its columns.
      decimal: The decimal sign.

    Raises:
      DataError: A line cannot be read; the message has its number.
    """
    return numbered_rows(path, metadata, decimal)[1]


def numbered_rows(
    path: str | Path, metadata: Metadata, decimal: str, *, keeps_missing: bool = False
) -> tuple[list[int], pa.Table]:
    """The rows, and the number of each one's line; see `read_rows`.

    Args:
      path: The file.
      metadata: Its columns.
      decimal: The decimal sign.
      keeps_missing: Whether codes that stand for missing values stay as they are.
    """
    import pyarrow as pa

    rows = list(_rows(read_text(Path(path)), metadata))
    columns = {
        variable.name: _column(
            replace(variable, missing=()) if keeps_missing else variable,
            [(number, row[i]) for number, row in rows],
            decimal,
        )
        for i, variable in enumerate(metadata.variables)
    }
    kinds = [(v.name, pa.float64() if v.is_number else pa.string()) for v in metadata.variables]
    return [number for number, _ in rows], pa.table(columns, pa.schema(kinds))


def _rows(text: str, metadata: Metadata) -> Iterator[Row]:
    wanted = len(metadata.variables)
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        if metadata.separator is None:
            yield number, [_part(line, variable, number) for variable in metadata.variables]
            continue
        values = next(csv.reader([line], delimiter=metadata.separator, skipinitialspace=True))
        if len(values) != wanted:
            raise DataError(
                f"line {number} has {len(values)} values, but the metadata describe {wanted} "
                f"columns separated by {metadata.separator!r}."
            )
        yield number, [value.strip() for value in values]


def _part(line: str, variable: Variable, number: int) -> str:
    start = (variable.start or 1) - 1
    if len(line) < start:
        raise DataError(
            f"line {number} has {len(line)} characters, but column {variable.name!r} begins at "
            f"{variable.start}."
        )
    return line[start : start + (variable.width or 0)].strip()


def _column(
    variable: Variable, values: Sequence[tuple[int, str]], decimal: str
) -> list[str | None] | list[float | None]:
    if not variable.is_number:
        return [None if text in variable.missing else text for _, text in values]
    return [
        None if text in variable.missing or not text else _number(text, number, variable, decimal)
        for number, text in values
    ]


def _number(text: str, number: int, variable: Variable, decimal: str) -> float:
    try:
        return float(text.replace(decimal, ".") if decimal != "." else text)
    except ValueError:
        raise DataError(
            f"line {number}: {text!r} in column {variable.name!r} is not a number with decimal "
            f"sign {decimal!r}."
        ) from None
