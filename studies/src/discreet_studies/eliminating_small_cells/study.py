"""The paper, run again: its tables, what it says, and its figure from our tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from discreet.assessment.plots.style import altair_module, apply_style, colours, shapes
from discreet.protect.safe import Effect
from discreet_studies.eliminating_small_cells.extras import ALLOWANCES_RUN, extra_findings
from discreet_studies.eliminating_small_cells.findings import (
    LARGE,
    LIKELY,
    NORMAL,
    findings,
    nearest_adjustment,
    shape_findings,
)
from discreet_studies.eliminating_small_cells.log import LOG
from discreet_studies.eliminating_small_cells.results import (
    OTHERS,
    VARIANCE,
    CensusResults,
    CensusSize,
    Effort,
    all_results,
    law_at,
    matrix,
)
from discreet_studies.eliminating_small_cells.tables import (
    COUNTS,
    TOLERANCES,
    all_tables,
)
from discreet_studies.frozen import SEEDS, is_frozen
from discreet_studies.model import Options, Picture, Study

_REACH = 7
_FAR = 15
BANDS = ((20, 49), (50, 99), (100, 299), (300, 499), (500, 999), (1000, 4999))
_SERIES = ["SAFE", "noise, D = 5"]

Point = dict[str, Any]

FROZEN = {
    "stand-in": asdict(CensusSize()),
    "other stand-ins": {name: asdict(shape) for name, shape in OTHERS.items()},
    "variance of the noise": VARIANCE,
    "efforts": asdict(Effort()),
    "tolerances": TOLERANCES,
    "sentences": {"normal": NORMAL, "large counts": LARGE, "likely": LIKELY},
    "allowances of SAFE": ALLOWANCES_RUN,
    "seeds": SEEDS,
}
"""What an entry of the log freezes."""


def run(options: Options) -> Study:
    """Matrices and flows exactly; what protection does to cells on a stand-in."""
    return study_of(all_results(seed=options.seed), options.seed)


def study_of(found: CensusResults, seed: int = 1) -> Study:
    """The study of protected tables."""
    return Study(
        name="eliminating-small-cells",
        title="Eliminating small cells from census counts tables: empirical vs. design transition "
        "probabilities",
        source="Giessing & Höhne (2011)",
        tables=all_tables(found),
        findings=(
            *findings(found),
            nearest_adjustment(seed),
            *shape_findings(seed),
            *extra_findings(seed),
            is_frozen(FROZEN, LOG),
        ),
        pictures=pictures(found),
        notes=(_about(found), *_NOTES),
        log=LOG,
    )


_NOTES = (
    "SAFE's own search is not published; ours has the same rules and another search, moves no "
    "inner cell by more than 3, and comes nearer to the truth. Whether noise is better than SAFE "
    "is therefore shown and not judged.",
    "Section 3.1 writes p13 for the probability of the third target, a move from 1 to 4.",
    "In example 1 D = 2 is how far the product of the two matrices reaches; the starting matrix "
    "itself moves by one. Table 2 leaves out a column of its row 5.",
    "The text's largest deviation of 7 is about all controlled tables; Table 5 is about one of "
    "them and ends at 6.",
    "The product does not publish perturbed deviations of this kind, which tell too much of single "
    "cells; its quality is a coarse class, perturbed by a law that does not depend on the table.",
)


def _about(found: CensusResults) -> str:
    three, five = found.data.three_way, found.data.five_way
    return (
        f"The paper's census data are not at hand. {int(five.y.sum()):,} invented people stand in: "
        f"a three-way table of {int((three.z > 0).sum()):,} non-empty cells (the paper: 22,670), "
        f"and five variables in {int((five.y > 0).sum()):,} non-empty inner cells and "
        f"{int((five.z > 0).sum()):,} non-empty cells of the controlled tables of up to three "
        "variables. The paper's statements are judged on it."
    )


def pictures(found: CensusResults) -> tuple[Picture, ...]:
    """Both parts of the paper's figure."""
    return (
        Picture(
            "Figure 1a",
            "Probability of each deviation in controlled tables, by true count: SAFE beside the "
            "designed noise with D = 5.",
            lambda: _controlled_chart(found),
        ),
        Picture(
            "Figure 1b",
            "Probability of each deviation of SAFE in tables of four variables, which are not "
            f"controlled, by size of the true count; deviations beyond {_FAR} are not drawn.",
            lambda: _uncontrolled_chart(found),
        ),
    )


def _points(shares: dict[int, float], reach: int, counts: str, series: str) -> Iterator[Point]:
    for d in range(-reach, reach + 1):
        yield {"counts": counts, "series": series, "d": d, "share": shares.get(d, 0.0)}


def _controlled_chart(found: CensusResults) -> Any:
    law = matrix(5)
    names = [f"count {c}" for c in COUNTS]
    rows: list[Point] = []
    for c, name in zip(COUNTS, names, strict=True):
        rows += _points(found.controlled_cells.shares(c, c), _REACH, name, _SERIES[0])
        rows += _points(law_at(law, c), _REACH, name, _SERIES[1])
    return _panels(rows, names, _SERIES, 4)


def _uncontrolled_chart(found: CensusResults) -> Any:
    effect = found.uncontrolled_cells
    bands = [band for band in BANDS if _has_cells(effect, band)]
    names = [f"counts {a}-{b}" for a, b in bands]
    rows: list[Point] = []
    for band, name in zip(bands, names, strict=True):
        rows += _points(effect.shares(*band), _FAR, name, _SERIES[0])
    return _panels(rows, names, _SERIES[:1], 3)


def _has_cells(effect: Effect, band: tuple[int, int]) -> bool:
    return bool(np.any((effect.true >= band[0]) & (effect.true <= band[1])))


def _panels(rows: list[Point], names: list[str], series: list[str], columns: int) -> Any:
    """A panel for each size of count."""
    alt = altair_module()
    chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_line(point={"size": 22, "filled": True}, strokeWidth=1.5)
        .encode(
            x=alt.X("d:Q", title="deviation", scale=alt.Scale(nice=False)),
            y=alt.Y("share:Q", title="probability"),
            color=alt.Color("series:N", scale=colours(series), sort=series, title=None),
            shape=alt.Shape("series:N", scale=shapes(series), sort=series, title=None),
        )
        .properties(width=560 // columns, height=130)
        .facet(facet=alt.Facet("counts:N", sort=names, title=None), columns=columns)
    )
    return apply_style(chart)
