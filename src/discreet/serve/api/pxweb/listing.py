"""The addresses of PxWebApi 2: configuration, tables of a site, metadata, code lists."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, get_args

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from discreet import __version__
from discreet.serve.api.pxweb import models
from discreet.serve.api.pxweb.data import (
    JSON_STAT,
    selected_metadata,
    selection_json,
    selection_of_body,
)
from discreet.serve.api.pxweb.metadata import (
    codelist,
    codelist_for,
    codelist_json,
    link,
    metadata_json,
    table_json,
)
from discreet.serve.api.pxweb.models import (
    FOLDER,
    LISTS,
    PROBLEMS,
    ROOT,
    CallLimit,
    Lang,
    ProblemRoute,
    by_brackets,
    max_cells,
    query_named,
    table_named,
)
from discreet.serve.api.pxweb.selection import CellSelection, name_among
from discreet.serve.api.reply import ListPage, TableDescriber, json_reply, site_of
from discreet.serve.data.dataset import Dataset
from discreet.serve.refusals import Refusal
from discreet.serve.site.site import current_site

API_VERSION = "2.0.0"
router = APIRouter(prefix=ROOT, tags=["PxWebApi 2"], responses=PROBLEMS, route_class=ProblemRoute)


@router.get("/config", response_model=models.Config, summary="Configuration and limits")
def config(request: Request) -> Response:
    """What the interface can do, and its limits."""
    site, limit = current_site(request), CallLimit.of(request)
    licences = dict.fromkeys(d.about.licence for d in site.datasets.values() if d.about.licence)
    languages = site.config.languages
    names = {code: str(site.language(code).texts.name) for code in languages}
    found = {
        "apiVersion": API_VERSION,
        "appVersion": __version__,
        "languages": [{"id": code, "label": name} for code, name in names.items()],
        "defaultLanguage": languages[0],
        "maxDataCells": max_cells(site),
        "maxCallsPerTimeWindow": limit.calls,
        "timeWindow": limit.seconds,
        "license": ", ".join(licences),
        "sourceReferences": [{"language": code, "text": site.title} for code in languages],
        "defaultDataFormat": JSON_STAT,
        "dataFormats": list(get_args(models.OutputFormat)),
        "features": [],
    }
    return json_reply(request, found)


@router.get("/navigation", response_model=models.Folder, summary="The folder of all tables")
def navigation(request: Request, lang: Lang = None) -> Response:
    """All tables in one folder."""
    describer = TableDescriber.of(request)
    site = describer.site
    found = {
        "language": describer.texts.code,
        "id": FOLDER,
        "label": site.title,
        "description": site.config.description,
        "tags": [],
        "folderContents": [table_json(d, describer) for d in site.datasets.values()],
        "links": [link("self", "navigation", describer)],
    }
    return json_reply(request, found)


@router.get("/navigation/{folder}", response_model=models.Folder, summary="A folder")
def folder(request: Request, folder: str, lang: Lang = None) -> Response:
    """The one folder there is."""
    if folder != FOLDER:
        message = f"There is no folder {folder!r}."
        raise Refusal("not_found", message, f"Folders: {FOLDER}.", 404)
    return navigation(request, lang)


@router.get("/tables", response_model=models.TablesResponse, summary="The tables")
def tables(
    request: Request,
    lang: Lang = None,
    query: Annotated[str | None, Query(description="Words that a table's texts hold.")] = None,
    pastDays: Annotated[int | None, Query(ge=1, le=36_500)] = None,
    includeDiscontinued: bool = False,
    pageNumber: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
    pageSize: Annotated[int, Query(ge=1, le=100_000)] = 100,
) -> Response:
    """The tables, page by page."""
    describer = TableDescriber.of(request)
    words, listed = (query or "").split(), describer.site.datasets.values()
    chosen = [d for d in listed if d.holds(words) and _is_new(d, pastDays)]
    found = [table_json(dataset, describer) for dataset in chosen]
    part = ListPage(pageNumber, pageSize, len(found))
    if part.number > part.pages:
        message = f"There is no page {part.number}."
        raise Refusal("not_found", message, f"Pages: 1 to {part.pages}.", 404)
    page = {
        "pageNumber": part.number,
        "pageSize": part.size,
        "totalElements": part.items,
        "totalPages": part.pages,
        "links": [],
    }
    language = describer.texts.code
    links = [
        {"rel": rel, "hreflang": language, "href": href}
        for rel, href in part.links(request, "pageNumber").items()
        if href is not None
    ]
    told = {"language": language, "tables": list(part.of(found)), "page": page, "links": links}
    return json_reply(request, told)


@router.get("/tables/{dataset}", response_model=models.TableResponse, summary="A table")
def table(request: Request, dataset: str, lang: Lang = None) -> Response:
    """A table as the list shows it."""
    describer = TableDescriber.of(request)
    found = table_json(table_named(request, dataset), describer)
    return json_reply(request, {**found, "language": describer.texts.code})


@router.get(
    "/tables/{dataset}/metadata",
    response_model=models.JsonStatDataset,
    summary="The variables of a table",
    openapi_extra={"parameters": [LISTS]},
)
def metadata(
    request: Request,
    dataset: str,
    lang: Lang = None,
    defaultSelection: bool = False,
    savedQuery: Annotated[str | None, Query(description="A saved query to apply.")] = None,
) -> Response:
    """All variables with their values and code lists, or those of a selection, as JSON-stat 2."""
    found, describer = table_named(request, dataset), TableDescriber.of(request)
    if savedQuery or defaultSelection:
        asked = query_named(savedQuery).selection if savedQuery else None
        selection = selection_of_body(found, asked)
        return json_reply(request, selected_metadata(selection, describer))
    known = {v.name: v for v in found.variables}
    lists = {}
    for name, id in by_brackets(request, "codelist").items():
        variable = known[name_among([*known], name)]
        lists[variable.name] = codelist_for(found, variable, id)
    return json_reply(request, metadata_json(found, describer, lists))


@router.get(
    "/tables/{dataset}/defaultselection",
    response_model=models.SelectionResponse,
    summary="What is selected when nothing is asked for",
)
def default_selection(request: Request, dataset: str, lang: Lang = None) -> Response:
    """The selection of a table when none is made."""
    found = table_named(request, dataset)
    path = f"tables/{found.name}/defaultselection"
    told = selection_json(CellSelection.of(found, {}), TableDescriber.of(request), path)
    return json_reply(request, told)


@router.get(
    "/codelists/{codelist_id}", response_model=models.CodeListResponse, summary="A code list"
)
def code_list(request: Request, codelist_id: str, lang: Lang = None) -> Response:
    """A level of a hierarchy, with what each of its values holds."""
    found = codelist(site_of(request), codelist_id)
    return json_reply(request, codelist_json(found, TableDescriber.of(request)))


def _is_new(dataset: Dataset, days: int | None) -> bool:
    """Whether the figures changed within so many days."""
    if days is None:
        return True
    since = (datetime.now(UTC) - timedelta(days=days)).date().isoformat()
    return dataset.updated >= since
