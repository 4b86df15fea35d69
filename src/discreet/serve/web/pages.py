"""The pages of the table builder."""

from __future__ import annotations

from html import escape
from pathlib import Path

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import HTMLResponse
from fastapi.staticfiles import StaticFiles

from discreet.serve.query import Query
from discreet.serve.refusals import Refusal
from discreet.serve.site.site import current_site

router = APIRouter()
_STATIC = Path(__file__).parent / "static"


def mount(app: FastAPI) -> None:
    """Serve the files that pages need."""
    app.mount("/static", StaticFiles(directory=_STATIC), name="static")


def error_page(request: Request, refusal: Refusal) -> str:
    """What went wrong and what would be allowed."""
    return f"<h1>{escape(refusal.public())}</h1><p>{escape(refusal.allowed)}</p>"


@router.get("/", response_class=HTMLResponse)
def catalogue(request: Request) -> str:
    """The data sets of the site."""
    site = current_site(request)
    return "".join(f"<h2>{escape(d.title)}</h2>" for d in site.datasets.values())


@router.get("/d/{dataset}/table", response_class=HTMLResponse)
def table(request: Request, dataset: str) -> str:
    """A table."""
    query = Query.parse(request.query_params.multi_items())
    answer = current_site(request).dataset(dataset).answer(query)
    return f"<h1>{escape(answer.title)}</h1><pre>{escape(str(answer.shown.values))}</pre>"
