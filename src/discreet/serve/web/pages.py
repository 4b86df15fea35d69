"""The pages of the table builder."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import FileResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles

from discreet.release.cube import parents
from discreet.release.formats.write import Writer, writers
from discreet.release.layout import TableLayout
from discreet.serve import moves
from discreet.serve.answer import Answer
from discreet.serve.api.reply import TableDescriber, base_of
from discreet.serve.api.saved import snippets_of
from discreet.serve.data.dataset import Dataset
from discreet.serve.query import CHARTS, Codes, Query
from discreet.serve.refusals import LANGUAGE, Queued, Refusal
from discreet.serve.site.site import current_site
from discreet.serve.web import wording
from discreet.serve.web.charts import DrawnChart, draw_chart
from discreet.serve.web.drawing import MOST_SERIES, chart_data, readable, style_of
from discreet.serve.web.frame import (
    Addresses,
    page,
    page_address,
    page_parameters,
    remember_language,
    root_of,
    site_for,
    texts_for,
)
from discreet.serve.web.grid import grid_parts, layout_of
from discreet.serve.web.texts import Texts
from discreet.serve.web.wording import (
    NEW_CODE,
    NEW_LABEL,
    NEW_OF,
    budget_note,
    caption_of,
    category_list,
    complete,
    layers_of,
    notes_of,
    populations_of,
    statement_notes,
    title_of,
)

router = APIRouter()
STATIC = Path(__file__).parent / "static"
EDIT = "edit"
DRAWN_IN = "#0b5563"  # the colour of the icon as it is drawn
_FOR_A_WHILE = {"Cache-Control": "max-age=600"}
_OF_PAGES = (LANGUAGE, EDIT, NEW_LABEL, NEW_CODE, NEW_OF)
"""Parameters that belong to pages and are no part of a query."""


def mount(app: FastAPI) -> None:
    """Serve the files that pages need; those that the site's file changes come first."""
    for name, answer in {"theme.css": theme, "icon.svg": icon, "logo": logo}.items():
        app.add_api_route(f"/static/{name}", answer, include_in_schema=False)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")


def theme(request: Request) -> Response:
    """The site's colours."""
    content = style_of(current_site(request).config.accent)
    return Response(content, media_type="text/css", headers=_FOR_A_WHILE)


def icon(request: Request) -> Response:
    """The site's picture in the site's colour, where the office has none of its own."""
    drawn = (STATIC / "icon.svg").read_text(encoding="utf-8")
    content = drawn.replace(DRAWN_IN, readable(current_site(request).config.accent))
    return Response(content, media_type="image/svg+xml", headers=_FOR_A_WHILE)


def logo(request: Request) -> Response:
    """The office's own picture."""
    config = current_site(request).config
    path = config.folder / config.logo
    if not config.logo or not path.is_file():
        raise Refusal("not_found", "There is no such page.", "The catalogue is at /.", 404)
    return FileResponse(path, headers=_FOR_A_WHILE)


@router.get("/")
def catalogue(request: Request, query: str = "", topic: str = "") -> Response:
    """The data sets of the site: all, or those that hold the words and have the topic."""
    listed = site_for(request).datasets.values()
    topics = dict.fromkeys(d.about.topic for d in listed if d.about.topic)
    found = [d for d in listed if d.holds(query.split(), topic)]
    asked: dict[str, Any] = {"wanted": query, "topic": topic, "topics": list(topics)}
    return page(request, "catalogue.html", **asked, found=found)


@router.get("/about")
def about(request: Request) -> Response:
    """How to read protected figures."""
    return page(request, "about.html")


@router.get("/d/{dataset}")
def start(request: Request, dataset: str) -> Response:
    """A data set with a first table."""
    found = site_for(request).dataset(dataset)
    is_series = found.time in [name.partition("[")[0] for name in found.first.rows]
    query = found.first.changed(chart="lines" if is_series else "bars")
    return _table_page(request, found, complete(found, query), "")


@router.get("/d/{dataset}/")
def start_folder(dataset: str) -> Response:
    """The same with a slash behind it, as people type it."""
    return RedirectResponse(f"../{quote(dataset)}", 308)


@router.get("/d/{dataset}/about")
def about_dataset(request: Request, dataset: str) -> Response:
    """What is known of a data set."""
    found, texts = site_for(request).dataset(dataset), texts_for(request)
    statement = found.statement
    plain = statement_notes(statement, found.source.mode, texts)
    plain += budget_note(found.source.budget, texts) + wording.measure_notes(found, texts)
    return page(
        request,
        "dataset.html",
        dataset=found,
        at=Addresses(root_of(request), found.name),
        notes=plain,
        statement=statement,
        limits=wording.limits_of(found, texts),
        wording=wording,
    )


@router.get("/d/{dataset}/table")
def table(request: Request, dataset: str) -> Response:
    """A table, or why there is none, beside the panel in which it is put together."""
    found = site_for(request).dataset(dataset)
    given = request.query_params.multi_items()
    own = {k: v for k, v in given if k in _OF_PAGES}
    asked = [(k, v) for k, v in given if k not in _OF_PAGES]
    query = complete(found, _with_new_group(Query.parse(asked), given))
    edit = own.get(EDIT, "")
    if page_parameters(query, edit) != [(k, v) for k, v in given if k != LANGUAGE]:
        response = RedirectResponse(f"table?{page_address(query, edit)}", 303)
        remember_language(request, response)
        return response
    return _table_page(request, found, query, edit)


@router.get("/d/{dataset}/chart.svg")
def chart(request: Request, dataset: str) -> Response:
    """The chart of a table as a file."""
    site = site_for(request)
    given = [(k, v) for k, v in request.query_params.multi_items() if k not in _OF_PAGES]
    answer = site.dataset(dataset).answer(Query.parse(given))
    drawn = _chart(answer, _layout(answer), texts_for(request), site.config.accent)
    if drawn is None or not drawn.svg:
        raise Refusal("no_chart", "There is no chart of this table.", "See /about.", 404)
    headers = {"Content-Disposition": f'attachment; filename="{dataset}-chart.svg"'}
    return Response(str(drawn.svg), media_type="image/svg+xml", headers=headers)


def _with_new_group(query: Query, given: list[tuple[str, str]]) -> Query:
    """The query with the group that a form describes, if it does."""
    found: dict[str, Any] = {k: v for k, v in given if k in (NEW_LABEL, NEW_OF)}
    codes = [v for k, v in given if k == NEW_CODE and v]
    label = found.get(NEW_LABEL, "").replace("|", "/").strip()
    if not (label and codes and found.get(NEW_OF)):
        return query
    return moves.with_group(query, found[NEW_OF], label, codes)


def _table_page(request: Request, dataset: Dataset, query: Query, edit: str) -> Response:
    parts: dict[str, Any] = {
        "dataset": dataset,
        "query": query,
        "at": Addresses(root_of(request), dataset.name),
        "moves": moves,
        "wording": wording,
        "placed": moves.placed(query, dataset.variables),
        "editor": category_list(dataset, query, edit),
    }
    try:
        answer = dataset.answer(query)
        parts |= _table_parts(request, answer)
    except Queued:
        raise
    except Refusal as refusal:
        request.state.outcome = refusal.code
        # A builder from which the last variable was taken is where a visitor chooses another one.
        status = 200 if refusal.code == "no_variables" else refusal.status
        return page(request, "builder.html", status, **parts, refusal=refusal, answer=None)
    return page(request, "builder.html", **parts, refusal=None, answer=answer)


@cache  # every format is checked anew: 1.3 of the 6 ms of a page
def _formats() -> list[Writer]:
    """The formats, that of most visitors first."""
    return sorted(writers(), key=lambda writer: writer.ending != ".xlsx")


def _table_parts(request: Request, answer: Answer) -> dict[str, Any]:
    """What a page shows of an answer."""
    site, texts, layout = site_for(request), texts_for(request), _layout(answer)
    describer = TableDescriber(site, base_of(request), texts)
    return {
        "title": title_of(answer, texts),
        "caption": caption_of(answer, texts),
        "layers": layers_of(answer, texts),
        "populations": populations_of(answer),
        **grid_parts(layout, answer.query.view, texts.numbers),
        "chart": _chart(answer, layout, texts, site.config.accent),
        "charts": CHARTS,
        "tops": _tops(answer),
        "writers": _formats(),
        "notes": notes_of(answer, texts),
        "statement": answer.cube.statement,
        "citation": describer.citation(answer),
        "snippets": snippets_of(describer, answer),
    }


def _layout(answer: Answer) -> TableLayout:
    n_rows, n_columns = len(answer.rows), len(answer.columns)
    return layout_of(answer.shown, n_rows, n_columns, answer.query.view)


def _chart(answer: Answer, layout: TableLayout, texts: Texts, accent: str) -> DrawnChart | None:
    """The chart that is asked for, if any."""
    view = answer.query.view
    if view.chart == "none":
        return None
    said = [caption_of(answer, texts), *populations_of(answer), *layers_of(answer, texts)]
    is_share = view.show != "count"
    data = chart_data(layout, texts.numbers, title=", ".join(said), is_share=is_share)
    periods = answer.columns == (answer.dataset.time,)
    if view.chart == "lines" and periods and len(data.categories) <= MOST_SERIES:
        # A series is read along time, on whichever side of the table its periods stand.
        across, down = data.series, data.categories
        data = replace(data, categories=across, series=down, values=data.values.T, n_rows=1)
    return draw_chart(view.chart, replace(data, accent=readable(accent)), texts)


def _tops(answer: Answer) -> dict[str, Codes]:
    """For each variable in rows and columns the codes of its first level that have others below."""
    found: dict[str, Codes] = {}
    for name in (*answer.rows, *answer.columns):
        entries = answer.cube.axis(name).entries
        above = {k for k in parents(entries) if k is not None}
        tops = tuple(sorted(entries[k].code for k in above if entries[k].depth == 1))
        found |= {name: tops} if tops else {}
    return found
