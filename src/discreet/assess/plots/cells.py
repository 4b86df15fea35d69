"""Cell by cell: the true value and the released one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.assess.cells import Pairs, pairs
from discreet.assess.plots.style import PALETTE, QUIET, altair_module, styled
from discreet.design.base import Design
from discreet.facade.table import Table
from discreet.tables.protected import Protected

if TYPE_CHECKING:
    import altair

MOST_NAMED = 45
_BEFORE, _AFTER = "true", "released"


def before_after(table: Table, release: Protected) -> altair.LayerChart:
    """True and released value of every published cell.

    Up to 45 cells are named, one row each; more are shown as points, released against true.
    """
    pair = pairs(table, release)
    chart = _named(pair) if len(pair.f) <= MOST_NAMED else _scattered(pair)
    layers: altair.LayerChart = styled(chart)
    return layers


def _named(pair: Pairs) -> Any:
    alt = altair_module()
    names = [cell_name(pair.design, int(k)) for k in np.flatnonzero(pair.shown)]
    cells = [
        {"cell": name, _BEFORE: float(f), _AFTER: float(g)}
        for name, f, g in zip(names, pair.f, pair.g, strict=True)
    ]
    ends = [{"cell": c["cell"], "value": c[kind], "kind": kind} for c in cells for kind in _KINDS]
    row = alt.Y("cell:N", sort=names, title=None, axis=alt.Axis(labelLimit=0, grid=True))
    joined = (
        alt.Chart(alt.InlineData(values=cells))
        .mark_rule(color=QUIET, strokeWidth=1.5)
        .encode(x=alt.X(f"{_BEFORE}:Q", title="count"), x2=f"{_AFTER}:Q", y=row)
    )
    scale = alt.Scale(domain=list(_KINDS), range=[PALETTE[6], PALETTE[1]])
    shape = alt.Scale(domain=list(_KINDS), range=["circle", "diamond"])
    points = (
        alt.Chart(alt.InlineData(values=ends))
        .mark_point(size=65, filled=True, opacity=1)
        .encode(
            x=alt.X("value:Q", title="count"),
            y=row,
            color=alt.Color("kind:N", scale=scale, title=None),
            shape=alt.Shape("kind:N", scale=shape, title=None),
            tooltip=["cell:N", "kind:N", "value:Q"],
        )
    )
    title = alt.Title("Cells before and after", subtitle="One line for each published cell.")
    return alt.layer(joined, points, title=title).properties(width=420, height=alt.Step(17))


def _scattered(pair: Pairs) -> Any:
    alt = altair_module()
    spots, cells = np.unique(np.column_stack([pair.f, np.rint(pair.g)]), axis=0, return_counts=True)
    rows = [
        {_BEFORE: float(f), _AFTER: float(g), "cells": int(n)}
        for (f, g), n in zip(spots, cells, strict=True)
    ]
    top = float(max(pair.f.max(), pair.g.max(), 1))
    low = float(min(pair.g.min(), 0))
    scale = alt.Scale(type="symlog", domain=[low - 0.2, top], nice=False)
    sizes = alt.Scale(domainMin=1, range=[15, 400])
    ticks = [t for t in (-100, -10, 0, 1, 2, 3, 5, 10, 30, 100, 1000, 10_000, 100_000) if t <= top]
    axis = alt.Axis(values=ticks, format="d")
    line = (
        alt.Chart(alt.InlineData(values=[{"v": low}, {"v": top}]))
        .mark_line(color=QUIET, strokeDash=[4, 3])
        .encode(x=alt.X("v:Q", scale=scale), y=alt.Y("v:Q", scale=scale))
    )
    points = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_circle(color=PALETTE[0], opacity=0.65)
        .encode(
            x=alt.X(f"{_BEFORE}:Q", title="true value", scale=scale, axis=axis),
            y=alt.Y(f"{_AFTER}:Q", title="released value", scale=scale, axis=axis),
            size=alt.Size("cells:Q", scale=sizes, legend=alt.Legend(tickCount=4)),
            tooltip=[f"{_BEFORE}:Q", f"{_AFTER}:Q", "cells:Q"],
        )
    )
    title = alt.Title("Cells before and after", subtitle="On the dashed line nothing changed.")
    return alt.layer(line, points, title=title).properties(width=380, height=380)


_KINDS = (_BEFORE, _AFTER)


def cell_name(design: Design, position: int) -> str:
    """The codes of a published cell, or its number where it has none."""
    if not design.axes:
        return f"cell {position + 1}"
    return ", ".join(design.cell(position).values()) or "total"
