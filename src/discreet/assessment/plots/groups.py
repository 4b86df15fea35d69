"""By size of cell, by group of people, and between editions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Array, Real
from discreet.assessment.cells import pairs
from discreet.assessment.plots.cells import by_label
from discreet.assessment.plots.style import (
    PALETTE,
    QUIET,
    STRONG,
    altair_module,
    apply_style,
    cell_sizes,
    diagonal,
)
from discreet.errors import DesignError, ParameterError, check_known

if TYPE_CHECKING:
    import altair

    from discreet.facade.table import Table
    from discreet.tables.protected import Protected

_STARTS = (0, 1, 2, 3, 5, 10, 20, 50, 100, 1_000, 10_000)
_BANDS = (0.05, 0.25, 0.5, 0.75, 0.95)
_NAMES = ("low", "lower", "middle", "upper", "high")
_MOST_GROUPS = 40
_UNCHANGED = 0.5  # decimals of a fit count as the whole number that they round to
_TICKS = (0, *(sign * 10**k for k in range(8) for sign in (1, -1)))
_FEW_TICKS = 5
"""Where whole powers of ten give fewer, their halves and fifths are ticks as well."""


def deviations_by_size(
    table: Table, releases: Protected | Mapping[str, Protected | Sequence[Protected]]
) -> altair.FacetChart:
    """How far released values lie from true ones, by the size of the true value.

    A bar holds half of the cells, a line nine tenths; the tick is the median.

    Args:
      table: The true table.
      releases: A release, or several by label; each may be a sequence of draws of one method.
    """
    alt = altair_module()
    rows = []
    for label, drawn in by_label(releases).items():
        found = [pairs(table, release) for release in drawn]
        f, g = (np.concatenate([getattr(pair, side) for pair in found]) for side in "fg")
        rows += _bands(label, f, np.asarray(g - f, dtype=np.float64))
    data = alt.InlineData(values=rows)
    order = list(dict.fromkeys(row["size"] for row in sorted(rows, key=lambda row: row["start"])))
    base = alt.Chart(data).encode(
        x=alt.X("size:N", sort=order, title="true value", axis=alt.Axis(labelAngle=0))
    )
    ends = [min(row["low"] for row in rows), max(row["high"] for row in rows)]
    scale = alt.Scale(domain=[min(ends[0], -1.0), max(ends[1], 1.0)])
    y = alt.Y("low:Q", title="released − true value", scale=scale)
    tips = ["method:N", "size:N", "cells:Q", *(f"{name}:Q" for name in _NAMES)]
    layers = alt.layer(
        base.mark_rule(color=QUIET, strokeWidth=1.5).encode(y=y, y2="high:Q"),
        base.mark_bar(color=PALETTE[0], size=18).encode(y="lower:Q", y2="upper:Q", tooltip=tips),
        base.mark_tick(color=STRONG, size=18, thickness=2).encode(y="middle:Q"),
    )
    title = alt.Title(
        "Deviations by size of cell",
        subtitle="A bar holds half of the cells, a line nine tenths; the dark tick is the median.",
    )
    labels = list(dict.fromkeys(row["method"] for row in rows))
    header = alt.Header(labelOrient="top", labelAnchor="start", labelPadding=4)
    chart: altair.FacetChart = apply_style(
        layers.properties(width=max(68 * len(order), 200), height=150).facet(
            row=alt.Row("method:N", sort=labels, title=None, header=header), title=title, spacing=14
        )
    )
    return chart


def _bands(label: str, f: Array, moved: Real) -> list[dict[str, Any]]:
    """Quantiles of the deviations in each class of true values that has a cell."""
    place = np.searchsorted(_STARTS, f, side="right") - 1
    rows = []
    for k in np.unique(place[place >= 0]).tolist():
        some = moved[place == k]
        first, last = _STARTS[k], _STARTS[k + 1] - 1 if k + 1 < len(_STARTS) else None
        size = f"{first:,}+" if last is None else f"{first:,}"
        size = size if last in (None, first) else f"{first:,}–{last:,}"
        levels = zip(_NAMES, np.quantile(some, _BANDS).tolist(), strict=True)
        rows.append(
            {"method": label, "size": size, "start": first, "cells": len(some), **dict(levels)}
        )
    return rows


def disclosure_by_group(
    table: Table, release: Protected, by: str, small: int = 3
) -> altair.LayerChart:
    """How many small counts of each group of people are published as they are.

    Args:
      table: The true table.
      release: What is published of it, or a trial.
      by: The variable whose codes are the groups.
      small: True counts from 1 up to this one are small.
    """
    alt = altair_module()
    pair = pairs(table, release)
    every = _by_code(pair, by, (pair.f > 0) & (pair.f <= small))
    rows = every[:_MOST_GROUPS]
    if not rows:
        raise ParameterError(
            f"no published cell with a count from 1 to {small} has a code of {by!r}; take a "
            "larger `small`, or a variable that is crossed with others."
        )
    order = [row["group"] for row in rows]
    y = alt.Y("group:N", sort=order, title=None, axis=alt.Axis(labelLimit=0))
    scale = alt.Scale(domain=[0, 1])
    base = alt.Chart(alt.InlineData(values=rows)).encode(y=y)
    bars = base.mark_bar(color=PALETTE[0]).encode(
        x=alt.X("share:Q", scale=scale, title="share unchanged", axis=alt.Axis(format="%")),
        tooltip=["group:N", alt.Tooltip("share:Q", format=".1%"), "unchanged:Q", "cells:Q"],
    )
    texts = base.mark_text(align="left", dx=4, fontSize=11, color=STRONG).encode(
        x=alt.X("share:Q", scale=scale), text="said:N"
    )
    said = [f"Counts from 1 to {small} that are published as they are, of all such cells."]
    if len(every) > len(rows):
        said.append(f"The {len(rows)} groups with the largest shares, of {len(every)}.")
    title = alt.Title(f"Disclosure by {by}", subtitle=said)
    chart: altair.LayerChart = apply_style(
        alt.layer(bars, texts, title=title).properties(width=360, height=alt.Step(20))
    )
    return chart


def _by_code(pair: Any, by: str, small: Array) -> list[dict[str, Any]]:
    """For each code the small cells and the unchanged ones, the worst first."""
    axes = [axis.name for axis in pair.design.axes]
    check_known("variable", [by], axes)
    a = axes.index(by)
    index, codes = pair.design.published_codes()[a]
    axis, code = pair.design.axes[a], index[pair.shown]
    is_same = np.abs(np.asarray(pair.g - pair.f, dtype=np.float64)) < _UNCHANGED
    rows = []
    for k in np.unique(code[small]).tolist():
        if codes[k] != axis.total:
            cells = small & (code == k)
            n, same = int(cells.sum()), int((cells & is_same).sum())
            said = f"{same:,} of {n:,}"
            rows.append(
                {
                    "group": axis.describe(codes[k]),
                    "share": same / n,
                    "unchanged": same,
                    "cells": n,
                    "said": said,
                }  # fmt: skip
            )
    return sorted(rows, key=lambda row: (-row["share"], -row["cells"]))


def edition_changes(
    earlier: Protected, later: Protected, tables: tuple[Table, Table] | None = None
) -> altair.LayerChart:
    """What changed in each published figure from one edition to the next.

    Args:
      earlier: The release of the edition before.
      later: The release of this edition, of the same cells.
      tables: The true tables of both editions; the figures are then drawn against the true changes.
        Without them against the earlier figures, and the picture holds nothing but public values.
    """
    alt = altair_module()
    sizes = {len(each.z) for each in (earlier, later, *(tables or ()))}
    if len(sizes) > 1:
        raise DesignError(
            f"the editions have {' and '.join(f'{n:,}' for n in sorted(sizes))} published cells; "
            "take tables with the same margins and code lists."
        )
    shown = ~(earlier.hidden | later.hidden)
    change = np.asarray(later.z - earlier.z, dtype=np.float64)[shown]
    if tables is None:
        across, name = np.asarray(earlier.z, dtype=np.float64)[shown], "earlier figure"
    else:
        across = np.asarray(tables[1].z - tables[0].z, dtype=np.float64)[shown]
        name = "true change"
    points, cells = np.unique(
        np.column_stack([across, np.rint(change)]), axis=0, return_counts=True
    )
    rows = [
        {"x": x, "y": y, "cells": int(n)} for (x, y), n in zip(points.tolist(), cells, strict=True)
    ]
    x_scale, x_axis = _symlog(alt, points[:, 0])
    y_scale, y_axis = _symlog(alt, points[:, 1])
    if tables is not None:  # one scale for both, so that the line of no noise is a diagonal
        x_scale, x_axis = y_scale, y_axis = _symlog(alt, points)
    spots = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_circle(color=PALETTE[0], opacity=0.65)
        .encode(
            x=alt.X("x:Q", title=name, scale=x_scale, axis=x_axis),
            y=alt.Y("y:Q", title="published change", scale=y_scale, axis=y_axis),
            size=cell_sizes(cells.tolist()),
            tooltip=["x:Q", "y:Q", "cells:Q"],
        )
    )
    hidden = int((~shown).sum())
    said = "" if not hidden else f" Cells hidden in an edition: {hidden:,}."
    line = _line(alt, points, x_scale, y_scale, is_diagonal=tables is not None)
    meaning = "published changes are true" if tables is not None else "nothing changed"
    title = alt.Title("Changes between editions", subtitle=f"On the dashed line {meaning}.{said}")
    chart: altair.LayerChart = apply_style(
        alt.layer(line, spots, title=title).properties(width=380, height=380)
    )
    return chart


def _symlog(alt: Any, values: Real) -> tuple[Any, Any]:
    """A scale that shows small values of both signs and large ones, and its ticks."""
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 1.0)
    ends = [1.05 * low - 0.5, 1.05 * high + 0.5]  # large circles at the edge would be cut
    scale = alt.Scale(type="symlog", domain=ends, nice=False)
    ticks = [tick for tick in _TICKS if low <= tick <= high]
    if len(ticks) < _FEW_TICKS:
        finer = {part * tick for tick in _TICKS for part in (1, 2, 5)}
        ticks = sorted(tick for tick in finer if low <= tick <= high)
    return scale, alt.Axis(values=ticks, format=",d")


def _line(alt: Any, points: Real, x_scale: Any, y_scale: Any, *, is_diagonal: bool) -> Any:
    """The dashed line of editions without noise, or without changes."""
    if is_diagonal:
        return diagonal(float(points.min()), float(points.max()), x_scale).encode(
            y=alt.Y("v:Q", scale=y_scale)
        )
    data = alt.InlineData(values=[{"v": 0}])
    mark = alt.Chart(data).mark_rule(color=QUIET, strokeDash=[4, 3])
    return mark.encode(y=alt.Y("v:Q", scale=y_scale))
