"""The paper, run again: its tables, what it says, and its figure from our tables."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from discreet.arrays import Whole
from discreet.assessment.plots.style import altair_module, apply_style, colours, shapes
from discreet.noise.entropy import variance_range
from discreet.noise.invariant import no_small_cells
from discreet.protect.safe import Effect
from discreet_studies.eliminating_small_cells import printed
from discreet_studies.eliminating_small_cells.results import (
    REACHES,
    SMALL,
    CensusResults,
    all_results,
    matrix,
)
from discreet_studies.eliminating_small_cells.tables import COUNTS, all_tables
from discreet_studies.model import Finding, Options, Picture, Study, by_row

_SUM, _MEAN, _VARIANCE = 0.0035, 0.0035, 0.025  # what rounding to three digits can do to a row
_LARGEST_OF_SAFE = 8
_LARGE = 20
_NORMAL = 0.1
_REACH = 7
_FAR = 15
BANDS = ((20, 49), (50, 99), (100, 299), (300, 499), (500, 999), (1000, 4999))
_SERIES = ["SAFE", "noise, D = 5"]

Point = dict[str, Any]


def run(options: Options) -> Study:
    """Matrices and flows exactly; what protection does to cells on a stand-in."""
    return study_of(all_results(seed=options.seed))


def study_of(found: CensusResults) -> Study:
    """The study of protected tables."""
    return Study(
        name="eliminating-small-cells",
        title="Eliminating small cells from census counts tables: empirical vs. design transition "
        "probabilities",
        source="Giessing & Höhne (2011)",
        tables=all_tables(found),
        findings=tuple(findings(found)),
        pictures=pictures(found),
        notes=(_about(found), *_NOTES),
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
        "variables. Noise without adjustment is judged on it, and the paper's statements are."
    )


def findings(found: CensusResults) -> Iterator[Finding]:
    """The statements of sections 2 to 7, in their order."""
    yield _safe_bound(found)
    yield _least_variance()
    yield _printed_rows()
    yield _joint_total()
    yield _stronger_than_noise(found)
    yield _more_normal(found)
    yield _longer_tails(found)
    yield _normal_outside(found)
    yield _adjustment_finding(found)
    yield _adjustment_costs(found)
    yield _noise_beats_safe(found)


def _safe_bound(found: CensusResults) -> Finding:
    effects = (found.controlled_cells, found.test_table, found.uncontrolled_cells)
    small = any(np.isin(e.protected, SMALL).any() for e in effects)
    largest = found.controlled_cells.largest
    return Finding(
        "SAFE leaves no count of one or two in any table, and usually keeps deviations in "
        "controlled tables within a maximum between 4 and 8.",
        not small and largest <= _LARGEST_OF_SAFE,
        f"No small count in tables of up to four variables; largest deviation in controlled "
        f"tables {largest}, mean {found.controlled_cells.mean:.2f}.",
    )


def _least_variance() -> Finding:
    ranges = {D: variance_range(D, js=2, mono=False) for D in REACHES}
    lowest = {D: math.nan if span is None else span[0] for D, span in ranges.items()}
    return Finding(
        "Without counts of one and two the variance must be at least 2.",
        all(abs(low - 2) < 1e-6 for low in lowest.values()),
        "Least variance " + ", ".join(f"{low:.4g} (D = {D})" for D, low in lowest.items()) + ".",
    )


def _printed_rows() -> Finding:
    sums, centres, spreads = zip(
        *(_moments(int(row), texts) for D in REACHES for row, texts in _rows(D)), strict=True
    )
    ours = [matrix(D).audit() for D in REACHES]
    exact = max(float(np.abs(audit.mean).max()) for audit in ours)
    holds = (
        max(abs(s - 1) for s in sums) <= _SUM
        and max(map(abs, centres)) <= _MEAN
        and max(abs(v - 2) for v in spreads) <= _VARIANCE
        and exact < 1e-9
    )
    return Finding(
        "The designed noise has mean zero and a fixed variance just above 2 at every count.",
        holds,
        f"Rows as printed sum to {min(sums):.3f}..{max(sums):.3f}, have means up to "
        f"{max(map(abs, centres)):.3f} and variances {min(spreads):.3f}..{max(spreads):.3f}, "
        f"which is rounding; ours have means below {exact:.0e}.",
    )


def _rows(D: int) -> Iterator[tuple[str, list[str]]]:
    yield from by_row(printed.NOISE[D]).items()


def _moments(row: int, texts: list[str]) -> tuple[float, float, float]:
    """Sum, mean and variance of a printed row."""
    p, v = np.array([float(text) for text in texts]), np.array(printed.TARGETS) - row
    mean = float(p @ v)
    return float(p.sum()), mean, float(p @ v**2) - mean**2


def _joint_total() -> Finding:
    V = np.array([0, *printed.FREQUENCIES])
    after = V @ no_small_cells(printed.FREQUENCIES).dense(len(V))
    below = float(after[0] + after[3])
    return Finding(
        "In example 1 the total number of counts under four, 148, is exactly preserved.",
        abs(below - V[1:4].sum()) < 1e-9 and not after[[1, 2]].any(),
        f"{below:.9g} cells at 0 and 3, and counts above keep their frequencies.",
    )


def _stays(found: Effect) -> list[float]:
    """Share of unchanged cells at each count of Figure 1a."""
    return [found.shares(c, c).get(0, 0.0) for c in COUNTS]


def _stronger_than_noise(found: CensusResults) -> Finding:
    safe, noise = _stays(found.controlled_cells), matrix(5).probabilities(COUNTS[0])[5]
    return Finding(
        "SAFE perturbs counts of 9 to 16 more than noise does: between 13 % and 26 % of them "
        "stay, against about 70 %.",
        max(safe) < noise,
        f"Between {min(safe):.0%} and {max(safe):.0%} stay with SAFE, {noise:.0%} with noise.",
    )


def _distance_to_normal(d: Whole) -> float:
    """Total variation between deviations and whole numbers of a normal law with their moments."""
    mean, sd = float(d.mean()), float(d.std())
    values = np.arange(d.min() - 1, d.max() + 2)
    edges = np.array([_phi((v + 0.5 - mean) / sd) for v in (values[0] - 1, *values)])
    shares = np.bincount(d - values[0], minlength=len(values)) / len(d)
    outside = 1 - (edges[-1] - edges[0])
    return float(0.5 * (np.abs(shares - np.diff(edges)).sum() + outside))


def _phi(x: float) -> float:
    return 0.5 * (1 + math.erf(x / math.sqrt(2)))


def _more_normal(found: CensusResults) -> Finding:
    e = found.controlled_cells
    small = _distance_to_normal(e.deviation[e.true <= 8])
    large = _distance_to_normal(e.deviation[e.true >= _LARGE])
    return Finding(
        "The deviations of SAFE become approximately normal when the count increases.",
        large < min(small, _NORMAL),
        f"Distance from a normal law {small:.3f} for counts up to 8, {large:.3f} from {_LARGE} on.",
    )


def _longer_tails(found: CensusResults) -> Finding:
    inside, outside = found.controlled_cells, found.uncontrolled_cells
    large = outside.deviation[outside.true >= _LARGE]
    return Finding(
        "In tables of four variables, which are not controlled, the tails are longer: deviations "
        "reach 30 instead of 7, but large ones are relatively unlikely.",
        outside.largest > 2 * inside.largest and float(np.mean(np.abs(large) <= 4)) > 0.9,
        f"Largest {outside.largest} instead of {inside.largest}; of counts from {_LARGE} on "
        f"{np.mean(np.abs(large) <= 4):.1%} deviate by at most 4.",
    )


def _normal_outside(found: CensusResults) -> Finding:
    """Not judged: the shape depends on how the records cross with what is controlled."""
    e = found.uncontrolled_cells
    d = e.deviation[e.true >= _LARGE]
    distance = _distance_to_normal(d)
    return Finding(
        "In tables of four variables the deviations of SAFE are still normally distributed.",
        distance < _NORMAL,
        f"Distance from a normal law {distance:.3f} for counts from {_LARGE} on: a peak "
        f"({np.mean(d == 0):.0%} exact) and long tails (standard deviation {d.std():.1f}).",
        is_judged=False,
    )


def _adjustment_finding(found: CensusResults) -> Finding:
    noise = found.noise
    holds = all(
        n.is_additive
        and n.after.largest == n.before.largest
        and not np.isin(n.after.protected, SMALL).any()
        for n in noise.values()
    )
    return Finding(
        "Noisy tables can be made to add up without small cells, and the largest perturbation is "
        "the same before and after.",
        holds,
        "Largest before and after "
        + ", ".join(f"{n.before.largest} and {n.after.largest}" for n in noise.values())
        + f"; at most {max(n.seconds for n in noise.values()):.0f} s each (the paper: 6 to 24 "
        "minutes).",
    )


def _adjustment_costs(found: CensusResults) -> Finding:
    growth = {D: n.after.mean - n.before.mean for D, n in found.noise.items()}
    return Finding(
        "Restoring additivity tends to increase deviations, for D = 5 from 0.97 to 1.13.",
        min(growth.values()) > 0,
        "Growth of the mean "
        + ", ".join(f"{g:.3f} (D = {D})" for D, g in growth.items())
        + "; the paper's 0.10, 0.16 and 0.16.",
    )


def _noise_beats_safe(found: CensusResults) -> Finding:
    """Not judged: how near SAFE comes is a matter of its search, which the paper does not print."""
    adjusted = {D: n.after.mean for D, n in found.noise.items()}
    short, full = found.short_search.mean, found.test_table.mean
    return Finding(
        "Even after restoring additivity, noise has smaller mean deviations than SAFE.",
        max(adjusted.values()) < full,
        f"SAFE {full:.3f}, with a twentieth of the search {short:.3f}; noise "
        + ", ".join(f"{m:.3f} (D = {D})" for D, m in adjusted.items())
        + ". How near SAFE comes depends on its search, and the paper's is not published.",
        is_judged=False,
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
        p = dict(zip(law.deviations.tolist(), law.probabilities(c).tolist(), strict=True))
        rows += _points(found.controlled_cells.shares(c, c), _REACH, name, _SERIES[0])
        rows += _points(p, _REACH, name, _SERIES[1])
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
