"""A table in words: its title, caption and citation, and the notes under it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from discreet.serve.answer import Answer
from discreet.serve.data.source import BudgetStatus, DetailedVariable
from discreet.serve.web.grid import layer_of
from discreet.serve.web.panel import unit_label
from discreet.serve.web.texts import LanguageText, Texts
from discreet.tables.protected import COUNT
from discreet.tables.statement import Sentence, Statement

_OFF = ("moves-at-most", "mean-zero", "variance", "never-published", "threshold", "multiples")
_SUMS = ("adds-up", "need-not-add-up")
_OF_SINGLE_CELLS = ("moves-at-most", "never-published", "threshold", "multiples", "same-everywhere")
"""What holds for a figure of the release, but not for sums of several of them."""


def title_of(answer: Answer, texts: Texts) -> str:
    """What the table shows: rows by columns, each with its level where there is a choice."""
    asked, said = answer.question, texts.table
    sides = [_join_labels(side, texts) for side in (asked.rows, asked.columns) if side]
    title = said.by.join(sides) or str(said.total)
    if asked.layers:
        title = said.layered.format(title=title, layers=_join_labels(asked.layers, texts))
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
    month = texts.site.months[day.month - 1]
    return str(texts.site.date.format(day=day.day, month=month, year=day.year))


@dataclass(frozen=True)
class TableNote:
    """A heading and sentences, each in its language."""

    title: str
    sentences: Sequence[LanguageText]


def notes_of(answer: Answer, texts: Texts) -> list[TableNote]:
    """What is said under a table, for every reader."""
    dataset, statement, said = answer.dataset, answer.cube.statement, texts.notes
    # Filters and groups of tables made on the fly add up protected figures, each with its noise.
    is_summed = dataset.is_live and bool(answer.query.where or answer.query.groups)
    shown = [LanguageText(text, "") for text in answer.groups]
    shown += [texts.translate(note) for note in answer.notes]
    found = [
        *statement_notes(statement, dataset.source.mode, texts, is_summed=is_summed),
        TableNote(said.shown, shown),
        TableNote(said.unit, _units(answer, texts)),
        TableNote(said.footnotes, [LanguageText(note, "") for note in dataset.about.footnotes]),
    ]
    return [note for note in found if note.sentences]


def statement_notes(
    statement: Statement, mode: str, texts: Texts, *, is_summed: bool = False
) -> list[TableNote]:
    """A statement in plain words, under the questions that readers have."""
    said = texts.notes
    kept = [s for s in statement.sentences if not (is_summed and s.kind in _OF_SINGLE_CELLS)]
    off = _plain(kept, _OFF, texts)
    if is_summed:
        off.append(LanguageText(said.summed, texts.code))
    elif not statement.says("moves-at-most"):
        off.append(LanguageText(said.no_reach, texts.code))
    how = said.once if mode == "release-once" else said.on_the_fly
    if mode != "release-once" and statement.privacy is not None:
        how = said.drawn  # every planned table has noise of its own
    others = [s for s in kept if s.kind not in (*_OFF, *_SUMS, "same-everywhere")]
    done = [*_plain(others, None, texts), LanguageText(how, texts.code)]
    found = [
        TableNote(said.done, done),
        TableNote(said.off, off),
        TableNote(said.sums, _plain(kept, _SUMS, texts)),
    ]
    return [note for note in found if note.sentences]


def budget_note(budget: BudgetStatus | None, texts: Texts) -> list[TableNote]:
    """What private tables of a data set may cost and have cost."""
    found = [] if budget is None else [texts.translate(budget.text)]
    return [TableNote(texts.notes.budget, found)] if found else []


def _join_labels(asked: Sequence[DetailedVariable], texts: Texts) -> str:
    return str(texts.table.and_.join(_label(one, texts) for one in asked))


def _label(asked: DetailedVariable, texts: Texts) -> str:
    """A variable inside a sentence, with its level where there is a choice."""
    level = texts.translate(asked.detail.label).text
    return f"{asked.variable.label_inside} ({level})" if level else asked.variable.label_inside


def _units(answer: Answer, texts: Texts) -> list[LanguageText]:
    """What the figures are; percentages of counts need no word on counts."""
    show = answer.query.view.show
    of_unit = [] if show != "count" and answer.cube.unit == COUNT else [f"{answer.cube.unit}_note"]
    of_share = [f"{show}_note"] if show != "count" else []
    found = [getattr(texts.units, name, "") for name in (*of_unit, *of_share)]
    return [LanguageText(text, texts.code) for text in found if text]


def _plain(
    sentences: Iterable[Sentence], kinds: Sequence[str] | None, texts: Texts
) -> list[LanguageText]:
    said = dict.fromkeys(s.plain for s in sentences if s.plain and (not kinds or s.kind in kinds))
    return [texts.translate(text) for text in said]
