"""The data of tables and saved queries, by the addresses of PxWebApi 2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final

from fastapi import Query, Request
from fastapi.responses import Response

from discreet.release.cube import Cube
from discreet.release.formats.json import dataset as json_stat
from discreet.release.formats.json import json_bytes
from discreet.release.formats.write import Labels, Options, writer_named
from discreet.serve.answer import Answer
from discreet.serve.api.files import TableDescriber
from discreet.serve.api.pxweb import models
from discreet.serve.api.pxweb.common import LISTS, VALUES, Lang, by_brackets, max_cells, router_of
from discreet.serve.api.pxweb.metadata import CONTENTS, dimensions, extension_of, updated_of
from discreet.serve.api.pxweb.models import name_of, query_named
from discreet.serve.api.pxweb.selection import CellSelection, Wish, split_expressions
from discreet.serve.api.reply import reply
from discreet.serve.data.dataset import Dataset
from discreet.serve.refusals import Refusal, one_of
from discreet.serve.site.site import current_site
from discreet.serve.web.panel import unit_label

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
JSON_STAT: Final = "json-stat2"
FORMATS = {
    JSON_STAT: "json-stat",
    "csv": "csv",
    "px": "px",
    "xlsx": "xlsx",
    "html": "html",
    "parquet": "parquet",
}
_LABELS_BY_PARAM: dict[str, Labels] = {
    "UseCodes": "codes",
    "UseTexts": "labels",
    "UseCodesAndTexts": "both",
}
_SEPARATORS = {"SeparatorTab": "\t", "SeparatorSpace": " ", "SeparatorSemicolon": ";"}


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
    writer = writer_named(FORMATS[form])
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
