"""What masking by random orthogonal matrices keeps of each component."""

from __future__ import annotations

from typing import Any

from discreet.assess.plots.style import PALETTE, altair_module, styled
from discreet_studies.model import Picture
from discreet_studies.regression_microdata.scores import THIRDS, Similarity


def pictures(similar: Similarity) -> tuple[Picture, ...]:
    """Similarity by λ."""
    return (
        Picture(
            "Similarity of components",
            "Mean correlation of components with their originals by λ (section 5): the first ones "
            "stay nearest.",
            lambda: _lines(similar),
        ),
    )


def _lines(similar: Similarity) -> Any:
    alt = altair_module()
    rows = [
        {"λ": size, "components": third, "correlation": float(mean)}
        for size, found in similar.found.items()
        for third, mean in zip(THIRDS, found.mean(axis=0), strict=True)
    ]
    colours = alt.Scale(domain=list(THIRDS), range=list(PALETTE[:3]))
    chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_line(point=True)
        .encode(
            x=alt.X("λ:Q", scale=alt.Scale(type="log"), title="λ"),
            y=alt.Y("correlation:Q", title="mean correlation with the original"),
            color=alt.Color("components:N", scale=colours),
        )
        .properties(width=460, height=220)
    )
    return styled(chart)
