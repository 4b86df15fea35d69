"""A query as a small file that can be read, edited and replayed."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.errors import DataError, UnknownNameError
from discreet.serve.query import BY_VARIABLE, LISTS, Query
from discreet.serve.web.links import Addresses

VERSION = 1
_ENTRIES = ("version", "url", "dataset", "edition", "title", "query")


@dataclass(frozen=True)
class SavedQuery:
    """A table by what was asked, where, and of which edition.

    Attributes:
      url: The address of the site; empty where it is not known.
      dataset: The data set's name.
      edition: The edition that was asked.
      title: The data set's name for readers.
      query: What was asked.
    """

    url: str
    dataset: str
    edition: str
    title: str
    query: Query

    @property
    def text(self) -> str:
        """The file's content."""
        import tomli_w

        head = {"version": VERSION, "url": self.url, "dataset": self.dataset}
        said = {"edition": self.edition, "title": self.title}
        comment = "# A table to be made again: discreet replay THIS-FILE --out table.xlsx\n"
        return comment + tomli_w.dumps({**head, **said, "query": nested(self.query)})

    @classmethod
    def parse(cls, text: str, where: str = "the saved query") -> SavedQuery:
        """The inverse of `text`; entries that mean nothing are an error."""
        try:
            found = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise DataError(f"{where} is not valid TOML: {error}.") from error
        for entry in found:
            if entry not in _ENTRIES:
                raise UnknownNameError(f"entry of {where}", entry, _ENTRIES)
        if found.get("version") != VERSION or not found.get("dataset"):
            raise DataError(f"{where} needs version = {VERSION} and the name of a dataset.")
        query = Query.parse(list(_flat(found.get("query", {}), where)))
        given = {name: str(found.get(name, "")) for name in ("url", "edition", "title")}
        return cls(dataset=str(found["dataset"]), query=query, **given)

    @classmethod
    def read(cls, path: str | Path) -> SavedQuery:
        """A saved query from its file."""
        try:
            return cls.parse(Path(path).read_text(encoding="utf-8"), str(path))
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror}.") from error

    def address(self, url: str, form: str) -> str:
        """Where a site gives the table in a format."""
        return Addresses(url.rstrip("/"), self.dataset).program(self.query, form)


def nested(query: Query) -> dict[str, Any]:
    """The parameters of a query by their names; those of variables in sections of their own."""
    found: dict[str, Any] = {}
    for name, value in query.parameters:
        kind, _, variable = name.partition(".")
        if kind in BY_VARIABLE and variable:
            found.setdefault(kind, {}).setdefault(variable, []).append(value)
        elif name in LISTS:
            found.setdefault(name, []).append(value)
        else:
            found[name] = value
    return found


def _flat(given: Any, where: str) -> Iterator[tuple[str, str]]:
    if not isinstance(given, Mapping):
        raise DataError(f"[query] of {where} must be a section.")
    for name, value in given.items():
        if isinstance(value, Mapping):
            for variable, codes in value.items():
                yield from _texts(f"{name}.{variable}", codes, where)
        else:
            yield from _texts(name, value, where)


def _texts(name: str, value: Any, where: str) -> Iterator[tuple[str, str]]:
    values = value if isinstance(value, list) else [value]
    for one in values:
        if not isinstance(one, str):
            raise DataError(f"{name} in [query] of {where} must hold texts, got {one!r}.")
        yield name, one
