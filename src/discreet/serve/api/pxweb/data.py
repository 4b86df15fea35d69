"""The data of tables and saved queries, by the addresses of PxWebApi 2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import Response

from discreet.serve.api.pxweb import models
from discreet.serve.api.pxweb.common import LISTS, VALUES, Lang, max_cells, named, router_of
from discreet.serve.api.pxweb.expressions import split
from discreet.serve.api.pxweb.output import JSON_STAT, data_reply
from discreet.serve.api.pxweb.saved import name_of, query_named
from discreet.serve.api.pxweb.selection import Selection, Wish
from discreet.serve.api.reply import reply
from discreet.serve.data.dataset import Dataset
from discreet.serve.refusals import Refusal, one_of
from discreet.serve.site.site import current_site

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
router = router_of()
Form = Annotated[models.OutputFormat, Query(description="The format of the data.")]
Params = Annotated[
    list[str] | None, Query(description="How files are laid out; several with commas between.")
]
Codes = Annotated[list[str] | None, Query(description="Variables, with commas between.")]


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
    lists = named(request, "codelist")
    codes = {name: tuple(split(text)) for name, text in named(request, "valuecodes").items()}
    wishes = {name: Wish(codes.get(name, ("*",)), lists.get(name, "")) for name in codes | lists}
    columns = [name for text in heading or [] for name in split(text)]
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
    return _posted(request, found, chosen, outputFormat, outputFormatParams or [])


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
    return _posted(request, found, query.selection, form, params)


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
        one_of("outputFormatParams", name, models.FORMAT_PARAMS)
    return data_reply(request, selection, form, listed)
