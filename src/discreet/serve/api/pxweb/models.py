"""The shapes of the protocol: what programs send and get, and names that hold saved queries."""

from __future__ import annotations

import base64
import binascii
import zlib
from typing import Any, Literal, get_args

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from discreet.serve.api.models import ClosedModel, JsonStat
from discreet.serve.refusals import Refusal

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
