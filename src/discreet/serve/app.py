"""The application: pages, interfaces for programs, the office, and the OpenAPI document."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.responses import Response

from discreet import __version__
from discreet.serve.api import files, pxweb, v1
from discreet.serve.api.reply import base_of, json_reply
from discreet.serve.guard import guard
from discreet.serve.office import admin
from discreet.serve.office.middleware import OfficeMiddleware
from discreet.serve.office.office import Office
from discreet.serve.response_cache import ResponseCache
from discreet.serve.site.site import Site, SiteHolder, as_holder, current_site
from discreet.serve.web import pages
from discreet.serve.web.frame import page

_router = APIRouter()
_API_DESCRIPTION = (
    "Protected tables for programs. Tables are asked for by the same parameters as in the address "
    "of a table's page. Every error has one shape; its offers are tables that would be answered."
)


def make_app(site: Site | SiteHolder, office: Office | None = None) -> FastAPI:
    """The application that answers for a site.

    Args:
      site: The site, or a holder that can read it again.
      office: Accounts and the audit log; without it anybody may ask and nothing is written down.
    """
    holder, office = as_holder(site), office or Office()
    app = FastAPI(
        title=holder.current.title,
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,  # a redirect would repeat whatever host the visitor names
    )
    app.state.site, app.state.office = holder, office
    office.watch(holder)
    pages.mount(app)
    for router in (_router, files.router, pages.router, v1.router, pxweb.router, admin.router):
        app.include_router(router)
    app.add_middleware(ResponseCache)
    app.add_middleware(OfficeMiddleware, office=office)
    guard(app)
    return app


@_router.get("/health")
def health() -> dict[str, str]:
    """Whether the table builder answers."""
    return {"status": "ok", "version": __version__}


@_router.get("/api/openapi.json", include_in_schema=False)
def openapi(request: Request) -> Response:
    """The OpenAPI document."""
    servers = [{"url": base_of(request) or "/"}]
    found = openapi_document(current_site(request).title)
    return json_reply(request, {**found, "servers": servers})


@_router.get("/api/", include_in_schema=False)
def reference(request: Request) -> Response:
    """A page for people, drawn from the document."""
    found = openapi_document(current_site(request).title)
    return page(request, "reference.html", document=found, groups=_operations_by_tag(found))


@functools.lru_cache(maxsize=8)
def openapi_document(title: str) -> dict[str, Any]:
    """The document of a site, but for its address."""
    routes, description = [*v1.router.routes, *pxweb.router.routes], _API_DESCRIPTION
    return get_openapi(title=title, version=__version__, description=description, routes=routes)


def _operations_by_tag(found: Mapping[str, Any]) -> dict[str, list[tuple[str, str, Any]]]:
    """The operations by their tag, each with its path and method."""
    groups: dict[str, list[tuple[str, str, Any]]] = {}
    for path, methods in found["paths"].items():
        for method, operation in methods.items():
            tag = operation.get("tags", ["Other"])[0]
            groups.setdefault(tag, []).append((path, method.upper(), operation))
    return groups
