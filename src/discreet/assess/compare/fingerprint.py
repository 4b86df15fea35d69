"""Whether two things are the same input: digests of tables, methods, fitters and measures."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from discreet.design.structured import StructuredDesign
from discreet.design.table import Table
from discreet.errors import ParameterError

_SHOWN = 16


def digest(*things: Any) -> str:
    """A short hash of the contents; equal contents have equal hashes in every process.

    >>> digest({"a": 1.5, "b": (2, "x")}) == digest({"a": 1.5, "b": (2, "x")})
    True
    """
    found = hashlib.sha256()
    for thing in things:
        for piece in _pieces(thing):
            found.update(piece)
    return found.hexdigest()[:_SHOWN]


def table_digest(table: Table) -> str:
    """A hash of the design and the true values; keys are redrawn and do not count."""
    values = [table.published, *([] if table.inner is None else [table.inner])]
    numbers = [(v.count, v.weight, v.weight_squared) for v in values]
    return digest(_design(table), numbers, table.convention.name, table.convention.modulus)


def _design(table: Table) -> Any:
    design = table.design
    if isinstance(design, StructuredDesign):
        from discreet.design.storage import design_to_json

        return [design_to_json(design), design.inner_codes()]
    X = design.matrix()
    return [X.shape, X.indptr, X.indices]


def _pieces(thing: Any) -> Iterator[bytes]:
    """The contents, part by part, each with its type in front."""
    yield type(thing).__qualname__.encode() + b":"
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
    elif thing is None or isinstance(thing, (bool, int, float, str, np.generic)):
        yield repr(thing).encode()
    else:
        yield _pickled(thing)
    yield b";"


def _pickled(thing: Any) -> bytes:
    try:
        return pickle.dumps(thing)
    except (pickle.PicklingError, AttributeError, TypeError):
        raise ParameterError(
            f"{type(thing).__name__!r} cannot be recognised when a comparison is taken up again; "
            "leave out resume=, or define it as a class or function of a module."
        ) from None
