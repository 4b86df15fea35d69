"""The paper, run again, and a picture of what random orthogonal matrices keep."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.assessment.plots.style import PALETTE, altair_module, apply_style
from discreet_studies.model import Options, Picture, Study
from discreet_studies.regression_microdata.clusters import section_6
from discreet_studies.regression_microdata.judge import N, businesses
from discreet_studies.regression_microdata.sections_2_to_5 import (
    THIRDS,
    Similarity,
    section_2,
    section_3,
    section_4,
    section_5,
    similarity,
)

DRAWS = 400


def run(options: Options) -> Study:
    """Equations and stated properties of sections 2 to 6."""
    draws = options.replicates or DRAWS
    data = businesses(options.seed)
    rng = np.random.default_rng([options.seed, 4])
    similar = similarity(rng, draws)
    return Study(
        name="regression-microdata",
        title="Information preserving regression-based tools for statistical disclosure control: "
        "microdata",
        source="Langsrud (2019a), sections 2 to 6",
        tables=(),
        findings=(
            *section_2(data, rng, draws),
            *section_3(data, rng),
            *section_4(data, rng),
            *section_5(data, rng, similar),
            *section_6(data, rng),
        ),
        pictures=pictures(similar),
        notes=(
            "The paper prints no figures in sections 2 to 6. Its equations and what it says of "
            "them are checked by plain regressions that the methods do not use.",
            f"The records are {N} invented businesses after the scenario of section 6.",
            f"Draws where chance matters: {draws}.",
        ),
    )


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
    return apply_style(chart)
