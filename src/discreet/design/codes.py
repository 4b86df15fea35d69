"""Codes are text: one spelling for every value a category can have.

Engines and frame libraries hand over the same category as ``1``, ``1.0``, ``"1"`` or a date;
`canonical` gives each value one text, so that a cell has the same name, and the same keyed hash,
wherever it was counted.
"""

from __future__ import annotations

import difflib
import enum
import math
import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from functools import singledispatch
from typing import Any

import numpy as np

from discreet.arrays import Whole32
from discreet.columns import Column
from discreet.errors import CodeError, ColumnError

MISSING = "(missing)"
"""The code of null, NaN and NaT: a category of its own, visible in every table."""

_COMPARED = 5_000  # codes that a misspelt one is compared with at most
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_PARTS = re.compile(r"([0-9]+(?:\.[0-9]+)?)|([^0-9]+)")


def cell_text(codes: Mapping[str, object]) -> str:
    """A cell in words, `region=R1, age=30`; one of which no code is given is the total."""
    return ", ".join(f"{name}={code}" for name, code in codes.items()) or "the total"


def canonical(value: object) -> str:
    """The one text of a value.

    Whole numbers of any type are decimal digits (``1.0`` is ``"1"``), other floats their shortest
    exact form, decimals plain notation without trailing zeros, booleans ``"true"`` and
    ``"false"``, dates and times ISO 8601, bytes their UTF-8 text or else hexadecimal digits;
    null, NaN and NaT are `MISSING`.

    Raises:
        CodeError: The value is a container (list, dict, array), which names no category.
    """
    if type(value) is str:
        return value
    text = _text(value)
    return MISSING if text is None else text


@singledispatch
def _text(value: object) -> str | None:
    """Text of a value, None when it is missing; unknown types speak for themselves by `str`."""
    if value is None or type(value).__name__ in {"NAType", "NaTType"}:
        return None
    if isinstance(value, (list, tuple, dict, set, frozenset, np.ndarray)):
        message = f"a {type(value).__name__} ({value!r:.60}) cannot be a code; give single values"
        raise CodeError(message)
    return str(value)


@_text.register
def _(value: str) -> str:
    return str.__str__(value)


@_text.register(bool)
@_text.register(np.bool_)
def _(value: object) -> str:
    return "true" if value else "false"


@_text.register(int)
@_text.register(np.integer)
def _(value: Any) -> str:
    return str(int(value))


@_text.register(float)
@_text.register(np.floating)
def _(value: Any) -> str | None:
    number = float(value)
    if math.isnan(number):
        return None
    return str(int(number)) if number.is_integer() else repr(number)


@_text.register
def _(value: Decimal) -> str | None:
    if value.is_nan():
        return None
    text = format(value, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


@_text.register(bytes)
@_text.register(bytearray)
@_text.register(memoryview)
def _(value: bytes | bytearray | memoryview) -> str:
    try:
        return bytes(value).decode("utf-8")
    except UnicodeDecodeError:
        return bytes(value).hex()


@_text.register
def _(value: enum.Enum) -> str | None:
    return _text(value.value)


@_text.register(date)
@_text.register(time)
def _(value: date | time) -> str | None:
    is_not_a_time = value != value  # pandas' NaT is a datetime unequal to itself
    return None if is_not_a_time else value.isoformat()


@_text.register
def _(value: np.datetime64) -> str | None:
    if np.isnat(value):
        return None
    exact = value.astype("datetime64[us]")
    moment = exact.item() if exact == value else None
    has_clock = np.datetime_data(value.dtype)[0] not in {"Y", "M", "W", "D"}
    return moment.isoformat() if has_clock and isinstance(moment, datetime) else str(value)


def factorise(values: object) -> tuple[list[str], Whole32]:
    """Distinct canonical codes and the position of each value among them, -1 where missing.

    Args:
        values: A column, a NumPy or Arrow array, a pandas or polars series, or any sequence.

    Returns:
        The codes that occur, in order of first appearance (of the categories for a categorical
        array), and positions into them. Values of one canonical text share one code.

    Cost: one dictionary encoding of the array; Python touches the distinct values only. Sequences
    of mixed types are read value by value.
    """
    column = _as_column(values)
    new_position: dict[str, int] = {}
    if column is None:
        texts = map(_text, values)  # type: ignore[call-overload]  # it holds several types
        found = [-1 if t is None else new_position.setdefault(t, len(new_position)) for t in texts]
        return list(new_position), np.array(found, dtype=np.int32)
    dictionary, positions = _dictionary(column)
    used = np.bincount(positions + 1, minlength=len(dictionary) + 1)[1:] > 0
    remap = np.full(len(dictionary) + 1, -1, dtype=np.int32)
    for old in np.flatnonzero(used).tolist():
        text = _text(dictionary[old])
        if text is not None:
            remap[old] = new_position.setdefault(text, len(new_position))
    return list(new_position), remap[positions]


def canonical_array(values: object) -> tuple[list[str], Whole32]:
    """Distinct canonical codes, `MISSING` last if it occurs, and the position of each value.

    Args:
        values: As in `factorise`.

    Raises:
        CodeError: A real value reads `MISSING` beside nulls; the two would be one category.
    """
    codes, positions = factorise(values)
    if not (positions < 0).any():
        return codes, positions
    if MISSING in codes:
        raise CodeError(
            f"the text {MISSING!r} occurs beside missing values and would be counted with them; "
            "recode one of the two"
        )
    return [*codes, MISSING], np.where(positions < 0, np.int32(len(codes)), positions)


def _as_column(values: Any) -> Column | None:
    """A column of the values, or None when one would change or refuse them."""
    try:
        return Column(values)
    except (ColumnError, TypeError):
        return None


def _dictionary(column: Column) -> tuple[list[object], Whole32]:
    """Distinct values as Python objects and positions into them, -1 where null."""
    try:
        positions, known = column.encoded()
    except ColumnError:
        message = f"values of type {column.kind} cannot be codes; give single values"
        raise CodeError(message) from None
    if known.kind.startswith("timestamp") and known.kind.endswith("9)"):
        try:
            known = known.cast(known.kind.replace("9)", "6)"))
        except ColumnError:  # datetime holds no nanoseconds; NumPy's times do
            return list(known.to_numpy()), positions
    return known.to_pylist(), positions


def natural_order(codes: Iterable[str]) -> list[str]:
    """Codes as people list them: ``2`` before ``10``, ``5-9`` before ``10-14``, `MISSING` last.

    Numbers inside a code compare by value and stand before text; text compares by code point.
    """
    return sorted(codes, key=natural_key)


def natural_key(code: str) -> tuple[object, ...]:
    """Sort key of `natural_order`; codes of equal numbers (``1``, ``01``) sort by their text."""
    if code == MISSING:
        return (True, (), code)
    if _NUMBER.fullmatch(code):
        return (False, ((0, Decimal(code), ""),), code)
    parts = _PARTS.findall(code)
    key = tuple((0, Decimal(digits), "") if digits else (1, 0, text) for digits, text in parts)
    return (False, key, code)


def nearest_codes(code: str, known: Sequence[str], limit: int = 2) -> list[str]:
    """Known codes most alike, nearest in natural order first among equally like ones.

    Cost: at most a few thousand comparisons; in longer lists only the neighbours are compared.
    """
    ordered = natural_order(known)
    place = bisect_left(ordered, natural_key(code), key=natural_key)
    first = max(0, place - _COMPARED // 2)
    scored = []
    for position, other in enumerate(ordered[first : first + _COMPARED], start=first):
        likeness = difflib.SequenceMatcher(None, code.casefold(), other.casefold()).ratio()
        if likeness >= 0.5:
            distance = place - position if position < place else position - place + 1
            scored.append((-likeness, distance, other))
    return [other for _, _, other in sorted(scored)[:limit]]
