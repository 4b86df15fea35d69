"""Notes under a table in plain words: what was done, how far off, whether figures add up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from discreet.serve.answer import Answer
from discreet.serve.data.source import BudgetStatus
from discreet.serve.web.texts import Said, Texts
from discreet.tables.protected import COUNT
from discreet.tables.statement import Sentence, Statement

_OFF = ("moves-at-most", "mean-zero", "variance", "never-published", "threshold", "multiples")
_SUMS = ("adds-up", "need-not-add-up")
_OF_SINGLE_CELLS = ("moves-at-most", "never-published", "threshold", "multiples", "same-everywhere")
"""What holds for a figure of the release, but not for sums of several of them."""


@dataclass(frozen=True)
class Note:
    """A heading and sentences, each in its language."""

    title: str
    sentences: Sequence[Said]


def notes_of(answer: Answer, texts: Texts) -> list[Note]:
    """What is said under a table, for every reader."""
    statement, said = answer.cube.statement, texts.notes
    found = [
        *statement_notes(statement, answer.dataset.source.mode, texts, is_summed=_adds(answer)),
        Note(said.shown, _shown(answer, texts)),
        Note(said.unit, _units(answer, texts)),
        Note(said.footnotes, [Said(note, "") for note in answer.dataset.about.footnotes]),
    ]
    return [note for note in found if note.sentences]


def statement_notes(
    statement: Statement, mode: str, texts: Texts, *, is_summed: bool = False
) -> list[Note]:
    """A statement in plain words, under the questions that readers have."""
    said = texts.notes
    kept = [s for s in statement.sentences if not (is_summed and s.kind in _OF_SINGLE_CELLS)]
    off = _plain(kept, _OFF, texts)
    if is_summed:
        off.append(Said(said.summed, texts.code))
    elif not statement.says("moves-at-most"):
        off.append(Said(said.no_reach, texts.code))
    how = said.once if mode == "release-once" else said.on_the_fly
    others = [s for s in kept if s.kind not in (*_OFF, *_SUMS, "same-everywhere")]
    done = [*_plain(others, None, texts), Said(how, texts.code)]
    found = [
        Note(said.done, done),
        Note(said.off, off),
        Note(said.sums, _plain(kept, _SUMS, texts)),
    ]
    return [note for note in found if note.sentences]


def budget_note(budget: BudgetStatus | None, texts: Texts) -> list[Note]:
    """What private tables of a data set may cost and have cost."""
    found = [] if budget is None else [texts.translated(budget.text)]
    return [Note(texts.notes.budget, found)] if found else []


def _shown(answer: Answer, texts: Texts) -> list[Said]:
    """What rules say of the table, and what the visitor's groups add up."""
    groups = [Said(text, "") for text in answer.groups]
    return [*groups, *(texts.translated(note) for note in answer.notes)]


def _adds(answer: Answer) -> bool:
    """Whether figures are sums of several protected ones."""
    return answer.dataset.is_live and bool(answer.query.where or answer.query.groups)


def _units(answer: Answer, texts: Texts) -> list[Said]:
    """What the figures are; percentages of counts need no word on counts."""
    show = answer.query.view.show
    of_unit = [] if show != "count" and answer.cube.unit == COUNT else [f"{answer.cube.unit}_note"]
    of_share = [f"{show}_note"] if show != "count" else []
    found = [getattr(texts.units, name, "") for name in (*of_unit, *of_share)]
    return [Said(text, texts.code) for text in found if text]


def _plain(sentences: Iterable[Sentence], kinds: Sequence[str] | None, texts: Texts) -> list[Said]:
    said = dict.fromkeys(s.plain for s in sentences if s.plain and (not kinds or s.kind in kinds))
    return [texts.translated(text) for text in said]
