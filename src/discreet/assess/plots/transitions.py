"""The law of the noise as designed, beside what a table shows of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Real
from discreet.assess.cells import pairs
from discreet.assess.plots.style import altair_module, styled
from discreet.facade.table import Table
from discreet.tables.protected import Protected

if TYPE_CHECKING:
    import altair

    from discreet.noise.matrix import TransitionMatrix

DESIGNED, OBSERVED = "designed", "observed"
_LARGEST = 12


def transitions(
    matrix: TransitionMatrix,
    table: Table,
    releases: Protected | Sequence[Protected],
    largest: int = _LARGEST,
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
    law, counts = _laws(matrix, table, drawn, largest)
    rows = _rows(matrix, law, counts, largest)
    data = alt.InlineData(values=rows)
    order = [_name(i, largest) for i in range(largest + 2)]
    title = alt.Title(
        "Transition probabilities",
        subtitle="Deviation by true count. Difference: observed − designed, in standard errors.",
    )
    panels = [_panel(alt, data, name, order) for name in (DESIGNED, OBSERVED)]
    chart: altair.HConcatChart = styled(
        alt.hconcat(*panels, _difference(alt, data, order), title=title).resolve_scale(
            color="independent"
        )
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


def _rows(
    matrix: TransitionMatrix,
    law: Real,
    counts: Real,
    largest: int,
) -> list[dict[str, Any]]:
    found = []
    for i in np.flatnonzero(counts.sum(axis=1)):
        cells = counts[i].sum()
        for v, p, n in zip(matrix.deviations, law[i], counts[i], strict=True):
            if p > 0 or n > 0:
                spread = np.sqrt(max(p * (1 - p), 1 / cells) / cells)
                found.append(
                    {
                        "count": _name(int(i), largest),
                        "deviation": int(v),
                        "cells": int(cells),
                        DESIGNED: float(p),
                        OBSERVED: float(n / cells),
                        "difference": float((n / cells - p) / spread),
                    }
                )
    return found


def _name(i: int, largest: int) -> str:
    return f"{i}" if i <= largest else f"{largest + 1}+"


def _panel(alt: Any, data: Any, name: str, order: list[str]) -> Any:
    colour = alt.Color(
        f"{name}:Q",
        scale=alt.Scale(type="sqrt", scheme="cividis", domain=[0, 1], reverse=True),
        legend=alt.Legend(title="probability", format="%") if name == OBSERVED else None,
    )
    return _base(alt, data, order, name.capitalize()).encode(color=colour)


def _difference(alt: Any, data: Any, order: list[str]) -> Any:
    colour = alt.Color(
        "difference:Q",
        scale=alt.Scale(scheme="purpleorange", domain=[-4, 4], clamp=True),
        legend=alt.Legend(title="std. errors"),
    )
    return _base(alt, data, order, "Difference").encode(color=colour)


def _base(alt: Any, data: Any, order: list[str], title: str) -> Any:
    tips = [alt.Tooltip(f"{name}:Q", format=".4f") for name in (DESIGNED, OBSERVED)]
    return (
        alt.Chart(data, title=alt.Title(title, fontSize=12, offset=6))
        .mark_rect(stroke="white", strokeWidth=0.5)
        .encode(
            x=alt.X("deviation:O", title="released − true", axis=alt.Axis(labelAngle=0)),
            y=alt.Y("count:O", title="true count", sort=order),
            tooltip=["count:O", "deviation:O", "cells:Q", *tips, "difference:Q"],
        )
        .properties(width=alt.Step(17), height=alt.Step(17))
    )
