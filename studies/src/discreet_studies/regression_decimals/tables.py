"""Tables 1 to 3, figure by figure."""

from __future__ import annotations

from dataclasses import replace

from discreet.protect.suppress.decimals import Decimals
from discreet_studies.model import (
    STAR,
    Figure,
    Ground,
    PrintedTable,
    as_printed,
    by_row,
    elsewhere,
    grid,
)
from discreet_studies.regression_decimals import printed
from discreet_studies.regression_decimals.example import COLUMNS, TOTAL, Example

_FITS = {
    "fitted": Decimals("none"),
    "modulo 4": Decimals("none", modulo=4),
    "modulo 10": Decimals("none", modulo=10),
}
_RANDOM = (
    "Figures agree when they round to the printed digits. Random values are another draw here; "
    "their length and sums are judged by the sentences below."
)


def all_tables(example: Example) -> tuple[PrintedTable, ...]:
    """Tables 1 to 3."""
    return _counts(example), _suppressed(example), _in_practice(example)


def _counts(example: Example) -> PrintedTable:
    """Table 1: counts are data and totals computed; a star is a suppressed cell of the paper."""
    z, suppressed = example.table.z, example.pattern.suppressed
    figures = grid(
        by_row(printed.TABLE_1), [*COLUMNS, TOTAL], lambda row, col: example.at(z, row, col),
        tolerance=lambda text: as_printed(text),
    )  # fmt: skip
    marked = []
    for figure in figures:
        is_hidden = bool(example.at(suppressed, figure.row, figure.column))
        is_total = TOTAL in (figure.row, figure.column)
        ground = Ground.computed if is_total else Ground.construction
        marked.append(replace(figure, mark=STAR if is_hidden else "", ground=ground))
    return PrintedTable("Table 1", "Counts, and cells to be suppressed", tuple(marked))


def _suppressed(example: Example) -> PrintedTable:
    """Table 2: the suppressed cells, fitted and with a random residual."""
    fits = {name: example.decimals(options).z for name, options in _FITS.items()}
    random = example.decimals(Decimals("variance")).z
    figures: list[Figure] = []
    for name, (true, drawn, *fitted) in by_row(printed.TABLE_2).items():
        row, col = name.split(",")
        count = example.at(example.table.z, row, col)
        figures.append(
            Figure(name, "true", true, count, as_printed(true), ground=Ground.construction)
        )
        figures.append(elsewhere(name, "with residual", drawn, example.at(random, row, col)))
        for column, text in zip(fits, fitted, strict=True):
            value = example.at(fits[column], row, col)
            figures.append(Figure(name, column, text, value, as_printed(text)))
    return PrintedTable("Table 2", "Suppressed cells as decimals", tuple(figures), _RANDOM)


def _in_practice(example: Example) -> PrintedTable:
    """Table 3: modulo 10 with a tenth of the residual."""
    found = example.decimals(Decimals("scaled", scale=0.1, modulo=10)).z
    figures = grid(
        by_row(printed.TABLE_3), [*COLUMNS, TOTAL], lambda row, col: example.at(found, row, col)
    )
    judged = []
    for figure in figures:
        is_random = bool(example.at(example.pattern.suppressed, figure.row, figure.column))
        ground = Ground.other_data if is_random else Ground.construction
        judged.append(replace(figure, ground=ground))
    return PrintedTable("Table 3", "Decimals that may be used in practice", tuple(judged), _RANDOM)
