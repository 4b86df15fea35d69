"""What pages say: a table in words, its notes, and variables and categories in the panel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from discreet.release.cube import CubeEntry
from discreet.serve import moves
from discreet.serve.answer import Answer, in_one_period, shares_over
from discreet.serve.data.dataset import Dataset
from discreet.serve.data.source import BudgetStatus, Detail, DetailedVariable, OfferedVariable
from discreet.serve.moves import Placed
from discreet.serve.query import Query, Show
from discreet.serve.web.grid import layer_of
from discreet.serve.web.texts import LanguageText, Texts
from discreet.tables.protected import COUNT
from discreet.tables.statement import Sentence, Statement

_OFF = ("moves-at-most", "mean-zero", "variance", "never-published", "threshold", "multiples")
_SUMS = ("adds-up", "need-not-add-up")
_OF_SINGLE_CELLS = ("moves-at-most", "never-published", "threshold", "multiples", "same-everywhere")
"""What holds for a figure of the release, but not for sums of several of them."""
_EXACT = "shown-is-true"
_SIZES = ("variables", "cells")
PICK, WHERE, GROUP = "pick", "where", "group"
NEW_LABEL, NEW_CODE, NEW_OF = "new.label", "new.code", "new.of"
"""Parameters of the form that makes a group; the page turns them into one of the query."""


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
    title, unit = title_of(answer, texts), unit_of(answer, texts)
    show = answer.query.view.show
    if show == "count":
        return str(texts.table.caption.format(unit=unit, title=title))
    share = texts.table.total_share if show == "total" else getattr(texts.table, show)
    measure = answer.dataset.measures.get(answer.question.unit)
    of = measure.title if measure else getattr(texts.units, f"{answer.cube.unit}_of", unit)
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
    counted = [name for name in answer.query.where if name != dataset.time]
    measure = dataset.measures.get(answer.question.unit)
    is_summed = bool((dataset.is_live or measure) and (counted or answer.query.groups))
    mode = "tables" if measure else dataset.source.mode
    shown = [LanguageText(text, "") for text in answer.groups]
    shown += [texts.translate(note) for note in answer.notes]
    found = [
        *statement_notes(statement, mode, texts, is_summed=is_summed),
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
    if statement.says(_EXACT):
        pass  # what is shown is true, and so are its sums
    elif is_summed:
        off.append(LanguageText(said.summed, texts.code))
    elif not statement.says("moves-at-most"):
        off.append(LanguageText(said.no_reach, texts.code))
    how = {"release-once": said.once, "tables": said.in_tables}.get(mode, said.on_the_fly)
    if mode == "on-the-fly" and statement.privacy is not None:
        how = said.drawn  # every planned table has noise of its own
    others = [s for s in kept if s.kind not in (*_OFF, *_SUMS, "same-everywhere")]
    done = [*_plain(others, None, texts), LanguageText(how, texts.code)]
    found = [
        TableNote(said.done, done),
        TableNote(said.off, off),
        TableNote(said.sums, _plain(kept, _SUMS, texts)),
    ]
    return [note for note in found if note.sentences]


def measure_notes(dataset: Dataset, texts: Texts) -> list[TableNote]:
    """What was done to each sum of a data set beside its counts."""
    how = [LanguageText(text, texts.code) for text in (texts.units.sum_note, texts.notes.in_tables)]
    return [
        TableNote(dataset.measures[name].label, [*how, *_plain(done.sentences, None, texts)])
        for name, done in dataset.statements_of_sums.items()
    ]


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
    show, measure = answer.query.view.show, answer.dataset.measures.get(answer.question.unit)
    if measure:
        names = ["mean_note" if measure.is_mean else "sum_note"]
        names += [f"{show}_note"] if show != "count" else []
        return [LanguageText(getattr(texts.units, name), texts.code) for name in names]
    of_unit = [] if show != "count" and answer.cube.unit == COUNT else [f"{answer.cube.unit}_note"]
    of_share = [f"{show}_note"] if show != "count" else []
    found = [getattr(texts.units, name, "") for name in (*of_unit, *of_share)]
    return [LanguageText(text, texts.code) for text in found if text]


def _plain(
    sentences: Iterable[Sentence], kinds: Sequence[str] | None, texts: Texts
) -> list[LanguageText]:
    said = dict.fromkeys(s.plain for s in sentences if s.plain and (not kinds or s.kind in kinds))
    return [texts.translate(text) for text in said]


def detail_label(detail: Detail, texts: Texts) -> str:
    """A level's name for readers."""
    label = texts.translate(detail.label).text
    return label[:1].upper() + label[1:]


def summary_of(query: Query, one: Placed, texts: Texts) -> str:
    """How many categories or groups of a variable are shown."""
    groups, picked = query.groups.get(one.name), query.picked.get(one.name)
    if groups:
        return texts.count("groups", len(groups))
    codes = {entry.code for entry in one.entries}
    n = len([entry for entry in one.entries if not entry.is_total])
    if picked:
        format_number = texts.numbers.format
        shown = format_number(len({*picked} & codes))
        return str(texts.build.categories.format(shown=shown, all=format_number(n)))
    return texts.count("categories", n)


def layer_entries(query: Query, one: Placed) -> tuple[CubeEntry, ...]:
    """The categories of a layer, one of which is shown; the total, or the last period, first."""
    groups, picked = query.groups.get(one.name), query.picked.get(one.name)
    if one.variable.is_time:
        return tuple(e for e in reversed(one.entries) if not picked or e.code in picked)
    if groups:
        return (one.entries[0], *(CubeEntry(g, g, 1, is_sum=False) for g in groups))
    return tuple(e for e in one.entries if not picked or e.is_total or e.code in picked)


def search_text(variable: OfferedVariable) -> str:
    """What a search finds a variable by."""
    words = [variable.label, variable.name, *(detail.label for detail in variable.details)]
    return " ".join(words).lower()


def size_of(entries: Sequence[CubeEntry], texts: Texts) -> str:
    """How many categories there are, and whether they have a total; periods have none."""
    categories = sum(not entry.is_total for entry in entries)
    said = texts.count("categories", categories)
    return said if categories == len(entries) else texts.notes.variables_help.format(said)


def limits_of(dataset: Dataset, texts: Texts) -> str:
    """The limits on the size of a table, as far as the office tells them."""
    told = dataset.policy.public()
    shown = [texts.count(what, told[f"max_{what}"]) for what in _SIZES if f"max_{what}" in told]
    return str(texts.build.limits.format(texts.table.and_.join(shown))) if shown else ""


def may_group(dataset: Dataset, variable: OfferedVariable) -> bool:
    """Whether visitors may put groups of a variable into a table, their own or the office's."""
    policy = dataset.policy
    if variable.is_time:
        return False
    if policy.groups == "fixed":
        return variable.name in policy.fixed_groups
    return policy.groups == "own" and len(variable.details[-1].levels[-1]) > 2


def unit_label(dataset: Dataset, unit: str, texts: Texts) -> str:
    """What is counted or measured, for readers."""
    measure = dataset.measures.get(unit)
    return measure.label if measure else str(getattr(texts.units, unit, unit))


def unit_of(answer: Answer, texts: Texts) -> str:
    """What the figures of a table are."""
    return unit_label(answer.dataset, answer.question.unit, texts)


def in_unit(dataset: Dataset, query: Query, unit: str) -> Query:
    """The table with other figures; without percentages, where these have none."""
    changed = query.changed(unit="" if unit == dataset.units[0] else unit)
    return changed if dataset.may_share(unit) else changed.changed(show="count")


@dataclass(frozen=True, eq=False)
class CategoryList:
    """A form with a tick for every category.

    Attributes:
      kind: What the ticks are for: `"pick"`, `"where"` or `"group"`.
      variable: The variable.
      entries: Its categories.
      ticked: The codes that are ticked.
    """

    kind: str
    variable: OfferedVariable
    entries: Sequence[CubeEntry]
    ticked: frozenset[str]

    @property
    def name(self) -> str:
        """The variable's name."""
        return self.variable.name

    @property
    def edit(self) -> str:
        """The value of `edit` that keeps the list open."""
        return f"{self.kind}.{self.name}"

    @property
    def parameter(self) -> str:
        """The parameter that each tick sends."""
        return NEW_CODE if self.kind == GROUP else self.edit


def category_list(dataset: Dataset, query: Query, edit: str) -> CategoryList | None:
    """The list that `edit` names; none where it names nothing that can be chosen."""
    kind, _, name = edit.partition(".")
    variable = next((v for v in dataset.variables if v.name == name), None)
    if kind not in (PICK, WHERE, GROUP) or variable is None:
        return None
    if kind == GROUP and not may_group(dataset, variable):
        return None
    found = (one.detail for one in moves.placed(query, dataset.variables) if one.name == name)
    detail = next(found, variable.details[0] if kind == WHERE else None)
    if detail is None:
        return None
    entries = [entry for entry in variable.entries(detail) if not entry.is_total]
    everything = [entry.code for entry in entries]
    ticked = {PICK: query.picked.get(name, everything), WHERE: query.where.get(name, ())}
    return CategoryList(kind, variable, entries, frozenset(ticked.get(kind, ())))


def shows_of(dataset: Dataset, query: Query) -> list[Show]:
    """Figures, and the percentages that the table has."""
    if not dataset.may_share(query.unit):
        return ["count"]
    return ["count", *shares_over(query, dataset.variables)]


def complete(dataset: Dataset, query: Query) -> Query:
    """The query with its period, and without choices that choose everything or mean nothing."""
    query = in_one_period(query, dataset.variables)
    if query.view.show not in shows_of(dataset, query) and query.view.show in query.shows:
        query = query.changed(show="count")  # shares of periods, to which a move has led
    for one in moves.placed(query, dataset.variables):
        codes = {e.code for e in one.entries if not e.is_total}
        if codes <= {*query.picked.get(one.name, ())}:
            query = moves.pick(query, one.name, ())
    return query
