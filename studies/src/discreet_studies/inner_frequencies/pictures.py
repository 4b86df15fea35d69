"""The schemes side by side."""

from __future__ import annotations

from typing import Any

from discreet.assess.plots.style import altair_module, colours, shapes, styled
from discreet_studies.inner_frequencies.results import EPSILONS, KINDS, Results
from discreet_studies.inner_frequencies.schemes import PARTS
from discreet_studies.model import Picture

_PARTS = list(PARTS)


def pictures(found: Results) -> tuple[Picture, ...]:
    """Utility of every scheme, a picture for each ε."""
    return tuple(
        Picture(
            f"Utility at ε = {epsilon}",
            "Hellinger utility of inner cells and margins by scheme; to the right is better.",
            lambda epsilon=epsilon: _dots(found, epsilon),  # type: ignore[misc]
        )
        for epsilon in EPSILONS
    )


def _dots(found: Results, epsilon: float) -> Any:
    alt = altair_module()
    rows = [
        {"scheme": scheme, "data": kind, "part": part, "utility": value}
        for kind in KINDS
        for scheme, scores in found.scores[kind, epsilon].items()
        for part, value in scores.utility.items()
    ]
    order = list(found.scores[KINDS[0], epsilon])
    chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_point(size=70, filled=True, opacity=0.9)
        .encode(
            x=alt.X("utility:Q", title="Hellinger utility", scale=alt.Scale(zero=False)),
            y=alt.Y("scheme:N", sort=order, title=None, axis=alt.Axis(grid=True, labelLimit=0)),
            color=alt.Color("part:N", scale=colours(_PARTS), sort=_PARTS, title="cells"),
            shape=alt.Shape("part:N", scale=shapes(_PARTS), sort=_PARTS, title="cells"),
        )
        .properties(width=260, height=alt.Step(20))
        .facet(column=alt.Column("data:N", sort=list(KINDS), title=None))
    )
    return styled(chart)
