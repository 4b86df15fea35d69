"""The table part of a page: the grid, its chart, what can be done with it, and its notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from discreet.release.formats.write import writers
from discreet.serve.answer import Answer
from discreet.serve.query import Query
from discreet.serve.web import moves
from discreet.serve.web.charts.choice import CHARTS, Drawn, drawn
from discreet.serve.web.charts.picture import picture_of
from discreet.serve.web.colours import readable
from discreet.serve.web.grid import Grid, laid_out
from discreet.serve.web.links import Addresses, Link
from discreet.serve.web.notes import Notes, notes_of
from discreet.serve.web.sheet import Sheet, parents, sheet_of
from discreet.serve.web.texts import Texts
from discreet.serve.web.wording import (
    caption_of,
    layers_of,
    populations_of,
    title_of,
)


@dataclass(frozen=True)
class Download:
    """A file that can be taken home."""

    label: str
    ending: str
    href: str


@dataclass(frozen=True)
class TablePart:
    """What a page shows of an answer."""

    answer: Answer
    title: str
    caption: str
    layers: Sequence[str]
    populations: Sequence[str]
    grid: Grid
    chart: Drawn | None
    shows: Sequence[Link]
    charts: Sequence[Link]
    totals: Link
    folds: Sequence[Link]
    downloads: Sequence[Download]
    notes: Notes
    n_cells: int

    @property
    def query(self) -> Query:
        """What was asked."""
        return self.answer.query


def table_of(answer: Answer, at: Addresses, texts: Texts, accent: str) -> TablePart:
    """The part of a page that shows an answer."""
    query, sheet = answer.query, sheet_for(answer)
    return TablePart(
        answer,
        title_of(answer, texts),
        caption_of(answer, texts),
        layers_of(answer, texts),
        populations_of(answer),
        laid_out(sheet, query.view, texts.numbers),
        chart_of(answer, sheet, texts, accent),
        _shows(query, at, texts),
        _charts(query, at, texts),
        _totals(query, at, texts),
        _folds(answer, at, texts),
        _downloads(query, at),
        notes_of(answer, texts),
        sheet.values.size,
    )


def sheet_for(answer: Answer) -> Sheet:
    """The rows and columns of an answer that its view shows."""
    n_rows, n_columns = len(answer.rows), len(answer.columns)
    return sheet_of(answer.shown, n_rows, n_columns, answer.query.view)


def chart_of(answer: Answer, sheet: Sheet, texts: Texts, accent: str) -> Drawn | None:
    """The chart that is asked for, if any."""
    view = answer.query.view
    if view.chart == "none":
        return None
    title = ", ".join(
        [caption_of(answer, texts), *populations_of(answer), *layers_of(answer, texts)]
    )
    picture = picture_of(sheet, texts.numbers, title=title, is_share=view.show != "count")
    return drawn(view.chart, replace(picture, accent=readable(accent)), texts)


def _shows(query: Query, at: Addresses, texts: Texts) -> list[Link]:
    chosen = query.view.show
    return [
        Link(
            getattr(texts.show, name),
            at.table(query.changed(show=name)),
            f"show-{name}",
            is_current=name == chosen,
        )
        for name in query.shows
    ]


def _charts(query: Query, at: Addresses, texts: Texts) -> list[Link]:
    chosen = query.view.chart
    return [
        Link(
            getattr(texts.chart.kinds, name),
            at.table(query.changed(chart=name)),
            f"chart-{name}",
            is_current=name == chosen,
        )
        for name in ("none", *CHARTS)
    ]


def _totals(query: Query, at: Addresses, texts: Texts) -> Link:
    is_on = query.view.totals
    label = texts.show.totals_off if is_on else texts.show.totals_on
    return Link(label, at.table(query.changed(totals=not is_on)), "totals")


def _folds(answer: Answer, at: Addresses, texts: Texts) -> list[Link]:
    """Links that collapse or expand the levels of all variables in rows and columns."""
    query = answer.query
    codes: dict[str, tuple[str, ...]] = {}
    for name in (*answer.rows, *answer.columns):
        entries = answer.cube.axis(name).entries
        above = {k for k in parents(entries) if k is not None}
        tops = tuple(sorted(entries[k].code for k in above if entries[k].depth == 1))
        codes |= {name: tops} if tops else {}
    if not codes:
        return []
    collapsed, expanded = query.changed(folded=codes), query.changed(folded={})
    links = [
        Link(texts.show.collapse, at.table(collapsed), "collapse", focus="expand"),
        Link(texts.show.expand, at.table(expanded), "expand", focus="collapse"),
    ]
    return [link for link, to in zip(links, (collapsed, expanded), strict=True) if to != query]


def _downloads(query: Query, at: Addresses) -> list[Download]:
    return [
        Download(title, ending, at.file(query, ending.lstrip("."))) for title, ending in _formats()
    ]


@cache
def _formats() -> tuple[tuple[str, str], ...]:
    return tuple((writer.title, writer.ending) for writer in writers())


def sort_link(query: Query, column: str, at: Addresses) -> str:
    """Where a column's header leads: rows sorted by it."""
    return at.table(moves.next_sort(query, column))


def fold_link(query: Query, variable: str, code: str, at: Addresses) -> str:
    """Where the sign before a category leads: its parts shown or hidden."""
    return at.table(moves.toggled(query, variable, code))
