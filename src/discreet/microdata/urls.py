"""Addresses of databases: where the server is, and which table is meant."""

from __future__ import annotations

import re

from discreet.errors import ParameterError

TABLE_MARK = "::"
_SCHEME = re.compile(r"([a-z]+)://")
# A user with a password and a host in brackets may hold the mark themselves.
_MARKED = re.compile(r"(?s)((?:\w+://)?(?:[^/@]*@)?(?:\[[^\]]*\])?.*?)(?:::(.*))?")


def scheme_of(source: str) -> str | None:
    """What stands before `://`, if anything does."""
    found = _SCHEME.match(source)
    return found and found[1]


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


def split_schema(name: str) -> tuple[str | None, str]:
    """The schema and the name of a table to be made: `schema.table`, or a name alone."""
    schema, dot, table = name.partition(".")
    return (schema, table) if dot else (None, name)
