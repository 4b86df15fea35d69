"""Ways to ask for a table again: a query as a small file, its replay, and program text."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from discreet.errors import DataError, ParameterError, check_known
from discreet.release.formats.write import Writer
from discreet.serve.answer import Answer
from discreet.serve.api.reply import TableDescriber, file_cube
from discreet.serve.query import BY_VARIABLE, LISTS, Query
from discreet.serve.site.site import Site
from discreet.serve.web.frame import Addresses

VERSION = 1
TOKEN = "DISCREET_TOKEN"
"""The variable of the environment from which printed programs read a token."""
_ENTRIES = ("version", "url", "dataset", "edition", "title", "query")
_SECONDS = 120


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
        return comment + tomli_w.dumps({**head, **said, "query": nest_parameters(self.query)})

    @classmethod
    def parse(cls, text: str, where: str = "the saved query") -> SavedQuery:
        """The inverse of `text`; entries that mean nothing are an error."""
        try:
            found = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise DataError(f"{where} is not valid TOML: {error}.") from error
        check_known(f"entry of {where}", found, _ENTRIES)
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


def nest_parameters(query: Query) -> dict[str, Any]:
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


def replay_by_url(saved: SavedQuery, url: str, writer: Writer, token: str = "") -> bytes:
    """The table in a format, as a site that answers gives it.

    Args:
      saved: The query.
      url: The address of the site.
      writer: The format.
      token: What a site with accounts knows its visitor by.
    """
    if not url.startswith(("http://", "https://")):
        raise ParameterError(
            f"the address of a site begins with https:// or http://, got {url!r}. Name it with "
            "--url, or a site's file with --site."
        )
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    asked = Request(saved.address(url, writer.name), headers=headers)
    try:
        with urlopen(asked, timeout=_SECONDS) as answer:
            content: bytes = answer.read()
    except HTTPError as error:
        raise DataError(f"{url} refused the query: {_reason(error)}") from error
    except (URLError, OSError) as error:
        raise DataError(f"{url} does not answer: {getattr(error, 'reason', error)}.") from error
    return content


def replay_by_site(saved: SavedQuery, site: Site, writer: Writer, file: str = "") -> bytes:
    """The table in a format, for a file of this name, made by a site in this process."""
    language = site.config.languages[0]
    answer = site.in_language(language).dataset(saved.dataset).answer(saved.query)
    base, said = site.config.address.rstrip("/") or saved.url, site.language(language).texts
    options = TableDescriber(site, base, said).options(answer)
    return writer.write(file_cube(answer), replace(options, file=file))


def snippets_of(describer: TableDescriber, answer: Answer) -> list[tuple[str, str]]:
    """For each language its name and a text that returns the table.

    On a site with accounts the visitor's token is read from the environment, since program texts
    are shared and kept.
    """
    address = Addresses(describer.base, answer.dataset.name).program(answer.query, "csv")
    names = [asked.name for asked in answer.question.shown]
    with_token = describer.site.config.accounts.who == "tokens"
    header = f' --header "Authorization: Bearer ${TOKEN}"' if with_token else ""
    return [
        ("Python", _python(address, names, with_token)),
        ("R", _r(address, names, with_token)),
        ("curl", f"curl --fail --silent --compressed{header} --output table.csv '{address}'\n"),
    ]


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


def _reason(error: HTTPError) -> str:
    try:
        told = json.loads(error.read())["error"]
        return f"{told['message']} {told['what_is_allowed']}"
    except (ValueError, KeyError, TypeError):
        return f"status {error.code}."


def _python(address: str, names: list[str], with_token: bool) -> str:
    codes = ", ".join(f"{json.dumps(name)}: str" for name in names)
    read = 'table = pd.read_csv(url, dtype=codes, keep_default_na=False, na_values=[""]'
    if with_token:
        token = f'"Authorization": f"Bearer {{os.environ[\'{TOKEN}\']}}"'
        read += f",\n                    storage_options={{{token}}}"
    return (
        f"{'import os' + chr(10) * 2 if with_token else ''}import pandas as pd\n\n"
        "# Codes are texts, also those that look like numbers or like a missing value.\n"
        f"url = {json.dumps(address)}\n"
        f"codes = {{{codes}}}\n"
        f"{read})\n"
    )


def _r(address: str, names: list[str], with_token: bool) -> str:
    codes = ", ".join(f'{json.dumps(name)} = "character"' for name in names)
    url = json.dumps(address)
    if with_token:
        token = f'c(Authorization = paste("Bearer", Sys.getenv("{TOKEN}")))'
        url = f"url({url},\n           headers = {token})"
    return (
        "# Codes are texts, also those that look like numbers or like a missing value.\n"
        f"url <- {url}\n"
        f'table <- read.csv(url, colClasses = c({codes}), na.strings = "",\n'
        '                  check.names = FALSE, encoding = "UTF-8")\n'
    )
