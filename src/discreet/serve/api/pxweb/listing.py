"""The addresses of PxWebApi 2: tables of a site, metadata, code lists, data, saved queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, get_args

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from discreet import __version__
from discreet.release.cube import Cube
from discreet.release.formats.json import dataset as json_stat
from discreet.release.formats.json import json_bytes
from discreet.release.formats.write import Labels, Options, writer_named
from discreet.serve.answer import Answer
from discreet.serve.api.pxweb import models
from discreet.serve.api.pxweb.metadata import (
    codelist,
    codelist_for,
    codelist_json,
    dimensions,
    extension_of,
    link,
    metadata_json,
    table_json,
    updated_of,
)
from discreet.serve.api.pxweb.models import (
    CONTENTS,
    FOLDER,
    LISTS,
    PROBLEMS,
    ROOT,
    VALUES,
    Lang,
    ProblemRoute,
    by_brackets,
    max_cells,
    name_of,
    query_named,
)
from discreet.serve.api.pxweb.selection import (
    CellSelection,
    Wish,
    default_wishes,
    split_expressions,
)
from discreet.serve.api.reply import ListPage, TableDescriber, json_reply, reply
from discreet.serve.data.dataset import Dataset
from discreet.serve.refusals import Refusal, one_of
from discreet.serve.site.site import current_site
from discreet.serve.web.texts import texts as texts_in
from discreet.serve.web.wording import unit_label

API_VERSION = "2.0.0"
_WINDOW = 10  # seconds
router = APIRouter(prefix=ROOT, tags=["PxWebApi 2"], responses=PROBLEMS, route_class=ProblemRoute)
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
_OF_DATA: dict[str, Any] = {
    "response_model": models.Dataset,
    "responses": {200: {"content": _FILES, "description": "The data, in the format asked for."}},
}
Form = Annotated[models.OutputFormat, Query(description="The format of the data.")]
Params = Annotated[
    list[str] | None, Query(description="How files are laid out; several with commas between.")
]
Codes = Annotated[list[str] | None, Query(description="Variables, with commas between.")]
JSON_STAT: Final = "json-stat2"
_LABELS_BY_PARAM: dict[str, Labels] = {
    "UseCodes": "codes",
    "UseTexts": "labels",
    "UseCodesAndTexts": "both",
}
_SEPARATORS = {"SeparatorTab": "\t", "SeparatorSpace": " ", "SeparatorSemicolon": ";"}


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
    listed = [table_json(d, describer) for d in describer.site.datasets.values()]
    words = (query or "").casefold().split()
    found = [t for t in listed if _is_listed(t, words, pastDays)]
    part = ListPage(pageNumber, pageSize, len(found))
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
    found = table_json(describer.site.dataset(dataset), describer)
    return json_reply(request, {**found, "language": describer.texts.code})


@router.get(
    "/tables/{dataset}/metadata",
    response_model=models.Dataset,
    summary="The variables of a table",
    openapi_extra={"parameters": [LISTS]},
)
def metadata(
    request: Request,
    dataset: str,
    lang: Lang = None,
    defaultSelection: bool = False,
) -> Response:
    """All variables with their values and code lists, as JSON-stat 2."""
    found = current_site(request).dataset(dataset)
    known = {v.name: v for v in found.variables}
    lists = {
        name: codelist_for(found, known[name], id)
        for name, id in by_brackets(request, "codelist").items()
        if name in known
    }
    return json_reply(request, metadata_json(found, TableDescriber.of(request), lists))


@router.get(
    "/tables/{dataset}/defaultselection",
    response_model=models.DefaultSelection,
    summary="What is selected when nothing is asked for",
)
def default_selection(request: Request, dataset: str, lang: Lang = None) -> Response:
    """The selection of a table when none is made."""
    describer = TableDescriber.of(request)
    found = describer.site.dataset(dataset)
    wishes = default_wishes(found)
    selection = [
        {"variableCode": name, "codelist": None, "valueCodes": list(wish.codes)}
        for name, wish in wishes.items()
    ]
    stub = [name for name in wishes if name != CONTENTS]
    told = {
        "selection": selection,
        "placement": {"heading": [CONTENTS], "stub": stub},
        "language": describer.texts.code,
        "links": [link("self", f"tables/{found.name}/defaultselection", describer)],
    }
    return json_reply(request, told)


@router.get(
    "/codelists/{codelist_id}", response_model=models.CodeListResponse, summary="A code list"
)
def code_list(request: Request, codelist_id: str, lang: Lang = None) -> Response:
    """A level of a hierarchy, with what each of its values holds."""
    found = codelist(current_site(request), codelist_id)
    return json_reply(request, codelist_json(found, TableDescriber.of(request)))


def _is_listed(table: Mapping[str, Any], words: Sequence[str], days: int | None) -> bool:
    """Whether a table's texts hold all words, and its day lies within so many days."""
    texts = (table["id"], table["label"], table["description"], *table["variableNames"])
    text, updated = " ".join(texts).casefold(), table["updated"]
    since = None if days is None else datetime.now(UTC) - timedelta(days=days)
    is_new = since is None or (bool(updated) and datetime.fromisoformat(updated) >= since)
    return is_new and all(word in text for word in words)


@router.get(
    "/tables/{dataset}/data",
    **_OF_DATA,
    summary="The data of a table",
    openapi_extra={"parameters": [VALUES, LISTS]},
)
def data(
    request: Request,
    dataset: str,
    lang: Lang = None,
    outputFormat: Form = JSON_STAT,
    outputFormatParams: Params = None,
    heading: Codes = None,
    stub: Codes = None,
) -> Response:
    """Selected cells of a table; nothing selected gives the default selection."""
    found = current_site(request).dataset(dataset)
    lists = by_brackets(request, "codelist")
    codes = {
        name: tuple(split_expressions(text))
        for name, text in by_brackets(request, "valuecodes").items()
    }
    wishes = {name: Wish(codes.get(name, ("*",)), lists.get(name, "")) for name in codes | lists}
    columns = [name for text in heading or [] for name in split_expressions(text)]
    return _data(request, found, wishes, columns, outputFormat, outputFormatParams or [])


@router.post(
    "/tables/{dataset}/data",
    **_OF_DATA,
    summary="The data of a table, selected in the body",
)
def posted_data(
    request: Request,
    dataset: str,
    selection: models.VariablesSelection | None = None,
    lang: Lang = None,
    outputFormat: Form = JSON_STAT,
    outputFormatParams: Params = None,
) -> Response:
    """Selected cells of a table; nothing selected gives the default selection."""
    found = current_site(request).dataset(dataset)
    chosen = selection or models.VariablesSelection()
    return _data_of_body(request, found, chosen, outputFormat, outputFormatParams or [])


@router.post(
    "/savedqueries",
    response_model=models.SavedQueryModel,
    status_code=201,
    summary="Save a query",
)
def save_query(request: Request, query: models.SavedQueryModel) -> Response:
    """A name for a query; the name holds the query, so it works for as long as the table does."""
    found = current_site(request).dataset(query.tableId)
    CellSelection.of(found, _wishes(query.selection))
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
    **_OF_DATA,
    summary="The data of a saved query",
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
    return _data_of_body(request, found, query.selection, form, params)


def _data_of_body(
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
    """The selected cells in the format asked for."""
    selection = CellSelection.of(dataset, wishes, heading)
    most = max_cells(current_site(request))
    if selection.cells > most:
        message = f"The query selects {selection.cells:,} cells."
        raise Refusal("too_many_cells", message, f"At most {most:,} cells in one call.")
    listed = [name for text in params for name in split_expressions(text)]
    for name in listed:
        one_of("outputFormatParams", name, models.FORMAT_PARAMS)
    describer = TableDescriber.of(request)
    answers = selection.ask()
    cube = selection.cube(answers, describer.texts)
    options = _file_options(selection, answers, describer)
    if form == JSON_STAT:
        found = _json_stat(selection, cube, options, describer)
        return reply(request, json_bytes(found), "application/json")
    writer = writer_named(form)
    content = writer.write(cube, _with_format_params(options, listed))
    return reply(request, content, writer.media_type)


def _file_options(
    selection: CellSelection, answers: Mapping[str, Answer], describer: TableDescriber
) -> Options:
    first = next(iter(answers.values()))
    labels = [s.variable.label for s in selection.variables]
    title = f"{selection.dataset.title}: {', '.join(labels)}" if labels else selection.dataset.title
    about = replace(describer.about(first), title=title)
    columns = (*selection.in_columns, CONTENTS)
    measure = " / ".join(unit_label(unit, describer.texts) for unit in selection.units)
    return Options(layout="wide", columns=columns, measure=measure, about=about)


def _with_format_params(options: Options, params: Sequence[str]) -> Options:
    """The options with the protocol's parameters of formats."""
    labels = [_LABELS_BY_PARAM[name] for name in params if name in _LABELS_BY_PARAM]
    separators = [_SEPARATORS[name] for name in params if name in _SEPARATORS]
    if len({*labels}) > 1 or len({*separators}) > 1:
        message = "Parameters of the output format contradict each other."
        raise Refusal("contradiction", message, "One of UseCodes, UseTexts, UseCodesAndTexts.")
    return replace(
        options,
        labels=labels[0] if labels else "labels",
        separator=separators[0] if separators else ",",
    )


def _json_stat(
    selection: CellSelection, cube: Cube, options: Options, describer: TableDescriber
) -> dict[str, Any]:
    """JSON-stat with what the protocol adds to it."""
    dataset, columns = selection.dataset, selection.in_columns
    found, extension = json_stat(cube, options), extension_of(selection.dataset, describer)
    extension["px"]["stub"] = [s.name for s in selection.variables if s.name not in columns]
    extension["px"]["heading"] = [*columns, CONTENTS]
    symbols = found["extension"]["status"]
    found["dimension"] = dimensions(list(cube.axes), dataset, describer)
    found["extension"] = {**extension, "status": symbols, "citation": options.about.citation}
    found |= {"role": {"metric": [CONTENTS]}, "updated": updated_of(dataset)}
    return {name: value for name, value in found.items() if value is not None}
