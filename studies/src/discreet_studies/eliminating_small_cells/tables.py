"""The paper's tables: designed matrices, invariant flows, what happened to the cells."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from discreet.arrays import Real, Whole
from discreet.noise.invariant import (
    blurred_deviations,
    no_small_cells,
    tridiagonal,
    two_stage,
)
from discreet.randomness import stream
from discreet_studies.eliminating_small_cells import printed
from discreet_studies.eliminating_small_cells.results import REACHES, CensusResults, matrix, sizes
from discreet_studies.model import (
    Figure,
    Ground,
    PrintedTable,
    as_printed,
    by_row,
    elsewhere,
    grid,
    with_forced_zeros,
)

STEP, FIRST, STRENGTH = 0.15, 0.075, 0.40
"""Starting matrix and strength of example 1; the paper states none, its flows determine them."""

_PRINT, _FORCED, _BY_HAND = 5.5e-4, 8e-4, 0.02
_DETERMINED = {3: (3, 4, 5, 6, 7, 8), 4: (5, 6), 5: ()}
_MOVED = 2.0
_POINTS, _MEAN = 0.4, 0.015
TOLERANCES = {
    "rows that conditions determine": _PRINT,
    "rows 1 and 2": _FORCED,
    "rows shaped by hand": _BY_HAND,
    "frequencies of Table 6": _MOVED,
    "points of Table 5": _POINTS,
    "means of section 6": _MEAN,
}
"""What is frozen of the tables."""
_CELLS = 22_670
_DRAWS = 200
COUNTS = range(9, 17)
"""Counts of Figure 1a."""
_UNADJUSTED = (
    "The paper's census data are not at hand. Noise without adjustment depends on the table by "
    "its share of small cells, which the stand-in was shaped to have: that its expected effect "
    "comes near to the printed one is true by construction, and other stand-ins miss it (below). "
    "Its law is judged in Table 1. Near means"
)
_KEYS = (
    "Mean perturbations depend on keys that are not printed; ours are expected extremes over the "
    "counts of example 1 up to 8, with D = 3."
)
_OTHER = "The paper's census data are not at hand, so these figures are shown and not judged."


def all_tables(found: CensusResults) -> tuple[PrintedTable, ...]:
    """Every table of the paper, and the figures of its sections."""
    return (
        inverse_row(),
        *(design(D) for D in REACHES),
        observed_table(found),
        joint_flows(),
        split_flows(),
        uncontrolled_table(found),
        shares(found),
        means(found),
        section_figures(found),
        perturbed_deviations(),
    )


def inverse_row() -> PrintedTable:
    """The conditions at count 1, which show that the variance must be at least 2."""
    v = np.array([-1.0, 2.0, 3.0])
    inverse = np.linalg.inv(np.vstack([np.ones(3), v, v**2]))
    figures = grid(
        {"last row": printed.INVERSE}, ["1", "2", "3"], lambda _, j: float(inverse[2, int(j) - 1])
    )
    return PrintedTable("Section 3.1", "Inverse of the conditions at count 1, D = 3", figures)


def design(D: int) -> PrintedTable:
    """Designed transition probabilities."""
    P = matrix(D).dense(max(printed.TARGETS) + 1)
    figures = tuple(
        Figure(row, str(j), text, float(P[int(row), j]), _design_tolerance(D, int(row)))
        for row, j, text in _cells(printed.NOISE[D])
    )
    agreement = (
        f"Rows that the conditions determine agree within {_PRINT:g}, rows 1 and 2 within "
        f"{_FORCED:g}, since the excess of the variance over 2 is not printed. Rows with a centre "
        f"of 70 % agree within {_BY_HAND:g}: their tails were shaped by hand with details that "
        "are not printed; ours have maximum entropy."
    )
    zeros = "Zeros beyond the largest perturbation are true by construction."
    return PrintedTable(
        f"Table 1, D = {D}",
        "Designed transition probabilities",
        with_forced_zeros(figures),
        f"{agreement} {zeros}",
    )


def _design_tolerance(D: int, row: int) -> float:
    if row in (1, 2):
        return _FORCED
    return _PRINT if row in _DETERMINED[D] else _BY_HAND


def _cells(text: str) -> Iterator[tuple[str, int, str]]:
    """Row, target and printed probability."""
    for row, texts in by_row(text).items():
        for j, value in zip(printed.TARGETS, texts, strict=True):
            yield row, j, value


def observed_table(found: CensusResults) -> PrintedTable:
    """What SAFE did to small counts in controlled tables."""
    P = found.controlled_cells.transitions(8)
    figures = tuple(
        elsewhere(row, str(j), text, _at(P[int(row)], j)) for row, j, text in _cells(printed.SAFE)
    )
    return PrintedTable("Table 1, SAFE", "Observed transition probabilities", figures, _OTHER)


def _at(row: Real, j: int) -> float:
    return float(row[j]) if j < len(row) else 0.0


def joint_flows() -> PrintedTable:
    """Expected flows when counts of 1 to 3 are one state."""
    V = printed.FREQUENCIES
    t = np.array([sum(V[:3]), *V[3:]], dtype=float)
    flows = t[:, None] * two_stage(tridiagonal(len(t), STEP, FIRST), t, STRENGTH)
    states = ["0-3", "4", "5", "6", "7", "8"]
    return _flow_table("Table 2", printed.TABLE_2, states, states, flows)


def split_flows() -> PrintedTable:
    """Expected flows without ones and twos."""
    t = np.array([0, *printed.FREQUENCIES])
    flows = t[:, None] * no_small_cells(printed.FREQUENCIES, STEP, STRENGTH).dense(len(t))
    columns = ["0", "3", "4", "5", "6"]
    places = [str(i) for i in range(len(t))]
    return _flow_table("Table 3", printed.TABLE_3, columns, places, flows)


def _flow_table(
    title: str, text: str, columns: list[str], places: list[str], flows: Real
) -> PrintedTable:
    figures = grid(
        by_row(text), columns, lambda i, j: float(flows[places.index(i), places.index(j)])
    )
    agreement = (
        "Figures agree when they round to the printed digits, with a starting matrix of step "
        f"{STEP:g} (first state {FIRST:g}) and strength {STRENGTH:g}, which they determine."
    )
    caption = "Expected frequencies of moves in example 1"
    return PrintedTable(title, caption, with_forced_zeros(figures), agreement)


def uncontrolled_table(found: CensusResults) -> PrintedTable:
    """Largest deviations of SAFE in tables that it does not control."""
    edges = [int(name.rstrip("+").split("-")[0]) for name in printed.TABLE_4]
    rows = {
        row["count"]: row["largest"] for row in found.uncontrolled_cells.by_size(edges).to_pylist()
    }
    figures = tuple(
        elsewhere("D", name, text, float(rows[name] or 0)) for name, text in printed.TABLE_4.items()
    )
    caption = "Largest deviation of SAFE in cells of four variables, by size of the count"
    return PrintedTable("Table 4", caption, figures, _OTHER)


def shares(found: CensusResults) -> PrintedTable:
    """Deviations in the three-way test table."""
    ours = {name: sizes(effect) for name, effect in found.by_method().items()}
    ours |= {f"D{D}": expected_sizes(D, found.data.three_way.z) for D in REACHES}
    figures = tuple(
        _of_method(row, name, text, 100 * _at(ours[name], int(row)), _share_tolerance(text))
        for row, texts in by_row(printed.TABLE_5).items()
        for name, text in zip(printed.METHODS, texts, strict=True)
        if text != "-"
    )
    caption = "Percent of the non-empty cells of a three-way table by size of deviation"
    agreement = (
        f"{_UNADJUSTED} {_POINTS} points for tails shaped by hand and two standard errors of the "
        "paper's keys."
    )
    return PrintedTable("Table 5", caption, figures, agreement)


def expected_sizes(D: int, counts: Whole) -> Real:
    """Expected share of non-empty cells at each size of deviation, before any adjustment."""
    law = matrix(D)
    share = law.law[law.row_of(counts[counts > 0])].mean(axis=0)
    return np.asarray(np.bincount(np.abs(law.deviations), weights=share), dtype=np.float64)


def _share_tolerance(text: str) -> float:
    p = float(text) / 100
    return _POINTS + 200 * math.sqrt(p * (1 - p) / _CELLS)


def _of_method(row: str, name: str, text: str, value: float, tolerance: float) -> Figure:
    """The stand-in was shaped for what noise alone does; adjusted noise and SAFE are shown."""
    if name in ("D3", "D4", "D5"):
        return Figure(row, name, text, value, tolerance, ground=Ground.shaped)
    return elsewhere(row, name, text, value)


def misses(counts: Whole) -> int:
    """How many of the figures that the stand-in was shaped for another table would miss."""
    rows, number = by_row(printed.TABLE_5), 0
    for D in REACHES:
        column, ours = printed.METHODS.index(f"D{D}"), expected_sizes(D, counts)
        texts = [texts[column] for texts in rows.values() if texts[column] != "-"]
        number += sum(
            bool(abs(100 * share - float(text)) > _share_tolerance(text))
            for text, share in zip(texts, ours, strict=True)
        )
        number += abs(float(ours @ np.arange(D + 1)) - float(printed.MEANS[column])) > _MEAN
    return number


SHAPED_FIGURES = 18
"""Figures of Table 5 and of section 6 that are about noise without adjustment."""


def means(found: CensusResults) -> PrintedTable:
    """Mean deviations that section 6 states."""
    ours = {name: effect.mean for name, effect in found.by_method().items()}
    for D in REACHES:
        ours[f"D{D}"] = float(expected_sizes(D, found.data.three_way.z) @ np.arange(D + 1))
    figures = tuple(
        _of_method("mean", name, text, ours[name], _MEAN)
        for name, text in zip(printed.METHODS, printed.MEANS, strict=True)
    )
    return PrintedTable("Section 6", "Mean deviations", figures, f"{_UNADJUSTED} {_MEAN}.")


def section_figures(found: CensusResults) -> PrintedTable:
    """Figures of the text of sections 4 and 6."""
    stays = [100 * found.controlled_cells.shares(c, c).get(0, 0.0) for c in COUNTS]
    low, high = mean_perturbations()
    ours = {
        "percent that SAFE leaves at 9 to 16, least": min(stays),
        "percent that SAFE leaves at 9 to 16, most": max(stays),
        "percent that noise leaves": 100 * float(matrix(5).probabilities(COUNTS[0])[5]),
        "largest deviation, controlled": float(found.controlled_cells.largest),
        "largest deviation, four variables": float(found.uncontrolled_cells.largest),
        "mean perturbation at a count, lowest": low,
        "mean perturbation at a count, highest": high,
    }
    figures = tuple(
        Figure(row, "figure", printed.SECTIONS[row], value, as_printed(printed.SECTIONS[row]))
        if "noise" in row
        else elsewhere(row, "figure", printed.SECTIONS[row], value)
        for row, value in ours.items()
    )
    agreement = f"{_OTHER} The law of the noise is judged. {_KEYS}"
    return PrintedTable("Sections 4 and 6", "Figures of the text", figures, agreement)


def mean_perturbations() -> tuple[float, float]:
    """Expected extremes of the mean noise at each count of example 1, by simulation."""
    rng, law = stream(1, "eliminating small cells, example 1"), matrix(3)
    drawn = [
        [rng.choice(law.deviations, n, p=law.probabilities(i)).mean() for _ in range(_DRAWS)]
        for i, n in enumerate(printed.FREQUENCIES, start=1)
    ]
    means = np.array(drawn)
    return float(means.min(axis=0).mean()), float(means.max(axis=0).mean())


def deviation_frequencies() -> tuple[list[int], Whole]:
    """Deviations of Table 6 and their frequencies."""
    rows = by_row(printed.TABLE_6)
    return [int(d) for d in rows], np.array([int(texts[0]) for texts in rows.values()])


def perturbed_deviations() -> PrintedTable:
    """Table 6: how often deviations occur after being perturbed themselves."""
    deviations, t = deviation_frequencies()
    d = np.repeat(deviations, t)
    new = blurred_deviations(d, q=STEP, alpha=STRENGTH, rng=stream(1, "Table 6"))
    after = {int(k): int(n) for k, n in zip(*np.unique(new, return_counts=True), strict=True)}
    figures = tuple(
        Figure(str(k), "n*", texts[1], after.get(int(k), 0), _MOVED, ground=Ground.construction)
        for k, texts in by_row(printed.TABLE_6).items()
    )
    R = two_stage(tridiagonal(len(t), STEP), t, STRENGTH)
    spread = np.sqrt((t[:, None] * R * (1 - R)).sum(axis=0)).max()
    agreement = (
        f"Our frequencies are those before, exactly, whatever the invariant matrix; the printed "
        f"ones differ by {_MOVED:g} at most. {np.mean(new != d):.0%} of the cells change. "
        f"Independent draws would miss the frequencies by {spread:,.0f} (one standard deviation), "
        "so the paper allocates as well."
    )
    caption = "Number of cells by deviation, after an invariant perturbation of the deviations"
    return PrintedTable("Table 6", caption, figures, agreement)
