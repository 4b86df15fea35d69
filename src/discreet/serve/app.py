"""The table builder's routes: each page has a JSON twin."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles

from discreet import __version__
from discreet.release.export import to_csv
from discreet.serve.guard import LONGEST_QUERY, guard
from discreet.serve.pages import home_page, table_page
from discreet.serve.payload import limits_json, table_json
from discreet.serve.refusals import Refusal
from discreet.serve.request import TableRequest
from discreet.serve.settings import Settings
from discreet.serve.source import Source

_STATIC = Path(__file__).parent / "static"
_PARAMETERS = ("rows", "columns")
_router = APIRouter()


@dataclass(frozen=True)
class Site:
    """What an application answers for."""

    source: Source
    settings: Settings


def make_app(source: Source, settings: Settings | None = None) -> FastAPI:
    """The application that answers for one source."""
    chosen = settings or Settings()
    app = FastAPI(
        title=chosen.title,
        version=__version__,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # a redirect would repeat whatever host the visitor names
    )
    app.state.site = Site(source, chosen)
    app.mount("/static", StaticFiles(directory=_STATIC), name="static")
    app.include_router(_router)
    guard(app, chosen)
    return app


def _site(request: Request) -> Site:
    site: Site = request.app.state.site
    return site


def _asked(
    request: Request,
    site: Annotated[Site, Depends(_site)],
    rows: Annotated[list[str] | None, Query(description="Variables in rows.")] = None,
    columns: Annotated[list[str] | None, Query(description="Variables in columns.")] = None,
) -> TableRequest:
    for name in request.query_params:
        if name not in _PARAMETERS:
            message = f"There is no parameter {name!r}."
            raise Refusal("unknown_parameter", message, "Parameters: rows and columns.")
    return TableRequest.checked(site.source, site.settings, rows or [], columns or [])


_Site = Annotated[Site, Depends(_site)]
_Asked = Annotated[TableRequest, Depends(_asked)]


@_router.get("/", response_class=HTMLResponse)
def home(request: Request, site: _Site) -> str:
    """The front page, where a table is put together."""
    return home_page(site.source, site.settings, _root(request))


@_router.get("/table", response_class=HTMLResponse)
def table(request: Request, site: _Site, asked: _Asked) -> str:
    """A protected table with its statement."""
    release = site.source.release(asked.margins)
    return table_page(release, asked, site.source, site.settings, _root(request))


@_router.get("/table.json")
def table_as_json(site: _Site, asked: _Asked) -> JSONResponse:
    """The same table for programs."""
    return JSONResponse(table_json(site.source.release(asked.margins), asked))


@_router.get("/table.csv")
def table_as_csv(site: _Site, asked: _Asked) -> Response:
    """The same table as a file, a row per cell."""
    content = to_csv(site.source.release(asked.margins))
    headers = {"Content-Disposition": f'attachment; filename="{_file_name(asked)}"'}
    return Response(content, media_type="text/csv", headers=headers)


@_router.get("/limits.json")
def limits(site: _Site) -> dict[str, Any]:
    """What may be asked."""
    return limits_json(site.source, site.settings, LONGEST_QUERY)


@_router.get("/health")
def health() -> dict[str, str]:
    """Whether the table builder answers."""
    return {"status": "ok", "version": __version__}


def _root(request: Request) -> str:
    root: str = request.scope.get("root_path", "")
    return root


def _file_name(asked: TableRequest) -> str:
    names = "-".join(a.detail.name for a in asked.in_public_order)
    return f"{re.sub(r'[^A-Za-z0-9_]+', '-', names).strip('-') or 'table'}.csv"
