"""Tables 2 to 7: every method on a table of three rows and three columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from discreet import registry
from discreet.design.base import Design
from discreet.protect.suppress.decimals import Decimals
from discreet.randomness import stream
from discreet.solve.fit import Fit
from discreet_studies.arrays import Mask, Vector
from discreet_studies.inner_frequencies import printed
from discreet_studies.model import Figure, PrintedTable, as_printed, by_row, grid

ROWS, COLUMNS = ["row1", "row2", "row3"], ["col1", "col2", "col3"]
INNER = np.array([3.0, 6, 2, 1, 4, 7, 5, 8, 27])
SUPPRESSED = (("row1", "col1"), ("row1", "col3"), ("row2", "col1"), ("row2", "col3"))
RESIDUAL_ERROR = 1.234
WEIGHT = 1000.0
"""By which the equations of exact totals are multiplied."""
_TIGHT = 1e-12
_ONE_UNIT = (
    "Figures agree within one unit of the last printed digit: the noisy totals they rest on are "
    "printed, and so known, to three decimals."
)


def small_tables() -> tuple[PrintedTable, ...]:
    """Tables 2 to 7."""
    totals = _design("row + col")
    exact = totals.aggregate(INNER)
    log_linear = _fit("log-linear", totals, exact, tolerance=1e-10)
    return (
        _suppression_table(),
        _from_totals(totals, exact),
        _table("Table 4", "Log-linear modelling", printed.TABLE_4, totals, log_linear),
        *_perturbation_tables(totals),
    )


def _design(margins: str) -> Design:
    return Design.product({"row": ROWS, "col": COLUMNS}, margins)


def _fit(
    name: str, design: Design, z: Vector, weights: Vector | None = None, **options: Any
) -> Fit:
    fit: Fit = registry.build("fitter", name, options)(design, z, weights=weights)
    return fit.require()


def _suppression_table() -> PrintedTable:
    """Table 2: four cells are not published; what is left determines them up to one number."""
    design = _design("row*col")
    hidden = np.zeros(design.n_published, dtype=bool)
    for row, col in SUPPRESSED:
        hidden[design.position({"row": row, "col": col})] = True
    z = np.where(hidden, 0.0, design.aggregate(INNER))
    fit = _fit("least-squares", design, z, (~hidden).astype(float), tolerance=_TIGHT)
    fitted = _table("Table 2", "", printed.TABLE_2, design, fit).figures
    with_residual = _inner(_printed_outcome(design, hidden, z, fit.y))
    return PrintedTable(
        "Table 2",
        "Suppressed cells replaced by fitted values, and with scaled residuals",
        (*fitted, *_mark_rows(printed.TABLE_2_RESIDUALS, "with residuals", with_residual)),
        "Figures agree when they round to the printed digits. The residuals have one degree of "
        "freedom, so there are two possible outcomes; the printed one is shown.",
    )


def _printed_outcome(design: Design, hidden: Mask, z: Vector, fitted: Vector) -> Vector:
    """Decimals from published cells alone; of the two possible outcomes the one that is printed."""
    rng = stream(1, "inner-frequencies:decimals")
    decimals = Decimals(rmse=RESIDUAL_ERROR)
    drawn = decimals.replace(design, hidden, z, normal=rng.standard_normal).y
    first = float(by_row(printed.TABLE_2_RESIDUALS)[ROWS[0]][0])
    return min(drawn, 2 * fitted - drawn, key=lambda y: abs(float(y[0]) - first))


def _from_totals(totals: Design, exact: Vector) -> PrintedTable:
    """Table 3: nothing but the totals is known."""
    linear = _fit("least-squares", totals, exact, tolerance=_TIGHT)
    bounded = _fit("non-negative", totals, exact, tolerance=_TIGHT)
    plain = _table("Table 3", "", printed.TABLE_3, totals, linear).figures
    extra = _mark_rows(printed.TABLE_3_NON_NEGATIVE, "non-negative", _inner(bounded.y))
    return PrintedTable("Table 3", "Inner cells by linear modelling", (*plain, *extra))


def _perturbation_tables(totals: Design) -> tuple[PrintedTable, ...]:
    """Tables 5 to 7: totals with noise, made non-negative, then log-linear."""
    all_seven = _totals(totals, (11, 13, 45), (11, 18, 38), 61)
    noisy = _totals(totals, (19.757, 14.542, 40.470), (-2.429, 25.266, 34.867), 0)
    without_total = _totals(totals, (1, 1, 1), (1, 1, 1), 0)
    columns_noisy = _totals(totals, (11, 12, 40), (3.286, 21.633, 35.433), 63)
    rows_exact = _totals(totals, (WEIGHT**2,) * 3, (1, 1, 1), WEIGHT**2)
    return (
        _chain("Table 5", "From perturbed totals", totals, all_seven),
        _chain("Table 6", "From totals with Laplace noise", totals, noisy, without_total),
        _chain("Table 7", "From exact row totals", totals, columns_noisy, rows_exact),
    )


def _chain(
    title: str, caption: str, totals: Design, z: Vector, weights: Vector | None = None
) -> PrintedTable:
    fit = _fit("non-negative", totals, z, weights, tolerance=_TIGHT)
    again = _fit("log-linear", totals, fit.z, tolerance=1e-10)
    name = title.upper().replace(" ", "_")
    plain = _table(title, "", getattr(printed, name), totals, fit).figures
    extra = _mark_rows(getattr(printed, f"{name}_LOG_LINEAR"), "log-linear", _inner(again.y))
    both = (*plain, *extra)
    if weights is None:
        return PrintedTable(title, f"{caption}: non-negative, then log-linear", both)
    wider = tuple(replace(f, tolerance=max(0.001, 2 * as_printed(f.printed))) for f in both)
    return PrintedTable(title, f"{caption}: non-negative, then log-linear", wider, _ONE_UNIT)


def _totals(design: Design, rows: Any, columns: Any, total: float) -> Vector:
    """Values of the seven totals in the design's order."""
    z = np.empty(design.n_published)
    z[design.position({})] = total
    for names, axis, values in ((ROWS, "row", rows), (COLUMNS, "col", columns)):
        for name, value in zip(names, values, strict=True):
            z[design.position({axis: name})] = value
    return z


def _table(title: str, caption: str, text: str, design: Design, fit: Fit) -> PrintedTable:
    """Inner cells and totals of a fit in the paper's layout."""
    inner = _inner(fit.y)

    def value(row: str, column: str) -> float:
        cell = {} if row == "Total" else {"row": row}
        if column != "Total":
            cell["col"] = column
        if len(cell) == 2:
            return inner(row, column)
        return float(fit.z[design.position(cell)])

    return PrintedTable(title, caption, grid(by_row(text), [*COLUMNS, "Total"], value))


def _inner(y: Vector) -> Callable[[str, str], float]:
    return lambda row, column: float(y[3 * ROWS.index(row) + COLUMNS.index(column)])


def _mark_rows(text: str, mark: str, value: Callable[[str, str], float]) -> tuple[Figure, ...]:
    """The figures in parentheses."""
    found = grid(by_row(text), [*COLUMNS, "Total"], value)
    return tuple(replace(f, row=f"{f.row} ({mark})") for f in found)
