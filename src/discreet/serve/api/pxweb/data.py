"""Selected cells in every format of the protocol, and saved queries."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final

import numpy as np
from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from discreet.release.cube import Cube, CubeAxis
from discreet.release.formats.json import dataset as json_stat
from discreet.release.formats.json import json_bytes
from discreet.release.formats.px import data_texts
from discreet.release.formats.write import Labels, Options, writer_named
from discreet.serve.answer import Answer
from discreet.serve.api.pxweb import models
from discreet.serve.api.pxweb.metadata import (
    Placement,
    contents_axis,
    dimensions,
    extension_of,
    link,
    metadata_of,
    period_axis,
    roles_of,
    updated_of,
)
from discreet.serve.api.pxweb.models import (
    CONTENTS,
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
    table_named,
)
from discreet.serve.api.pxweb.selection import (
    CellSelection,
    Wish,
    name_among,
    selectable,
    split_expressions,
)
from discreet.serve.api.reply import TableDescriber, json_reply, preflight, reply
from discreet.serve.data.dataset import Dataset
from discreet.serve.refusals import Refusal, one_of
from discreet.serve.site.site import current_site
from discreet.serve.web.wording import unit_label

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
    "response_model": models.JsonStatDataset | models.JsonPx,
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
_WITH_PARAMS = ("csv", "html", "xlsx")


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
    found = table_named(request, dataset)
    known = selectable(found)
    lists, codes = (
        {name_among(known, name): text for name, text in by_brackets(request, kind).items()}
        for kind in ("codelist", "valuecodes")
    )
    wishes = {
        name: Wish(tuple(split_expressions(codes.get(name, "*"))), lists.get(name, ""))
        for name in codes | lists
    }
    placement = Placement(_names(heading), _names(stub))
    selection = CellSelection.of(found, wishes, placement)
    return data_reply(request, selection, outputFormat, outputFormatParams or [])


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
    chosen = selection_of_body(table_named(request, dataset), selection)
    return data_reply(request, chosen, outputFormat, outputFormatParams or [])


@router.post(
    "/savedqueries",
    response_model=models.SavedQueryResponse,
    status_code=201,
    summary="Save a query",
)
def save_query(request: Request, query: models.SavedQueryModel) -> Response:
    """A name for a query; the name holds the query, so it works for as long as the table does."""
    selection_of_body(table_named(request, query.tableId), query.selection)
    named = query.model_copy(update={"id": name_of(query)})
    content = json_bytes(_saved_json(request, named))
    return reply(request, content, "application/json", {"Cache-Control": "no-store"}, 201)


@router.get(
    "/savedqueries/{query_id}", response_model=models.SavedQueryResponse, summary="A saved query"
)
def saved_query(request: Request, query_id: str) -> Response:
    """What a saved query asks for."""
    return json_reply(request, _saved_json(request, query_named(query_id)))


@router.get(
    "/savedqueries/{query_id}/selection",
    response_model=models.SelectionResponse,
    summary="What a saved query selects",
)
def saved_selection(request: Request, query_id: str, lang: Lang = None) -> Response:
    """The codes that a saved query selects now."""
    query = query_named(query_id)
    selection = selection_of_body(table_named(request, query.tableId), query.selection)
    path = f"savedqueries/{query_id}/selection"
    return json_reply(request, selection_json(selection, TableDescriber.of(request), path))


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
    selection = selection_of_body(table_named(request, query.tableId), query.selection)
    # Parameters belong to the format that they were saved with.
    saved = query.outputFormatParams if outputFormat in (None, query.outputFormat) else []
    params: Sequence[str] = outputFormatParams or saved
    return data_reply(request, selection, outputFormat or query.outputFormat, params)


for _path in ("/tables/{dataset}/data", "/savedqueries"):
    router.options(_path, include_in_schema=False)(preflight)


def selection_of_body(
    dataset: Dataset, selection: models.VariablesSelection | None
) -> CellSelection:
    """What a body selects of a table; the default selection where it selects nothing."""
    chosen = selection or models.VariablesSelection(selection=[])
    known, wishes = selectable(dataset), dict[str, Wish]()
    for part in chosen.selection:
        name = name_among(known, part.variableCode)
        if name in wishes:
            message = f"Variable {name!r} is selected twice."
            raise Refusal("two_selections", message, "Each variable once, with all its codes.")
        wishes[name] = Wish(tuple(part.valueCodes), part.codelist or "")
    placed = chosen.placement or models.PlacementModel()
    placement = Placement(tuple(placed.heading), tuple(placed.stub))
    return CellSelection.of(dataset, wishes, placement)


def selection_json(
    selection: CellSelection, describer: TableDescriber, path: str
) -> dict[str, Any]:
    """What is selected, code by code."""
    lists = {choice.name: choice.codelist or None for choice in selection.variables}
    placement = selection.placement
    return {
        "selection": [
            {"variableCode": name, "codelist": lists.get(name), "valueCodes": list(codes)}
            for name, codes in selection.codes.items()
        ],
        "placement": {"heading": list(placement.heading), "stub": list(placement.stub)},
        "language": describer.texts.code,
        "links": [link("self", path, describer)],
    }


def selected_metadata(selection: CellSelection, describer: TableDescriber) -> dict[str, Any]:
    """The metadata of what is selected: those of its data, without figures."""
    axes = [
        CubeAxis(s.name, s.variable.label, tuple(e for e in s.entries if e.code in s.codes))
        for s in selection.variables
    ]
    axes += [selection.period] if selection.period else []
    axes.append(contents_axis(selection.dataset, selection.units, describer.texts))
    order = (*selection.placement.stub, *selection.placement.heading)
    placed = sorted(axes, key=lambda axis: order.index(axis.name))
    return metadata_of(selection.dataset, describer, placed, selection.placement)


def data_reply(
    request: Request,
    selection: CellSelection,
    form: str,
    params: Sequence[str] = (),
    describer: TableDescriber | None = None,
) -> Response:
    """The selected cells in the format asked for."""
    named = _format_params(form, params)
    most = max_cells(current_site(request))
    if selection.cells > most:
        message = f"The query selects {selection.cells:,} cells."
        raise Refusal("too_many_cells", message, f"At most {most:,} cells in one call.")
    describer = describer or TableDescriber.of(request)
    answers = selection.ask()
    cube = selection.cube(answers, describer.texts)
    options = _file_options(selection, answers, describer)
    if form in _AS_JSON:
        found = _AS_JSON[form](selection, cube, options, describer)
        return reply(request, json_bytes(found), "application/json")
    writer = writer_named(form)
    laid_out = _with_format_params(options, named)
    content = writer.write(cube, laid_out)
    if form == "csv" and "IncludeTitle" in named:  # pages and workbooks have one anyway
        content = _title_line(laid_out) + content
    return reply(request, content, writer.media_type)


def _names(given: Sequence[str] | None) -> tuple[str, ...]:
    return tuple(name for text in given or () for name in split_expressions(text))


def _saved_json(request: Request, query: models.SavedQueryModel) -> dict[str, Any]:
    describer, path = TableDescriber.of(request), f"savedqueries/{query.id}"
    return {
        "language": query.language,
        "id": query.id,
        "savedQuery": query.model_dump(mode="json", exclude_none=True),
        "links": [
            link("self", path, describer),
            link("data", f"{path}/data", describer),
            link("metadata", f"tables/{query.tableId}/metadata", describer),
        ],
    }


def _file_options(
    selection: CellSelection, answers: Mapping[str, Answer], describer: TableDescriber
) -> Options:
    dataset, labels = selection.dataset, [s.variable.label for s in selection.variables]
    title = f"{dataset.title}: {', '.join(labels)}" if labels else dataset.title
    told = {unit: describer.about(answer) for unit, answer in answers.items()}
    about, notes = next(iter(told.values())), [n for one in told.values() for n in one.notes]
    if dataset.measures and len(told) > 1:  # what is said of one need not hold for another
        labelled = {unit_label(dataset, unit, describer.texts): one for unit, one in told.items()}
        notes = [f"{label}: {note}" for label, one in labelled.items() for note in one.notes]
    measure = " / ".join(unit_label(dataset, unit, describer.texts) for unit in selection.units)
    period = period_axis(dataset)
    return Options(
        layout="wide",
        columns=selection.placement.heading,
        measure=measure,
        time=period.name if period else dataset.time,
        about=replace(about, title=title, notes=tuple(dict.fromkeys(notes))),
    )


def _format_params(form: str, params: Sequence[str]) -> list[str]:
    """The parameters of a format; those that are not for it, or contradict, are refused."""
    listed = [one_of("outputFormatParams", name, models.FORMAT_PARAMS) for name in _names(params)]
    for group in (_LABELS_BY_PARAM, _SEPARATORS):
        if len({*group} & {*listed}) > 1:
            message = "Parameters of the output format contradict each other."
            raise Refusal("contradiction", message, f"One of {', '.join(group)}.")
    formats = [*_WITH_PARAMS] if not {*_SEPARATORS} & {*listed} else ["csv"]
    if listed and form not in formats:
        message = f"Format {form!r} does not take {', '.join(listed)}."
        raise Refusal("not_for_format", message, f"These are for {', '.join(formats)}.")
    return listed


def _with_format_params(options: Options, params: Sequence[str]) -> Options:
    """The options with the protocol's parameters of formats."""
    labels = [_LABELS_BY_PARAM[name] for name in params if name in _LABELS_BY_PARAM]
    separators = [_SEPARATORS[name] for name in params if name in _SEPARATORS]
    return replace(
        options,
        labels=labels[0] if labels else "labels",
        separator=separators[0] if separators else ",",
    )


def _title_line(options: Options) -> bytes:
    line = io.StringIO(newline="")
    csv.writer(line, delimiter=options.separator, lineterminator="\n\n").writerow(
        [options.about.title]
    )
    return line.getvalue().encode()


def _json_stat(
    selection: CellSelection, cube: Cube, options: Options, describer: TableDescriber
) -> dict[str, Any]:
    """JSON-stat with what the protocol adds to it."""
    dataset = selection.dataset
    found, extension = json_stat(cube, options), extension_of(dataset, describer)
    extension["px"]["stub"] = list(selection.placement.stub)
    extension["px"]["heading"] = list(selection.placement.heading)
    if dataset.measures:  # that of the data set speaks of counts
        extension["statement"] = cube.statement.to_json()
    symbols = found["extension"]["status"]
    found["dimension"] = dimensions(list(cube.axes), dataset, describer)
    found["extension"] = {**extension, "status": symbols, "citation": options.about.citation}
    found |= {"role": roles_of(dataset, cube.names), "updated": dataset.updated or None}
    return {name: value for name, value in found.items() if value is not None}


def json_px(
    selection: CellSelection, cube: Cube, options: Options, describer: TableDescriber
) -> dict[str, Any]:
    """A row for each combination, with a figure for each unit, as texts; the older JSON."""
    names = [name for name in cube.names if name != CONTENTS]
    cells = cube.reorder([*names, CONTENTS])
    kinds = {options.time: "t"}
    columns = [
        {"code": axis.name, "text": axis.label, "type": kinds.get(axis.name, "d")}
        for axis in cells.axes[:-1]
    ]
    columns += [{"code": e.code, "text": e.label, "type": "c"} for e in cells.axes[-1].entries]
    codes = [axis.codes for axis in cells.axes[:-1]]
    texts = np.array([text.strip('"') for text in data_texts(cells)], dtype=object)
    about = options.about
    return {
        "columns": columns,
        "comments": [],
        "data": [
            {"key": [c[k] for c, k in zip(codes, place, strict=True)], "values": list(values)}
            for place, values in zip(
                np.ndindex(*cells.values.shape[:-1]),
                texts.reshape(-1, len(selection.units)),
                strict=True,
            )
        ],
        "metadata": [
            {
                "updated": updated_of(selection.dataset),
                "label": about.title,
                "source": about.source,
                "notes": [*about.plain_notes(cube), *about.footnotes],
            }
        ],
    }


_AsJson = Callable[[CellSelection, Cube, Options, TableDescriber], dict[str, Any]]
_AS_JSON: dict[str, _AsJson] = {JSON_STAT: _json_stat, "json-px": json_px}
