"""Tables as files, in every format there is a writer for, with the metadata that go into them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from fastapi import APIRouter, Request
from fastapi.responses import Response

from discreet.release.cube import Cube
from discreet.release.formats.write import (
    LABELS,
    LAYOUTS,
    About,
    Labels,
    Layout,
    Options,
    Writer,
    writers,
)
from discreet.serve.answer import Answer
from discreet.serve.api.reply import base_of, reply, texts_of
from discreet.serve.query import Query
from discreet.serve.refusals import Refusal, T, one_of
from discreet.serve.site.site import Site, current_site
from discreet.serve.web.frame import Addresses
from discreet.serve.web.texts import Texts
from discreet.serve.web.wording import caption_of, citation_of, notes_of, populations_of

_SHARES = {"row": "row_percent", "column": "column_percent", "total": "total_percent"}
router = APIRouter()
_NOT_OF_THE_QUERY = ("layout", "labels", "lang", "format", "page", "page_size")


@dataclass(frozen=True, eq=False)
class TableDescriber:
    """What readers are told of the tables of a site, at an address and in a language.

    Attributes:
      site: The site.
      base: Its address, without a slash at its end.
      texts: The texts of the language.
    """

    site: Site
    base: str
    texts: Texts

    @classmethod
    def of(cls, request: Request) -> TableDescriber:
        """That of the site and the language of a request."""
        return cls(current_site(request), base_of(request), texts_of(request))

    def options(
        self, answer: Answer, layout: Layout | None = None, labels: Labels | None = None
    ) -> Options:
        """How an answer is written to a file."""
        measure = _SHARES.get(answer.query.view.show, "")
        return Options(layout, labels, answer.columns, measure, about=self.about(answer))

    def about(self, answer: Answer) -> About:
        """What readers are told of a table beside its figures."""
        dataset = answer.dataset
        footnotes = self.texts.notes.footnotes
        notes = [n for n in notes_of(answer, self.texts) if n.title != footnotes]
        return About(
            title=", ".join([caption_of(answer, self.texts), *populations_of(answer)]),
            name=dataset.name,
            source=dataset.about.source or self.site.title,
            licence=dataset.about.licence,
            contact=dataset.about.contact or self.site.config.contact,
            edition=dataset.edition,
            updated=dataset.about.day,
            address=self.address(answer),
            citation=self.citation(answer),
            notes=tuple(said.text for note in notes for said in note.sentences),
            footnotes=dataset.about.footnotes,
            language=self.texts.code,
        )

    def address(self, answer: Answer) -> str:
        """The page of a table."""
        return Addresses(self.base, answer.dataset.name).table(answer.query)

    def citation(self, answer: Answer) -> str:
        """How a table is cited today."""
        day = datetime.now(UTC).date()
        return citation_of(answer, self.site.title, self.address(answer), day, self.texts)


def file_cube(answer: Answer) -> Cube:
    """The figures that a file holds: as the view shows them, with every category of layers."""
    cube = answer.shown.with_labels([asked.variable.label for asked in answer.question.shown])
    if answer.query.view.totals:
        return cube
    for name in (*answer.rows, *answer.columns):
        codes = [entry.code for entry in cube.axis(name).entries if not entry.is_total]
        cube = cube.select(name, codes) if codes else cube
    return cube


@router.get("/d/{dataset}/table.{ending}", include_in_schema=False)
def download(request: Request, dataset: str, ending: str) -> Response:
    """The table of an address as a file to keep."""
    answer = current_site(request).dataset(dataset).answer(query_of(request))
    known = {writer.ending: writer for writer in writers()}
    if f".{ending}" not in known:
        message = f"There is no format .{ending}."
        raise Refusal("unknown_format", message, f"Endings: {', '.join(known)}.", 404)
    name = f"{dataset}-{'-'.join(answer.rows + answer.columns)}"
    safe = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")
    file = f"{safe}.{ending}"
    headers = {"Content-Disposition": f'attachment; filename="{file}"'}
    return file_reply(request, answer, known[f".{ending}"], file, headers)


def file_reply(
    request: Request, answer: Answer, writer: Writer, file: str, headers: dict[str, str]
) -> Response:
    """An answer in a format, as a file of this name or address."""
    layout, labels = _wish(request, "layout", LAYOUTS), _wish(request, "labels", LABELS)
    options = replace(TableDescriber.of(request).options(answer, layout, labels), file=file)
    return reply(request, writer.write(file_cube(answer), options), writer.media_type, headers)


def query_of(request: Request) -> Query:
    """The query of an address, without what belongs to files and pages of results."""
    given = request.query_params.multi_items()
    return Query.parse((k, v) for k, v in given if k not in _NOT_OF_THE_QUERY)


def format_named(name: str) -> Writer:
    """The writer of a format, or a refusal that names those there are."""
    known = {writer.name: writer for writer in writers()}
    if name not in known:
        message = f"There is no format {name!r}."
        raise Refusal("unknown_format", message, f"Formats: {', '.join(known)}.", 404)
    return known[name]


def _wish(request: Request, name: str, allowed: Sequence[T]) -> T | None:
    """How a file is laid out, where the address says so."""
    wish = request.query_params.get(name)
    return None if wish is None else one_of(name, wish, allowed)
