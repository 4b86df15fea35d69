r"""Large units: a bound on leverage, and rules of suppression for all that is preserved exactly.

**Leverage.** The fit of record i has the error :math:`\sigma\sqrt{1 - h_i}`. Without its record
everybody would still predict it from the others, with the error :math:`\sigma/\sqrt{1 - h_i}`. So
the release is :math:`1/(1 - h_i)` times as accurate as what the others tell anyway, and the
probability that an estimate is right to within any width rises by at most

.. math:: g(h) = 2\{\Phi(a/\sqrt r) - \Phi(a\sqrt r)\}, \quad a^2 = \frac{2\ln(1/r)}{1/r - r},
   \quad r = 1 - h.

A third gives 1.5 times the accuracy and 0.19; it is the leverage of each of three records under a
mean of their own, the smallest group whose mean the usual rules publish.

**Rules.** Sums of groups and clusters are totals to which records contribute, and the rules of
`discreet.rules` judge them as cells of a table. A sum of squares S gives the length
:math:`\sqrt S` away: without the second largest, who knows itself, it is an estimate
:math:`\sqrt{S - v_2^2}` of the largest :math:`v_1`, and the rules judge it as a total of which
:math:`\sqrt{S - v_2^2} - v_1` belongs to others. Covariances are judged by the roots of products,
and the sum of squared residuals by :math:`v_i^2 = e_i^2/(1 - h_i)`, by which it falls when record i
is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy.sparse import eye_array

from discreet.arrays import Mask, Real, Whole
from discreet.design.base import Design
from discreet.errors import ParameterError
from discreet.rules.counts import PrimaryRule, Threshold, rule_named
from discreet.rules.magnitudes import Dominance
from discreet.synthesis.decompose import RegressionFit
from discreet.synthesis.formula import GROUPS, LOCAL, PIECES
from discreet.synthesis.model import (
    Column,
    Factor,
    ModelMatrices,
    Rows,
    cells_of,
    crossings_of,
    values_of,
)
from discreet.tables.magnitude import NOBODY, CellContributions, Contributions
from discreet.tables.truth import CellValues, TrueTable

Large = Literal["refuse", "top-code"]
RULES: tuple[str, ...] = ("few-contributors(3)", "p%(10)")
LEVERAGE = 1 / 3
KeptSquares = RegressionFit | Literal["clusters"] | None
"""Squares and products that are kept: those of a regression over all rows, of clusters, or none."""
_ROUNDING = 1e-9  # a leverage of three equal records is a third up to rounding
_ROUNDS = 200  # of cutting: each brings a record to the next one, and giants are few


def read_rules(given: Any) -> tuple[PrimaryRule, ...]:
    """Rules from their names, or as they are; those that look at a cell alone."""
    several = (given,) if isinstance(given, str) or hasattr(given, "primaries") else tuple(given)
    rules = tuple(rule_named(each) if isinstance(each, str) else each for each in several)
    if not all(hasattr(rule, "lack") or isinstance(rule, Threshold) for rule in rules):
        raise ParameterError(
            "rules for what is preserved are 'threshold', 'few-contributors', 'dominance', 'p%' "
            f"and 'p/q', got {given!r}."
        )
    return rules


def weighs_too_much(basis: Real, bound: float = LEVERAGE) -> Mask:
    """Which records have a leverage above the bound; the basis is orthonormal."""
    return np.asarray(np.einsum("ij,ij->i", basis, basis) > bound + _ROUNDING)


def cut_columns(columns: dict[str, Column], rows: Mask) -> dict[str, Column] | None:
    """Numbers of the right side cut back to what the other rows reach; `None` if nothing changes.

    Of each of these rows, the number that lies farthest out is cut.
    """
    numbers = {n: c for n, c in columns.items() if not isinstance(c, Factor)}
    if not numbers or rows.all():
        return None
    out = []
    for column in numbers.values():
        middle = np.median(column)
        spread = np.median(np.abs(column - middle)) or column.std() or 1.0
        out.append(np.abs(column[rows] - middle) / spread)
    worst = np.argmax(out, axis=0)
    cut = dict(columns)
    for place, (name, column) in enumerate(numbers.items()):
        if (worst == place).any():
            cut[name] = np.clip(column, column[~rows].min(), column[~rows].max())
    moved = any(not np.array_equal(values_of(cut[n]), column) for n, column in numbers.items())
    return cut if moved else None


@dataclass(frozen=True, eq=False)
class RowSets:
    """Sets of rows, sorted once for the many figures that are looked at."""

    cells: Whole  # the set of each row, numbered from 0
    names: Whole  # the labels that these numbers stand for
    order: Whole  # the rows, set by set
    starts: Whole  # where each set begins among them

    @classmethod
    def of(cls, labels: Whole) -> RowSets:
        """The sets of some labels."""
        names, cells = np.unique(labels, return_inverse=True)
        order = np.argsort(cells, kind="stable")
        return cls(cells, names, order, np.searchsorted(cells[order], np.arange(len(names))))

    def largest(self, values: Real, count: int) -> Real:
        """The largest values in each set, in decreasing order, zero behind the last."""
        sorted_, cells = values[self.order], self.cells[self.order]
        found = np.zeros((len(self.names), count))
        for place in range(count):
            top = np.maximum.reduceat(sorted_, self.starts)
            found[:, place] = np.maximum(top, 0.0)
            at = np.flatnonzero(sorted_ == top[cells])
            sorted_[at[np.unique(cells[at], return_index=True)[1]]] = -1.0  # one of each set
        return found

    def sums(self, values: Real) -> Real:
        """The sum of each set."""
        return np.asarray(np.bincount(self.cells, values, len(self.names)), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Figure:
    """**Confidential.** Something that is preserved exactly, for each of some sets of rows."""

    what: str  # in words, without any code
    columns: tuple[int, ...]  # the confidential columns that it is about
    values: Real  # what each row contributes, none negative
    sets: RowSets
    is_length: bool = False  # the root of a sum of squares, not a sum
    squares: float | None = None  # the sum of squares, where rows do not add up to it
    centre: Real | None = None  # from where values are measured, zero if absent


def preserved_figures(model: ModelMatrices, rows: Rows, kept: KeptSquares) -> Iterator[Figure]:
    """Everything that is preserved: sums, products with numbers, squares and covariances."""
    n, k = model.Y.shape
    w = np.ones(n) if model.weights is None else model.weights
    everybody = RowSets.of(np.zeros(n, dtype=np.int64))
    clusters = everybody if rows.clusters is None else RowSets.of(rows.clusters)
    sets = [("sums", everybody)]
    for crossing in model.crossings:
        cells = RowSets.of(cells_of(crossing, model.columns))
        sets.append((f"sums of {' × '.join(crossing)}", cells))
    sets += list(_sets_within(model, rows))
    numbers = {name: c for name, c in model.columns.items() if not isinstance(c, Factor)}
    for j in range(k):
        amounts = np.abs(w * model.Y[:, j])
        for what, cells in sets:
            yield Figure(what, (j,), amounts, cells)
        for name, column in numbers.items():
            yield Figure(f"products with {name}", (j,), amounts * np.abs(column), everybody)
    for j in range(k if kept is not None else 0):
        for other in range(j, k):
            root = np.sqrt(w * np.abs(model.Y[:, j] * model.Y[:, other]))
            what = "squares" if other == j else "covariances"
            yield Figure(what, (j, other), root, clusters, is_length=True)
    if isinstance(kept, RegressionFit):
        yield from _residual_figures(model, kept, everybody)


def _sets_within(model: ModelMatrices, rows: Rows) -> Iterator[tuple[str, RowSets]]:
    """Clusters, pieces and groups, and the cells of factors that are preserved within them."""
    for role, word in (("clusters", LOCAL), ("pieces", PIECES), ("groups", GROUPS)):
        labels: Whole | None = getattr(rows, role)
        if labels is None:
            continue
        yield f"sums of {role}", RowSets.of(labels)
        for crossing in crossings_of(model, word):
            cells = cells_of(crossing, model.columns) * (labels.max() + 1) + labels
            yield f"sums of {' × '.join(crossing)} within {role}", RowSets.of(cells)


def _residual_figures(
    model: ModelMatrices, whole: RegressionFit, everybody: RowSets
) -> Iterator[Figure]:
    free = np.maximum(1 - np.einsum("ij,ij->i", whole.basis, whole.basis), _ROUNDING)
    residuals = model.to_original_scale(whole.residuals)
    for j in range(model.Y.shape[1]):
        squares = float(whole.residuals[:, j] @ whole.residuals[:, j])
        values = np.abs(whole.residuals[:, j]) / np.sqrt(free)
        centre = model.Y[:, j] - residuals[:, j]
        yield Figure("squares of residuals", (j,), values, everybody, True, squares, centre)


def sensitive_cells(figure: Figure, rules: Sequence[PrimaryRule]) -> Mask:
    """Which of the sets of a figure break a rule."""
    sets, values = figure.sets, figure.values
    if not rules:
        return np.zeros(len(sets.names), dtype=bool)
    looked_at = [rule.n for rule in rules if isinstance(rule, Dominance)]
    largest = sets.largest(values, max([2, *looked_at]))
    if figure.is_length:
        squares = sets.sums(values**2) if figure.squares is None else figure.squares
        without = np.sqrt(np.maximum(squares - largest[:, 1] ** 2, largest[:, 0] ** 2))
        total = without + largest[:, 1]
    else:
        total = sets.sums(values)
    count = sets.sums((values > 0).astype(np.float64)).astype(np.int64)
    owner = np.full(largest.shape, NOBODY, dtype=np.int64)
    given = Contributions(figure.what, CellContributions(total, total, count, largest, owner))
    design = Design.from_matrix(eye_array(len(total), format="csr", dtype=np.int8))
    table = TrueTable(design, CellValues(np.bincount(sets.cells)), contributions=given)
    return np.asarray(np.any([rule.primaries(table) for rule in rules], axis=0))


def sensitive_sums(
    model: ModelMatrices, labels: Whole, rules: Sequence[PrimaryRule], *, squares: bool
) -> Whole:
    """The clusters whose sums break a rule, or whose squares do where they are kept."""
    w = np.ones(len(labels)) if model.weights is None else model.weights
    sets = RowSets.of(labels)
    found = np.zeros(len(sets.names), dtype=bool)
    for j in range(model.Y.shape[1]):
        size = np.abs(model.Y[:, j])
        found |= sensitive_cells(Figure("sums", (j,), w * size, sets), rules)
        if squares:
            figure = Figure("squares", (j,), np.sqrt(w) * size, sets, is_length=True)
            found |= sensitive_cells(figure, rules)
    return sets.names[found]


def breaking(
    model: ModelMatrices, rows: Rows, kept: KeptSquares, rules: Sequence[PrimaryRule]
) -> dict[str, Whole]:
    """For each kind of figure that breaks a rule, the rows of its sets that do."""
    found: dict[str, list[Whole]] = {}
    for figure in preserved_figures(model, rows, kept):
        sensitive = sensitive_cells(figure, rules)
        if sensitive.any():
            # Those who are large are named, not everybody who is in a sum with them.
            top = figure.sets.largest(figure.values, 1)[:, 0]
            large = (sensitive & (top > 0))[figure.sets.cells]
            large &= figure.values >= top[figure.sets.cells]
            found.setdefault(figure.what, []).append(np.flatnonzero(large))
    return {what: np.unique(np.concatenate(parts)) for what, parts in found.items()}


def cut_values(
    model: ModelMatrices,
    rows: Rows,
    kept: Callable[[ModelMatrices], KeptSquares],
    rules: Sequence[PrimaryRule],
) -> ModelMatrices:
    """Confidential values of which the largest are cut back until all figures keep the rules.

    In each set that breaks a rule, the largest come down to the next smaller contribution. `kept`
    says anew which squares are kept.
    """
    for _ in range(_ROUNDS):
        Y = model.Y.copy()
        for figure in preserved_figures(model, rows, kept(model)):
            sensitive = sensitive_cells(figure, rules)
            if sensitive.any():
                _cut_largest(Y, model.Y, figure, sensitive)
        if (Y == model.Y).all():
            break
        model = replace(model, Y=Y)
    return model


def _cut_largest(Y: Real, before: Real, figure: Figure, sensitive: Mask) -> None:
    """Bring the largest of each sensitive set to the next smaller contribution; zero is none."""
    # Once a round: what one figure asks for is often enough for the others, which are looked at
    # again in the next round.
    cells = figure.sets.cells
    top = figure.sets.largest(figure.values, 1)[:, 0]
    smaller = figure.values < top[cells] * (1 - _ROUNDING)
    following = figure.sets.largest(np.where(smaller, figure.values, 0.0), 1)[:, 0]
    rows = np.flatnonzero(~smaller & (sensitive & (following > 0))[cells])
    share = (following / np.where(top > 0, top, 1.0))[cells[rows]]
    for j in set(figure.columns):
        centre = 0.0 if figure.centre is None else figure.centre[rows]
        cut = centre + (before[rows, j] - centre) * share
        Y[rows, j] = np.where(Y[rows, j] == before[rows, j], cut, Y[rows, j])
