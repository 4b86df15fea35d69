"""The shapes of the protocol: what programs send and get, problems, and names of saved queries."""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlencode

from fastapi import Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError
from starlette.exceptions import HTTPException

from discreet.serve.api.models import ClosedModel, JsonStat
from discreet.serve.api.reply import base_of, shared_headers, site_of
from discreet.serve.data.dataset import Dataset
from discreet.serve.refusals import PROBLEM, Refusal, as_problem, malformed_request
from discreet.serve.site.site import Site

ROOT = "/api/pxweb/v2"
FOLDER = "tables"  # the one folder that a site has
CONTENTS = "ContentsCode"  # the variable of what is published, by the protocol
OutputFormat = Literal["json-stat2", "csv", "px", "xlsx", "html", "json-px", "parquet"]
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


class PlacementModel(BaseModel):
    """Which variables stand in columns, and which in rows."""

    heading: list[str] = Field(default_factory=list, max_length=100)
    stub: list[str] = Field(default_factory=list, max_length=100)


class VariablesSelection(BaseModel):
    """What is selected of a table; an empty list gives the default selection."""

    selection: list[VariableSelection] = Field(max_length=100)
    placement: PlacementModel | None = None


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


class TableListing(ClosedModel):
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
    timeUnit: Literal["Annual", "Quarterly", "Monthly", "Weekly", "Other"]
    subjectCode: str
    paths: list[list[Named]]
    links: list[Link]


class TableResponse(TableListing):
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
    tables: list[TableListing]
    page: PageInfo
    links: list[Link]


class Folder(ClosedModel):
    """The one folder of a site, with all its tables."""

    language: str
    id: str
    label: str
    description: str
    tags: list[str]
    folderContents: list[TableListing]
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


class JsonStatDataset(JsonStat):
    """A JSON-stat 2.0 data set, with what the protocol adds."""

    href: str | None = None
    role: dict[str, list[str]]


class JsonPxColumn(ClosedModel):
    """A column: a variable (d), that of time (t), or what is published (c)."""

    code: str
    text: str
    type: Literal["d", "t", "c"]


class JsonPxRow(ClosedModel):
    """The codes of a combination, and its figures as texts."""

    key: list[str]
    values: list[str]


class JsonPx(ClosedModel):
    """Data as rows, the older JSON of the protocol."""

    columns: list[JsonPxColumn]
    comments: list[dict[str, str]]
    data: list[JsonPxRow]
    metadata: list[dict[str, Any]]


class SavedQueryResponse(ClosedModel):
    """A saved query with its name."""

    language: str
    id: str
    savedQuery: SavedQueryModel
    links: list[Link]


class SelectionResponse(VariablesSelection):
    """What is selected, code by code."""

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
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": "A problem, with what is allowed.",
        "content": {PROBLEM: {"schema": ProblemDetails.model_json_schema()}},
    }
    for status in (400, 403, 404, 429)
}
Lang = Annotated[str | None, Query(description="The language, if not the default one.")]


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


@dataclass(frozen=True)
class CallLimit:
    """How often a program may call: so many times in a window of so many seconds."""

    calls: int
    seconds: int = 10

    @classmethod
    def of(cls, request: Request) -> CallLimit:
        """That of the office of a site."""
        accounts = request.app.state.office.config.accounts
        most = min(accounts.burst, int(accounts.rate * cls.seconds)) if accounts.rate else 1_000_000
        return cls(max(1, most))


def table_named(request: Request, name: str) -> Dataset:
    """The table of this name, in capitals or not."""
    return site_of(request).dataset(name.lower())


def max_cells(site: Site) -> int:
    """The cells of one answer that every table allows."""
    told = [d.policy.max_cells for d in site.datasets.values() if d.policy.tells("max_cells")]
    return min([_MOST_CELLS, *told])


class ProblemRoute(APIRoute):
    """A route whose refusals are problem details; faults of ours go on to the guard.

    Capitals in the names of parameters make no difference.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler with refusals turned into answers."""
        handler = super().get_route_handler()
        names = {field.alias.lower(): field.alias for field in self.dependant.query_params}

        async def handle(request: Request) -> Response:
            try:
                return await handler(_with_names(request, names))
            except Refusal as refusal:
                return self.refuse(request, refusal)
            except RequestValidationError as error:
                return self.refuse(request, malformed_request(error.errors(), 400))
            except HTTPException:  # the body is no JSON
                message = "The body of the request cannot be read."
                return self.refuse(request, Refusal("unreadable", message, "A body in JSON."))

        return handle

    def refuse(self, request: Request, refusal: Refusal) -> Response:
        """A refusal as problem details; `offers` are tables that would be answered."""
        request.scope["state"]["outcome"] = refusal.code
        told = as_problem(refusal, f"{base_of(request)}{request.scope['state']['path']}")
        return JSONResponse(told, told["status"], shared_headers(request), media_type=PROBLEM)


def _with_names(request: Request, names: Mapping[str, str]) -> Request:
    """The request with its parameters as the route spells them."""
    given = request.query_params.multi_items()
    if all(name in names.values() or name.lower() not in names for name, _ in given):
        return request
    spelt = urlencode([(names.get(name.lower(), name), value) for name, value in given])
    return Request({**request.scope, "query_string": spelt.encode()}, request.receive)
