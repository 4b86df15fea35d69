"""Protocol 1 of PxWeb, which R's `pxweb` and older clients speak: levels, tables, JSON queries."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, BeforeValidator, Field, ValidationError
from starlette.concurrency import run_in_threadpool

from discreet.release.formats.json import json_bytes
from discreet.serve.api.pxweb.data import data_reply
from discreet.serve.api.pxweb.metadata import axes_of, roles_of, updated_of
from discreet.serve.api.pxweb.models import (
    CONTENTS,
    FOLDER,
    MOST_ENTRIES,
    CallLimit,
    ProblemRoute,
    max_cells,
)
from discreet.serve.api.pxweb.selection import CellSelection, Wish, name_among, selectable
from discreet.serve.api.reply import TableDescriber, base_of, preflight, reply, shared_headers
from discreet.serve.data.dataset import Dataset
from discreet.serve.refusals import Refusal, as_json, malformed_request, no_such
from discreet.serve.site.site import Site, current_site

ROOT = "/api/v1"
FirstFormat = Literal["json", "json-stat", "json-stat2", "csv", "px", "xlsx"]
_SECOND_NAMES = {"json": "json-px", "json-stat": "json-stat2"}


def _as_list(given: Any) -> Any:
    return [given] if isinstance(given, str | int) else given


class ItemSelection(BaseModel):
    """The values of a variable: `item`, `all` (patterns), `top` (a number), `agg:ID`, `vs:ID`."""

    filter: str = Field("item", max_length=200)
    values: Annotated[list[str | int], BeforeValidator(_as_list)] = Field(
        default_factory=list, max_length=MOST_ENTRIES
    )


class QueryPart(BaseModel):
    """What is asked of one variable."""

    code: str
    selection: ItemSelection


class QueryFormat(BaseModel):
    """The format of the answer."""

    format: FirstFormat = "json"


class FirstQuery(BaseModel):
    """A query as programs post it; variables that it leaves out are at their total."""

    query: list[QueryPart] = Field(default_factory=list, max_length=100)
    response: QueryFormat = QueryFormat()


class FirstRoute(ProblemRoute):
    """A route whose refusals are `{"error": …}`, but outside of the languages of the site."""

    def refuse(self, request: Request, refusal: Refusal) -> Response:
        """The refusal in words."""
        request.scope["state"]["outcome"] = refusal.code
        if request.path_params["lang"] not in current_site(request).config.languages:
            return JSONResponse(as_json(refusal), refusal.status)
        status = 403 if refusal.is_too_large else refusal.status
        told = {"error": f"{refusal.public()} {refusal.allowed}"}
        return JSONResponse(told, status, shared_headers(request))


router = APIRouter(prefix=ROOT, route_class=FirstRoute, include_in_schema=False)


@router.get("/{lang}")
@router.get("/{lang}/{path:path}")
def level(request: Request, lang: str, path: str = "") -> Response:
    """What a level holds, the variables of a table, or the limits, `?config`."""
    describer = _describer(request, lang)
    if "config" in request.query_params:
        return _send(request, config_json(request))
    found = _table_at(describer.site, path)
    if found is not None:
        return _send(request, table_json(found, describer))
    site = describer.site
    if path.strip("/"):
        told = [_table_entry(d) for d in site.datasets.values()]
    else:
        told = [{"id": FOLDER, "type": "l", "text": site.title}]
    return _send(request, told)


@router.post("/{lang}/{path:path}")
async def query(request: Request, lang: str, path: str) -> Response:
    """The cells that a JSON query selects, in its format."""
    describer = _describer(request, lang)
    found = _table_at(describer.site, path)
    if found is None:
        allowed = f"Tables: {ROOT}/{lang}/{FOLDER}/."
        raise Refusal("not_found", "There is no table here.", allowed, 404)
    try:  # whatever its content type says: httr of R sends JSON as a form
        asked = FirstQuery.model_validate_json(await request.body())
    except ValidationError as error:
        raise malformed_request(error.errors(), 400) from None
    return await run_in_threadpool(_answer, request, found, asked, describer)


router.options("/{lang}/{path:path}")(preflight)


def _answer(
    request: Request, dataset: Dataset, asked: FirstQuery, describer: TableDescriber
) -> Response:
    known, wishes = selectable(dataset), dict[str, Wish]()
    for part in asked.query:
        wishes[name_among(known, part.code)] = wish_of(part.selection)
    # Variables of protocol 1 that cannot be left out are there whole.
    wishes.setdefault(CONTENTS, Wish(("*",)))
    selection = CellSelection.of(dataset, wishes)
    form = asked.response.format
    found = data_reply(request, selection, _SECOND_NAMES.get(form, form), [], describer)
    if form != "json-stat":
        return found
    return reply(request, older_json_stat(bytes(found.body)), "application/json")


def wish_of(selection: ItemSelection) -> Wish:
    """What a selection of protocol 1 means."""
    values = tuple(str(value) for value in selection.values)
    kind, _, name = selection.filter.partition(":")
    match kind.lower():
        case "item":
            return Wish(values)
        case "all":
            return Wish(values or ("*",))
        case "top":
            return Wish(tuple(f"top({value})" for value in values))
        case "agg" | "vs" if name:
            return Wish(values or ("*",), name.removesuffix(".agg").removesuffix(".vs"))
    raise no_such("filter", selection.filter, ["item", "all", "top", "agg:ID", "vs:ID"], "Filters")


def older_json_stat(content: bytes) -> bytes:
    """JSON-stat 2 as a bundle of version 1, where ids, sizes and roles lie among dimensions."""
    found = json.loads(content)
    names = ("id", "size", "role")
    inner = {**found["dimension"], **{name: found[name] for name in names}}
    kept = ("label", "source", "updated", "value", "status", "note", "extension")
    told = {name: found[name] for name in kept if name in found}
    return json_bytes({"dataset": {"dimension": inner, **told}})


def config_json(request: Request) -> dict[str, Any]:
    """The limits of the interface."""
    limit, most = CallLimit.of(request), max_cells(current_site(request))
    return {
        "maxValues": most,
        "maxCells": most,
        "maxCalls": limit.calls,
        "timeWindow": limit.seconds,
        "CORS": bool(shared_headers(request)),
    }


def table_json(dataset: Dataset, describer: TableDescriber) -> dict[str, Any]:
    """The variables of a table with their values."""
    axes = axes_of(dataset, describer, {})
    time = roles_of(dataset, [axis.name for axis in axes]).get("time", [])
    return {
        "title": dataset.title,
        "variables": [
            {
                "code": axis.name,
                "text": axis.label,
                "values": list(axis.codes),
                "valueTexts": [entry.label for entry in axis.entries],
                "elimination": axis.name not in (CONTENTS, dataset.time),
                "time": axis.name in time,
            }
            for axis in axes
        ],
    }


def _table_entry(dataset: Dataset) -> dict[str, Any]:
    return {
        "id": dataset.name,
        "type": "t",
        "text": dataset.title,
        "updated": updated_of(dataset),
    }


def _describer(request: Request, lang: str) -> TableDescriber:
    site = current_site(request)
    if lang not in site.config.languages:
        raise Refusal("not_found", "There is no such page.", "The catalogue is at /.", 404)
    said = site.language(lang).texts
    return TableDescriber(site.in_language(lang), base_of(request), said)


def _table_at(site: Site, path: str) -> Dataset | None:
    """The table of a path, `tables/census`; nothing where it is a level."""
    parts = [part for part in path.split("/") if part]
    if parts[:1] not in ([], [FOLDER]) or len(parts) > 2:
        raise Refusal("not_found", "There is no such level.", f"Levels: {FOLDER}.", 404)
    return site.dataset(parts[1].lower()) if len(parts) == 2 else None


def _send(request: Request, found: Any) -> Response:
    return reply(request, json_bytes(found), "application/json")
