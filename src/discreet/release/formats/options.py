"""What a file says of its table, and how the table is laid out in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from discreet.errors import ParameterError
from discreet.release.cube import Cube

Layout = Literal["long", "wide"]
Labels = Literal["codes", "labels", "both"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)
LABELS: tuple[Labels, ...] = get_args(Labels)
SEPARATORS = (",", ";", "\t", " ")


@dataclass(frozen=True)
class About:
    """What readers are told of a table beside its figures; parts that are empty are left out.

    Attributes:
      title: What the table shows.
      name: A short name for programs.
      source: Who made the figures.
      licence: The terms of use.
      contact: Who answers questions.
      edition: The edition of the data set.
      updated: The day of the edition, `2026-11-16`.
      address: Where the table can be asked for again.
      citation: How the table is cited.
      notes: What was done to the figures, in plain words; the statement's own where it is empty.
      footnotes: What readers must know of the data.
      language: The language of titles, labels and notes.
    """

    title: str = ""
    name: str = "table"
    source: str = ""
    licence: str = ""
    contact: str = ""
    edition: str = ""
    updated: str = ""
    address: str = ""
    citation: str = ""
    notes: tuple[str, ...] = ()
    footnotes: tuple[str, ...] = ()
    language: str = "en"

    def said(self, cube: Cube) -> Iterator[tuple[str, str]]:
        """Everything that is known of the table, as pairs of a heading and a text."""
        named = {
            "Title": self.title,
            "Source": self.source,
            "Edition": self.edition,
            "Updated": self.updated,
            "Licence": self.licence,
            "Contact": self.contact,
            "Address": self.address,
            "Citation": self.citation,
        }
        yield from ((heading, text) for heading, text in named.items() if text)
        yield from (("Note", text) for text in self.plain_notes(cube))
        yield from (("Footnote", text) for text in self.footnotes)
        if cube.statement.text:
            yield "Statement", cube.statement.text

    def plain_notes(self, cube: Cube) -> tuple[str, ...]:
        """The notes, or what the statement says in plain words."""
        return self.notes or tuple(text for text in [cube.statement.plain] if text)


@dataclass(frozen=True)
class Options:
    """How a cube is written.

    Attributes:
      layout: `"long"`, a row per cell, or `"wide"`, rows and columns as on a page; what suits the
        format if absent.
      labels: Whether categories stand with their codes, their labels, or both.
      columns: The variables in columns of a wide table; the last one if empty.
      measure: The name of the figures, `"count"` or `"row per cent"`; the cube's unit if empty.
      separator: What stands between the fields of a CSV file.
      file: The name or address of the file, where it is known; the metadata of a CSV file name it.
      dataflow: The SDMX data flow, `EXAMPLE:TURNOVER(1.0)`; one is made of the name if empty.
      about: What readers are told beside the figures.
    """

    layout: Layout | None = None
    labels: Labels | None = None
    columns: tuple[str, ...] = ()
    measure: str = ""
    separator: str = ","
    file: str = ""
    dataflow: str = ""
    about: About = field(default_factory=About)

    def __post_init__(self) -> None:
        _check("layout", self.layout, (None, *LAYOUTS))
        _check("labels", self.labels, (None, *LABELS))
        _check("separator", self.separator, SEPARATORS)

    def suited(self, layout: Layout, labels: Labels) -> Options:
        """These options, with what suits a format where nothing was asked for."""
        return replace(self, layout=self.layout or layout, labels=self.labels or labels)

    def measure_of(self, cube: Cube) -> str:
        """What the figures are called."""
        return self.measure or cube.unit


def _check(name: str, value: str | None, allowed: tuple[str | None, ...]) -> None:
    if value not in allowed:
        listed = ", ".join(repr(v) for v in allowed if v)
        raise ParameterError(f"{name} cannot be {value!r}; it is one of {listed}.")


PLAIN = Options()
"""What is written when nothing is asked for."""
