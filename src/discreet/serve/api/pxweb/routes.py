"""The addresses of PxWebApi 2."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from discreet import __version__
from discreet.serve.api.listed import Part, page_address
from discreet.serve.api.pxweb import models
from discreet.serve.api.pxweb.codelists import codelist, codelist_for
from discreet.serve.api.pxweb.contents import CONTENTS
from discreet.serve.api.pxweb.expressions import split
from discreet.serve.api.pxweb.metadata import (
    PATH,
    ROOT,
    codelist_json,
    link,
    metadata_json,
    table_json,
)
from discreet.serve.api.pxweb.output import FORMATS, JSON_STAT, data_reply
from discreet.serve.api.pxweb.problem import MEDIA_TYPE, ProblemRoute
from discreet.serve.api.pxweb.saved import name_of, query_named
from discreet.serve.api.pxweb.selection import Selection, Wish, default_wishes
from discreet.serve.api.reply import base_of, json_reply, reply, texts_of
from discreet.serve.data.dataset import Dataset
from discreet.serve.refusals import Refusal
from discreet.serve.site.site import Site, current_site
from discreet.serve.web.texts import texts as texts_in

API_VERSION = "2.0.0"
_WINDOW = 10  # seconds
_MOST_CELLS = 100_000
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": "A problem, with what is allowed.",
        "content": {MEDIA_TYPE: {"schema": models.Problem.model_json_schema()}},
    }
    for status in (400, 403, 404)
}
_FILES: dict[str, dict[str, Any]] = {
    media: {}
    for media in (
        "text/csv",
        "text/html",
        "application/octet-stream",
        "application/vnd.apache.parquet",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    )
}
router = APIRouter(prefix=ROOT, tags=["PxWebApi 2"], responses=_PROBLEMS, route_class=ProblemRoute)
Lang = Annotated[str | None, Query(description="The language, if not the default one.")]
Form = Annotated[models.OutputFormat, Query(description="The format of the data.")]
Params = Annotated[
    list[str] | None, Query(description="How files are laid out; several with commas between.")
]
Codes = Annotated[list[str] | None, Query(description="Variables, with commas between.")]


def _by_variable(name: str, help: str) -> dict[str, Any]:
    return {
        "name": name,
        "in": "query",
        "style": "deepObject",
        "explode": True,
        "description": help,
        "schema": {"type": "object", "additionalProperties": {"type": "string"}},
    }


_VALUES = _by_variable(
    "valueCodes",
    "Codes of a variable, valueCodes[V]=A,B; also *, A*, ?, top(N), bottom(N), range(A,B), "
    "from(A) and to(A).",
)
_LISTS = _by_variable("codelist", "A code list of a variable, codelist[V]=ID.")


@router.get("/config", response_model=models.Config, summary="Configuration and limits")
def config(request: Request) -> Response:
    """What the interface can do, and its limits."""
    site, accounts = current_site(request), request.app.state.office.config.accounts
    calls = min(accounts.burst, int(accounts.rate * _WINDOW)) if accounts.rate else 1_000_000
    licences = dict.fromkeys(d.about.licence for d in site.datasets.values() if d.about.licence)
    languages = site.config.languages
    found = {
        "apiVersion": API_VERSION,
        "appVersion": __version__,
        "languages": [{"id": code, "label": str(texts_in(code).name)} for code in languages],
        "defaultLanguage": languages[0],
        "maxDataCells": max_cells(site),
        "maxCallsPerTimeWindow": max(1, calls),
        "timeWindow": _WINDOW,
        "license": ", ".join(licences),
        "sourceReferences": [{"language": code, "text": site.title} for code in languages],
        "defaultDataFormat": JSON_STAT,
        "dataFormats": list(FORMATS),
        "features": [],
    }
    return json_reply(request, found)


@router.get("/navigation", response_model=models.Folder, summary="The folder of all tables")
def navigation(request: Request, lang: Lang = None) -> Response:
    """All tables in one folder."""
    site, base, texts = current_site(request), base_of(request), texts_of(request)
    found = {
        "language": texts.code,
        "id": PATH,
        "label": site.title,
        "description": site.config.description,
        "tags": [],
        "folderContents": [table_json(d, site, base, texts) for d in site.datasets.values()],
        "links": [link("self", f"{base}{ROOT}/navigation", texts)],
    }
    return json_reply(request, found)


@router.get("/navigation/{folder}", response_model=models.Folder, summary="A folder")
def folder(request: Request, folder: str, lang: Lang = None) -> Response:
    """The one folder there is."""
    if folder != PATH:
        message = f"There is no folder {folder!r}."
        raise Refusal("not_found", message, f"Folders: {PATH}.", 404)
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
    site, base, texts = current_site(request), base_of(request), texts_of(request)
    listed = [table_json(d, site, base, texts) for d in site.datasets.values()]
    words = (query or "").casefold().split()
    found = [t for t in listed if all(w in _searched(t) for w in words) and _is_new(t, pastDays)]
    part = Part(pageNumber, pageSize, len(found))
    page = {
        "pageNumber": part.number,
        "pageSize": part.size,
        "totalElements": part.items,
        "totalPages": part.pages,
        "links": [],
    }
    beside = {"next": part.number + 1, "previous": part.number - 1}
    links = [
        link(rel, page_address(request, number, "pageNumber"), texts)
        for rel, number in {"self": part.number, **beside}.items()
        if 1 <= number <= max(part.pages, part.number)
    ]
    told = {"language": texts.code, "tables": list(part.of(found)), "page": page, "links": links}
    return json_reply(request, told)


@router.get("/tables/{dataset}", response_model=models.TableResponse, summary="A table")
def table(request: Request, dataset: str, lang: Lang = None) -> Response:
    """A table as the list shows it."""
    site, texts = current_site(request), texts_of(request)
    found = table_json(site.dataset(dataset), site, base_of(request), texts)
    return json_reply(request, {**found, "language": texts.code})


@router.get(
    "/tables/{dataset}/metadata",
    response_model=models.Dataset,
    summary="The variables of a table",
    openapi_extra={"parameters": [_LISTS]},
)
def metadata(
    request: Request,
    dataset: str,
    lang: Lang = None,
    defaultSelection: bool = False,
) -> Response:
    """All variables with their values and code lists, as JSON-stat 2."""
    site = current_site(request)
    found = site.dataset(dataset)
    named = {v.name: v for v in found.variables}
    lists = {
        name: codelist_for(found, named[name], id)
        for name, id in _named(request, "codelist").items()
        if name in named
    }
    told = metadata_json(found, site, base_of(request), texts_of(request), lists)
    return json_reply(request, told)


@router.get(
    "/tables/{dataset}/defaultselection",
    response_model=models.DefaultSelection,
    summary="What is selected when nothing is asked for",
)
def default_selection(request: Request, dataset: str, lang: Lang = None) -> Response:
    """The selection of a table when none is made."""
    found, texts = current_site(request).dataset(dataset), texts_of(request)
    wishes = default_wishes(found)
    selection = [
        {"variableCode": name, "codelist": None, "valueCodes": list(wish.codes)}
        for name, wish in wishes.items()
    ]
    stub = [name for name in wishes if name != CONTENTS]
    address = f"{base_of(request)}{ROOT}/tables/{found.name}/defaultselection"
    told = {
        "selection": selection,
        "placement": {"heading": [CONTENTS], "stub": stub},
        "language": texts.code,
        "links": [link("self", address, texts)],
    }
    return json_reply(request, told)


@router.get(
    "/tables/{dataset}/data",
    response_model=models.Dataset,
    summary="The data of a table",
    responses={200: {"content": _FILES, "description": "The data, in the format asked for."}},
    openapi_extra={"parameters": [_VALUES, _LISTS]},
)
def data(
    request: Request,
    dataset: str,
    lang: Lang = None,
    outputFormat: Form = JSON_STAT,  # type: ignore[assignment]
    outputFormatParams: Params = None,
    heading: Codes = None,
    stub: Codes = None,
) -> Response:
    """Selected cells of a table; nothing selected gives the default selection."""
    found = current_site(request).dataset(dataset)
    lists = _named(request, "codelist")
    codes = {name: tuple(split(text)) for name, text in _named(request, "valuecodes").items()}
    wishes = {name: Wish(codes.get(name, ("*",)), lists.get(name, "")) for name in codes | lists}
    columns = [name for text in heading or [] for name in split(text)]
    return _data(request, found, wishes, columns, outputFormat, outputFormatParams or [])


@router.post(
    "/tables/{dataset}/data",
    response_model=models.Dataset,
    summary="The data of a table, selected in the body",
    responses={200: {"content": _FILES, "description": "The data, in the format asked for."}},
)
def posted_data(
    request: Request,
    dataset: str,
    selection: models.VariablesSelection | None = None,
    lang: Lang = None,
    outputFormat: Form = JSON_STAT,  # type: ignore[assignment]
    outputFormatParams: Params = None,
) -> Response:
    """Selected cells of a table; nothing selected gives the default selection."""
    found = current_site(request).dataset(dataset)
    chosen = selection or models.VariablesSelection()
    return _posted(request, found, chosen, outputFormat, outputFormatParams or [])


@router.get(
    "/codelists/{codelist_id}", response_model=models.CodeListResponse, summary="A code list"
)
def code_list(request: Request, codelist_id: str, lang: Lang = None) -> Response:
    """A level of a hierarchy, with what each of its values holds."""
    site = current_site(request)
    found = codelist(site, codelist_id)
    return json_reply(request, codelist_json(found, site, base_of(request), texts_of(request)))


@router.post(
    "/savedqueries",
    response_model=models.SavedQueryModel,
    status_code=201,
    summary="Save a query",
)
def save_query(request: Request, query: models.SavedQueryModel) -> Response:
    """A name for a query; the name holds the query, so it works for as long as the table does."""
    found = current_site(request).dataset(query.tableId)
    Selection.of(found, _wishes(query.selection))
    named = query.model_copy(update={"id": name_of(query)})
    content = named.model_dump_json().encode()
    return reply(request, content, "application/json", {"Cache-Control": "no-store"}, 201)


@router.get(
    "/savedqueries/{query_id}", response_model=models.SavedQueryModel, summary="A saved query"
)
def saved_query(request: Request, query_id: str) -> Response:
    """What a saved query asks for."""
    return reply(request, query_named(query_id).model_dump_json().encode(), "application/json")


@router.get(
    "/savedqueries/{query_id}/data",
    response_model=models.Dataset,
    summary="The data of a saved query",
    responses={200: {"content": _FILES, "description": "The data, in the format asked for."}},
)
def saved_data(
    request: Request,
    query_id: str,
    lang: Lang = None,
    outputFormat: Annotated[models.OutputFormat | None, Query()] = None,
    outputFormatParams: Params = None,
) -> Response:
    """The cells that a saved query selects, as they are now."""
    query = query_named(query_id)
    found = current_site(request).dataset(query.tableId)
    form = outputFormat or query.outputFormat
    params: Sequence[str] = outputFormatParams or query.outputFormatParams
    return _posted(request, found, query.selection, form, params)


def max_cells(site: Site) -> int:
    """The cells of one answer that every table allows."""
    told = [d.policy.max_cells for d in site.datasets.values() if d.policy.tells("max_cells")]
    return min([_MOST_CELLS, *told])


def _posted(
    request: Request,
    dataset: Dataset,
    selection: models.VariablesSelection,
    form: str,
    params: Sequence[str],
) -> Response:
    heading = selection.placement.heading if selection.placement else []
    return _data(request, dataset, _wishes(selection), heading, form, params)


def _wishes(selection: models.VariablesSelection) -> dict[str, Wish]:
    return {
        part.variableCode: Wish(tuple(part.valueCodes), part.codelist or "")
        for part in selection.selection
    }


def _data(
    request: Request,
    dataset: Dataset,
    wishes: Mapping[str, Wish],
    heading: Sequence[str],
    form: str,
    params: Sequence[str],
) -> Response:
    selection = Selection.of(dataset, wishes, heading)
    most = max_cells(current_site(request))
    if selection.cells > most:
        message = f"The query selects {selection.cells:,} cells."
        raise Refusal("too_many_cells", message, f"At most {most:,} cells in one call.")
    listed = [name for text in params for name in split(text)]
    for name in listed:
        if name not in models.FORMAT_PARAMS:
            allowed = f"One of {', '.join(models.FORMAT_PARAMS)}."
            raise Refusal("unknown_value", f"outputFormatParams cannot be {name!r}.", allowed)
    return data_reply(request, selection, form, listed, texts_of(request))


def _named(request: Request, kind: str) -> dict[str, str]:
    """Parameters with a variable in brackets, `valueCodes[age]`; several are joined by commas."""
    found: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        match = re.fullmatch(r"(\w+)\[(.+)\]", name)
        if match and match[1].lower() == kind:
            found[match[2]] = f"{found[match[2]]},{value}" if match[2] in found else value
    return found


def _searched(table: Mapping[str, Any]) -> str:
    texts = (table["id"], table["label"], table["description"], *table["variableNames"])
    return " ".join(texts).casefold()


def _is_new(table: Mapping[str, Any], days: int | None) -> bool:
    if days is None:
        return True
    since = datetime.now(UTC) - timedelta(days=days)
    return bool(table["updated"]) and datetime.fromisoformat(table["updated"]) >= since
