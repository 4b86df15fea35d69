"""The OpenAPI document of the interfaces for programs, and a page drawn from it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request
from fastapi.openapi.utils import get_openapi
from fastapi.responses import Response

from discreet import __version__
from discreet.serve.api import pxweb, v1
from discreet.serve.api.reply import base_of, json_reply
from discreet.serve.site.site import current_site
from discreet.serve.web.frame import page

router = APIRouter()
_ABOUT = (
    "Protected tables for programs. Tables are asked for by the same parameters as in the address "
    "of a table's page. Every error has one shape; its offers are tables that would be answered."
)


@router.get("/api/openapi.json", include_in_schema=False)
def openapi(request: Request) -> Response:
    """The OpenAPI document."""
    title = current_site(request).title
    return json_reply(request, {**document(title), "servers": [{"url": base_of(request) or "/"}]})


@router.get("/api/", include_in_schema=False)
def reference(request: Request) -> Response:
    """A page for people, drawn from the document."""
    found = document(current_site(request).title)
    return page(request, "reference.html", document=found, groups=_groups(found))


@functools.lru_cache(maxsize=8)
def document(title: str) -> dict[str, Any]:
    """The document of a site, but for its address."""
    routes = [*v1.router.routes, *pxweb.router.routes]
    return get_openapi(title=title, version=__version__, description=_ABOUT, routes=routes)


def _groups(found: Mapping[str, Any]) -> dict[str, list[tuple[str, str, Mapping[str, Any]]]]:
    """The operations by their tag, each with its path and method."""
    groups: dict[str, list[tuple[str, str, Mapping[str, Any]]]] = {}
    for path, methods in found["paths"].items():
        for method, operation in methods.items():
            tag = operation.get("tags", ["Other"])[0]
            groups.setdefault(tag, []).append((path, method.upper(), operation))
    return groups
