"""The table part of a page: the grid, its chart, and what can be folded in it."""

from __future__ import annotations

from dataclasses import replace

from discreet.release.cube import parents
from discreet.serve.answer import Answer
from discreet.serve.query import Codes
from discreet.serve.web.charts.choice import Drawn, drawn
from discreet.serve.web.charts.picture import picture_of
from discreet.serve.web.colours import readable
from discreet.serve.web.sheet import Sheet, sheet_of
from discreet.serve.web.texts import Texts
from discreet.serve.web.wording import caption_of, layers_of, populations_of


def sheet_for(answer: Answer) -> Sheet:
    """The rows and columns of an answer that its view shows."""
    n_rows, n_columns = len(answer.rows), len(answer.columns)
    return sheet_of(answer.shown, n_rows, n_columns, answer.query.view)


def chart_of(answer: Answer, sheet: Sheet, texts: Texts, accent: str) -> Drawn | None:
    """The chart that is asked for, if any."""
    view = answer.query.view
    if view.chart == "none":
        return None
    said = [caption_of(answer, texts), *populations_of(answer), *layers_of(answer, texts)]
    is_share = view.show != "count"
    picture = picture_of(sheet, texts.numbers, title=", ".join(said), is_share=is_share)
    return drawn(view.chart, replace(picture, accent=readable(accent)), texts)


def tops_of(answer: Answer) -> dict[str, Codes]:
    """For each variable in rows and columns the codes of its first level that have others below."""
    found: dict[str, Codes] = {}
    for name in (*answer.rows, *answer.columns):
        entries = answer.cube.axis(name).entries
        above = {k for k in parents(entries) if k is not None}
        tops = tuple(sorted(entries[k].code for k in above if entries[k].depth == 1))
        found |= {name: tops} if tops else {}
    return found
