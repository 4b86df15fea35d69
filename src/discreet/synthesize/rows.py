"""Everything that belongs to single records, so that it can be put in another order together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from scipy import stats

from discreet.arrays import Array, Mask, Real, Whole
from discreet.errors import ParameterError
from discreet.synthesize.model import Column, Factor
from discreet.synthesize.orthonormal import as_matrix


@dataclass(frozen=True, eq=False)
class Rows:
    """**Confidential.** What a method is given of the records, row by row.

    Attributes:
      Y: Confidential values.
      columns: What the right side of the model is made from.
      weights: Survey weights.
      clusters: The cluster of each row, numbered from 0, where clusters are given.
      groups: The group of clusters of each row.
      pieces: The piece of its cluster of each row.
      other: Other data that are corrected, columns as in `Y`.
    """

    Y: Real
    columns: Mapping[str, Column]
    weights: Real | None = None
    clusters: Whole | None = None
    groups: Whole | None = None
    pieces: Whole | None = None
    other: Real | None = None

    def in_order(self, order: Whole) -> Rows:
        """The same rows in another order."""
        return Rows(**{f.name: _ordered(getattr(self, f.name), order) for f in fields(self)})

    def canonical_order(self) -> Whole:
        """An order that depends on the contents of the rows alone, not on how they were read.

        Rows are compared column by column, and by as few columns as tell all of them apart. Rows
        that are equal in everything keep their order; they are exchangeable.
        """
        keys = self._keys()
        for count in (1, 3, len(keys)):
            used = keys[:count]
            order = np.lexsort(used[::-1])
            if _all_differ([key[order] for key in used]):
                break
        return np.asarray(order, dtype=np.int64)

    def with_outliers_apart(self, quantile: float) -> Rows:
        """The rows with outlying ones, beyond a quantile, in clusters and a group of their own."""
        clusters, apart = split_off(self.clusters, outlying(self.Y, quantile=quantile))
        groups = apart if self.groups is None else 2 * self.groups + apart
        return replace(self, clusters=clusters, groups=groups)

    def contents(self) -> dict[str, Any]:
        """The rows as plain arrays and texts, for a digest; factors by their codes as texts."""
        columns = {
            name: [list(column.levels), column.codes] if isinstance(column, Factor) else column
            for name, column in self.columns.items()
        }
        rest = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "columns"}
        return {**rest, "columns": columns}

    def _keys(self) -> list[Array]:
        """All columns, the confidential ones first since they tell most rows apart."""
        sources = [c.codes if isinstance(c, Factor) else c for c in self.columns.values()]
        labels = [self.weights, self.clusters, self.groups, self.pieces]
        other = [] if self.other is None else list(self.other.T)
        return [*self.Y.T, *sources, *(part for part in labels if part is not None), *other]


def _all_differ(keys: list[Array]) -> bool:
    """Whether no two neighbouring rows are equal in all keys."""
    same = np.ones(len(keys[0]) - 1, dtype=bool)
    for key in keys:
        same &= key[1:] == key[:-1]
    return not same.any()


def _ordered(part: Any, order: Whole) -> Any:
    if part is None:
        return None
    if isinstance(part, Mapping):
        return {name: _ordered(column, order) for name, column in part.items()}
    return part.in_order(order) if isinstance(part, Factor) else part[order]


_NORMAL = float(1 / stats.norm.ppf(0.75))  # median deviation of a normal variable to its sd


def outlying(values: Any, *, quantile: float = 0.999) -> Mask:
    """For each row (of n×d values), whether it lies farther out than this share of normal ones."""
    if not 0 < quantile < 1:
        raise ParameterError(f"quantile must lie between 0 and 1, got {quantile}.")
    scores = _robust_scores(as_matrix(values, "values"))
    apart = (scores**2).sum(axis=1)
    law = stats.chi2(max(scores.shape[1], 1))
    return np.asarray(apart > law.ppf(quantile) * np.median(apart) / law.median())


def split_off(clusters: Any, outlying: Mask) -> tuple[Whole, Whole]:
    """Labels of clusters and of groups when outlying rows have clusters of their own.

    Every cluster is parted into its outlying rows and the others. Group 1 holds all clusters of
    outlying rows, group 0 the others: give both to `hybrid`.
    """
    groups = np.asarray(outlying, dtype=np.int64)
    _, codes = np.unique(np.asarray(clusters), return_inverse=True)
    _, parted = np.unique(2 * codes + groups, return_inverse=True)
    return parted.astype(np.int64, copy=False), groups


def _robust_scores(values: Real) -> Real:
    """Uncorrelated scores with median zero and spread one, of rows that are not outlying."""
    values = _standardised(values)
    d = values.shape[1]
    products = np.eye(d)
    for i in range(d):
        for j in range(i):
            sums, differences = values[:, i] + values[:, j], values[:, i] - values[:, j]
            products[i, j] = products[j, i] = (_spread(sums) ** 2 - _spread(differences) ** 2) / 4
    return _standardised(values @ np.linalg.eigh(products)[1])


def _standardised(values: Real) -> Real:
    """Columns less their median, divided by their spread; those that do not vary are left out."""
    values = values - np.median(values, axis=0)
    spread = np.array([_spread(column) for column in values.T])
    varies = spread > 1e-9 * np.abs(values).max(axis=0, initial=0.0)
    return np.asarray(values[:, varies] / spread[varies])


def _spread(column: Real) -> float:
    """The median absolute deviation; the standard deviation where most values are equal."""
    deviation = float(np.median(np.abs(column - np.median(column)))) * _NORMAL
    return deviation if deviation > 0 else float(column.std())
