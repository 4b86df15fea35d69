"""What section 7 says about decimals, beside what they do here."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from discreet.assess.audit import audit
from discreet.design.base import Design
from discreet.design.table import Table
from discreet.errors import ParameterError
from discreet.protect.suppress.decimals import Decimals
from discreet.protect.suppress.pattern import SECONDARY, Pattern
from discreet.randomness import stream
from discreet.solve.linear.elimination import rank, spanned
from discreet_studies.model import Finding
from discreet_studies.regression_decimals import printed
from discreet_studies.regression_decimals.example import Example

Real = NDArray[np.float64]

_DIGITS = 2e-4  # lengths and sums of nine printed digits of four decimals
_WHOLE = 1e-9


def findings(example: Example) -> tuple[Finding, ...]:
    """The sentences of section 7 that figures can bear out."""
    return (
        *_about_the_example(example),
        *_characteristics(example),
        *_about_several_values(example),
        _single_dimension(example),
    )


def _about_the_example(example: Example) -> Iterator[Finding]:
    shown = example.design.matrix().tocsc()[:, np.flatnonzero(~example.pattern.suppressed)]
    found = rank(shown.astype(np.int64))
    yield Finding(
        "There are 16 inner and 16 publishable cells, and the subspace dimension is two.",
        shown.shape == (16, 16) and 16 - found == 2,
        f"{shown.shape[0]} inner cells, {shown.shape[1]} publishable ones, rank {found}.",
    )
    clean = audit(example.pattern, lone="none")
    yield Finding(
        "The suppressed cells cannot be calculated from other cells.",
        clean.is_clean,
        f"Audit: {len(clean.at_risk)} cells at risk.",
    )
    residual, truth = example.printed_residual(), example.table.y - example.fitted
    yield Finding(
        "The random column of Table 2 preserves the variance and the published cells.",
        _adds_up(example, residual) and abs(_length(residual) - _length(truth)) < _DIGITS,
        f"Printed residual {_length(residual):.4f}, true one {_length(truth):.4f}.",
    )
    practice = example.read(printed.TABLE_3) - example.fitted_modulo_10
    tenth = _length(example.table.y % 10 - (example.fitted_modulo_10 - example.table.y // 10 * 10))
    yield Finding(
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


def _characteristics(example: Example) -> Iterator[Finding]:
    pattern = example.pattern
    made = example.decimals(Decimals("scaled", scale=0.1, modulo=10))
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
    lowest = float(example.fitted.min())
    yield Finding("Negative values may be generated.", lowest < 0, f"Smallest fit {lowest:.4f}.")


def _failures(example: Example) -> Iterator[tuple[str, set[int], set[int]]]:
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


def _whole_sums(example: Example, y: Real) -> tuple[bool, int, int]:
    """Whether all sums of suppressed cells that are whole are true and follow; how many are."""
    from scipy.sparse import csc_array

    inner = np.flatnonzero(example.pattern.suppressed[: example.design.n_inner])
    choices = np.array(list(itertools.product((0, 1), repeat=len(inner))))[1:]
    members = np.zeros((example.design.n_inner, len(choices)), dtype=np.int64)
    members[inner] = choices.T
    sums, truth = members.T @ y, members.T @ example.table.y
    is_whole = np.abs(sums - np.rint(sums)) < _WHOLE
    X = example.design.matrix().tocsc().astype(np.int64)
    follows = spanned(csc_array(X[:, ~example.pattern.suppressed]), csc_array(members))
    right = (is_whole == follows).all() and (np.rint(sums) == truth)[is_whole].all()
    return bool(right), int(is_whole.sum()), len(choices)


def _about_several_values(example: Example) -> Iterator[Finding]:
    pattern = example.pattern
    values = np.column_stack([example.table.y, example.table.y[::-1] ** 2])
    sums = np.column_stack([example.design.aggregate(column) for column in values.T])
    rng = stream(example.seed, "several")
    made = Decimals("variance").replace(
        example.design, pattern.suppressed, sums, values, normal=rng.standard_normal
    )
    change = np.abs(made.y.T @ made.y / (values.T @ values) - 1).max()
    yield Finding(
        "The methodology can be used when several variables are involved.",
        bool(change < _WHOLE),
        f"Largest relative change of a sum of squares or products: {change:.0e}.",
    )


def _single_dimension(example: Example) -> Finding:
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


def _adds_up(example: Example, residual: Real) -> bool:
    """Whether a residual in printed digits leaves all published cells as they are."""
    sums = example.design.aggregate(residual)
    return bool(np.abs(sums[~example.pattern.suppressed]).max() < _DIGITS)


def _length(residual: Real) -> float:
    return float(np.linalg.norm(residual))
