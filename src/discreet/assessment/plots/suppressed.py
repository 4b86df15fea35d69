"""Pictures of suppressed tables, and of what synthetic records preserve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.assessment.plots.style import (
    PALETTE,
    QUIET,
    STRONG,
    altair_module,
    apply_style,
    diagonal,
)
from discreet.errors import DesignError, ParameterError, UnknownNameError

if TYPE_CHECKING:
    import altair

    from discreet.design.axis import Axis
    from discreet.suppress.pattern import Pattern
    from discreet.synthesis.preserved import ComparedFigure, Preserved

MOST_CODES = 60
_STATES = ("published", "secondary (s): protects others", "primary (p): sensitive")
_STATE_OF = {0: _STATES[0], 1: _STATES[2], 2: _STATES[1]}
_MARK = {0: "", 1: " p", 2: " s"}
_FILL = ("#ffffff", PALETTE[4], PALETTE[0])  # light, middle and dark in print without colours too
_LETTER, _ROW = 7.0, 24


def suppressed(
    pattern: Pattern, rows: str | None = None, columns: str | None = None
) -> altair.LayerChart:
    """The true values of a two-way table, with the state of every cell.

    Further variables are summed over: only cells that have a total there are drawn.

    Args:
      pattern: Which cells are suppressed.
      rows: Variable whose codes are the rows; the first when absent.
      columns: Variable whose codes are the columns; the first of the others when absent.
    """
    alt = altair_module()
    row, column = _two_axes(pattern, rows, columns)
    cells = _cells(pattern, row, column)
    down = _in_order(row, {cell["row"] for cell in cells})
    across = _in_order(column, {cell["column"] for cell in cells})
    wide = max(len(text) for cell in cells for text in (cell["text"], cell["column"]))
    base = alt.Chart(alt.InlineData(values=cells)).encode(
        x=alt.X("column:N", sort=across, title=column.name, axis=_axis(alt, "top")),
        y=alt.Y("row:N", sort=down, title=row.name, axis=_axis(alt, "left")),
        tooltip=["row:N", "column:N", "value:Q", "state:N", "why:N"],
    )
    counts = f"{pattern.n_primary:,} primary and {pattern.n_secondary:,} secondary"
    is_whole = len(cells) == len(pattern.z)
    part = "" if is_whole else f"; {len(cells):,} of {len(pattern.z):,} cells are drawn"
    title = alt.Title("Suppressed cells", subtitle=f"{counts}{part}. True values: confidential.")
    chart: altair.LayerChart = apply_style(
        alt.layer(_boxes(alt, base), _figures(alt, base), title=title).properties(
            width=alt.Step(max(_LETTER * wide + 14, 44)), height=alt.Step(_ROW)
        )
    )
    return chart


def _two_axes(pattern: Pattern, rows: str | None, columns: str | None) -> tuple[Axis, Axis]:
    axes = {axis.name: axis for axis in pattern.design.axes}
    for name in (rows, columns):
        if name is not None and name not in axes:
            raise UnknownNameError("variable", name, [*axes])
    row = rows or next((name for name in axes if name != columns), None)
    column = columns or next((name for name in axes if name != row), None)
    if row is None or column is None or row == column:
        raise DesignError(
            "a picture of a pattern needs two different variables; the variables of this table: "
            f"{', '.join(axes) or 'none'}."
        )
    return axes[row], axes[column]


def _cells(pattern: Pattern, row: Axis, column: Axis) -> list[dict[str, Any]]:
    """What is drawn of each cell of the two variables, totals of all others."""
    found = []
    for k, state in enumerate(pattern.state.tolist()):
        codes = pattern.design.cell(k)
        if codes.keys() <= {row.name, column.name}:
            value = float(pattern.z[k])
            text = f"{value:,.0f}" if value.is_integer() else f"{value:,.1f}"
            found.append(
                {
                    "row": codes.get(row.name, row.total),
                    "column": codes.get(column.name, column.total),
                    "value": value,
                    "state": _STATE_OF[state],
                    "why": pattern.reasons.get(k, ""),
                    "text": text + _MARK[state],
                }
            )
    return found


def _in_order(axis: Axis, drawn: set[str]) -> list[str]:
    """The codes that are drawn, each above its parts, the total last."""
    if len(drawn) > MOST_CODES:
        raise ParameterError(
            f"{axis.name} has {len(drawn)} codes, and a picture is legible with at most "
            f"{MOST_CODES}. Draw a table with fewer, or list the pattern with `to_arrow()`."
        )
    leaves = axis.node_leaves
    codes = sorted(drawn - {axis.total}, key=lambda code: (leaves[code].min(), -len(leaves[code])))
    return [*codes, *(drawn & {axis.total})]


def _axis(alt: Any, orient: str) -> Any:
    return alt.Axis(orient=orient, labelAngle=0, labelLimit=0, ticks=False, domain=False)


def _boxes(alt: Any, base: Any) -> Any:
    colour = alt.Color(
        "state:N",
        scale=alt.Scale(domain=list(_STATES), range=list(_FILL)),
        legend=alt.Legend(
            title=None, orient="bottom", symbolType="square", symbolStrokeColor=QUIET
        ),
    )
    return base.mark_rect(stroke=QUIET, strokeWidth=0.75).encode(color=colour)


def _figures(alt: Any, base: Any) -> Any:
    """True values, white on the dark cells."""
    is_primary = alt.datum.state == _STATES[2]
    return base.mark_text(fontSize=12).encode(
        text="text:N", color=alt.condition(is_primary, alt.value("#ffffff"), alt.value(STRONG))
    )


MOST_POINTS = 1_500
_SIZE = 210
_COLOURS = {"equal": PALETTE[2], "close": PALETTE[0], "different": PALETTE[1]}


def preserved(found: Preserved) -> altair.VConcatChart:
    """Scatter of each confidential column, correlations, and how far figures are apart.

    Of many records some are drawn, evenly spread over the file.
    """
    alt = altair_module()
    above = [_scatter(found, j) for j in range(len(found.names))]
    correlations = [figure for figure in found.figures if figure.kind == "correlation"]
    above += [_correlations(correlations)] if correlations else []
    title = alt.Title(
        "Original and synthetic records", subtitle="On a dashed line nothing changed."
    )
    chart = alt.vconcat(alt.hconcat(*above), _preserved_figures(found), title=title)
    chart = chart.resolve_scale(color="independent", shape="independent")
    whole: altair.VConcatChart = apply_style(chart)
    return whole


def _scatter(found: Preserved, j: int) -> Any:
    alt = altair_module()
    step = max(1, len(found.original) // MOST_POINTS)
    pairs = [
        {"original": float(a), "synthetic": float(b)}
        for a, b in zip(found.original[::step, j], found.synthetic[::step, j], strict=True)
    ]
    everything = np.concatenate([found.original[:, j], found.synthetic[:, j]])
    points = alt.Chart(alt.InlineData(values=pairs)).mark_circle(
        color=PALETTE[0], opacity=0.4, size=14, aria=False
    )
    r = float(np.corrcoef(found.original[:, j], found.synthetic[:, j])[0, 1])
    title = alt.Title(found.names[j], subtitle=f"correlation {r:.2f}")
    return _beside_diagonal(points, float(everything.min()), float(everything.max()), title)


def _correlations(figures: list[ComparedFigure]) -> Any:
    """Each correlation before and after."""
    alt = altair_module()
    pairs = [{"original": f.original, "synthetic": f.synthetic, "about": f.about} for f in figures]
    points = alt.Chart(alt.InlineData(values=pairs)).mark_point(
        color=PALETTE[6], filled=True, size=50, opacity=0.8
    )
    title = alt.Title("correlations", subtitle="between columns")
    return _beside_diagonal(points, -1.0, 1.0, title)


def _beside_diagonal(points: Any, low: float, high: float, title: Any) -> Any:
    """Points with the line on which nothing changed."""
    alt = altair_module()
    scale = alt.Scale(domain=[low, high], nice=True)
    axis = alt.Axis(tickCount=4, format="~s")
    points = points.encode(
        x=alt.X("original:Q", title="original", scale=scale, axis=axis),
        y=alt.Y("synthetic:Q", title="synthetic", scale=scale, axis=axis),
    )
    return alt.layer(diagonal(low, high, scale), points, title=title).properties(
        width=_SIZE, height=_SIZE
    )


def _preserved_figures(found: Preserved) -> Any:
    """One dot for each figure, by kind; the axis is the difference."""
    alt = altair_module()
    rows = [
        {
            "kind": figure.kind,
            "about": figure.about,
            "difference": min(figure.difference, 2.0),
            "verdict": figure.verdict,
        }
        for figure in found.figures
    ]
    kinds = list(dict.fromkeys(figure.kind for figure in found.figures))
    verdicts = alt.Scale(domain=list(_COLOURS), range=list(_COLOURS.values()))
    shape = alt.Scale(domain=list(_COLOURS), range=["circle", "square", "diamond"])
    return (
        alt.Chart(alt.InlineData(values=rows))
        .mark_point(filled=True, size=60, opacity=0.7)
        .encode(
            x=alt.X(
                "difference:Q",
                title="difference in standard deviations (2 and more at the edge)",
                scale=alt.Scale(type="symlog", constant=0.05, domain=[0, 2]),
                axis=alt.Axis(values=[0, 0.05, 0.1, 0.25, 0.5, 1, 2], format="~g"),
            ),
            y=alt.Y("kind:N", sort=kinds, title=None, axis=alt.Axis(grid=True)),
            color=alt.Color("verdict:N", scale=verdicts, title=None),
            shape=alt.Shape("verdict:N", scale=shape, title=None),
            tooltip=["about:N", "difference:Q"],
        )
        .properties(width=_SIZE * max(2, len(found.names)), height=alt.Step(20))
    )
