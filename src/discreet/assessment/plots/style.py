"""What all pictures share: colours that everybody can tell apart, sizes, and files."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from discreet.errors import MissingDependencyError, ParameterError
from discreet.files import OWNER_ONLY, written_whole

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31")
"""Okabe & Ito's colours, yellow replaced by brown, which is visible on white."""
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")
QUIET, STRONG = "#767676", "#1a1a1a"
FORMATS = (".svg", ".png", ".html")
_SETTINGS: dict[str, dict[str, Any]] = {"png": {"ppi": 144}, "html": {"inline": True}}
_FONT = "Helvetica Neue, Helvetica, Arial, DejaVu Sans, sans-serif"


def altair_module() -> Any:
    """Vega-Altair, or an error that says how to get it."""
    try:
        import altair
    except ImportError:
        raise MissingDependencyError("a plot", "altair", "plot") from None
    return altair


def apply_style(chart: Any) -> Any:
    """The chart with the common fonts, sizes and quiet axes."""
    return (
        chart.configure(font=_FONT, padding=8)
        .configure_view(stroke=None)
        .configure_axis(
            labelFontSize=11,
            titleFontSize=12,
            titleFontWeight="normal",
            labelColor=STRONG,
            titleColor=STRONG,
            gridColor="#e6e6e6",
            domainColor=QUIET,
            tickColor=QUIET,
        )
        .configure_title(
            anchor="start", fontSize=14, subtitleFontSize=11.5, subtitleColor="#4d4d4d", offset=12
        )
        .configure_legend(
            labelFontSize=11, titleFontSize=11, labelLimit=0, symbolSize=90, symbolOpacity=1
        )
        .configure_header(labelFontSize=11.5, titleFontSize=12, labelFontWeight="bold")
    )


def colours(labels: list[str]) -> Any:
    """A colour for each label, the first ones the easiest to tell apart."""
    scale = altair_module().Scale
    return scale(domain=labels, range=[PALETTE[k % len(PALETTE)] for k in range(len(labels))])


def shapes(labels: list[str]) -> Any:
    """A shape for each label, so that colour is never needed alone."""
    scale = altair_module().Scale
    return scale(domain=labels, range=[SHAPES[k % len(SHAPES)] for k in range(len(labels))])


def cell_sizes(cells: Sequence[int]) -> Any:
    """Areas of points by the number of cells they stand for; whole numbers in the legend."""
    alt = altair_module()
    most = max(cells)
    values = sorted({1, most, *(round(most * share) for share in (0.25, 0.5))} - {0})
    scale = alt.Scale(domain=[1, max(most, 2)], range=[15, 400])
    return alt.Size("cells:Q", scale=scale, legend=alt.Legend(values=values, format=",d"))


def diagonal(low: float, high: float, scale: Any) -> Any:
    """The dashed line on which nothing changed."""
    alt = altair_module()
    return (
        alt.Chart(alt.InlineData(values=[{"v": low}, {"v": high}]))
        .mark_line(color=QUIET, strokeDash=[4, 3])
        .encode(x=alt.X("v:Q", scale=scale), y=alt.Y("v:Q", scale=scale))
    )


def save(chart: Any, path: str | Path) -> Path:
    """Write a picture as .svg, .png or interactive .html that needs no network.

    The file is for its owner only: what is drawn from true counts is confidential.
    """
    target = Path(path)
    if target.suffix not in FORMATS:
        raise ParameterError(
            f"cannot draw {target.name!r}: the name must end in {', '.join(FORMATS)}."
        )
    with written_whole(target, OWNER_ONLY) as temporary:
        temporary.write_bytes(_render(chart, target.suffix[1:]))
    return target


def to_svg(chart: Any) -> str:
    """The picture as SVG text."""
    return _render(chart, "svg").decode()


def _render(chart: Any, kind: str) -> bytes:
    try:
        import vl_convert  # noqa: F401  (its absence is an error with a remedy)
    except ImportError:
        raise MissingDependencyError("drawing", "vl-convert-python", "plot") from None
    stream: Any = io.BytesIO() if kind == "png" else io.StringIO()
    chart.save(stream, format=kind, **_SETTINGS.get(kind, {}))
    content = stream.getvalue()
    return content if isinstance(content, bytes) else content.encode()
