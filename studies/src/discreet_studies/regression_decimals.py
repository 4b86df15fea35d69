"""Suppressed tables as decimal numbers that add up (Langsrud 2019a, section 7)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from discreet.arrays import Array, Real
from discreet.assessment.audit import audit
from discreet.design.base import Design
from discreet.errors import ParameterError
from discreet.facade.table import Table
from discreet.randomness import stream
from discreet.solve.linear.elimination import find_spanned, rank
from discreet.suppress.decimals import Decimals, Replaced
from discreet.suppress.pattern import SECONDARY, Pattern
from discreet_studies.model import (
    STAR,
    Figure,
    Finding,
    Ground,
    Options,
    PrintedTable,
    Study,
    as_printed,
    by_row,
    elsewhere,
    grid,
    own,
)

TABLE_1 = """
row1 3* 11* 32 30 76
row2 1* 9* 13* 8 31
row3 12 22 2* 2* 38
row4 18* 19 16 3* 56
Total 34 61 63 43 201
"""
"""The counts, with the cells to be suppressed."""

PRIMARY = (("row1", "col1"), ("row2", "col1"), ("row3", "col3"), ("row3", "col4"), ("row4", "col4"))
"""The suppressed cells with counts below four."""

TABLE_2 = """
row2,col1 1 11.1562 4.5217 0.8696 4.0870
row3,col3 2 9.3549 6.6957 1.8261 2.7826
row3,col4 2 -5.3549 -2.6957 2.1739 1.2174
row1,col1 3 0.1986 4.1739 2.9565 0.6957
row4,col4 3 10.3549 7.6957 2.8261 3.7826
row2,col2 9 6.1986 10.1739 8.9565 6.6957
row1,col2 11 13.8014 9.8261 11.0435 13.3043
row2,col3 13 5.6451 8.3043 13.1739 12.2174
row4,col1 18 10.6451 13.3043 18.1739 17.2174
"""
"""The suppressed cells: true, with a residual, fitted, and fitted modulo 4 and 10."""

TABLE_3 = """
row1 0.4449 13.5551 32 30 76
row2 4.2102 6.4449 12.3449 8 31
row3 12 22 2.6551 1.3449 38
row4 17.3449 19 16 3.6551 56
Total 34 61 63 43 201
"""
"""Modulo 10 with a tenth of the residual."""

ROWS = ("row1", "row2", "row3", "row4")
COLUMNS = ("col1", "col2", "col3", "col4")
TOTAL = "Total"
_FITS = {
    "fitted": Decimals("none"),
    "modulo 4": Decimals("none", modulo=4),
    "modulo 10": Decimals("none", modulo=10),
}
_RANDOM = (
    "Figures agree when they round to the printed digits. Random values are another draw here; "
    "their length and sums are judged by the sentences below."
)

DIMENSIONS = 2
"""What published cells leave open: the paper's subspace dimension."""
_DIGITS = 2e-4  # lengths and sums of nine printed digits of four decimals
_WHOLE = 1e-9


def run(options: Options) -> Study:
    """Tables 1 to 3, and what the section says about decimals."""
    example = SuppressedTable(options.seed)
    return Study(
        name="regression-decimals",
        title="Information preserving regression-based tools for statistical disclosure control: "
        "suppressed tables",
        source="Langsrud (2019a), section 7",
        tables=all_tables(example),
        findings=findings(example),
        notes=(
            "Section 7, on suppressed tables; the pattern is the paper's.",
            "The random columns of Tables 2 and 3 are draws that nobody can repeat. They are shown "
            "beside draws of ours, and judged by their length and by what they add up to.",
            "The residual of Table 3 is a tenth of the one modulo 10, not of the full one.",
        ),
    )


class SuppressedTable:
    """Table 1 with the paper's pattern.

    Args:
      seed: Root of the random residuals.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.texts = by_row(TABLE_1)
        self.design = Design.product({"row": ROWS, "col": COLUMNS}, "row*col")
        inner = [int(text.rstrip(STAR)) for row in ROWS for text in self.texts[row][:-1]]
        self.table = Table.from_inner(self.design, np.array(inner))

    @cached_property
    def pattern(self) -> Pattern:
        """The paper's five sensitive cells, and the four that protect them."""
        labels = {
            (row, col): "p" if (row, col) in PRIMARY else "s"
            for row in ROWS
            for col, text in zip(COLUMNS, self.texts[row], strict=False)
            if text.endswith(STAR)
        }
        return Pattern.from_labels(self.table, labels)

    def decimals(self, options: Decimals, name: str = "residual") -> Replaced:
        """The table with decimals, from a stream of its own name."""
        return options(self.pattern, rng=stream(self.seed, f"decimals:{name}"))

    @cached_property
    def fit(self) -> Real:
        """Inner cells as fitted from the published cells alone."""
        return self.decimals(Decimals("none")).y

    @cached_property
    def fit_modulo_10(self) -> Real:
        """Inner cells fitted modulo 10."""
        return self.decimals(Decimals("none", modulo=10)).y

    def cell(self, row: str, column: str) -> Mapping[str, str]:
        """A published cell by the names of its row and column."""
        pairs = (("row", row), ("col", column))
        return {name: code for name, code in pairs if code != TOTAL}

    def at(self, values: Array, row: str, column: str) -> float:
        """A published value."""
        return float(values[self.design.position(self.cell(row, column))])

    def read(self, text: str) -> Real:
        """Inner cells of a table in the paper's layout."""
        rows: Mapping[str, Sequence[str]] = by_row(text)
        return np.array([float(value) for row in ROWS for value in rows[row][:-1]])

    def printed_residual(self) -> Real:
        """Table 2's random values on all inner cells, less the fit; zero where cells are shown."""
        found = np.zeros(self.design.n_inner)
        for name, texts in by_row(TABLE_2).items():
            row, column = name.split(",")
            place = self.design.inner_position({"row": row, "col": column})
            found[place] = float(texts[1]) - self.fit[place]
        return found


def all_tables(example: SuppressedTable) -> tuple[PrintedTable, ...]:
    """Tables 1 to 3."""
    return _counts(example), _suppressed_cells(example), _in_practice(example)


def _counts(example: SuppressedTable) -> PrintedTable:
    """Table 1: counts are data and totals computed; a star is a suppressed cell of the paper."""
    z, suppressed = example.table.z, example.pattern.suppressed
    figures = grid(
        by_row(TABLE_1), [*COLUMNS, TOTAL], lambda row, col: example.at(z, row, col),
        tolerance=lambda text: as_printed(text),
    )  # fmt: skip
    marked = []
    for figure in figures:
        is_hidden = bool(example.at(suppressed, figure.row, figure.column))
        is_total = TOTAL in (figure.row, figure.column)
        ground = Ground.computed if is_total else Ground.construction
        marked.append(replace(figure, mark=STAR if is_hidden else "", ground=ground))
    return PrintedTable("Table 1", "Counts, and cells to be suppressed", tuple(marked))


def _suppressed_cells(example: SuppressedTable) -> PrintedTable:
    """Table 2: the suppressed cells, fitted and with a random residual."""
    fits = {name: example.decimals(options).z for name, options in _FITS.items()}
    random = example.decimals(Decimals("variance", force=True)).z
    figures: list[Figure] = []
    for name, (true, drawn, *fitted) in by_row(TABLE_2).items():
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


def _in_practice(example: SuppressedTable) -> PrintedTable:
    """Table 3: modulo 10 with a tenth of the residual."""
    found = example.decimals(Decimals("scaled", scale=0.1, modulo=10, force=True)).z
    figures = grid(by_row(TABLE_3), [*COLUMNS, TOTAL], lambda row, col: example.at(found, row, col))
    judged = []
    for figure in figures:
        is_random = bool(example.at(example.pattern.suppressed, figure.row, figure.column))
        ground = Ground.other_data if is_random else Ground.construction
        judged.append(replace(figure, ground=ground))
    return PrintedTable("Table 3", "Decimals that may be used in practice", tuple(judged), _RANDOM)


def findings(example: SuppressedTable) -> tuple[Finding, ...]:
    """The sentences of section 7 that figures can bear out."""
    return (
        *_about_the_example(example),
        *_characteristics(example),
        *_about_several_values(example),
        _single_dimension(example),
        *_own_draws(example),
    )


def _own_draws(example: SuppressedTable) -> Iterator[Finding]:
    """Lengths of the residuals that we draw, beside lengths that are computed without drawing."""
    full = _length(example.table.y - example.fit)
    modulo = _length(example.table.y - example.fit_modulo_10)
    lengths = {
        "with residual (Table 2)": (Decimals("variance", force=True), example.fit, full),
        "modulo 10, a tenth (Table 3)": (
            Decimals("scaled", scale=0.1, modulo=10, force=True),
            example.fit_modulo_10,
            modulo / 10,
        ),
        "a tenth": (Decimals("scaled", scale=0.1, force=True), example.fit, full / 10),
        "root mean square 1.234": (Decimals(rmse=1.234), example.fit, 1.234 * DIMENSIONS**0.5),
    }
    for name, (options, fit, wanted) in lengths.items():
        found = _length(example.decimals(options, name).y - fit)
        yield own(
            f"Our draw has a residual of the stated length: {name}.",
            abs(found / wanted - 1) < _WHOLE,
            f"Length {found:.4f}, stated {wanted:.4f}.",
        )


def _about_the_example(example: SuppressedTable) -> Iterator[Finding]:
    shown = example.design.matrix().tocsc()[:, np.flatnonzero(~example.pattern.suppressed)]
    found = rank(shown.astype(np.int64))
    yield Finding(
        "There are 16 inner and 16 publishable cells, and the subspace dimension is two.",
        shown.shape == (16, 16) and 16 - found == DIMENSIONS,
        f"{shown.shape[0]} inner cells, {shown.shape[1]} publishable ones, rank {found}.",
    )
    clean = audit(example.pattern, lone="none")
    yield Finding(
        "The suppressed cells cannot be calculated from other cells.",
        clean.is_clean,
        f"Audit: {len(clean.at_risk)} cells at risk.",
    )
    residual, truth = example.printed_residual(), example.table.y - example.fit
    yield Finding(
        "The random column of Table 2 preserves the variance and the published cells.",
        _adds_up(example, residual) and abs(_length(residual) - _length(truth)) < _DIGITS,
        f"Printed residual {_length(residual):.4f}, true one {_length(truth):.4f}.",
    )
    practice = example.read(TABLE_3) - example.fit_modulo_10
    tenth = _length(example.table.y % 10 - (example.fit_modulo_10 - example.table.y // 10 * 10))
    yield own(
        "Table 3 has residuals downscaled by ten, of the data modulo 10.",
        _adds_up(example, practice) and abs(_length(practice) - tenth / 10) < _DIGITS,
        f"Printed residual {_length(practice):.4f}; a tenth of that modulo 10 is {tenth / 10:.4f}, "
        f"a tenth of the full one {_length(truth) / 10:.4f}.",
    )
    close = np.rint(example.decimals(Decimals("none", modulo=4)).y) == example.table.y
    yield Finding(
        "With 4 as the divisor the true value is the closest integer in all cases.",
        bool(close.all()),
        f"In {int(close.sum())} of {len(close)} inner cells.",
    )


def _characteristics(example: SuppressedTable) -> Iterator[Finding]:
    pattern = example.pattern
    made = example.decimals(Decimals("scaled", scale=0.1, modulo=10, force=True))
    sums = example.design.aggregate(made.y)
    kept = np.abs(sums - pattern.z)[~pattern.suppressed].max()
    yield Finding(
        "The values of all publishable cells are unchanged; only inner cells need to be stored.",
        bool(kept < _WHOLE),
        f"Largest difference of a sum of stored inner cells: {kept:.0e}.",
    )
    nearest = np.abs(sums - np.rint(sums))[pattern.suppressed].min()
    yield Finding(
        "The values of all suppressed cells are no whole numbers.",
        bool(nearest > _WHOLE),
        f"The nearest one is {nearest:.4f} away from a whole number.",
    )
    failures = list(_failures(example))
    yield Finding(
        "A suppressed cell that is whole in two runs shows that the suppression has failed.",
        all(whole == found for _, whole, found in failures),
        "; ".join(f"publishing {name} discloses {len(whole)}" for name, whole, _ in failures) + ".",
    )
    right, whole, n = _whole_sums(example, made.y)
    yield Finding(
        "Any sum of values that is a whole number is true and publishable.",
        right,
        f"{whole} of {n} sums of suppressed cells are whole numbers.",
    )
    lowest = float(example.fit.min())
    yield Finding("Negative values may be generated.", lowest < 0, f"Smallest fit {lowest:.4f}.")


def _failures(example: SuppressedTable) -> Iterator[tuple[str, set[int], set[int]]]:
    """For each protecting cell that is published: whole cells of two runs, and the audit's."""
    for k in np.flatnonzero(example.pattern.state == SECONDARY):
        pattern = example.pattern.publishing(int(k))
        rng = stream(example.seed, f"failure:{k}")
        runs = [Decimals(force=True)(pattern, rng=rng).y for _ in range(2)]
        sums = np.array([example.design.aggregate(y) for y in runs])
        is_whole = (np.abs(sums - np.rint(sums)) < _WHOLE).all(axis=0) & pattern.suppressed
        name = "/".join(example.design.cell(int(k)).values())
        disclosed = audit(pattern, intervals="none", lone="none", explain=0).disclosed
        yield name, set(np.flatnonzero(is_whole).tolist()), set(disclosed.tolist())


def _whole_sums(example: SuppressedTable, y: Real) -> tuple[bool, int, int]:
    """Whether all sums of suppressed cells that are whole are true and follow; how many are."""
    from scipy.sparse import csc_array

    inner = np.flatnonzero(example.pattern.suppressed[: example.design.n_inner])
    choices = np.array(list(itertools.product((0, 1), repeat=len(inner))))[1:]
    members = np.zeros((example.design.n_inner, len(choices)), dtype=np.int64)
    members[inner] = choices.T
    sums, truth = members.T @ y, members.T @ example.table.y
    is_whole = np.abs(sums - np.rint(sums)) < _WHOLE
    X = example.design.matrix().tocsc().astype(np.int64)
    follows = find_spanned(csc_array(X[:, ~example.pattern.suppressed]), csc_array(members))
    right = (is_whole == follows).all() and (np.rint(sums) == truth)[is_whole].all()
    return bool(right), int(is_whole.sum()), len(choices)


def _about_several_values(example: SuppressedTable) -> Iterator[Finding]:
    pattern = example.pattern
    values = np.column_stack([example.table.y, example.table.y[::-1] ** 2])
    sums = np.column_stack([example.design.aggregate(column) for column in values.T])
    rng = stream(example.seed, "several")
    made = Decimals("variance", force=True).replace(
        example.design, pattern.suppressed, sums, values, normal=rng.standard_normal
    )
    change = np.abs(made.y.T @ made.y / (values.T @ values) - 1).max()
    rescaled = example.decimals(Decimals("variance", modulo=10, force=True), "rescaled").y
    squares, true = float(rescaled @ rescaled), float(example.table.y @ example.table.y)
    yield Finding(
        "With modulo, the residuals can be scaled by a constant to achieve the required variance.",
        abs(squares - true) < _WHOLE * true,
        f"Sum of squares {squares:,.4f} with modulo 10; the true one is {true:,.0f}.",
    )
    yield Finding(
        "The methodology can be used when several variables are involved.",
        bool(change < _WHOLE),
        f"Largest relative change of a sum of squares or products: {change:.0e}.",
    )


def _single_dimension(example: SuppressedTable) -> Finding:
    """A table of three rows and columns with four suppressed cells."""
    table = Table.from_inner(
        Design.product({"row": 3, "col": 3}, "row*col"), np.array([3, 6, 2, 1, 4, 7, 5, 8, 27])
    )
    pattern = Pattern.from_labels(table, {(r, c): "p" for r in "12" for c in "13"})
    rng = stream(example.seed, "single")
    made = Decimals("variance", force=True)(pattern, rng=rng).y
    fitted = Decimals("none")(pattern, rng=rng).y
    outcomes = (np.abs(made - table.y).max(), np.abs(2 * fitted - table.y - made).max())
    return Finding(
        "With rank n − 1 and preserved variance the only residuals are the true one and its mirror "
        "image.",
        min(outcomes) < _WHOLE and _is_refused(pattern, rng),
        "The draw is one of the two; it is refused unless it is forced.",
    )


def _is_refused(pattern: Pattern, rng: np.random.Generator) -> bool:
    try:
        Decimals("variance")(pattern, rng=rng)
    except ParameterError:
        return True
    return False


def _adds_up(example: SuppressedTable, residual: Real) -> bool:
    """Whether a residual in printed digits leaves all published cells as they are."""
    sums = example.design.aggregate(residual)
    return bool(np.abs(sums[~example.pattern.suppressed]).max() < _DIGITS)


def _length(residual: Real) -> float:
    return float(np.linalg.norm(residual))
