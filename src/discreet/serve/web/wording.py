"""Titles, captions and citations of a table in a language."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from discreet.serve.answer import Answer
from discreet.serve.data.source import DetailedVariable
from discreet.serve.web.panel import unit_label
from discreet.serve.web.sheet import layer_of
from discreet.serve.web.texts import Texts


def title_of(answer: Answer, texts: Texts) -> str:
    """What the table shows: rows by columns, each with its level where there is a choice."""
    asked, said = answer.question, texts.table
    sides = [_joined(side, texts) for side in (asked.rows, asked.columns) if side]
    title = said.by.join(sides) or str(said.total)
    if asked.layers:
        title = said.layered.format(title=title, layers=_joined(asked.layers, texts))
    return title[:1].upper() + title[1:]


def caption_of(answer: Answer, texts: Texts) -> str:
    """The title with what the figures are."""
    title, unit = title_of(answer, texts), unit_label(answer.cube.unit, texts)
    show = answer.query.view.show
    if show == "count":
        return str(texts.table.caption.format(unit=unit, title=title))
    share = texts.table.total_share if show == "total" else getattr(texts.table, show)
    of = getattr(texts.units, f"{answer.cube.unit}_of", unit)
    return str(texts.table.caption_share.format(share=share, unit=of, title=title))


def layers_of(answer: Answer, texts: Texts) -> list[str]:
    """For each layer its variable and the category that is shown."""
    found = []
    for asked in answer.question.layers:
        axis = answer.cube.axis(asked.name)
        entry = axis.entries[axis.place(layer_of(axis, answer.query.view))]
        found.append(f"{asked.variable.label}: {entry.label}")
    return found


def populations_of(answer: Answer) -> list[str]:
    """For each filter its variable and the categories that are counted."""
    return [
        f"{variable.label}: {', '.join(variable.labels_of(codes))}"
        for name, codes in sorted(answer.query.where.items())
        for variable in [answer.question.asked(name).variable]
    ]


def citation_of(answer: Answer, publisher: str, address: str, day: date, texts: Texts) -> str:
    """How the table is cited, with date and edition."""
    dataset = answer.dataset
    said: str = texts.take.citation.format(
        publisher=dataset.about.source or publisher,
        title=", ".join([title_of(answer, texts), *populations_of(answer)]),
        dataset=dataset.title,
        edition=dataset.edition,
        date=written_date(day, texts),
        address=address,
    )
    return said


def written_date(day: date, texts: Texts) -> str:
    """A day as readers of a language write it."""
    months: Sequence[str] = texts.site.months
    return str(texts.site.date.format(day=day.day, month=months[day.month - 1], year=day.year))


def _joined(asked: Sequence[DetailedVariable], texts: Texts) -> str:
    return str(texts.table.and_.join(_label(one, texts) for one in asked))


def _label(asked: DetailedVariable, texts: Texts) -> str:
    """A variable inside a sentence, with its level where there is a choice."""
    level = texts.translated(asked.detail.label).text
    return f"{asked.variable.label_inside} ({level})" if level else asked.variable.label_inside
