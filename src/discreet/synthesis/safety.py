"""Rows that no method changes, only mirrors, or gives away by what it keeps: they are refused.

Every method preserves fits and second moments. A row of leverage 1 is its own fit, so it comes out
as it went in. A set of n rows on which r parameters depend alone (a level of a factor, a cluster)
has n − r residual degrees of freedom of its own. With a single one, as for two persons in a cell
that has a mean of its own, residuals within the set can only change their sign, and whoever is one
of the two persons knows the other.

The rank that is lost without a set S of rows is the number of singular values of
:math:`Q_S` that are one, where Q is an orthonormal basis of the model's columns; the squares add up
to the sum of leverages. So sets whose leverages add up to less than one, or to less than their size
minus one, are safe, and only the others are looked at.

Publishable cells of a table as columns of a model (Langsrud 2019a, section 7).

The columns of :math:`X` are those of the cells that suppression finds safe, so that synthetic
records have the published sums of the table and tell none of those that are suppressed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from discreet.arrays import Mask, Real, Whole
from discreet.errors import ConfidentialError, ParameterError
from discreet.frames import Frame, fresh_name
from discreet.rules.counts import CountRule
from discreet.suppress.suppress import Suppress
from discreet.synthesis.decompose import DEPENDENT_RESIDUALS, RegressionFit, fit
from discreet.synthesis.formula import ModelFormula
from discreet.synthesis.large import (
    LEVERAGE,
    KeptSquares,
    breaking,
    cut_columns,
    cut_values,
    weighs_too_much,
)
from discreet.synthesis.model import (
    CELL,
    Column,
    Factor,
    ModelMatrices,
    Rows,
    build,
    cells_of,
    values_of,
)
from discreet.synthesis.request import Merge, SynthesisRequest
from discreet.tables.from_frames import contributions_to_table
from discreet.tables.magnitude import Magnitude
from discreet.tables.truth import TrueTable

# Residual degrees of freedom that a set of rows needs: with a single one, residuals can only change
# their sign.
LEAST_FREEDOM = 2
# Members of a cluster who pool what they know of themselves.
INSIDERS = 1


# Leverages and squared singular values from here on are one; rounding moves them by less.
ONE = 1 - 1e-9
OTHER = "(other)"


class UnsafeRowsError(ConfidentialError):
    """Some rows would come out as they went in, mirrored, or near enough to be told.

    Attributes:
      rows: Positions of these rows in the records.
    """

    def __init__(self, message: str, rows: Whole) -> None:
        self.rows = rows
        super().__init__(message)


@dataclass(frozen=True, eq=False)
class Unsafe:
    """A set of rows with too few residual degrees of freedom."""

    where: str  # what makes it a set, for people; never a code or a value
    rows: Whole  # its rows
    crossing: tuple[str, ...] = ()  # the factors whose cell it is, if it is one


def least_freedom(request: SynthesisRequest) -> int:
    """Residual degrees of freedom that rows need whose squares and products are kept together."""
    if not request.keeps_squares:
        return LEAST_FREEDOM
    return len(request.formula.confidential) + 2 + INSIDERS


def safe_model(request: SynthesisRequest, rows: Rows) -> ModelMatrices:
    """The matrices of a model in which all records have residuals to draw; others are refused.

    No record weighs more in its fit than it may. With `large="top-code"` numbers of the right side
    are cut back until that is so.
    """
    formula = request.formula
    model = merged_model(formula, rows, request.merge)
    found = _fit_all_columns(model)
    while request.large == "top-code" and (large := weighs_too_much(found.basis)).any():
        columns = cut_columns(dict(model.columns), large)
        if columns is None:
            break
        model = build(formula, rows.Y, columns, rows.weights)
        found = _fit_all_columns(model)
    least = LEAST_FREEDOM if request.clusters is not None else least_freedom(request)
    refuse(unsafe_sets(model, found.basis))
    _refuse_model(len(rows.Y), found.rank, least)
    refuse_large(np.flatnonzero(weighs_too_much(found.basis)))
    refuse_fixed_columns(formula.confidential, rows.Y, model.to_original_scale(found.residuals))
    return model


def safe_values(request: SynthesisRequest, model: ModelMatrices, rows: Rows) -> ModelMatrices:
    """The model with values of which all that is preserved keeps the rules; others are refused."""

    def kept(model: ModelMatrices) -> KeptSquares:
        if not request.keeps_squares:
            return None
        return _fit_all_columns(model) if rows.clusters is None else "clusters"

    if request.large == "top-code":
        model = cut_values(model, rows, kept, request.rules)
    if found := breaking(model, rows, kept(model), request.rules):
        raise UnsafeRowsError(
            f"what is preserved of these records breaks a rule of suppression: {', '.join(found)}. "
            "A large unit could be estimated from it too closely. Leave out terms, use coarser "
            "codes or larger clusters, or have large values cut with large='top-code'. The error's "
            "`rows` are the positions of the largest records in these figures.",
            np.unique(np.concatenate(list(found.values()))),
        )
    return model


def refuse_large(rows: Whole) -> None:
    """Refuse records that weigh too much in their own fit."""
    if len(rows):
        raise UnsafeRowsError(
            "there are records of leverage above 1/3: they weigh so much in their own fit, which "
            "is preserved, that their values could be read from it. Leave out terms or use coarser "
            "codes, use larger clusters, have small cells and clusters merged with merge='pool', "
            "or large numbers cut in the model with large='top-code'. The error's `rows` are the "
            "positions of these records.",
            rows,
        )


def merged_model(formula: ModelFormula, rows: Rows, merge: Merge | None) -> ModelMatrices:
    """The matrices of a model, in which levels of small cells are merged if that is asked for."""
    model = build(formula, rows.Y, rows.columns, rows.weights)
    while merge:
        basis = _fit_all_columns(model).basis
        found = unsafe_sets(model, basis) or _heavy_cells(model, basis)
        columns = merged_columns(model.columns, found)
        if columns is None:
            break
        model = build(formula, rows.Y, columns, rows.weights)
    return model


def _heavy_cells(model: ModelMatrices, basis: Real) -> list[Unsafe]:
    """Cells whose members weigh too much in their fits on average."""
    leverage = np.einsum("ij,ij->i", basis, basis)
    found = []
    for crossing in model.crossings:
        cells = cells_of(crossing, model.columns)
        mean = np.bincount(cells, leverage) / np.bincount(cells)
        heavy = np.flatnonzero(mean > LEVERAGE + (1 - ONE))
        found += [Unsafe("", np.flatnonzero(cells == cell), crossing) for cell in heavy]
    return found


def _fit_all_columns(model: ModelMatrices) -> RegressionFit:
    # Crossed with nothing: what is crossed with clusters is looked at by `safe_clusters`.
    scaled = model.without_weights
    return fit(scaled.Y, scaled.all_columns)


def unsafe_sets(model: ModelMatrices, basis: Real) -> list[Unsafe]:
    """Sets of rows with too few residual degrees of freedom: cells, supports, single rows."""
    leverage = np.einsum("ij,ij->i", basis, basis)
    found = []
    for crossing in model.crossings:
        codes, where = cells_of(crossing, model.columns), f"cells of {' × '.join(crossing)}"
        found += [Unsafe(where, s, crossing) for s in small_sets(codes, basis, leverage)]
    for name, codes in _supports(model):
        where = f"records that alone determine the effect of {name}"
        found += [Unsafe(where, s) for s in small_sets(codes, basis, leverage)]
    # Last, and only where no set explains them: a user can merge cells, but not single rows.
    single = np.flatnonzero(leverage >= ONE)
    if len(single) and not found:
        found.append(Unsafe("records of leverage 1", single))
    return found


def _refuse_model(n: int, rank: int, least: int) -> None:
    """Refuse a model of n rows that leaves too few degrees of freedom."""
    if n - rank < least:
        raise UnsafeRowsError(
            f"the model leaves fewer than {least} residual degrees of freedom, so that the records "
            "would come out as they went in, or mirrored, or few candidates would be left for "
            "them. Leave out terms, or use coarser codes.",
            np.arange(n),
        )


def refuse(found: list[Unsafe], least: int = LEAST_FREEDOM) -> None:
    """Refuse sets of rows with too few degrees of freedom."""
    if not found:
        return
    rows = np.unique(np.concatenate([each.rows for each in found]))
    places = " and ".join(dict.fromkeys(each.where for each in found))
    raise UnsafeRowsError(
        f"there are {places} with fewer than {least} residual degrees of freedom: their values "
        "would come out as they went in, or mirrored, or one of them could work out the others. "
        "Use coarser codes, leave out terms, or have small cells and clusters merged with "
        "merge='pool'. The error's `rows` are the positions of these records.",
        rows,
    )


def refuse_fixed_columns(names: tuple[str, ...], Y: Real, residuals: Real) -> None:
    """Refuse a confidential column without residuals: fits would give it away as it is."""
    spread = np.linalg.norm(Y - Y.mean(axis=0), axis=0)
    # As for components: below this share residuals are taken for dependent and none are drawn.
    fixed = np.linalg.norm(residuals, axis=0) <= DEPENDENT_RESIDUALS * spread
    if fixed.any():
        named = " and ".join(repr(names[j]) for j in np.flatnonzero(fixed))
        raise UnsafeRowsError(
            f"the model determines {named} without any residual, so that its values would come out "
            "as they went in. Leave the column out of the release, or terms out of the model.",
            np.arange(len(Y)),
        )


def small_sets(codes: Whole, basis: Real, leverage: Real) -> Iterator[Whole]:
    """The cells that have too few residual degrees of freedom of their own."""
    # Cells are numbered from 0; rows with −1 are in none.
    inside = np.flatnonzero(codes >= 0)
    sizes = np.bincount(codes[inside])
    sums = np.bincount(codes[inside], weights=leverage[inside])
    least = np.maximum(sizes - (LEAST_FREEDOM - 1), 1)  # singular values of one that it takes
    suspect = (sizes > 0) & (sums >= least - (1 - ONE) * sizes)
    if not suspect.any():
        return
    # Singular values only of the few cells whose leverages allow for it: thousands of cells are
    # cleared by two sums.
    rows = inside[suspect[codes[inside]]]
    rows = rows[np.argsort(codes[rows], kind="stable")]
    for cell in np.split(rows, np.flatnonzero(np.diff(codes[rows])) + 1):
        lost = int((np.linalg.svd(basis[cell], compute_uv=False) ** 2 >= ONE).sum())
        if lost and len(cell) - lost < LEAST_FREEDOM:
            yield cell


def _supports(model: ModelMatrices) -> Iterator[tuple[str, Whole]]:
    numbers = {n: c for n, c in model.columns.items() if not isinstance(c, Factor)}
    crossed = {name for crossing in model.crossings for name in crossing}
    most = model.X.shape[1] + LEAST_FREEDOM
    for name, column in numbers.items():
        # If at most `most` rows differ, more than half of the first rows have the usual value, and
        # it is their median.
        first = np.sort(column[: 2 * most + 1])
        different = column != first[len(first) // 2]
        if name not in crossed and 0 < np.count_nonzero(different) <= most:
            yield name, np.where(different, 0, -1)


def merged_columns(columns: Mapping[str, Column], found: list[Unsafe]) -> dict[str, Column] | None:
    """Columns in which levels of small cells are one level, `(other)`; `None` if none can be."""
    pooled: dict[str, set[int]] = {}
    for unsafe in found:
        factors = {n: c for n in unsafe.crossing if isinstance(c := columns[n], Factor)}
        if factors:
            # The finest code loses least; of equals, the last by name, so that runs agree.
            name = max(factors, key=lambda n: (len(factors[n].levels), n))
            levels = np.unique(factors[name].codes[unsafe.rows]).tolist()
            pooled.setdefault(name, set()).update(levels)
    changed = {
        name: _pool_levels(column, levels)
        for name, levels in pooled.items()
        if isinstance(column := columns[name], Factor) and len(column.levels) > 1
    }
    return {**columns, **changed} if changed else None


def _pool_levels(column: Factor, levels: set[int]) -> Factor:
    if len(levels) == 1:  # alone it would be as small as before: the rarest other goes with it
        sizes = np.bincount(column.codes, minlength=len(column.levels)).astype(float)
        sizes[list(levels)] = np.inf
        levels = {*levels, int(np.argmin(sizes))}
    kept = [k for k in range(len(column.levels)) if k not in levels]
    names = [column.levels[k] for k in kept]
    earlier = {column.levels[k] for k in levels}
    # A second round of merging takes in the pool of the first; it keeps its name.
    pool = OTHER if OTHER in earlier else fresh_name(OTHER, names)
    place = np.full(len(column.levels), len(kept))
    place[kept] = np.arange(len(kept))
    return Factor((*names, pool), place[column.codes])


def with_cells(request: SynthesisRequest, rows: Rows) -> Rows:
    """Rows with a column of zeros and ones for each publishable cell of the table in `cells(…)`.

    Rules and pattern are those of `Suppress` for each confidential column. A cell is preserved
    where it may be shown for all of them: hiding more protects each as well.
    """
    formula = request.formula
    if formula.cells is None:
        return rows
    if any(isinstance(rule, CountRule) for rule in request.rules) or not request.rules:
        raise ParameterError(
            "cells(…) are chosen by rules for sums, such as 'few-contributors(3)' and 'p%(10)'; "
            "give these as rules=."
        )
    amounts = rows.Y if rows.weights is None else rows.Y * rows.weights[:, None]
    tables = [_table_of(request, rows, column) for column in amounts.T]
    shown: Mask = np.ones(tables[0].design.n_published, dtype=bool)
    method = Suppress(request.rules)
    for table in tables:
        shown &= ~method.pattern(table).suppressed
    design = tables[0].design
    axes = design.require_variables("cells").axes
    codes = tuple(_codes(rows, axis.name) for axis in axes)
    inner = np.ravel_multi_index(codes, tuple(len(axis) for axis in axes))
    members = design.matrix().tocsc()[:, np.flatnonzero(shown)][inner].toarray()
    # Cells of the same records are one column, and a constant is in every model.
    members = np.unique(members, axis=1)
    members = members[:, np.ptp(members, axis=0) > 0]
    found = {f"{CELL}{k + 1}": column.astype(float) for k, column in enumerate(members.T)}
    terms = formula.term_sources(list(rows.columns))
    apart = set(formula.cell_variables) - set(terms)
    columns = {name: c for name, c in rows.columns.items() if name not in apart}
    return replace(rows, columns={**columns, **found})


def _codes(rows: Rows, name: str) -> Whole:
    """A column as numbers of its values in their order; missing numbers have a mark elsewhere."""
    return np.unique(values_of(rows.columns[name]), return_inverse=True)[1]


def _table_of(request: SynthesisRequest, rows: Rows, amounts: Real) -> TrueTable:
    codes = {}
    for name in request.formula.cell_variables:
        numbers = _codes(rows, name)
        # With leading zeros codes are sorted as numbers are.
        width = len(str(numbers.max()))
        codes[name] = [f"{number:0{width}d}" for number in numbers.tolist()]
    value, record = "amount ", "record "  # names that no variable of a formula can have
    frame = Frame({**codes, value: amounts, record: np.arange(len(amounts))})
    of = Magnitude(value, record, negative="absolute" if (amounts < 0).any() else "refuse")
    return contributions_to_table(
        frame,
        request.formula.cells or "",
        of,
        weight=None,
        hierarchies=None,
        support="all",
        structural_zeros=(),
        declared=False,
    )
