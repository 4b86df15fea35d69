"""The shapes of answers to programs, for the OpenAPI document and those who read it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Figure = int | float | None


class Model(BaseModel):
    """A shape with these entries and no others."""

    model_config = ConfigDict(extra="forbid")


class Offer(Model):
    """A table near to one that was refused, which would be answered."""

    label: str
    address: str = Field(description="The query string of the table.")


class Refused(Model):
    """Why a request was not answered."""

    code: str = Field(description="A short name of the reason, for programs.")
    message: str = Field(description="What was asked and why it is refused.")
    what_is_allowed: str
    offers: list[Offer]


class ErrorModel(Model):
    """The one shape of an error."""

    error: Refused


class Links(Model):
    """Addresses that belong to an answer; those that lead nowhere are null."""

    self: str
    next: str | None = None
    previous: str | None = None
    table: str | None = None
    metadata: str | None = None
    page: str | None = Field(None, description="The page for people.")


class PageModel(Model):
    """Where a part of a longer list stands."""

    number: int = Field(description="The number of this page; the first is 1.")
    size: int = Field(description="Most items on a page.")
    pages: int
    items: int = Field(description="Items on all pages together.")


class SentenceModel(Model):
    """One thing that a statement says."""

    kind: str
    about: Literal["values", "process", "limits"]
    text: str
    plain: str


class StepModel(Model):
    """One step between the records and the figures."""

    name: str
    parameters: dict[str, Any]
    sentences: list[SentenceModel]


class StatementModel(Model):
    """What was done to the figures, and what it promises and does not."""

    text: str
    plain: str
    steps: list[StepModel]
    privacy: dict[str, Any] | None
    version: str


class CodeModel(Model):
    """A category."""

    code: str
    label: str
    depth: int = Field(description="How deep it stands; the total has depth 0.")


class CodedVariable(Model):
    """A variable of a table with its categories."""

    name: str
    label: str
    codes: list[CodeModel]


class DetailModel(Model):
    """A variable in the detail that a table shows."""

    name: str = Field(description="What rows, columns and layers name: region or region[province].")
    label: str
    cells: int = Field(description="Categories, the total included.")


class VariableModel(Model):
    """A variable on offer."""

    name: str
    label: str
    details: list[DetailModel]
    codes: str = Field(description="The address of its categories.")


class VariableCodes(Model):
    """The categories of a variable in one detail."""

    name: str
    label: str
    detail: str
    codes: list[CodeModel]
    page: PageModel
    links: Links


class DatasetSummary(Model):
    """A data set in the catalogue."""

    name: str
    title: str
    description: str
    edition: str
    date: str
    source: str
    licence: str
    contact: str
    closed: bool
    links: Links


class DatasetList(Model):
    """The data sets of a site."""

    datasets: list[DatasetSummary]
    page: PageModel
    links: Links


class DatasetModel(DatasetSummary):
    """A data set: what is on offer and what is done to its figures."""

    mode: Literal["release-once", "on-the-fly"]
    units: list[str]
    variables: list[VariableModel]
    footnotes: list[str]
    limits: dict[str, Any]
    first_table: str = Field(description="The query string of a table to start from.")
    statement: StatementModel


class TableModel(Model):
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


class Category(Model):
    """The values of a dimension."""

    index: dict[str, int]
    label: dict[str, str]
    child: dict[str, list[str]] | None = None
    unit: dict[str, dict[str, Any]] | None = None


class Dimension(Model):
    """A variable with its values."""

    label: str
    category: Category
    extension: dict[str, Any] | None = None


class JsonStat(Model):
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


class FormatModel(Model):
    """A file format."""

    name: str
    title: str
    ending: str
    media_type: str


class FormatList(Model):
    """The file formats of tables."""

    formats: list[FormatModel]
    layout: list[str]
    labels: list[str]


class RateModel(Model):
    """How often a visitor may ask; 0 requests a second set no limit."""

    requests_per_second: float
    burst: int


class DatasetLimits(Model):
    """What may be asked of a data set."""

    name: str
    closed: bool
    limits: dict[str, Any]


class LimitsModel(Model):
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


class Snippet(Model):
    """Program text that returns the table."""

    name: str
    text: str


class SnippetList(Model):
    """The table of an address in several languages for programs."""

    snippets: list[Snippet]


class IndexModel(Model):
    """Where to start."""

    title: str
    version: str
    links: dict[str, str]
