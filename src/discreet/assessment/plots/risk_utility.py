"""The risk–utility map: where methods stand, and which settings none beats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from discreet.assessment.compare.summary import Line, MeasureRows, pair_rows
from discreet.assessment.plots.style import (
    PALETTE,
    QUIET,
    STRONG,
    altair_module,
    apply_style,
    colours,
    shapes,
)

if TYPE_CHECKING:
    import altair

    from discreet.assessment.compare.comparison import Comparison
    from discreet.assessment.compare.frontier import Frontier

WIDTH, HEIGHT = 460, 340
"""Size of a picture in pixels."""

# Heights and widths of text in pixels; a name is moved down in steps until it covers no other.
_LINE, _LETTER, _STEP = 13.0, 6.2, 2.0
_FIRST = {"left": 9.0, "right": -7.0}
_ROOM = 0.06  # of an axis beyond the outermost points, whose marks would be cut otherwise
_BESIDE = 9  # pixels from a point to its name
_INTERVALS, _MEANS = ("_low", "_high"), ("", "")


def risk_utility_map(
    found: Comparison, risk: str | None = None, utility: str | None = None
) -> altair.LayerChart:
    """Mean risk and mean utility of every method, with the 95 % ranges of single draws.

    Args:
      found: The comparison.
      risk: The measure of risk.
      utility: The measure of utility; ``name@published`` or ``name@fitted`` names the stage.
    """
    alt = altair_module()
    x, y = found.risk(risk), found.utility(utility)
    points = [_point(a, b) for a, b in pair_rows(x, y)]
    labels = _distinct_names(points)
    data = alt.Chart(alt.InlineData(values=points))
    colour = alt.Color("name:N", scale=colours(labels), title="method", sort=labels)
    across, up = _axes(x, y, points)
    bars = [
        data.mark_rule(strokeWidth=1.5, opacity=0.55).encode(
            x=alt.X("risk_low:Q", **across), x2="risk_high:Q", y=alt.Y("utility:Q"), color=colour
        ),
        data.mark_rule(strokeWidth=1.5, opacity=0.55).encode(
            x=alt.X("risk:Q"), y=alt.Y("utility_low:Q", **up), y2="utility_high:Q", color=colour
        ),
    ]
    # hollow, so that of two methods in one place both are seen
    marks = data.mark_point(size=110, filled=False, opacity=1, strokeWidth=2.2)
    shape = alt.Shape("name:N", scale=shapes(labels), title="method", sort=labels)
    shown = marks.encode(
        x="risk:Q", y="utility:Q", color=colour, shape=shape, tooltip=_tooltip(alt)
    )
    draws = max(line["replicates"] for line in x.lines)
    bar = f"Points: means of {draws:,} draws. Bars: a further draw lies there in 95 % of cases."
    title = alt.Title("Risk and utility", subtitle=[_hint(x, y), bar])
    layers: altair.LayerChart = apply_style(
        alt.layer(*bars, shown, title=title).properties(width=WIDTH, height=HEIGHT)
    )
    return layers


def frontier_map(found: Frontier) -> altair.LayerChart:
    """Settings of one method; those that none beats are filled, named and joined."""
    alt = altair_module()
    x, y = found.comparison[found.risk], found.comparison[found.utility]
    best = set(found.efficient)
    points = [{**_point(a, b), "efficient": a["label"] in best} for a, b in pair_rows(x, y)]
    across, up = _axes(x, y, points, _MEANS)
    where = {"x": alt.X("risk:Q", **across), "y": alt.Y("utility:Q", **up)}
    data = alt.Chart(alt.InlineData(values=points)).encode(**where, tooltip=_tooltip(alt))
    good = data.transform_filter("datum.efficient")
    title = alt.Title(
        f"Settings of {x.lines[0]['method']}",
        subtitle=[_hint(x, y), "Filled and joined: no other setting is better in both."],
    )
    layers: altair.LayerChart = apply_style(
        alt.layer(
            good.mark_line(color=PALETTE[0], strokeWidth=1.5, opacity=0.6).encode(order="risk:Q"),
            data.transform_filter("!datum.efficient").mark_point(
                size=70, color=QUIET, filled=False, strokeWidth=1.5
            ),
            good.mark_point(size=90, color=PALETTE[0], filled=True, opacity=1),
            *_names(alt, _texts(points, across, up), where),
            title=title,
        ).properties(width=WIDTH, height=HEIGHT)
    )
    return layers


def _texts(
    points: list[dict[str, Any]], across: dict[str, Any], up: dict[str, Any]
) -> list[PointLabel]:
    """Names beside efficient points, towards the middle of the picture; equal points share one."""
    spots: dict[tuple[float, float], list[str]] = {}
    for point in points:
        if point["efficient"]:
            spots.setdefault((point["risk"], point["utility"]), []).append(point["name"])
    low, high = across["scale"].domain
    texts = [
        PointLabel(" or ".join(names), risk, utility, "left" if 2 * risk <= low + high else "right")
        for (risk, utility), names in spots.items()
    ]
    return move_apart(texts, (low, high), up["scale"].domain)


def _names(alt: Any, texts: list[PointLabel], where: dict[str, Any]) -> list[Any]:
    sides = {side: [t._asdict() for t in texts if t.side == side] for side in ("left", "right")}
    return [
        alt.Chart(alt.InlineData(values=chosen))
        .mark_text(align=side, dx=_BESIDE if side == "left" else -_BESIDE, fontSize=11)
        .encode(**where, text="name:N", color=alt.value(STRONG))
        for side, chosen in sides.items()
        if chosen
    ]


def _point(risk: Line, utility: Line) -> dict[str, Any]:
    """Means and ranges; where a single draw has no range, its ends are the mean."""
    point: dict[str, Any] = {"name": risk["label"], "fitter": risk["fitter"] or utility["fitter"]}
    for name, line in (("risk", risk), ("utility", utility)):
        point[name] = line["mean"]
        for end, column in (("low", "lower"), ("high", "upper")):
            point[f"{name}_{end}"] = line["mean"] if line[column] is None else line[column]
    return point


def _distinct_names(points: list[dict[str, Any]]) -> list[str]:
    """Names of the points in order; with several fitters, the fitter is part of them."""
    if len({p["name"] for p in points}) < len(points):
        for point in points:
            point["name"] = f"{point['name']}, {point['fitter']}"
    return list(dict.fromkeys(str(p["name"]) for p in points))


def _axes(
    x: MeasureRows, y: MeasureRows, points: list[dict[str, Any]], ends: tuple[str, str] = _INTERVALS
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Titles and domains that leave room around the intervals, or around the means."""
    alt = altair_module()
    axes = []
    for name, chosen in (("risk", x), ("utility", y)):
        low = min(p[name + ends[0]] for p in points)
        high = max(p[name + ends[1]] for p in points)
        room = _ROOM * (high - low or abs(high) or 1.0)
        scale = alt.Scale(domain=[low - room, high + room], zero=False, nice=False)
        title = f"{name}: {chosen.title}"
        axes.append({"title": title, "scale": scale, "axis": alt.Axis(tickCount=7)})
    return axes[0], axes[1]


def _hint(x: MeasureRows, y: MeasureRows) -> str:
    side = {"lower": "to the left", "higher": "to the right", "zero": "towards zero"}
    level = {"lower": "downwards", "higher": "upwards", "zero": "towards zero"}
    return f"Safer {side[x.direction]}, more useful {level[y.direction]}."


def _tooltip(alt: Any) -> list[Any]:
    numbers = ("risk", "risk_low", "risk_high", "utility", "utility_low", "utility_high")
    shown = [
        alt.Tooltip(f"{name}:Q", format=".4f", title=name.replace("_", " ")) for name in numbers
    ]
    return [alt.Tooltip("name:N", title="method"), alt.Tooltip("fitter:N"), *shown]


class PointLabel(NamedTuple):
    """A text at a point; its `side` is the end that touches the point."""

    name: str
    risk: float
    utility: float
    side: str


def move_apart(
    texts: Sequence[PointLabel], across: Sequence[float], up: Sequence[float]
) -> list[PointLabel]:
    """The texts a little off their points, moved down where they would cover each other.

    Args:
      texts: Texts at their points.
      across: Ends of the horizontal axis.
      up: Ends of the vertical axis.
    """
    pixel = (up[1] - up[0]) / HEIGHT
    placed: list[tuple[float, float, float]] = []
    found = []
    for text in sorted(texts, key=lambda t: -t.utility):
        at = (text.risk - across[0]) / (across[1] - across[0]) * WIDTH
        length = _LETTER * len(text.name)
        left, right = (at, at + length) if text.side == "left" else (at - length, at)
        top = (up[1] - text.utility) / pixel + _FIRST[text.side]
        while any(abs(top - y) < _LINE and left < r and right > x for x, r, y in placed):
            top += _STEP
        placed.append((left, right, top))
        found.append(text._replace(utility=up[1] - top * pixel))
    return found
