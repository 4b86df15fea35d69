"""The border to the engine that holds the records: one way in, one way out."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from discreet.errors import DataError, DiscreetError, EngineError

if TYPE_CHECKING:
    import pyarrow as pa

Answer = TypeVar("Answer")
_BAD_INPUT = {
    "IOException",
    "InvalidInputException",
    "ConversionException",
    "OutOfRangeException",
    "SerializationException",
    "ArrowInvalid",
}
_QUOTES = ("Original Line", "LINE ", "^")  # lines of a message that quote a record or a query
_LONGEST = 300


def duckdb(path: str | None = None) -> Any:
    """A DuckDB back end of its own: in memory, or a file that is only read."""
    import ibis

    return ibis.duckdb.connect() if path is None else ibis.duckdb.connect(path, read_only=True)


def fetch(backend: Any, query: Any, origin: str) -> pa.Table:
    """The answer to a query as an Arrow table.

    Args:
      backend: The Ibis back end that answers.
      query: An Ibis table expression.
      origin: What the records came from, for the error.
    """
    return attempt(lambda: backend.to_pyarrow(query), origin)


def attempt(work: Callable[[], Answer], origin: str) -> Answer:
    """Have a back end do something; whatever goes wrong is one clear line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Ibis calls DuckDB's old names
            return work()
    except DiscreetError:
        raise
    except Exception as error:  # every back end has exceptions of its own
        raise clear_error(error, origin) from error


def clear_error(error: Exception, origin: str) -> DiscreetError:
    """A back end's exception in one line, without the record or query that some of them quote."""
    lines = [line.strip() for line in str(error).splitlines()]
    said = "; ".join(line for line in lines if line and not line.startswith(_QUOTES))
    short = said if len(said) <= _LONGEST else said[: _LONGEST - 1] + "…"
    if type(error).__name__ in _BAD_INPUT:
        return DataError(f"{origin} could not be read: {short}")
    return EngineError(f"the engine that holds {origin} did not answer: {short}")
