"""Original against synthetic records: values, and the correlations between columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.assessment.plots.style import PALETTE, altair_module, apply_style, diagonal

if TYPE_CHECKING:
    import altair

    from discreet.synthesis.preserved import ComparedFigure, Preserved


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
        "Original and synthetic records",
        subtitle="On a dashed line nothing changed.",
    )
    chart = alt.vconcat(alt.hconcat(*above), _figures(found), title=title)
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


def _figures(found: Preserved) -> Any:
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
