"""The picture of a transition matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet.errors import MissingDependencyError

if TYPE_CHECKING:
    import altair

    from discreet.noise.matrix import TransitionMatrix

_DEFAULT_ROWS = 40


def heat_map(matrix: TransitionMatrix, largest: int | None = None) -> altair.Chart:
    """Deviations by true count; the colour scale is readable without colour vision."""
    try:
        import altair as alt
    except ImportError:
        raise MissingDependencyError("a plot", "altair", "plot") from None
    last = min(int(matrix.starts[-1]), _DEFAULT_ROWS) if largest is None else largest
    chart: altair.Chart = (
        alt.Chart(alt.InlineData(values=_cells(matrix, last)), title=matrix.name)
        .mark_rect()
        .encode(
            x=alt.X("deviation:O", title="published − true count"),
            y=alt.Y("count:O", title="true count", sort="ascending"),
            color=alt.Color("probability:Q", scale=alt.Scale(scheme="cividis")),
            tooltip=["count:Q", "published:Q", alt.Tooltip("probability:Q", format=".6f")],
        )
    )
    return chart


def _cells(matrix: TransitionMatrix, last: int) -> list[dict[str, float]]:
    """One record per count and deviation with positive probability."""
    law = matrix.law[matrix.row_of(np.arange(last + 1))]
    return [
        {
            "count": int(i),
            "deviation": int(v),
            "published": int(i + v),
            "probability": float(law[i, v + matrix.max_move]),
        }
        for i in range(last + 1)
        for v in matrix.deviations
        if law[i, v + matrix.max_move] > 0
    ]
