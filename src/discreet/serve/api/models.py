"""The shapes of questions and answers of programs, for the OpenAPI document and its readers."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from discreet.release.formats.write import LABELS, LAYOUTS
from discreet.serve.query import BY_VARIABLE, CHARTS, SHOWS

Figure = int | float | None
_MANY = {"type": "array", "items": {"type": "string"}}


class ClosedModel(BaseModel):
    """A shape with these entries and no others."""

    model_config = ConfigDict(extra="forbid")


class Offer(ClosedModel):
    """A table near to one that was refused, which would be answered."""

    label: str
    address: str = Field(description="The query string of the table.")


class Refused(ClosedModel):
    """Why a request was not answered."""

    code: str = Field(description="A short name of the reason, for programs.")
    message: str = Field(description="What was asked and why it is refused.")
    what_is_allowed: str
    offers: list[Offer]


class ErrorModel(ClosedModel):
    """The one shape of an error."""

    error: Refused


class Links(ClosedModel):
    """Addresses that belong to an answer; those that lead nowhere are null."""

    self: str
    next: str | None = None
    previous: str | None = None
    table: str | None = None
    metadata: str | None = None
    page: str | None = Field(None, description="The page for people.")


class PageModel(ClosedModel):
    """Where a part of a longer list stands."""

    number: int = Field(description="The number of this page; the first is 1.")
    size: int = Field(description="Most items on a page.")
    pages: int
    items: int = Field(description="Items on all pages together.")


class SentenceModel(ClosedModel):
    """One thing that a statement says."""

    kind: str
    about: Literal["values", "process", "limits"]
    text: str
    plain: str


class StepModel(ClosedModel):
    """One step between the records and the figures."""

    name: str
    parameters: dict[str, Any]
    sentences: list[SentenceModel]


class StatementModel(ClosedModel):
    """What was done to the figures, and what it promises and does not."""

    text: str
    plain: str
    steps: list[StepModel]
    privacy: dict[str, Any] | None
    version: str


class CodeModel(ClosedModel):
    """A category."""

    code: str
    label: str
    depth: int = Field(description="How deep it stands; the total has depth 0.")


class CodedVariable(ClosedModel):
    """A variable of a table with its categories."""

    name: str
    label: str
    codes: list[CodeModel]


class DetailModel(ClosedModel):
    """A variable in the detail that a table shows."""

    name: str = Field(description="What rows, columns and layers name: region or region[province].")
    label: str
    cells: int = Field(description="Categories, the total included.")


class VariableModel(ClosedModel):
    """A variable on offer."""

    name: str
    label: str
    details: list[DetailModel]
    codes: str = Field(description="The address of its categories.")


class VariableCodes(ClosedModel):
    """The categories of a variable in one detail."""

    name: str
    label: str
    detail: str
    codes: list[CodeModel]
    page: PageModel
    links: Links


class DatasetSummary(ClosedModel):
    """A data set in the catalogue."""

    name: str
    title: str
    description: str
    edition: str
    topic: str
    updated: str
    date: str
    source: str
    licence: str
    contact: str
    closed: bool
    links: Links


class DatasetList(ClosedModel):
    """The data sets of a site."""

    datasets: list[DatasetSummary]
    page: PageModel
    links: Links


class MeasureModel(ClosedModel):
    """A sum or a mean beside the counts."""

    name: str
    title: str
    mean_of: str | None
    crossings: list[list[str]]


class DatasetModel(DatasetSummary):
    """A data set: what is on offer and what is done to its figures."""

    mode: Literal["release-once", "on-the-fly"]
    units: list[str]
    measures: list[MeasureModel]
    variables: list[VariableModel]
    footnotes: list[str]
    limits: dict[str, Any]
    first_table: str = Field(description="The query string of a table to start from.")
    statement: StatementModel


class TableModel(ClosedModel):
    """A table; `cells` has a row for each cell, as `columns` names them."""

    title: str
    name: str
    edition: str
    updated: str
    source: str
    licence: str
    contact: str
    address: str
    citation: str
    language: str
    unit: str
    measure: str
    variables: list[CodedVariable]
    notes: list[str]
    footnotes: list[str]
    statement: StatementModel
    columns: list[str]
    cells: list[list[str | Figure]]
    page: PageModel
    links: Links


class Category(ClosedModel):
    """The values of a dimension."""

    index: dict[str, int]
    label: dict[str, str]
    child: dict[str, list[str]] | None = None
    unit: dict[str, dict[str, Any]] | None = None


class Dimension(ClosedModel):
    """A variable with its values."""

    label: str
    category: Category
    extension: dict[str, Any] | None = None


class JsonStat(ClosedModel):
    """A table as a JSON-stat 2.0 data set."""

    model_config = ConfigDict(populate_by_name=True)

    version: Literal["2.0"]
    class_: Literal["dataset"] = Field(alias="class")
    label: str
    source: str
    updated: str | None = None
    note: list[str] = Field(default_factory=list)
    id: list[str]
    size: list[int]
    dimension: dict[str, Dimension]
    value: list[Figure] | None
    status: dict[str, str] | None = None
    extension: dict[str, Any]


class FormatModel(ClosedModel):
    """A file format."""

    name: str
    title: str
    ending: str
    media_type: str


class FormatList(ClosedModel):
    """The file formats of tables."""

    formats: list[FormatModel]
    layout: list[str]
    labels: list[str]


class RateModel(ClosedModel):
    """How often a visitor may ask; 0 requests a second set no limit."""

    requests_per_second: float
    burst: int


class DatasetLimits(ClosedModel):
    """What may be asked of a data set."""

    name: str
    closed: bool
    limits: dict[str, Any]


class LimitsModel(ClosedModel):
    """Everything that limits a program, and whom to ask and cite."""

    title: str
    contact: str
    citation: str
    languages: list[str]
    max_query_length: int
    max_page_size: int
    rate: RateModel
    formats: list[str]
    datasets: list[DatasetLimits]


class Snippet(ClosedModel):
    """Program text that returns the table."""

    name: str
    text: str


class SnippetList(ClosedModel):
    """The table of an address in several languages for programs."""

    snippets: list[Snippet]


class IndexModel(ClosedModel):
    """Where to start."""

    title: str
    version: str
    links: dict[str, str]


def _parameter(name: str, help: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "description": help, "schema": schema}


def _one_of(values: Any) -> dict[str, Any]:
    return {"type": "string", "enum": list(values)}


TABLE_PARAMETERS: list[dict[str, Any]] = [
    _parameter("rows", "Variables or levels in rows: region or region[province].", _MANY),
    _parameter("columns", "Variables or levels in columns.", _MANY),
    _parameter("layers", "Variables or levels of which a page shows one category.", _MANY),
    _parameter("unit", "What is published: count, weight or a measure.", {"type": "string"}),
    _parameter("show", "Figures, or per cent of what.", _one_of(SHOWS)),
    _parameter("totals", "Whether totals are part of the table.", _one_of(["0", "1"])),
    _parameter("sort", "The column by which a page sorts rows.", {"type": "string"}),
    _parameter("chart", "The chart that a page draws.", _one_of(CHARTS)),
    {
        **_parameter(
            "by variable",
            "Parameters with a variable behind a dot: pick.V (categories that are shown), where.V "
            "(categories that make the population), group.V=LABEL|CODE|CODE (a group of "
            "categories), layer.V and fold.V (what a page shows). All but layer.V can be repeated.",
            {
                "type": "object",
                "propertyNames": {"pattern": rf"^({'|'.join(BY_VARIABLE)})\..+$"},
                "additionalProperties": _MANY,
            },
        ),
        "style": "form",
        "explode": True,
    },
]
LANGUAGE_PARAMETER = _parameter("lang", "The language of titles and notes.", {"type": "string"})
FILE_PARAMETERS: list[dict[str, Any]] = [
    _parameter("layout", "A row per cell, or rows and columns.", _one_of(LAYOUTS)),
    _parameter("labels", "How categories stand in a file.", _one_of(LABELS)),
]
