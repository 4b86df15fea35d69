"""Cell by cell: true and released values, how far they lie apart, and the law of the noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Real
from discreet.assessment.cells import Pairs, pairs
from discreet.assessment.plots.style import (
    PALETTE,
    QUIET,
    altair_module,
    apply_style,
    cell_sizes,
    diagonal,
)
from discreet.design.base import Design
from discreet.facade.table import Table
from discreet.noise.matrix import TransitionMatrix
from discreet.tables.protected import Protected

if TYPE_CHECKING:
    import altair

MOST_NAMED = 45
DESIGNED, OBSERVED = "designed", "observed"
_BEFORE, _AFTER = _KINDS = ("true", "released")

# Forty bars on each side of zero are the most that can be told apart at this size. The outermost
# hold the rest, lest a single large deviation make one bar of all others.
_BARS = 40
_SHARE_INSIDE = 0.995
_WIDTHS = tuple(digit * 10.0**power for power in range(9) for digit in (1, 2, 5))


def before_after(table: Table, release: Protected) -> altair.LayerChart:
    """True and released value of every published cell.

    Up to 45 cells are named, one row each; more are shown as points, released against true.
    """
    pair = pairs(table, release)
    chart = _named_chart(pair) if len(pair.f) <= MOST_NAMED else _scatter_chart(pair)
    layers: altair.LayerChart = apply_style(chart)
    return layers


def _named_chart(pair: Pairs) -> Any:
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


def _scatter_chart(pair: Pairs) -> Any:
    alt = altair_module()
    spots, cells = np.unique(np.column_stack([pair.f, np.rint(pair.g)]), axis=0, return_counts=True)
    rows = [
        {_BEFORE: float(f), _AFTER: float(g), "cells": int(n)}
        for (f, g), n in zip(spots, cells, strict=True)
    ]
    top = float(max(pair.f.max(), pair.g.max(), 1))
    low = float(min(pair.g.min(), 0))
    scale = alt.Scale(type="symlog", domain=[low - 0.2, top], nice=False)
    ticks = [t for t in (-100, -10, 0, 1, 2, 3, 5, 10, 30, 100, 1000, 10_000, 100_000) if t <= top]
    axis = alt.Axis(values=ticks, format="d")
    points = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_circle(color=PALETTE[0], opacity=0.65)
        .encode(
            x=alt.X(f"{_BEFORE}:Q", title="true value", scale=scale, axis=axis),
            y=alt.Y(f"{_AFTER}:Q", title="released value", scale=scale, axis=axis),
            size=cell_sizes(cells.tolist()),
            tooltip=[f"{_BEFORE}:Q", f"{_AFTER}:Q", "cells:Q"],
        )
    )
    title = alt.Title("Cells before and after", subtitle="On the dashed line nothing changed.")
    return alt.layer(diagonal(low, top, scale), points, title=title).properties(
        width=380, height=380
    )


def cell_name(design: Design, position: int) -> str:
    """The codes of a published cell, or its number where it has none."""
    if not design.axes:
        return f"cell {position + 1}"
    return ", ".join(design.cell(position).values()) or "total"


def deviations(
    table: Table, releases: Protected | Mapping[str, Protected | Sequence[Protected]]
) -> altair.FacetChart:
    """Shares of the published cells by released minus true value, one row for each method.

    Args:
      table: The true table.
      releases: A release, or several by label; each may be a sequence of draws of one method.
    """
    alt = altair_module()
    found = {}
    for label, draws in by_label(releases).items():
        moved = [pair.g - pair.f for pair in (pairs(table, release) for release in draws)]
        found[label] = np.concatenate(moved).astype(np.float64)
    # Bars are one wide where that shows nearly all cells; wider ones are round numbers.
    moves = np.abs(np.concatenate(list(found.values())))
    most = max(float(np.quantile(moves, _SHARE_INSIDE)), 3.0)
    width = next(w for w in _WIDTHS if most / w <= _BARS or w == _WIDTHS[-1])
    reach = math.ceil(most / width)
    rows = [row for label, own in found.items() for row in _histogram(label, own, reach, width)]
    wide = "" if width == 1 else f" Bars are {width:g} wide."
    subtitle = f"Shares of the published cells; the outermost bars hold everything beyond.{wide}"
    chart: altair.FacetChart = apply_style(
        alt.Chart(alt.InlineData(values=rows))
        .mark_bar(color=PALETTE[0])
        .encode(
            x=alt.X("low:Q", title="released − true value", bin="binned"),
            x2="high:Q",
            y=alt.Y("share:Q", title="share of cells", axis=alt.Axis(format="%", tickCount=4)),
            tooltip=[
                alt.Tooltip("method:N"),
                alt.Tooltip("deviation:Q"),
                alt.Tooltip("share:Q", format=".2%"),
                alt.Tooltip("cells:Q"),
            ],
        )
        .properties(width=460, height=90)
        .facet(
            row=alt.Row(
                "method:N",
                sort=list(found),
                title=None,
                header=alt.Header(labelOrient="top", labelAnchor="start", labelPadding=4),
            ),
            title=alt.Title("Deviations", subtitle=subtitle),
            spacing=14,
        )
    )
    return chart


def by_label(
    releases: Protected | Mapping[str, Protected | Sequence[Protected]],
) -> dict[str, Sequence[Protected]]:
    """Draws by the label of their method, whether one release was given or many."""
    given = {"release": releases} if isinstance(releases, Protected) else releases
    return {k: [drawn] if isinstance(drawn, Protected) else drawn for k, drawn in given.items()}


def _histogram(label: str, moved: Real, reach: int, width: float) -> list[dict[str, Any]]:
    """Bars centred on multiples of the width; the outermost hold what lies beyond."""
    place = np.clip(np.floor(moved / width + 0.5), -reach, reach)
    bars, cells = np.unique(place, return_counts=True)
    return [
        {
            "method": label,
            "deviation": float(k * width),
            "low": float((k - 0.5) * width),
            "high": float((k + 0.5) * width),
            "cells": int(n),
            "share": float(n / len(moved)),
        }
        for k, n in zip(bars, cells, strict=True)
    ]


def transitions(
    matrix: TransitionMatrix,
    table: Table,
    releases: Protected | Sequence[Protected],
    largest: int = 12,
) -> altair.HConcatChart:
    """Probabilities of each deviation by true count: designed, observed, and their difference.

    Args:
      matrix: The designed law.
      table: The true table.
      releases: A release, or several draws of the method.
      largest: The largest true count shown; larger ones are pooled in a last row.
    """
    alt = altair_module()
    drawn = [releases] if isinstance(releases, Protected) else releases
    order = [*map(str, range(largest + 1)), f"{largest + 1}+"]
    law, counts = _laws(matrix, table, drawn, largest)
    data = alt.InlineData(values=_transition_rows(matrix, law, counts, order))
    title = alt.Title(
        "Transition probabilities",
        subtitle="Deviation by true count. Difference: observed − designed, in standard errors.",
    )
    shares = alt.Scale(type="sqrt", scheme="cividis", domain=[0, 1], reverse=True)
    errors = alt.Scale(scheme="purpleorange", domain=[-4, 4], clamp=True)
    panels = [
        _panel(data, order, DESIGNED, scale=shares, legend=None),
        _panel(
            data, order, OBSERVED, scale=shares, legend=alt.Legend(title="probability", format="%")
        ),
        _panel(data, order, "difference", scale=errors, legend=alt.Legend(title="std. errors")),
    ]
    chart: altair.HConcatChart = apply_style(
        alt.hconcat(*panels, title=title).resolve_scale(color="independent")
    )
    return chart


def _laws(
    matrix: TransitionMatrix, table: Table, drawn: Sequence[Protected], largest: int
) -> tuple[Real, Real]:
    """Expected probabilities and observed numbers of cells, row by row."""
    reach = matrix.max_move
    law = np.zeros((largest + 2, 2 * reach + 1))
    counts = np.zeros_like(law)
    for release in drawn:
        pair = pairs(table, release)
        f = pair.f.astype(np.int64)
        move = np.clip(np.rint(pair.g - f).astype(np.int64), -reach, reach)
        row = np.minimum(f, largest + 1)
        np.add.at(counts, (row, move + reach), 1)
        np.add.at(law, row, matrix.law[matrix.row_of(f)])
    cells = np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return law / cells, counts


def _transition_rows(
    matrix: TransitionMatrix, law: Real, counts: Real, names: Sequence[str]
) -> list[dict[str, Any]]:
    found = []
    for i in np.flatnonzero(counts.sum(axis=1)):
        cells = counts[i].sum()
        for v, p, n in zip(matrix.deviations, law[i], counts[i], strict=True):
            if p > 0 or n > 0:
                # A deviation that the law excludes has no spread; one cell of it has to show.
                spread = np.sqrt(max(p * (1 - p), 1 / cells) / cells)
                found.append(
                    {
                        "count": names[int(i)],
                        "deviation": int(v),
                        "cells": int(cells),
                        DESIGNED: float(p),
                        OBSERVED: float(n / cells),
                        "difference": float((n / cells - p) / spread),
                    }
                )
    return found


def _panel(data: Any, order: list[str], name: str, **look: Any) -> Any:
    alt = altair_module()
    tips = [alt.Tooltip(f"{name}:Q", format=".4f") for name in (DESIGNED, OBSERVED)]
    return (
        alt.Chart(data, title=alt.Title(name.capitalize(), fontSize=12, offset=6))
        .mark_rect(stroke="white", strokeWidth=0.5)
        .encode(
            x=alt.X("deviation:O", title="released − true", axis=alt.Axis(labelAngle=0)),
            y=alt.Y("count:O", title="true count", sort=order),
            color=alt.Color(f"{name}:Q", **look),
            tooltip=["count:O", "deviation:O", "cells:Q", *tips, "difference:Q"],
        )
        .properties(width=alt.Step(17), height=alt.Step(17))
    )
