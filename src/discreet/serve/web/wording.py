"""Titles, captions and citations of a table in a language."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from discreet.serve.answer import Answer
from discreet.serve.question import Asked
from discreet.serve.web.panel import unit_label
from discreet.serve.web.sheet import layer_of
from discreet.serve.web.texts import Texts


def title_of(answer: Answer, texts: Texts) -> str:
    """What the table shows: its variables, each with the level where there is a choice."""
    shown = answer.question.shown
    if not shown:
        return str(texts.table.total)
    labels = [_label(a, texts, is_first=k == 0) for k, a in enumerate(shown)]
    if len(labels) == 1:
        return labels[0]
    said = texts.table
    return f"{said.and_.join(labels[:-1])}{said.by}{labels[-1]}"


def caption_of(answer: Answer, texts: Texts) -> str:
    """The title with what the figures are."""
    title, unit = title_of(answer, texts), unit_label(answer.unit, texts)
    show = answer.query.view.show
    if show == "count":
        return str(texts.table.caption.format(unit=unit, title=title))
    share = texts.table.total_share if show == "total" else getattr(texts.table, show)
    of = getattr(texts.units, f"{answer.unit}_of", unit)
    return str(texts.table.caption_share.format(share=share, unit=of, title=title))


def layers_of(answer: Answer, texts: Texts) -> list[str]:
    """For each layer its variable and the category that is shown."""
    found = []
    for asked in answer.question.layers:
        axis = answer.cube.axis(asked.name)
        code = layer_of(axis, answer.query.view)
        entry = axis.entries[axis.place(code)]
        found.append(f"{asked.variable.label}: {entry.label}")
    return found


def populations_of(answer: Answer) -> list[str]:
    """For each filter its variable and the categories that are counted."""
    found = []
    for name, codes in sorted(answer.query.where.items()):
        asked = answer.question.asked(name)
        labels = {e.code: e.label for e in asked.entries}
        found.append(f"{asked.variable.label}: {', '.join(labels.get(c, c) for c in codes)}")
    return found


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


def _label(asked: Asked, texts: Texts, *, is_first: bool) -> str:
    label = asked.variable.label if is_first else asked.variable.label_inside
    level = texts.translated(asked.detail.label).text
    return f"{label} ({level})" if level else label
