"""Records in text files: codes stay text, weights and keys are numbers."""

from __future__ import annotations

import codecs
import csv
import glob
import gzip
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.errors import DataError, ParameterError
from discreet.records.backend import fetch

if TYPE_CHECKING:
    import pyarrow as pa

_UTF8 = ("utf-8", "utf-8-sig", "ascii")
_DELIMITERS = ",;\t|"


@dataclass(frozen=True)
class TextForm:
    """How a text file of records is read."""

    numbers: Collection[str] = ()  # columns of numbers, weights and keys
    kept: Collection[str] = ()  # columns of codes that stay as they are spelt
    encoding: str | None = None  # encoding of the file, UTF-8 when absent
    decimal: str = "."  # decimal sign of numbers, `"."` or `","`

    def __post_init__(self) -> None:
        if self.decimal not in (".", ","):
            raise ParameterError(f"decimal= must be '.' or ',', got {self.decimal!r}.")
        try:
            codecs.lookup(self.encoding or "utf-8")
        except LookupError:
            raise ParameterError(
                f"encoding={self.encoding!r} is unknown; common ones are 'utf-8', 'cp1252' and "
                "'latin-1'."
            ) from None

    @property
    def is_plain(self) -> bool:
        """Whether nothing was said that only text files need."""
        return self.encoding is None and self.decimal == "."


def read_text(backend: Any, path: str, form: TextForm) -> tuple[Any, tuple[str, ...]]:
    """The records of a text file, or of all that match a pattern, and what was done to their codes.

    DuckDB reads UTF-8; a file in another encoding is decoded in memory first.
    """
    is_utf8 = codecs.lookup(form.encoding or "utf-8").name in _UTF8
    read = _read_by_engine if is_utf8 else _read_decoded
    table, candidates = read(backend, path, form)
    return one_spelling(backend, table, [c for c in candidates if c not in form.kept], form, path)


def _read_by_engine(backend: Any, path: str, form: TextForm) -> tuple[Any, list[str]]:
    """The file as the engine reads it, and the columns that look like numbers."""
    options = {"header": True, "decimal_separator": form.decimal}
    sniffed = backend.read_csv(path, **options).schema()
    types = dict.fromkeys(sniffed, "VARCHAR")
    numeric = [name for name in sniffed if sniffed[name].is_numeric()]
    for name in numeric:
        if name in form.numbers:
            types[name] = "BIGINT" if sniffed[name].is_integer() else "DOUBLE"
    candidates = [name for name in numeric if name not in form.numbers]
    return backend.read_csv(path, types=types, **options), candidates


def _read_decoded(backend: Any, path: str, form: TextForm) -> tuple[Any, list[str]]:
    import ibis
    import pyarrow as pa

    files = sorted(glob.glob(path, recursive=True))
    read = pa.concat_tables([_decode(Path(file), form) for file in files])
    for name in form.numbers:
        if name in read.column_names:
            place = read.column_names.index(name)
            read = read.set_column(place, name, _as_numbers(read.column(name), form.decimal))
    table = ibis.memtable(read)
    fetch(backend, table.limit(0), path)
    return table, [name for name in read.column_names if name not in form.numbers]


def _decode(file: Path, form: TextForm) -> pa.Table:
    """A file with every column as text."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    try:
        names, delimiter = _heading(file, form)
        return arrow_csv.read_csv(
            file,
            read_options=arrow_csv.ReadOptions(encoding=form.encoding),
            parse_options=arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
    except UnicodeError:
        raise DataError(
            f"{file} is not text in encoding={form.encoding!r}; name the encoding it has."
        ) from None
    except pa.ArrowInvalid:
        raise DataError(
            f"{file} is not a regular CSV file: its rows differ in their number of columns."
        ) from None


def _heading(file: Path, form: TextForm) -> tuple[list[str], str]:
    """The names of the columns, and what stands between them."""
    opener: Any = gzip.open if file.name.lower().endswith(".gz") else open
    with opener(file, "rt", encoding=form.encoding) as text:
        line = text.readline()
    delimiter = max(_DELIMITERS, key=line.count)
    return next(csv.reader([line.rstrip("\r\n")], delimiter=delimiter), []), delimiter


def _as_numbers(column: pa.ChunkedArray, decimal: str) -> pa.ChunkedArray:
    """Texts as whole numbers or else as floats; as they are when they are neither."""
    import pyarrow as pa
    import pyarrow.compute as pc

    plain = pc.replace_substring(pc.utf8_trim_whitespace(column), decimal, ".")
    for kind in (pa.int64(), pa.float64()):
        try:
            return plain.cast(kind)
        except pa.ArrowInvalid:
            continue
    return column


def one_spelling(
    backend: Any, table: Any, columns: Sequence[str], form: TextForm, origin: str
) -> tuple[Any, tuple[str, ...]]:
    """The records with codes `47.0` written `47`, where a column holds whole numbers only.

    Programs that know no missing whole numbers write `47.0` in columns with blanks. A column is
    changed when all its values are whole numbers without leading zeros, some with `.0`, and some
    are blank or without it. Whatever else it holds (`1.10`, `01`, `A`) makes it text.
    Cost: one query.
    """
    import ibis

    whole = "^-?(0|[1-9][0-9]*)"
    counts: dict[str, Any] = {}
    for k, name in enumerate(columns):
        text = table[name]
        is_plain = text.re_search(f"{whole}$")
        is_long = text.re_search(f"{whole}{re.escape(form.decimal)}0$")
        kinds = {"other": ~(is_plain | is_long), "long": is_long, "rest": is_plain | text.isnull()}
        for part, kind in kinds.items():
            counts[f"{part}{k}"] = ibis.ifelse(kind, 1, 0).sum()
    found = fetch(backend, table.aggregate(**counts), origin).to_pylist()[0] if columns else {}
    changed = {
        name: table[name].re_replace(f"{re.escape(form.decimal)}0$", "")
        for k, name in enumerate(columns)
        if not found[f"other{k}"] and found[f"long{k}"] and found[f"rest{k}"]
    }
    if not changed:
        return table, ()
    named = ", ".join(map(repr, changed))
    note = f"whole numbers with and without '{form.decimal}0' are one code in {named}: 47.0 is 47"
    return table.mutate(**changed), (note,)
