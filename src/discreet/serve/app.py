"""The application: routers of pages, of interfaces for programs and of the office."""

from __future__ import annotations

from fastapi import APIRouter, FastAPI

from discreet import __version__
from discreet.serve.api import files, openapi, pxweb, v1
from discreet.serve.guard import guard
from discreet.serve.kept_answers import KeptAnswers
from discreet.serve.office import admin
from discreet.serve.office.middleware import OfficeMiddleware
from discreet.serve.office.office import Office
from discreet.serve.site.site import Site, SiteHolder, as_holder
from discreet.serve.web import pages

_router = APIRouter()
_PROGRAMS = (v1.router, pxweb.router, openapi.router)


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
    for router in (_router, files.router, pages.router, *_PROGRAMS, admin.router):
        app.include_router(router)
    app.add_middleware(KeptAnswers)
    app.add_middleware(OfficeMiddleware, office=office)
    guard(app)
    return app


@_router.get("/health")
def health() -> dict[str, str]:
    """Whether the table builder answers."""
    return {"status": "ok", "version": __version__}
