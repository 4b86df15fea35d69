"""How far released values lie from true ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Real
from discreet.assess.cells import pairs
from discreet.assess.plots.style import PALETTE, altair_module, styled
from discreet.facade.table import Table
from discreet.tables.protected import Protected

if TYPE_CHECKING:
    import altair

_BARS = 40
_SHOWN = 0.995
_WIDTHS = tuple(digit * 10.0**power for power in range(9) for digit in (1, 2, 5))


def deviations(
    table: Table, releases: Protected | Mapping[str, Protected | Sequence[Protected]]
) -> altair.FacetChart:
    """Shares of the published cells by released minus true value, one row for each method.

    Args:
      table: The true table.
      releases: A release, or several by label; each may be a sequence of draws of one method.
    """
    alt = altair_module()
    given = {"release": releases} if isinstance(releases, Protected) else releases
    found = {label: _deviations(table, drawn) for label, drawn in given.items()}
    reach, width = _scale(np.concatenate(list(found.values())))
    rows = [row for label, moved in found.items() for row in _histogram(label, moved, reach, width)]
    chart: altair.FacetChart = styled(
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
            title=alt.Title("Deviations", subtitle=_subtitle(width)),
            spacing=14,
        )
    )
    return chart


def _deviations(table: Table, drawn: Protected | Sequence[Protected]) -> Real:
    several = [drawn] if isinstance(drawn, Protected) else drawn
    moved = [pair.g - pair.f for pair in (pairs(table, release) for release in several)]
    return np.concatenate(moved).astype(np.float64)


def _scale(moved: Real) -> tuple[int, float]:
    """How many bars there are on each side of zero, and how wide they are.

    Bars are one wide where that shows nearly all cells; wider ones are round numbers.
    """
    most = max(float(np.quantile(np.abs(moved), _SHOWN)), 3.0)
    width = next(w for w in _WIDTHS if most / w <= _BARS or w == _WIDTHS[-1])
    return math.ceil(most / width), width


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


def _subtitle(width: float) -> str:
    wide = "" if width == 1 else f" Bars are {width:g} wide."
    return f"Shares of the published cells; the outermost bars hold everything beyond.{wide}"
