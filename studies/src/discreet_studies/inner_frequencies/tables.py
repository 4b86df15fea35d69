"""Tables 2 to 7, every method on nine cells, and Tables 8 to 14, printed beside computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from discreet import registry
from discreet.arrays import Mask, Real
from discreet.design.base import Design
from discreet.randomness import stream
from discreet.solve.fit import Fit
from discreet.suppress.decimals import Decimals
from discreet_studies.chance import quantile
from discreet_studies.inner_frequencies import printed
from discreet_studies.inner_frequencies.results import EPSILONS, KINDS, ExampleCell, SchemeResults
from discreet_studies.inner_frequencies.schemes import PARTS, WEIGHT
from discreet_studies.model import (
    Figure,
    Ground,
    PrintedTable,
    as_printed,
    by_row,
    elsewhere,
    grid,
)

ROWS, COLUMNS = ["row1", "row2", "row3"], ["col1", "col2", "col3"]
INNER = np.array([3.0, 6, 2, 1, 4, 7, 5, 8, 27])
SUPPRESSED = (("row1", "col1"), ("row1", "col3"), ("row2", "col1"), ("row2", "col3"))
RESIDUAL_ERROR = 1.234
_TIGHT = 1e-12
_ONE_UNIT = (
    "Figures agree within one unit of the last printed digit: the noisy totals they rest on are "
    "printed, and so known, to three decimals."
)
TOLERANCES = {"utility": 0.012, "deviation": 0.05}
"""Frozen: how near the stand-in was shaped to come to noisy margins; log.py says how they arose."""
_KINDS_AND_PARTS = [(kind, part) for kind in KINDS for part in PARTS]
_OTHER = "The paper's file is not at hand; what depends on it is shown and not judged."
_NEAR = 0.055
"""What fitted two-way cells of Table 8 differ by from exact ones in the paper, and a little."""
_EXAMPLES = (
    "Cells are those whose true counts are nearest to the printed ones, chosen at random where "
    "several are. Exact two-way margins are constraints of the fit, and the stand-in has the "
    "paper's number of inner zeros: both are true by construction."
)
_CHANCE = (
    "Mean absolute deviations that are noise alone do not depend on the records. They agree within "
    "what chance does to a mean of so many Laplace draws, ours and the paper's; a figure that is "
    "right lies outside for one seed in a hundred thousand."
)
_SHAPED = (
    "Margins with noise but without fitting depend on sparsity and unevenness of the records, "
    "which the stand-in was shaped to have: near figures are true by construction."
)
_PURE = ("(no fitting)", "(zero replace)")


def small_tables() -> tuple[PrintedTable, ...]:
    """Tables 2 to 7."""
    totals, log_linear = small_fit()
    return (
        _suppression_table(),
        _from_totals(totals, totals.aggregate(INNER)),
        _table("Table 4", "Log-linear modelling", printed.TABLE_4, totals, log_linear),
        *_perturbation_tables(totals),
    )


def small_fit(margins: str = "row + col") -> tuple[Design, Fit]:
    """The nine cells with these margins, and their log-linear fit."""
    design = _design(margins)
    return design, _fit("log-linear", design, design.aggregate(INNER), tolerance=1e-10)


def _design(margins: str) -> Design:
    return Design.product({"row": ROWS, "col": COLUMNS}, margins)


def _fit(name: str, design: Design, z: Real, weights: Real | None = None, **options: Any) -> Fit:
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


def _printed_outcome(design: Design, hidden: Mask, z: Real, fitted: Real) -> Real:
    """Decimals from published cells alone; of the two possible outcomes the one that is printed."""
    rng = stream(1, "inner-frequencies:decimals")
    decimals = Decimals(rmse=RESIDUAL_ERROR)
    drawn = decimals.replace(design, hidden, z, normal=rng.standard_normal).y
    first = float(by_row(printed.TABLE_2_RESIDUALS)[ROWS[0]][0])
    return min(drawn, 2 * fitted - drawn, key=lambda y: abs(float(y[0]) - first))


def _from_totals(totals: Design, exact: Real) -> PrintedTable:
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
    title: str, caption: str, totals: Design, z: Real, weights: Real | None = None
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


def _totals(design: Design, rows: Any, columns: Any, total: float) -> Real:
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


def _inner(y: Real) -> Callable[[str, str], float]:
    return lambda row, column: float(y[3 * ROWS.index(row) + COLUMNS.index(column)])


def _mark_rows(text: str, mark: str, value: Callable[[str, str], float]) -> tuple[Figure, ...]:
    """The figures in parentheses."""
    found = grid(by_row(text), [*COLUMNS, "Total"], value)
    return tuple(replace(f, row=f"{f.row} ({mark})") for f in found)


def large_tables(found: SchemeResults, is_stand_in: bool) -> tuple[PrintedTable, ...]:
    """The sizes of section 4, and Tables 8 to 14.

    Args:
      found: The scores.
      is_stand_in: Whether the table has the paper's sizes, so that pure noise can be compared.
    """
    return (
        _sizes(found, is_stand_in),
        _examples(found, is_stand_in),
        *(_utility(found, epsilon, 9 + k, is_stand_in) for k, epsilon in enumerate(EPSILONS)),
        *(_deviation(found, epsilon, 11 + k, is_stand_in) for k, epsilon in enumerate(EPSILONS)),
        _bias(found, is_stand_in),
        _weights(found),
    )


def _sizes(found: SchemeResults, is_stand_in: bool) -> PrintedTable:
    """Sizes of the table, which the stand-in was made to have, and scales of the noise."""
    figures = []
    for row, text in printed.SIZES.items():
        ground = Ground.construction if is_stand_in else Ground.other_data
        allowed = as_printed(text)
        if row.startswith("scale") and is_stand_in:
            cells = row.split(", ")[1].removesuffix(" cells")
            ground, allowed = Ground.computed, _by_chance(text, found.sizes[f"{cells} cells"])
        figures.append(Figure(row, "figure", text, found.sizes[row], allowed, ground=ground))
    agreement = (
        f"{_OTHER} The stand-in was made to have its sizes, which are true by construction. Scales "
        f"are mean absolute noise. {_CHANCE}"
    )
    return PrintedTable("Section 4", "Sizes of the table, and noise", tuple(figures), agreement)


def _by_chance(text: str, cells: float) -> float:
    """What chance does to two means of so many absolute Laplace draws, which vary as they are."""
    return float(text) * quantile(int(cells)) * math.sqrt(2 / cells)


def _examples(found: SchemeResults, is_stand_in: bool) -> PrintedTable:
    figures = [
        figure
        for part, examples in found.examples.items()
        for k, example in enumerate(examples)
        for figure in _example(part, k, example, is_stand_in)
    ]
    kept, empty = found.zeros
    figures += [
        _figure_by_construction(
            "inner zeros, all and kept", "original", printed.ZEROS[0], empty, is_stand_in
        ),
        elsewhere("inner zeros, all and kept", "fitted", printed.ZEROS[2], kept),
    ]
    caption = "Single cells, 3-way (2-way exact), ε = 0.5, with zeros"
    columns = ("original", "perturbed", "fitted")
    return PrintedTable("Table 8", caption, tuple(figures), f"{_EXAMPLES} {_OTHER}", columns)


def _example(part: str, k: int, example: ExampleCell, is_stand_in: bool) -> Iterator[Figure]:
    """One cell; two-way cells must be what they were."""
    cell = ", ".join(f"{name} {code}" for name, code in example.cell.items())
    row = f"{part} {k + 1}: {cell}"
    original, perturbed, fitted = printed.EXAMPLES[part][k]
    yield elsewhere(row, "original", original, example.original)
    if example.perturbed is not None:
        yield elsewhere(row, "perturbed", perturbed, example.perturbed)
    if part == "2-way" and float(original) == example.original:
        yield _figure_by_construction(row, "fitted", fitted, example.fitted, is_stand_in, _NEAR)
    else:
        yield elsewhere(row, "fitted", fitted, example.fitted)


def _figure_by_construction(
    row: str, column: str, text: str, value: float, is_stand_in: bool, tolerance: float = 0.5
) -> Figure:
    """A figure that the stand-in or a constraint of the fit was made to have."""
    ground = Ground.construction if is_stand_in else Ground.other_data
    return Figure(row, column, text, value, tolerance, ground=ground)


def _utility(found: SchemeResults, epsilon: float, number: int, is_stand_in: bool) -> PrintedTable:
    figures = []
    for scheme, kind, part, text in _printed_figures(printed.UTILITY[epsilon]):
        value, near = found(kind, epsilon, scheme).utility[part], TOLERANCES["utility"]
        is_shaped = is_stand_in and scheme.endswith(_PURE)
        ground = Ground.shaped if is_shaped else Ground.other_data
        figures.append(Figure(scheme, f"{part}, {kind}", text, value, near, ground=ground))
    caption = f"Hellinger utility, ε = {epsilon}"
    agreement = f"{_OTHER} {_SHAPED} Near means within {TOLERANCES['utility']}."
    return PrintedTable(f"Table {number}", caption, tuple(figures), agreement)


def _deviation(
    found: SchemeResults, epsilon: float, number: int, is_stand_in: bool
) -> PrintedTable:
    figures = []
    for scheme, kind, part, text in _printed_figures(printed.DEVIATION[epsilon]):
        value, ground = found(kind, epsilon, scheme).deviation[part], Ground.other_data
        allowed = TOLERANCES["deviation"] * float(text)
        if is_stand_in and _is_noise(scheme, kind, part):
            ground, allowed = Ground.computed, _noise_tolerance(found, kind, part, text)
        elif is_stand_in and scheme.endswith(_PURE):
            ground = Ground.shaped
        figures.append(Figure(scheme, f"{part}, {kind}", text, value, allowed, ground=ground))
    caption = f"Mean absolute deviation, ε = {epsilon}"
    agreement = f"{_OTHER} {_CHANCE} {_SHAPED} Near means within {TOLERANCES['deviation']:.0%}."
    return PrintedTable(f"Table {number}", caption, tuple(figures), agreement)


def noise_is_right(found: SchemeResults) -> bool:
    """Whether all figures agree that are noise alone."""
    return all(
        abs(found(kind, epsilon, scheme).deviation[part] - float(text))
        <= _noise_tolerance(found, kind, part, text)
        for epsilon in EPSILONS
        for scheme, kind, part, text in _printed_figures(printed.DEVIATION[epsilon])
        if _is_noise(scheme, kind, part)
    )


def _noise_tolerance(found: SchemeResults, kind: str, part: str, text: str) -> float:
    cells = f"{part} cells" + ("" if kind == "with zeros" else ", not empty")
    return _by_chance(text, found.sizes[cells])


def _printed_figures(rows: dict[str, str]) -> Iterator[tuple[str, str, str, str]]:
    """Scheme, kind, part and text of everything that is printed."""
    for scheme, words in rows.items():
        for (kind, part), text in zip(_KINDS_AND_PARTS, words.split(), strict=True):
            if text != "-":
                yield scheme, kind, part, text


def _is_noise(scheme: str, kind: str, part: str) -> bool:
    """Whether a deviation is noise alone, and nearly the same whatever the records are."""
    sums_are_known = kind == "with zeros" or part == "inner"
    return scheme.endswith("(no fitting)") or (scheme == "inner cells" and sums_are_known)


def _bias(found: SchemeResults, is_stand_in: bool) -> PrintedTable:
    columns = [(kind, epsilon) for kind in KINDS for epsilon in EPSILONS]
    figures = tuple(
        _figure_by_construction(scheme, column, text, value, is_stand_in, as_printed(text))
        if "exact" in scheme
        else elsewhere(scheme, column, text, value)
        for scheme, texts in printed.BIAS.items()
        for (kind, epsilon), text in zip(columns, texts, strict=True)
        for column, value in [(f"{kind}, ε = {epsilon}", found(kind, epsilon, scheme).bias)]
    )
    caption = "Percent by which non-negative estimation makes the total too large"
    agreement = f"{_OTHER} Exact margins are constraints and keep the total by construction."
    return PrintedTable("Table 13", caption, figures, agreement)


def _weights(found: SchemeResults) -> PrintedTable:
    columns = [(part, threshold) for part in PARTS for threshold in printed.THRESHOLDS]
    figures = tuple(
        elsewhere(
            f"weight {weight}", f"{part}, {threshold}", text, found.weights[weight].deviation[part]
        )
        for weight, texts in printed.WEIGHTS.items()
        for (part, threshold), text in zip(columns, texts.split(), strict=True)
    )
    caption = (
        "Mean absolute deviation by weight of the exact two-way margins, ε = 1.5, without zeros, "
        "at three thresholds of the paper's solver; ours is the same optimum in each"
    )
    return PrintedTable("Table 14", caption, figures, _OTHER)
