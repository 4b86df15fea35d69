"""Pictures of what the paper tells in words."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.assess.plots.cells import before_after
from discreet.assess.plots.style import PALETTE, altair_module, styled
from discreet_studies.fair_comparison.draws import Draws
from discreet_studies.fair_comparison.tables import Worked
from discreet_studies.model import Picture

_BARS = 40


def pictures(worked: Worked, keys: Draws) -> tuple[Picture, ...]:
    """The worked example cell by cell, and the spread of the utility."""
    truth = worked.example.table
    return (
        Picture(
            "Published cells, cell key method",
            "Table 2 and Table 6: true and additivity-restored values.",
            lambda: before_after(truth, worked.restored),
        ),
        Picture(
            "Published cells, small count rounding",
            "Table 2 and Table 4: true and rounded values.",
            lambda: before_after(truth, worked.scr),
        ),
        Picture(
            "Utility of redrawn keys",
            "Hellinger utility of the cell key method over redrawn keys, as published and with "
            "additivity restored.",
            lambda: _histogram(keys),
        ),
    )


def _histogram(keys: Draws) -> Any:
    alt = altair_module()
    drawn = {"as published": keys.published, "additivity restored": keys.restored}
    low = min(float(values.min()) for values in drawn.values())
    edges = np.linspace(low, 1.0, _BARS + 1)
    rows = [
        {"stage": stage, "low": float(a), "high": float(b), "share": float(n) / len(values)}
        for stage, values in drawn.items()
        for a, b, n in zip(edges, edges[1:], np.histogram(values, edges)[0], strict=False)
    ]
    chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_bar(color=PALETTE[0])
        .encode(
            x=alt.X("low:Q", bin="binned", title="Hellinger utility", scale=alt.Scale(zero=False)),
            x2="high:Q",
            y=alt.Y("share:Q", title="share of draws", axis=alt.Axis(format="%", tickCount=4)),
        )
        .properties(width=460, height=110)
        .facet(row=alt.Row("stage:N", sort=list(drawn), title=None))
    )
    return styled(chart)
