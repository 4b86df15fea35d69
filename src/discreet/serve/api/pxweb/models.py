"""The shapes of the protocol: what programs send and get, problems, and names of saved queries."""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Annotated, Any, Literal, get_args

from fastapi import Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError
from starlette.exceptions import HTTPException

from discreet.serve.api.models import ClosedModel, JsonStat
from discreet.serve.refusals import Refusal, malformed_request
from discreet.serve.site.site import Site

ROOT = "/api/pxweb/v2"
FOLDER = "tables"  # the one folder that a site has
CONTENTS = "ContentsCode"  # the variable of what is published, by the protocol
OutputFormat = Literal["json-stat2", "csv", "px", "xlsx", "html", "parquet"]
FormatParam = Literal[
    "UseCodes",
    "UseTexts",
    "UseCodesAndTexts",
    "IncludeTitle",
    "SeparatorTab",
    "SeparatorSpace",
    "SeparatorSemicolon",
]
FORMAT_PARAMS: tuple[str, ...] = get_args(FormatParam)
MOST_ENTRIES = 10_000
"""Most entries of a list that a program sends."""
LONGEST_NAME = 4_000
_LARGEST_QUERY = 100_000


class VariableSelection(BaseModel):
    """What is selected of one variable."""

    variableCode: str
    codelist: str | None = Field(None, validation_alias=AliasChoices("codelist", "codeList"))
    valueCodes: list[str] = Field(default_factory=list, max_length=MOST_ENTRIES)


class Placement(BaseModel):
    """Which variables stand in columns, and which in rows."""

    heading: list[str] = Field(default_factory=list, max_length=100)
    stub: list[str] = Field(default_factory=list, max_length=100)


class VariablesSelection(BaseModel):
    """What is selected of a table; nothing gives the default selection."""

    selection: list[VariableSelection] = Field(default_factory=list, max_length=100)
    placement: Placement | None = None


class SavedQueryModel(BaseModel):
    """A query to be run again."""

    id: str | None = None
    selection: VariablesSelection
    language: str
    tableId: str
    outputFormat: OutputFormat = "json-stat2"
    outputFormatParams: list[FormatParam] = Field(default_factory=list, max_length=10)


class ProblemDetails(ClosedModel):
    """Why a request was not answered."""

    model_config = ConfigDict(title="Problem")

    type: str
    title: str
    status: int
    detail: str
    instance: str
    offers: list[dict[str, str]]


class Link(ClosedModel):
    """A link with its language."""

    rel: str
    hreflang: str
    href: str


class Named(ClosedModel):
    """A language, or a folder on the way to a table."""

    id: str
    label: str


class SourceReference(ClosedModel):
    """How to cite in a language."""

    language: str
    text: str


class Config(ClosedModel):
    """What the interface can do, and its limits."""

    apiVersion: str
    appVersion: str
    languages: list[Named]
    defaultLanguage: str
    maxDataCells: int
    maxCallsPerTimeWindow: int
    timeWindow: int
    license: str
    sourceReferences: list[SourceReference]
    defaultDataFormat: str
    dataFormats: list[str]
    features: list[dict[str, Any]]


class Table(ClosedModel):
    """A table in a list."""

    type: Literal["Table"]
    id: str
    label: str
    description: str
    updated: str | None
    firstPeriod: str
    lastPeriod: str
    category: Literal["public"]
    variableNames: list[str]
    discontinued: bool
    source: str
    timeUnit: Literal["Other"]
    paths: list[list[Named]]
    links: list[Link]


class TableResponse(Table):
    """A table."""

    language: str


class PageInfo(ClosedModel):
    """Where a part of the list stands."""

    pageNumber: int
    pageSize: int
    totalElements: int
    totalPages: int
    links: list[Link]


class TablesResponse(ClosedModel):
    """Tables, page by page."""

    language: str
    tables: list[Table]
    page: PageInfo
    links: list[Link]


class Folder(ClosedModel):
    """The one folder of a site, with all its tables."""

    language: str
    id: str
    label: str
    description: str
    tags: list[str]
    folderContents: list[Table]
    links: list[Link]


class ValueMap(ClosedModel):
    """A value of a code list and what it holds."""

    code: str
    label: str
    valueMap: list[str]


class CodeListResponse(ClosedModel):
    """A code list."""

    id: str
    label: str
    language: str
    languages: list[str]
    elimination: bool
    eliminationValueCode: str
    type: Literal["Aggregation", "Valueset"]
    values: list[ValueMap]
    links: list[Link]


class Dataset(JsonStat):
    """A JSON-stat 2.0 data set, with what the protocol adds."""

    href: str | None = None
    role: dict[str, list[str]]


class DefaultSelection(VariablesSelection):
    """What is selected when nothing is asked for."""

    language: str
    links: list[Link]


def name_of(query: SavedQueryModel) -> str:
    """The name of a saved query: its content, packed."""
    packed = zlib.compress(query.model_dump_json(exclude={"id"}, exclude_none=True).encode(), 9)
    name = base64.urlsafe_b64encode(packed).decode().rstrip("=")
    if len(name) > LONGEST_NAME:
        message = "The query is too long to be saved."
        raise Refusal("too_long", message, "Expressions such as * in place of many codes.")
    return name


def query_named(name: str) -> SavedQueryModel:
    """The inverse of `name_of`; a name that no query has is refused."""
    try:
        packed = base64.urlsafe_b64decode(name + "=" * (-len(name) % 4))
        unpacker = zlib.decompressobj()
        text = unpacker.decompress(packed, _LARGEST_QUERY)
        found = SavedQueryModel.model_validate_json(text)
    except (ValueError, ValidationError, zlib.error, binascii.Error):
        message = "There is no saved query of this name."
        raise Refusal("unknown_query", message, "Names that /savedqueries gave.", 404) from None
    return found.model_copy(update={"id": name})


_MOST_CELLS = 100_000  # of one answer, where policies allow more
MEDIA_TYPE = "application/problem+json"
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": "A problem, with what is allowed.",
        "content": {MEDIA_TYPE: {"schema": ProblemDetails.model_json_schema()}},
    }
    for status in (400, 403, 404)
}
Lang = Annotated[str | None, Query(description="The language, if not the default one.")]
TOO_LARGE = ("too_many_cells", "too_many_variables")
"""Refusals that the protocol answers with 403."""


def by_variable(name: str, help: str) -> dict[str, Any]:
    """A parameter with a variable in brackets, as OpenAPI describes it."""
    return {
        "name": name,
        "in": "query",
        "style": "deepObject",
        "explode": True,
        "description": help,
        "schema": {"type": "object", "additionalProperties": {"type": "string"}},
    }


VALUES = by_variable(
    "valueCodes",
    "Codes of a variable, valueCodes[V]=A,B; also *, A*, ?, top(N), bottom(N), range(A,B), "
    "from(A) and to(A).",
)
LISTS = by_variable("codelist", "A code list of a variable, codelist[V]=ID.")


def by_brackets(request: Request, kind: str) -> dict[str, str]:
    """Parameters with a variable in brackets, `valueCodes[age]`; several are joined by commas."""
    found: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        match = re.fullmatch(r"(\w+)\[(.+)\]", name)
        if match and match[1].lower() == kind:
            found[match[2]] = f"{found[match[2]]},{value}" if match[2] in found else value
    return found


def max_cells(site: Site) -> int:
    """The cells of one answer that every table allows."""
    told = [d.policy.max_cells for d in site.datasets.values() if d.policy.tells("max_cells")]
    return min([_MOST_CELLS, *told])


class ProblemRoute(APIRoute):
    """A route whose refusals are problem details; faults of ours go on to the guard."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler with refusals turned into answers."""
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            try:
                return await handler(request)
            except Refusal as refusal:
                return problem(request, refusal)
            except RequestValidationError as error:
                return problem(request, malformed_request(error.errors(), 400))
            except HTTPException:  # the body is no JSON
                message = "The body of the request cannot be read."
                return problem(request, Refusal("unreadable", message, "A body in JSON."))

        return handle


def problem(request: Request, refusal: Refusal) -> Response:
    """A refusal as problem details; `offers` are tables that would be answered."""
    status = 403 if refusal.code in TOO_LARGE else refusal.status
    request.scope["state"]["outcome"] = refusal.code
    told = {
        "type": f"urn:discreet:{refusal.code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": f"{refusal.public()} {refusal.allowed}",
        "instance": request.scope["state"]["path"],
        "offers": refusal.offers_json,
    }
    return JSONResponse(told, status, media_type=MEDIA_TYPE)
