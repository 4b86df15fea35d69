"""Hashes of contents: equal contents have equal hashes in every process."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from discreet.errors import ParameterError


def digest(*things: Any) -> bytes:
    """A hash of the contents of methods, tables, arrays and plain data.

    >>> digest({"a": 1.5, "b": (2, "x")}) == digest({"b": (2.0, "x"), "a": 1.5})
    True
    """
    found = hashlib.sha256()
    for thing in things:
        for piece in _pieces(thing):
            found.update(piece)
    return found.digest()


def _pieces(thing: Any) -> Iterator[bytes]:
    """The contents, part by part, each with its kind in front; numbers are of one kind."""
    yield b"number:" if _is_number(thing) else type(thing).__qualname__.encode() + b":"
    if isinstance(thing, np.ndarray):
        yield f"{thing.dtype.str}{thing.shape}".encode() + np.ascontiguousarray(thing).tobytes()
    elif isinstance(thing, Mapping):
        for key in sorted(thing, key=str):
            yield from _pieces(key)
            yield from _pieces(thing[key])
    elif isinstance(thing, (list, tuple)):
        for part in thing:
            yield from _pieces(part)
    elif is_dataclass(thing) and not isinstance(thing, type):
        for field in fields(thing):
            yield field.name.encode() + b"="
            yield from _pieces(getattr(thing, field.name))
    else:
        yield _single(thing)
    yield b";"


def _is_number(thing: Any) -> bool:
    return isinstance(thing, (int, float, np.number)) and not isinstance(thing, bool)


def _single(thing: Any) -> bytes:
    """A thing without parts."""
    if _is_number(thing):
        return repr(int(thing) if float(thing).is_integer() else float(thing)).encode()
    if isinstance(thing, bytes):
        return len(thing).to_bytes(8, "big") + thing
    if thing is None or isinstance(thing, (bool, str, np.generic)):
        return repr(thing).encode()
    try:
        return pickle.dumps(thing)
    except (pickle.PicklingError, AttributeError, TypeError):
        raise ParameterError(
            f"{type(thing).__name__!r} cannot be recognised again in another process; define it as "
            "a class or function of a module."
        ) from None
