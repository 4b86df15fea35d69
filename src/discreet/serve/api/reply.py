"""What answers to programs have in common: how long they keep, language, address, and pages."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar
from urllib.parse import urlencode

from fastapi import Query, Request
from fastapi.responses import Response

from discreet.release.formats.json import json_bytes
from discreet.serve.refusals import Refusal
from discreet.serve.site.site import current_site
from discreet.serve.web.texts import Texts, texts

JSON = "application/json"
_SECONDS = 60
_LOCAL = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?")
T = TypeVar("T")
LARGEST_PAGE = 100_000
PageNumber = Annotated[int, Query(ge=1, le=1_000_000, description="Which page; the first is 1.")]
PageSize = Annotated[int, Query(ge=1, le=LARGEST_PAGE, description="Most items on a page.")]


def reply(
    request: Request,
    content: bytes,
    media_type: str,
    headers: dict[str, str] | None = None,
    status: int = 200,
) -> Response:
    """An answer; whether it changed since is told by the cache of responses."""
    told = {"Cache-Control": "private, no-cache", "Vary": "Authorization, Cookie"}
    is_open = current_site(request).config.accounts.who == "open"
    if is_open and not request.state.visitor.is_known:  # everybody would get the same
        told["Cache-Control"] = f"public, max-age={_SECONDS}"
        told["Access-Control-Allow-Origin"] = "*"  # pages of others may show what anybody may see
    return Response(content, status, {**told, **(headers or {})}, media_type)


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
    return texts(wish)


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
