"""The paper's tables: designed matrices, invariant flows, what happened to the cells."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from discreet.noise.allocate import controlled_flows
from discreet.noise.invariant import tridiagonal, two_stage
from discreet.noise.small_cells import no_small_cells
from discreet.studies.eliminating_small_cells import printed
from discreet.studies.eliminating_small_cells.results import REACHES, Results, matrix, sizes
from discreet.studies.model import Figure, PrintedTable, as_printed, by_row, grid

STEP, FIRST, STRENGTH = 0.15, 0.075, 0.40
"""Starting matrix and strength of example 1; the paper states none, its flows determine them."""

_PRINT, _FORCED, _BY_HAND = 5.5e-4, 8e-4, 0.02
_DETERMINED = {3: (3, 4, 5, 6, 7, 8), 4: (5, 6), 5: ()}
_FLOW = 1e-5
_MOVED = 2.0
_OTHER = "The paper's census data are not public, so these figures cannot be compared."


def all_tables(found: Results) -> tuple[PrintedTable, ...]:
    """Every table of the paper, and the figures of sections 3.1 and 6."""
    return (
        inverse_row(),
        *(design(D) for D in REACHES),
        observed(found),
        joint_flows(),
        split_flows(),
        uncontrolled(found),
        shares(found),
        printed_means(),
        means(found),
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
    return PrintedTable(
        f"Table 1, D = {D}", "Designed transition probabilities", figures, agreement
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


def observed(found: Results) -> PrintedTable:
    """What SAFE did to small counts in controlled tables."""
    P = found.controlled.transitions(8)
    figures = tuple(
        Figure(row, str(j), text, _at(P[int(row)], j), 0.0, is_judged=False)
        for row, j, text in _cells(printed.SAFE)
    )
    return PrintedTable("Table 1, SAFE", "Observed transition probabilities", figures, _OTHER)


def _at(row: NDArray[np.float64], j: int) -> float:
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
    title: str, text: str, columns: list[str], places: list[str], flows: NDArray[np.float64]
) -> PrintedTable:
    figures = tuple(
        Figure(row, column, value, float(flows[places.index(row), places.index(column)]), _FLOW)
        for row, texts in by_row(text).items()
        for column, value in zip(columns, texts, strict=True)
        if value != "-"
    )
    agreement = (
        f"Figures agree within {_FLOW:g}, with a starting matrix of step {STEP:g} (first state "
        f"{FIRST:g}) and strength {STRENGTH:g}, which the printed flows determine."
    )
    return PrintedTable(title, "Expected frequencies of moves in example 1", figures, agreement)


def uncontrolled(found: Results) -> PrintedTable:
    """Largest deviations of SAFE in tables that it does not control."""
    edges = [int(name.rstrip("+").split("-")[0]) for name in printed.TABLE_4]
    rows = {row["count"]: row["largest"] for row in found.uncontrolled.by_size(edges).to_pylist()}
    figures = tuple(
        Figure("D", name, text, float(rows[name] or 0), 0.0, is_judged=False)
        for name, text in printed.TABLE_4.items()
    )
    caption = "Largest deviation of SAFE in cells of four variables, by size of the count"
    return PrintedTable("Table 4", caption, figures, _OTHER)


def shares(found: Results) -> PrintedTable:
    """Deviations in the three-way test table."""
    ours = {name: sizes(effect) for name, effect in found.by_method().items()}
    figures = tuple(
        Figure(row, name, text, 100 * _at(ours[name], int(row)), 0.0, is_judged=False)
        for row, texts in by_row(printed.TABLE_5).items()
        for name, text in zip(printed.METHODS, texts, strict=True)
        if text != "-"
    )
    caption = "Percent of the non-empty cells of a three-way table by size of deviation"
    return PrintedTable("Table 5", caption, figures, _OTHER)


def printed_means() -> PrintedTable:
    """The means that section 6 states, from the shares of Table 5."""
    rows = by_row(printed.TABLE_5)
    figures = tuple(
        Figure("mean", name, text, _mean(rows, k), as_printed(text))
        for k, (name, text) in enumerate(zip(printed.METHODS, printed.MEANS, strict=True))
    )
    agreement = "Computed from the shares of Table 5 as printed; the two must round alike."
    return PrintedTable("Section 6", "Mean deviations, from printed shares", figures, agreement)


def _mean(rows: dict[str, list[str]], column: int) -> float:
    listed = [(int(d), texts[column]) for d, texts in rows.items() if texts[column] != "-"]
    weight = sum(float(text) for _, text in listed)
    return sum(d * float(text) for d, text in listed) / weight


def means(found: Results) -> PrintedTable:
    """The same means on our table."""
    ours = found.by_method()
    figures = tuple(
        Figure("mean", name, text, ours[name].mean, 0.0, is_judged=False)
        for name, text in zip(printed.METHODS, printed.MEANS, strict=True)
    )
    return PrintedTable("Section 6, our table", "Mean deviations", figures, _OTHER)


def deviation_frequencies() -> tuple[list[int], NDArray[np.int64]]:
    """Deviations of Table 6 and their frequencies."""
    rows = by_row(printed.TABLE_6)
    return [int(d) for d in rows], np.array([int(texts[0]) for texts in rows.values()])


def perturbed_deviations() -> PrintedTable:
    """Table 6: how often deviations occur after being perturbed themselves."""
    deviations, t = deviation_frequencies()
    after = controlled_flows(invariant_of(t), t).sum(axis=0)
    texts = [texts[1] for texts in by_row(printed.TABLE_6).values()]
    figures = tuple(
        Figure(f"{d:+d}" if d else "0", "n*", text, float(n), _MOVED)
        for d, text, n in zip(deviations, texts, after.tolist(), strict=True)
    )
    agreement = (
        f"Figures agree within {_MOVED:g}, the largest difference that the paper has between the "
        "frequencies before and after; ours are those before, exactly."
    )
    caption = "Number of cells by deviation, after an invariant perturbation of the deviations"
    return PrintedTable("Table 6", caption, figures, agreement)


def invariant_of(t: NDArray[np.int64]) -> NDArray[np.float64]:
    """The invariant matrix of deviations with these frequencies."""
    return two_stage(tridiagonal(len(t), STEP), t, STRENGTH)
