"""Rows that no method changes, or only mirrors: they are refused.

Every method preserves fits and second moments. A row of leverage 1 is its own fit, so it comes out
as it went in. A set of n rows on which r parameters depend alone (a level of a factor, a cluster)
has n − r residual degrees of freedom of its own. With a single one, as for two persons in a cell
that has a mean of its own, residuals within the set can only change their sign, and whoever is one
of the two persons knows the other.

The rank that is lost without a set S of rows is the number of singular values of
:math:`Q_S` that are one, where Q is an orthonormal basis of the model's columns; the squares add up
to the sum of leverages. So sets whose leverages add up to less than one, or to less than their size
minus one, are safe, and only the others are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Mask, Real, Whole
from discreet.errors import ConfidentialError
from discreet.frames import fresh_name
from discreet.synthesize.model import Column, Factor, Model
from discreet.synthesize.tolerances import LEAST_FREEDOM, NO_RESIDUAL, ONE


class UnsafeRowsError(ConfidentialError):
    """Some rows would come out as they went in, or mirrored.

    Attributes:
      rows: Positions of these rows in the records.
    """

    def __init__(self, message: str, rows: Whole) -> None:
        self.rows = rows
        super().__init__(message)


@dataclass(frozen=True, eq=False)
class Unsafe:
    """A set of rows with too few residual degrees of freedom.

    Attributes:
      where: What makes it a set, for people; never a code or a value.
      rows: Its rows.
      crossing: The factors whose cell it is, if it is one.
    """

    where: str
    rows: Whole
    crossing: tuple[str, ...] = ()


def unsafe_sets(model: Model, basis: Real) -> list[Unsafe]:
    """All sets of rows with too few residual degrees of freedom: cells, supports, single rows.

    `basis` is an orthonormal basis of the model's columns.
    """
    leverage = np.einsum("ij,ij->i", basis, basis)
    found = []
    for crossing in model.crossings:
        codes, where = cells_of(crossing, model.columns), f"cells of {' × '.join(crossing)}"
        found += [Unsafe(where, s, crossing) for s in _unsafe(codes, basis, leverage)]
    for name, codes in _supports(model):
        where = f"records that alone determine the effect of {name}"
        found += [Unsafe(where, s) for s in _unsafe(codes, basis, leverage)]
    single = np.flatnonzero(leverage >= ONE)
    if len(single) and not found:
        found.append(Unsafe("records of leverage 1", single))
    return found


def refuse(found: list[Unsafe], n: int, rank: int) -> None:
    """Refuse sets of rows with too few degrees of freedom, and a model of n rows with too few."""
    if n - rank < LEAST_FREEDOM:
        raise UnsafeRowsError(
            "the model leaves fewer than two residual degrees of freedom, so that the records "
            "would come out as they went in, or mirrored. Leave out terms, or use coarser codes.",
            np.arange(n),
        )
    if not found:
        return
    rows = np.unique(np.concatenate([each.rows for each in found]))
    places = " and ".join(dict.fromkeys(each.where for each in found))
    raise UnsafeRowsError(
        f"there are {places} with fewer than two residual degrees of freedom: their values would "
        "come out as they went in, or mirrored, or one of two persons could work out the other. "
        "Use coarser codes, leave out terms, or have small cells and clusters merged with "
        "merge='pool'. The error's `rows` are the positions of these records.",
        rows,
    )


def refuse_fixed_columns(names: tuple[str, ...], Y: Real, residuals: Real) -> None:
    """Refuse a confidential column without residuals: fits would give it away as it is."""
    spread = np.linalg.norm(Y - Y.mean(axis=0), axis=0)
    fixed = np.linalg.norm(residuals, axis=0) <= NO_RESIDUAL * spread
    if fixed.any():
        named = " and ".join(repr(names[j]) for j in np.flatnonzero(fixed))
        raise UnsafeRowsError(
            f"the model determines {named} without any residual, so that its values would come out "
            "as they went in. Leave the column out of the release, or terms out of the model.",
            np.arange(len(Y)),
        )


def refuse_one_direction(n: int, details: Mapping[str, Any]) -> None:
    r"""Refuse declared correlations where new residuals have a single direction to lie in.

    The synthetic residual is then :math:`d T ± \sqrt{1 - d^2}\, T^*` in a plane, and whoever knows
    d has two candidates for the original. The details are what the method found out.
    """
    if "correlations" not in details:
        return
    declared = int(np.isfinite(details["correlations"]).sum())
    room = n - details["rank_X"] - min(declared, details["rank_residuals"])
    if room < LEAST_FREEDOM:
        raise UnsafeRowsError(
            "beside the model and the declared correlations a single direction is left for new "
            "residuals, so that the records would come out as one of two candidates. Use fewer "
            "terms, or another method.",
            np.arange(n),
        )


def unsafe_cells_within(model: Model, labels: Whole, basis: Real) -> list[Unsafe]:
    """Cells of the model's factors within clusters, with too few residual degrees of freedom.

    `basis` holds orthonormal bases of what is preserved within each cluster.
    """
    leverage = np.einsum("ij,ij->i", basis, basis)
    found = []
    for crossing in (*model.crossings, *_two_valued(model)):
        codes = cells_of(crossing, model.columns)
        cells = np.unique(codes * (labels.max() + 1) + labels, return_inverse=True)[1]
        where = f"cells of {' × '.join(crossing)} within clusters, groups or pieces"
        found += [Unsafe(where, s, crossing) for s in _unsafe(cells, basis, leverage)]
    return found


def cells_of(crossing: tuple[str, ...], columns: Mapping[str, Column]) -> Whole:
    """The number of each row's cell in a crossing of factors."""
    codes = np.zeros(len(_values(columns[crossing[0]])), dtype=np.int64)
    for name in crossing:
        part = np.unique(_values(columns[name]), return_inverse=True)[1]
        codes = np.unique(codes * (part.max() + 1) + part, return_inverse=True)[1]
    return codes


def _unsafe(codes: Whole, basis: Real, leverage: Real) -> Iterator[Whole]:
    """Cells of which parameters depend alone, with too few residual degrees of freedom.

    Cells are numbered from 0; rows with −1 are in none.
    """
    inside = np.flatnonzero(codes >= 0)
    sizes = np.bincount(codes[inside])
    sums = np.bincount(codes[inside], weights=leverage[inside])
    least = np.maximum(sizes - (LEAST_FREEDOM - 1), 1)  # singular values of one that it takes
    suspect = (sizes > 0) & (sums >= least - (1 - ONE) * sizes)
    if not suspect.any():
        return
    rows = inside[suspect[codes[inside]]]
    rows = rows[np.argsort(codes[rows], kind="stable")]
    for cell in np.split(rows, np.flatnonzero(np.diff(codes[rows])) + 1):
        lost = int((np.linalg.svd(basis[cell], compute_uv=False) ** 2 >= ONE).sum())
        if lost and len(cell) - lost < LEAST_FREEDOM:
            yield cell


def _supports(model: Model) -> Iterator[tuple[str, Whole]]:
    """For each numeric column of the model the rows in which it differs from its usual value."""
    numbers = {n: c for n, c in model.columns.items() if not isinstance(c, Factor)}
    crossed = {name for crossing in model.crossings for name in crossing}
    most = model.X.shape[1] + LEAST_FREEDOM
    for name, column in numbers.items():
        first = np.sort(column[: 2 * most + 1])  # more than half of these have the usual value
        different = column != first[len(first) // 2]
        if name not in crossed and 0 < np.count_nonzero(different) <= most:
            yield name, np.where(different, 0, -1)


def _two_valued(model: Model) -> Iterator[tuple[str, ...]]:
    """Columns of numbers that are factors in all but name."""
    for name, column in model.columns.items():
        if isinstance(column, np.ndarray):
            others = column[column != column[0]]
            if len(others) and (others == others[0]).all():
                yield (name,)


def _values(column: Column) -> Real | Whole:
    return column.codes if isinstance(column, Factor) else column


OTHER = "(other)"


def merged_columns(columns: Mapping[str, Column], found: list[Unsafe]) -> dict[str, Column] | None:
    """Columns in which levels of small cells are one level, `(other)`; `None` if none can be.

    Of the factors whose cell is too small, the one with the most levels gives way. A single small
    level takes the rarest of the others with it.
    """
    pooled: dict[str, set[int]] = {}
    for unsafe in found:
        factors = {n: c for n in unsafe.crossing if isinstance(c := columns[n], Factor)}
        if factors:
            name = max(factors, key=lambda n: (len(factors[n].levels), n))
            levels = np.unique(factors[name].codes[unsafe.rows]).tolist()
            pooled.setdefault(name, set()).update(levels)
    changed = {
        name: _pooled_levels(column, levels)
        for name, levels in pooled.items()
        if isinstance(column := columns[name], Factor) and len(column.levels) > 1
    }
    return {**columns, **changed} if changed else None


def merged_labels(labels: Whole, within: Whole, find_small: Callable[[Whole], Whole]) -> Whole:
    """Labels of which the small ones are one, as often as needed.

    Small ones that stay alone, or small together, take the smallest of the others with them.
    Labels are numbered from 0, and merged `within` sets only.
    """
    while len(small := find_small(labels)):
        before = len(np.unique(labels))
        is_small = np.isin(labels, small)
        for part in np.unique(within[is_small]):
            here = within == part
            labels = _pooled_labels(labels, here, is_small & here)
        labels = np.unique(labels, return_inverse=True)[1].astype(np.int64)
        if len(np.unique(labels)) == before:
            break
    return labels


def _pooled_levels(column: Factor, levels: set[int]) -> Factor:
    if len(levels) == 1:
        sizes = np.bincount(column.codes, minlength=len(column.levels)).astype(float)
        sizes[list(levels)] = np.inf
        levels = {*levels, int(np.argmin(sizes))}
    kept = [k for k in range(len(column.levels)) if k not in levels]
    names = [column.levels[k] for k in kept]
    earlier = {column.levels[k] for k in levels}
    pool = OTHER if OTHER in earlier else fresh_name(OTHER, names)
    place = np.full(len(column.levels), len(kept))
    place[kept] = np.arange(len(kept))
    return Factor((*names, pool), place[column.codes])


def _pooled_labels(labels: Whole, here: Mask, small: Mask) -> Whole:
    """Labels with the small ones of one set made one."""
    chosen = np.unique(labels[small])
    others, sizes = np.unique(labels[here & ~small], return_counts=True)
    joined = labels.copy()
    if len(chosen) == 1 and len(others):
        chosen = np.append(chosen, others[np.argmin(sizes)])
    joined[here & np.isin(labels, chosen)] = chosen[0]
    return joined
