"""Sections of a TOML file as dataclasses: every entry is known and of the right type."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import field, fields
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from discreet.errors import ParameterError, check_known

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")


def setting(default: Any, help: str) -> Any:
    """A field of a dataclass that says what it is for, on the command line and in the docs."""
    return field(default=default, metadata={"help": help})


def section(cls: type[T], given: Any, where: str, **made: Any) -> T:
    """An object of a dataclass from a section; unknown entries are an error, never ignored.

    Args:
      cls: The dataclass; its fields are the entries, with their types.
      given: The section as TOML gives it.
      where: What the section is called in errors, such as `[datasets.census]`.
      **made: Fields that are no entries of the section.
    """
    hints = get_type_hints(cls)
    known = {f.name: hints[f.name] for f in fields(cls) if f.init and f.name not in made}
    check_known(f"entry of {where}", require_section(given, where), known)
    read = {
        name: _convert(value, known[name], f"{name} of {where}") for name, value in given.items()
    }
    return cls(**read, **made)


def require_section(given: Any, where: str) -> Mapping[str, Any]:
    """What TOML gives as a section, or an error that names it."""
    if not isinstance(given, Mapping):
        raise ParameterError(f"{where} must be a section of entries, got {given!r}.")
    return given


def _convert(value: Any, hint: Any, what: str) -> Any:
    """The value as the hint wants it: lists become tuples, whole numbers floats."""
    options = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    for option in options:
        plain = get_origin(option) or option
        if plain is Literal and value in get_args(option):
            return value
        if plain is tuple and isinstance(value, list):
            return tuple(_convert(v, get_args(option)[0], f"an item of {what}") for v in value)
        if plain is float and type(value) is int:
            return float(value)
        if plain is Any or _is_plain(value, plain):
            return value
    wanted = " or ".join(_word(option) for option in options if option is not type(None))
    raise ParameterError(f"{what} must be {wanted}, got {value!r}.")


def _is_plain(value: Any, plain: Any) -> bool:
    if isinstance(value, bool):
        return plain is bool
    if value != value:  # no limit holds against nan, so it would switch a rule off
        return False
    return isinstance(plain, type) and isinstance(value, plain)


def _word(option: Any) -> str:
    plain = get_origin(option) or option
    if plain is Literal:
        return f"one of {', '.join(get_args(option))}"
    words = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}
    words |= {tuple: "a list", Mapping: "a section"}
    return words.get(plain, getattr(plain, "__name__", str(plain)))
