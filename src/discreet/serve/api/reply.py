"""What answers have in common: how long they keep, language, address, pages, files of tables."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi import Query as Parameter
from fastapi.responses import Response

from discreet.release.cube import Cube
from discreet.release.formats.json import json_bytes
from discreet.release.formats.write import (
    LABELS,
    LAYOUTS,
    About,
    Labels,
    Layout,
    Options,
    Writer,
    writers,
)
from discreet.serve.answer import Answer
from discreet.serve.query import Query
from discreet.serve.refusals import Refusal, one_of
from discreet.serve.site.site import Site, current_site
from discreet.serve.web.frame import Addresses
from discreet.serve.web.texts import Texts
from discreet.serve.web.wording import caption_of, citation_of, notes_of, populations_of

JSON = "application/json"
_SECONDS = 60
_LOCAL = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?")
T = TypeVar("T")
Word = TypeVar("Word", bound=str)
LARGEST_PAGE = 100_000
PageNumber = Annotated[int, Parameter(ge=1, le=10**6, description="Which page; the first is 1.")]
PageSize = Annotated[int, Parameter(ge=1, le=LARGEST_PAGE, description="Most items on a page.")]


def reply(
    request: Request,
    content: bytes,
    media_type: str,
    headers: dict[str, str] | None = None,
    status: int = 200,
) -> Response:
    """An answer; whether it changed since is told by the cache of responses."""
    told = {"Cache-Control": "private, no-cache", "Vary": "Authorization, Cookie"}
    shared = shared_headers(request)
    if shared:  # everybody would get the same
        told["Cache-Control"] = f"public, max-age={_SECONDS}"
    return Response(content, status, {**told, **shared, **(headers or {})}, media_type)


def shared_headers(request: Request) -> dict[str, str]:
    """What lets pages of others show what anybody may see; nothing where visitors are known."""
    is_open = current_site(request).config.accounts.who == "open"
    visitor = request.state.visitor
    is_known = visitor is not None and visitor.is_known
    return {"Access-Control-Allow-Origin": "*"} if is_open and not is_known else {}


def preflight(request: Request) -> Response:
    """What a browser asks before a page of others may send a selection, where anybody may ask."""
    shared = shared_headers(request)
    allowed = {
        "Access-Control-Allow-Methods": "GET, POST",
        "Access-Control-Allow-Headers": "Content-Type",
        "Access-Control-Max-Age": "86400",
    }
    return Response(status_code=204, headers={**shared, **allowed} if shared else {})


def json_reply(
    request: Request, found: dict[str, Any], headers: dict[str, str] | None = None
) -> Response:
    """Plain data as an answer."""
    return reply(request, json_bytes(found), JSON, headers)


def texts_of(request: Request) -> Texts:
    """The texts of the language that is asked for, the site's first one by default."""
    offered = current_site(request).config.languages
    wish = request.query_params.get("lang") or offered[0]
    if wish not in offered:
        allowed = f"Languages: {', '.join(offered)}."
        raise Refusal("unknown_language", f"There is no language {wish!r}.", allowed)
    return current_site(request).language(wish).texts


def site_of(request: Request) -> Site:
    """The site with its labels in the language that is asked for."""
    return current_site(request).in_language(texts_of(request).code)


def base_of(request: Request) -> str:
    """The address of the site, without a slash at its end.

    It is what the site's file says. Without it, a visitor on the same machine gets the address that
    was asked, and others the path alone: a name that a visitor sends proves nothing.
    """
    site = current_site(request)
    root: str = request.scope.get("root_path", "")
    if site.config.address:
        return site.config.address.rstrip("/")
    host = request.headers.get("host", "")
    return f"{request.url.scheme}://{host}{root}" if _LOCAL.fullmatch(host) else root


@dataclass(frozen=True)
class ListPage:
    """One page of a list.

    Attributes:
      number: Its number, from 1.
      size: Most items on a page.
      items: Items on all pages.
    """

    number: int
    size: int
    items: int

    @property
    def pages(self) -> int:
        """The number of pages; an empty list has one."""
        return max(1, math.ceil(self.items / self.size))

    def of(self, listed: Sequence[T]) -> Sequence[T]:
        """The items of the page."""
        start = (self.number - 1) * self.size
        return listed[start : start + self.size]

    def to_json(self) -> dict[str, int]:
        """Where the page stands, as plain data."""
        return {**vars(self), "pages": self.pages}

    def links(self, request: Request, name: str = "page") -> dict[str, Any]:
        """The addresses of this page and of those beside it, if there are any."""
        others = [(k, v) for k, v in request.query_params.multi_items() if k != name]
        path = f"{base_of(request)}{request.scope['state']['path']}"
        last = max(self.pages, self.number)
        beside = {"self": self.number, "next": self.number + 1, "previous": self.number - 1}
        return {
            rel: f"{path}?{urlencode([*others, (name, str(k))])}" if 1 <= k <= last else None
            for rel, k in beside.items()
        }


_SHARES = {"row": "row_percent", "column": "column_percent", "total": "total_percent"}
router = APIRouter()
_NOT_OF_THE_QUERY = ("layout", "labels", "lang", "format", "page", "page_size")


@dataclass(frozen=True, eq=False)
class TableDescriber:
    """What readers are told of the tables of a site, at an address and in a language.

    Attributes:
      site: The site.
      base: Its address, without a slash at its end.
      texts: The texts of the language.
    """

    site: Site
    base: str
    texts: Texts

    @classmethod
    def of(cls, request: Request) -> TableDescriber:
        """That of the site and the language of a request."""
        texts = texts_of(request)
        return cls(current_site(request).in_language(texts.code), base_of(request), texts)

    def options(
        self, answer: Answer, layout: Layout | None = None, labels: Labels | None = None
    ) -> Options:
        """How an answer is written to a file."""
        measure = _SHARES.get(answer.query.view.show, "")
        return Options(
            layout,
            labels,
            answer.columns,
            measure,
            time=answer.dataset.time,
            about=self.about(answer),
        )

    def about(self, answer: Answer) -> About:
        """What readers are told of a table beside its figures."""
        dataset = answer.dataset
        footnotes = self.texts.notes.footnotes
        notes = [n for n in notes_of(answer, self.texts) if n.title != footnotes]
        return About(
            title=", ".join([caption_of(answer, self.texts), *populations_of(answer)]),
            name=dataset.name,
            source=dataset.about.source or self.site.title,
            licence=dataset.about.licence,
            contact=dataset.about.contact or self.site.config.contact,
            edition=dataset.edition,
            updated=dataset.updated,
            address=self.address(answer),
            citation=self.citation(answer),
            notes=tuple(said.text for note in notes for said in note.sentences),
            footnotes=dataset.about.footnotes,
            language=self.texts.code,
        )

    def address(self, answer: Answer) -> str:
        """The page of a table."""
        return Addresses(self.base, answer.dataset.name).table(answer.query)

    def citation(self, answer: Answer) -> str:
        """How a table is cited today."""
        day = datetime.now(UTC).date()
        return citation_of(answer, self.site.title, self.address(answer), day, self.texts)


def file_cube(answer: Answer) -> Cube:
    """The figures that a file holds: as the view shows them, with every category of layers."""
    cube = answer.shown.with_labels([asked.variable.label for asked in answer.question.shown])
    if answer.query.view.totals:
        return cube
    for name in (*answer.rows, *answer.columns):
        codes = [entry.code for entry in cube.axis(name).entries if not entry.is_total]
        cube = cube.select(name, codes) if codes else cube
    return cube


@router.get("/d/{dataset}/table.{ending}", include_in_schema=False)
def download(request: Request, dataset: str, ending: str) -> Response:
    """The table of an address as a file to keep."""
    answer = site_of(request).dataset(dataset).answer(query_of(request))
    known = {writer.ending: writer for writer in writers()}
    if f".{ending}" not in known:
        message = f"There is no format .{ending}."
        raise Refusal("unknown_format", message, f"Endings: {', '.join(known)}.", 404)
    name = f"{dataset}-{'-'.join(answer.rows + answer.columns)}"
    safe = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")
    file = f"{safe}.{ending}"
    headers = {"Content-Disposition": f'attachment; filename="{file}"'}
    return file_reply(request, answer, known[f".{ending}"], file, headers)


def file_reply(
    request: Request, answer: Answer, writer: Writer, file: str, headers: dict[str, str]
) -> Response:
    """An answer in a format, as a file of this name or address."""
    layout, labels = _wish(request, "layout", LAYOUTS), _wish(request, "labels", LABELS)
    options = replace(TableDescriber.of(request).options(answer, layout, labels), file=file)
    return reply(request, writer.write(file_cube(answer), options), writer.media_type, headers)


def query_of(request: Request) -> Query:
    """The query of an address, without what belongs to files and pages of results."""
    given = request.query_params.multi_items()
    return Query.parse((k, v) for k, v in given if k not in _NOT_OF_THE_QUERY)


def format_named(name: str) -> Writer:
    """The writer of a format, or a refusal that names those there are."""
    known = {writer.name: writer for writer in writers()}
    if name not in known:
        message = f"There is no format {name!r}."
        raise Refusal("unknown_format", message, f"Formats: {', '.join(known)}.", 404)
    return known[name]


def _wish(request: Request, name: str, allowed: Sequence[Word]) -> Word | None:
    """How a file is laid out, where the address says so."""
    wish = request.query_params.get(name)
    return None if wish is None else one_of(name, wish, allowed)
