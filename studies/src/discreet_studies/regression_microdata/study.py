"""The paper, run again."""

from __future__ import annotations

import numpy as np

from discreet_studies.model import Options, Study
from discreet_studies.regression_microdata.basic import section_2, section_3
from discreet_studies.regression_microdata.clusters import section_6
from discreet_studies.regression_microdata.pictures import pictures
from discreet_studies.regression_microdata.scores import section_4, section_5, similarity
from discreet_studies.regression_microdata.standin import N, businesses

DRAWS = 400


def run(options: Options) -> Study:
    """Equations and stated properties of sections 2 to 6."""
    draws = options.replicates or DRAWS
    data = businesses(options.seed)
    rng = np.random.default_rng([options.seed, 4])
    similar = similarity(rng, draws)
    return Study(
        name="regression-microdata",
        title="Information preserving regression-based tools for statistical disclosure control",
        source="Langsrud (2019a)",
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
