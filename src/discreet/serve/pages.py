"""The pages, rendered from templates; everything that is put into one is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from discreet.design.release import Release
from discreet.design.statement import plain_data
from discreet.serve.layout import entries_of, laid_out
from discreet.serve.refusals import Refusal
from discreet.serve.request import Asked, TableRequest
from discreet.serve.settings import Settings
from discreet.serve.source import Source


@cache
def _templates() -> Environment:
    return Environment(
        loader=PackageLoader("discreet.serve"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def home_page(source: Source, settings: Settings, root: str) -> str:
    """The front page, where a table is put together."""
    slots = _slots(settings, *_suggestion(source, settings))
    return _rendered("home.html", settings, root, source=source, slots=slots)


def table_page(
    release: Release, request: TableRequest, source: Source, settings: Settings, root: str
) -> str:
    """A table with its statement and definitions."""
    steps = [(s.name, plain_data(s.parameters)) for s in release.statement.steps]
    return _rendered(
        "table.html",
        settings,
        root,
        release=release,
        asked=request,
        grid=laid_out(release, request),
        definitions=[(a, entries_of(a)) for a in request.in_public_order],
        steps=steps,
        source=source,
        slots=_slots(settings, request.rows, request.columns),
    )


def error_page(refusal: Refusal, settings: Settings, root: str) -> str:
    """What went wrong and what would be allowed."""
    return _rendered("error.html", settings, root, refusal=refusal)


def _rendered(template: str, settings: Settings, root: str, **parts: Any) -> str:
    return _templates().get_template(template).render(settings=settings, root=root, **parts)


def _slots(
    settings: Settings, rows: Sequence[Asked] = (), columns: Sequence[Asked] = ()
) -> list[tuple[str, str, str]]:
    """The form's choices: parameter, label, and what is chosen.

    The last one is for columns unless there is only one; a table that was asked for by its address
    may have more columns than that.
    """
    n_columns = max(len(columns), min(settings.max_variables - 1, 1))
    n_rows = max(len(rows), settings.max_variables - n_columns)
    found = [("rows", rows, k) for k in range(n_rows)]
    found += [("columns", columns, k) for k in range(n_columns)]
    return [
        (name, _slot_label(name, k), asked[k].detail.name if k < len(asked) else "")
        for name, asked, k in found
    ]


def _suggestion(source: Source, settings: Settings) -> tuple[list[Asked], list[Asked]]:
    """A small table to start from: the first variable by the one with the fewest categories."""
    first, *others = [
        Asked(v, min(v.details, key=lambda detail: detail.cells)) for v in source.variables
    ]
    others = sorted(others, key=lambda asked: asked.detail.cells)
    return [first], others[:1] if settings.max_variables > 1 else []


def _slot_label(name: str, k: int) -> str:
    first = {"rows": "Rows", "columns": "Columns"}[name]
    return first if k == 0 else f"{first}, then by"
