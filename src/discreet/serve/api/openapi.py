"""The OpenAPI document of the interfaces for programs, and a page drawn from it."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
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


def _groups(found: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The operations by their tag, as the page shows them."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, method, operation in _operations(found):
        shown = {
            "path": path,
            "method": method.upper(),
            "summary": operation["summary"],
            "description": operation.get("description", ""),
            "parameters": [_parameter(given) for given in operation.get("parameters", [])],
            "answers": [_answer(status, a) for status, a in operation["responses"].items()],
        }
        groups.setdefault(operation.get("tags", ["Other"])[0], []).append(shown)
    return groups


def _operations(found: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for path, methods in found["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def _parameter(given: Mapping[str, Any]) -> dict[str, Any]:
    schema = given.get("schema", {})
    said = [given.get("description", f"In the {given['in']}.")]
    if "enum" in schema:
        said.append(f"One of {', '.join(schema['enum'])}.")
    if schema.get("default") is not None:
        said.append(f"Default: {schema['default']}.")
    is_required = given.get("required", False)
    return {"name": given["name"], "is_required": is_required, "said": " ".join(said)}


def _answer(status: str, answer: Mapping[str, Any]) -> dict[str, Any]:
    content = answer.get("content", {})
    schemas = [media.get("schema", {}).get("$ref", "") for media in content.values()]
    names = [ref.rpartition("/")[2] for ref in schemas if ref]
    return {
        "status": status,
        "description": answer["description"],
        "media": list(content),
        "schema": names[0] if names else "",
    }
