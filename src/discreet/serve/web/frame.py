"""What all pages have in common: the visitor's language, the frame, and addresses to link to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment

from discreet import __version__
from discreet.display import environment
from discreet.serve.query import Query
from discreet.serve.refusals import LANGUAGE
from discreet.serve.site.site import Site, current_site
from discreet.serve.web.texts import Texts, preferred_language
from discreet.tables.statement import plain_data

_A_YEAR = 365 * 24 * 3600


@cache
def templates() -> Environment:
    """The templates of the pages."""
    found = environment("discreet.serve.web")
    found.filters["plain_data"] = plain_data
    return found


def render(request: Request, template: str, **parts: Any) -> str:
    """A page in the visitor's language; templates know `site`, `texts`, `link` and `visitor`."""
    site = site_for(request)
    others = [(k, v) for k, v in request.query_params.multi_items() if k != LANGUAGE]
    common = {
        "site": site,
        "texts": texts_for(request),
        "root": root_of(request),
        "link": lambda path: f"{root_of(request)}/{path}",
        "files": f"{root_of(request)}/static",
        "picture": "logo" if site.config.logo else "icon.svg",
        "programs": True,  # pages of files have neither interfaces nor saved queries
        "version": __version__,
        "visitor": getattr(request.state, "visitor", None),
        "languages": [  # for each its code, its own name, and this page in it
            (code, site.language(code).texts.name, f"?{urlencode([*others, (LANGUAGE, code)])}")
            for code in site.config.languages
        ],
    }
    return templates().get_template(template).render({**common, **parts})


def page(request: Request, template: str, status: int = 200, **parts: Any) -> HTMLResponse:
    """A page as the answer to a request; a language that was asked for is remembered."""
    response = HTMLResponse(render(request, template, **parts), status)
    response.headers["Vary"] = "Cookie, Accept-Language"
    remember_language(request, response)
    return response


def remember_language(request: Request, response: Any) -> None:
    """Let the visitor's browser keep the language that the address asks for."""
    chosen = request.query_params.get(LANGUAGE)
    if chosen in current_site(request).config.languages:
        path = root_of(request) or "/"
        response.set_cookie(
            LANGUAGE, chosen, max_age=_A_YEAR, path=path, httponly=True, samesite="lax"
        )


def language_of(request: Request) -> str:
    """The language that is asked for, remembered, or preferred by the browser."""
    offered = current_site(request).config.languages
    for wish in (request.query_params.get(LANGUAGE), request.cookies.get(LANGUAGE)):
        if wish in offered:
            return str(wish)
    return preferred_language(request.headers.get("accept-language", ""), offered)


def texts_for(request: Request) -> Texts:
    """The texts in the visitor's language."""
    return current_site(request).language(language_of(request)).texts


def site_for(request: Request) -> Site:
    """The site with its labels in the visitor's language."""
    return current_site(request).in_language(language_of(request))


def root_of(request: Request) -> str:
    """The path in front of all pages."""
    root: str = request.scope.get("root_path", "")
    return root


@dataclass(frozen=True)
class Addresses:
    """The addresses of a data set's pages.

    Attributes:
      root: The path in front of all pages.
      dataset: The data set's name.
    """

    root: str
    dataset: str

    @property
    def start(self) -> str:
        """The page with the first table."""
        return f"{self.root}/d/{quote(self.dataset)}"

    @property
    def about(self) -> str:
        """The page about the data set."""
        return f"{self.start}/about"

    @property
    def table_path(self) -> str:
        """The path that forms are sent to."""
        return f"{self.start}/table"

    def table(self, query: Query, edit: str = "") -> str:
        """The page of a table, with a list of categories beside it where `edit` names one."""
        return f"{self.table_path}?{page_address(query, edit)}"

    def file(self, query: Query, ending: str) -> str:
        """The table as a file."""
        return f"{self.table_path}.{ending}?{query.address}"

    @property
    def programs(self) -> str:
        """The data set for programs."""
        return f"{self.root}/api/v1/datasets/{quote(self.dataset)}"

    def saved_query(self, query: Query) -> str:
        """The query as a file that the command line replays."""
        return f"{self.programs}/query.toml?{query.address}"

    def program(self, query: Query, form: str) -> str:
        """The table for programs, in a format."""
        return f"{self.programs}/table?{query.address}&format={form}"

    def chart(self, query: Query) -> str:
        """The chart of a table as a file."""
        return f"{self.start}/chart.svg?{query.address}"


def page_parameters(query: Query, edit: str = "") -> list[tuple[str, str]]:
    """The parameters of a table's page in their one order."""
    return [*query.parameters, *([("edit", edit)] if edit else [])]


def page_address(query: Query, edit: str = "") -> str:
    """The query string of a table's page."""
    return urlencode(page_parameters(query, edit), safe="[]|")
