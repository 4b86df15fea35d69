"""What files say of an answer: title, source, notes and citation in a language."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from discreet.release.cube import Cube
from discreet.release.formats.options import About, Options
from discreet.serve.answer import Answer
from discreet.serve.site.site import Site
from discreet.serve.web.links import Addresses
from discreet.serve.web.notes import notes_of
from discreet.serve.web.texts import Texts
from discreet.serve.web.wording import caption_of, citation_of, populations_of

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_SHARES = {"row": "row_percent", "column": "column_percent", "total": "total_percent"}


def options_of(answer: Answer, site: Site, base: str, texts: Texts, **layout: str) -> Options:
    """How an answer is written to a file.

    Args:
      answer: The table.
      site: The site that it comes from.
      base: The address of the site.
      texts: The texts of a language.
      **layout: `layout`, `labels` and `separator`, where they are asked for.
    """
    return Options(
        columns=answer.columns,
        measure=_SHARES.get(answer.query.view.show, ""),
        about=about_of(answer, site, base, texts),
        **layout,  # type: ignore[arg-type]
    )


def about_of(answer: Answer, site: Site, base: str, texts: Texts) -> About:
    """What readers are told of a table beside its figures."""
    dataset, day = answer.dataset, datetime.now(UTC).date()
    address = Addresses(base, dataset.name).table(answer.query)
    footnotes = texts.notes.footnotes
    notes = [n for n in notes_of(answer, texts).plain if n.title != footnotes]
    return About(
        title=", ".join([caption_of(answer, texts), *populations_of(answer)]),
        name=dataset.name,
        source=dataset.about.source or site.title,
        licence=dataset.about.licence,
        contact=dataset.about.contact or site.config.contact,
        edition=dataset.edition,
        updated=dataset.about.date if _DAY.fullmatch(dataset.about.date) else "",
        address=address,
        citation=citation_of(answer, site.title, address, day, texts),
        notes=tuple(said.text for note in notes for said in note.sentences),
        footnotes=dataset.about.footnotes,
        language=texts.code,
    )


def written_cube(answer: Answer) -> Cube:
    """The figures that a file holds: as the view shows them, with every category of layers."""
    cube = answer.shown.with_labels([asked.variable.label for asked in answer.question.shown])
    if answer.query.view.totals:
        return cube
    for name in (*answer.rows, *answer.columns):
        codes = [entry.code for entry in cube.axis(name).entries if not entry.is_total]
        cube = cube.picked(name, codes) if codes else cube
    return cube
