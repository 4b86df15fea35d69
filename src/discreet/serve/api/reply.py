"""What answers to programs have in common: how long they keep, in which language, from where."""

from __future__ import annotations

import re
from typing import Any

from fastapi import Request
from fastapi.responses import Response

from discreet.release.formats.json import json_bytes
from discreet.serve.refusals import Refusal
from discreet.serve.site.site import current_site
from discreet.serve.web.texts import Texts, texts

JSON = "application/json"
_SECONDS = 60
_LOCAL = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?")


def reply(
    request: Request,
    content: bytes,
    media_type: str,
    headers: dict[str, str] | None = None,
    status: int = 200,
) -> Response:
    """An answer; whether it changed since is told by the layer that keeps answers."""
    told = {"Cache-Control": "private, no-cache", "Vary": "Authorization, Cookie"}
    if _is_for_anybody(request):
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


def _is_for_anybody(request: Request) -> bool:
    """Whether everybody would get this answer: a visitor without an account has got it."""
    is_open = current_site(request).config.accounts.who == "open"
    return is_open and not request.state.visitor.is_known
