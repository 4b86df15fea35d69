"""What programs and files are told of a table: title, source, notes, citation, in a language."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from fastapi import Request

from discreet.release.cube import Cube
from discreet.release.formats.write import About, Labels, Layout, Options
from discreet.serve.answer import Answer
from discreet.serve.api.reply import base_of, texts_of
from discreet.serve.site.site import Site, current_site
from discreet.serve.web.links import Addresses
from discreet.serve.web.notes import notes_of
from discreet.serve.web.texts import Texts
from discreet.serve.web.wording import caption_of, citation_of, populations_of

_SHARES = {"row": "row_percent", "column": "column_percent", "total": "total_percent"}


@dataclass(frozen=True, eq=False)
class Teller:
    """Who tells: a site, at an address, in a language.

    Attributes:
      site: The site.
      base: Its address, without a slash at its end.
      texts: The texts of the language.
    """

    site: Site
    base: str
    texts: Texts

    @classmethod
    def of(cls, request: Request) -> Teller:
        """Who answers a request."""
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


def written_cube(answer: Answer) -> Cube:
    """The figures that a file holds: as the view shows them, with every category of layers."""
    cube = answer.shown.with_labels([asked.variable.label for asked in answer.question.shown])
    if answer.query.view.totals:
        return cube
    for name in (*answer.rows, *answer.columns):
        codes = [entry.code for entry in cube.axis(name).entries if not entry.is_total]
        cube = cube.picked(name, codes) if codes else cube
    return cube
