"""Connections to the engines that hold records: what passes, what is said when it fails, names."""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

from discreet.columns import Column
from discreet.errors import DataError, DiscreetError, EngineError, ParameterError
from discreet.frames import Frame

Answer = TypeVar("Answer")
GiveKeys = Callable[[Column], Frame]
"""Gives some ids their keys: both side by side."""
_BAD_INPUT = {
    "IOException",
    "InvalidInputException",
    "ConversionException",
    "OutOfRangeException",
    "SerializationException",
    "ArrowInvalid",
    "DataError",  # psycopg: a value that cannot be read as the type asked for
    "NumberFormatException",  # Spark, this and the next two
    "ArithmeticException",
    "DateTimeException",
}
_CONVERSION = _BAD_INPUT - {"IOException", "InvalidInputException", "ArrowInvalid"}
_IN_COLUMN = re.compile(
    r'^Error when converting column "([^"]+)"|when casting from source column (\w+)$', re.MULTILINE
)
_CSV_LINE = re.compile(r"CSV Error on Line: (\d+)$", re.MULTILINE)
_CSV_FAULTS = {
    "Invalid unicode": "it is not text in UTF-8; name its encoding, e.g. encoding='cp1252'",
    "Expected Number of Columns": "it has more or fewer values than there are columns",
    "Value with unterminated quote": "a quotation mark has no end",
    "Maximum line size": "it is too long",
}
_STORE_FAULTS = {
    r"AWS Error (\w*ACCESS\w*|\w*SIGNATURE\w*|\w*TOKEN\w*|UNRECOGNIZED_CLIENT)": "the object store "
    "refused the credentials; give those that may read it, e.g. AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY",
    "AWS Error (NETWORK_CONNECTION|REQUEST_TIMEOUT|SLOW_DOWN|SERVICE_UNAVAILABLE)|curlCode": "the "
    "connection to the object store was lost; try again",
}
_QUOTES = ("Original Line", "LINE ", "^", "DETAIL:", "CONTEXT:")  # these quote a record or query
_ENDS = ("== SQL", "JVM stacktrace", "at org.", "at java.")  # only queries and stacks follow
_CAUSE = re.compile(r"^Caused by: (?:[\w$]+\.)*([\w$]+): (.*)", re.MULTILINE)
_LONGEST = 300


class Connection:
    """What passes between this program and a back end, as every Ibis back end can do it.

    Args:
      backend: The Ibis back end that holds the records.
    """

    def __init__(self, backend: Any) -> None:
        self.backend = backend

    def answer(self, query: Any) -> Frame:
        """The answer to a query."""
        return Frame.from_arrow(self.backend.to_pyarrow(query))

    def names(self) -> list[str]:
        """The tables that can be opened."""
        return list(self.backend.list_tables())

    def has(self, name: str) -> bool:
        """Whether there is a table of this name."""
        return name in self.names()

    def table(self, name: str) -> Any:
        """A table that is there, by its name."""
        return self.backend.table(name)

    def exact(self, table: Any) -> Any:
        """A table with texts that are equal only when their characters are."""
        return table

    def digest(self, text: Any) -> Any:
        """The SHA-256 of a text, in hexadecimal digits: the same on every back end."""
        return text.hexdigest("sha256")

    def lend(self, frame: Frame) -> Any:
        """A frame as a table of the back end, no longer than the connection."""
        import ibis

        return ibis.memtable(frame.to_arrow())

    def store(self, name: str, frame: Frame) -> Any:
        """A frame as a new table of the back end."""
        return self.backend.create_table(name, frame.to_arrow())

    def store_keys(self, name: str, side: Any, give_keys: GiveKeys) -> Any:
        """A new table of ids and their keys, all of it or nothing.

        `side` is a query for the ids, and for a key that is yet to come.
        """
        return self.store(name, give_keys(self.answer(side.select(side[0])).column(0)))


def engine_function(name: str, takes: tuple[type, ...], gives: type) -> Callable[..., Any]:
    """A function of one or two arguments that an engine brings along, for expressions."""
    import ibis

    def of_one(first: Any) -> None: ...  # Ibis reads the number of arguments off a function
    def of_two(first: Any, second: Any) -> None: ...

    shape = of_one if len(takes) == 1 else of_two
    builtin: Callable[..., Any]
    builtin = ibis.udf.scalar.builtin(shape, name=name, signature=(takes, gives))
    return builtin


def without_unsigned(frame: Frame) -> Frame:
    """A frame in types that databases have: whole numbers with a sign, texts without a dictionary.

    Every value stays what it is.
    """
    wider = {"uint8": "int16", "uint16": "int32", "uint32": "int64", "uint64": "decimal(20, 0)"}
    plain = Frame({name: frame.column(name).plain() for name in frame.column_names})
    return plain.cast({name: wider.get(kind, kind) for name, kind in frame.kinds.items()})


def attempt(work: Callable[[], Answer], origin: str) -> Answer:
    """Have a back end do something; whatever goes wrong is one clear line."""
    try:
        with _engine_warnings:
            return work()
    except DiscreetError:
        raise
    except Exception as error:  # every back end has exceptions of its own
        found = clear_error(error, origin)
        raise found from (None if isinstance(found, DataError) else error)  # it may quote a record


def clear_error(error: Exception, origin: str) -> DiscreetError:
    """A back end's exception in one line, without the record or query that some of them quote."""
    text, kinds = str(error), {kind.__name__ for kind in type(error).__mro__}
    for kind, said in _CAUSE.findall(text):  # the last one is where it began
        text, kinds = said, {kind}
    for sign, said in _STORE_FAULTS.items():
        if re.search(sign, text):
            return EngineError(f"{origin} could not be read: {said}.")
    line = _CSV_LINE.search(text)
    if _CONVERSION & kinds:  # neither the value nor the line is quoted: both are a record's
        columns = [name for pair in _IN_COLUMN.findall(text) for name in pair if name]
        place = f" of column {columns[-1]!r}" if columns else ""
        place += f" in line {line[1]}" if line else ""
        return DataError(
            f"{origin} could not be read: a value{place} cannot be read as the number or date that "
            "is asked for. `discreet check data` shows where."
        )
    lines = text.splitlines()
    if line:
        known = (said for said in _CSV_FAULTS if any(each.startswith(said) for each in lines))
        fault = _CSV_FAULTS.get(next(known, ""), "it does not read like the others")
        return DataError(f"{origin} could not be read: line {line[1]}: {fault}.")
    short = in_short(lines)
    if _BAD_INPUT & kinds:
        return DataError(f"{origin} could not be read: {short}")
    return EngineError(f"the engine that holds {origin} did not answer: {short}")


def in_short(lines: Sequence[str]) -> str:
    """What a back end said, on one line of bearable length."""
    stripped = [line.strip() for line in lines]
    end = next((i for i, line in enumerate(stripped) if line.startswith(_ENDS)), len(stripped))
    said = "; ".join(line for line in stripped[:end] if line and not line.startswith(_QUOTES))
    return said if len(said) <= _LONGEST else said[: _LONGEST - 1] + "…"


class IgnoredWarnings:
    """A block without the warnings of engines, in which any number of threads may be at once.

    With a `warnings.catch_warnings` of its own, a thread that leaves late would restore the filters
    that it found within another's block, for good.
    """

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0
        self._block = warnings.catch_warnings()

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._block = warnings.catch_warnings()
                self._block.__enter__()
                warnings.simplefilter("ignore", DeprecationWarning)  # Ibis calls DuckDB's old names
                warnings.filterwarnings(
                    "ignore", "PySpark does not yet fully support", FutureWarning
                )
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._block.__exit__(None, None, None)


_engine_warnings = IgnoredWarnings()
TABLE_MARK = "::"
_SCHEME = re.compile(r"([a-z][a-z0-9]*)://")
# A user with a password and a host in brackets may hold the mark themselves.
_MARKED = re.compile(r"(?s)((?:\w+://)?(?:[^/@]*@)?(?:\[[^\]]*\])?.*?)(?:::(.*))?")


def scheme_of(source: str) -> str | None:
    """What stands before `://`, if anything does."""
    found = _SCHEME.match(source)
    return found and found[1]


def public_address(address: str) -> str:
    """An address without user, password and options.

    >>> public_address("s3://user:password@bucket/people.parquet?region=eu-central-1")
    's3://bucket/people.parquet'
    """
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def split_table(source: str) -> tuple[str, str | None]:
    """A file or server and the table named behind `::`, if one is.

    >>> split_table("postgresql://[::1]/census::people")
    ('postgresql://[::1]/census', 'people')
    """
    found = _MARKED.fullmatch(source)
    return (found[1], found[2]) if found else (source, None)


def one_table(*given: str | None) -> str | None:
    """The table's name, from whichever of the places that can name it does."""
    names = {name for name in given if name}
    if len(names) > 1:
        raise ParameterError(f"two tables are named, {' and '.join(map(repr, sorted(names)))}.")
    return names.pop() if names else None
