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
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from discreet.arrays import Array, Mask, Real, Whole
from discreet.errors import ConfidentialError
from discreet.frames import fresh_name
from discreet.synthesis.decompose import DEPENDENT_RESIDUALS, RegressionFit, fit
from discreet.synthesis.formula import GROUPS, PIECES, SHARED, ModelFormula
from discreet.synthesis.hybrid_kernels import products_within
from discreet.synthesis.hybrid_levels import HybridBases, hybrid_model
from discreet.synthesis.model import Column, Factor, ModelMatrices, Rows, build
from discreet.synthesis.request import Merge

# Residual degrees of freedom that a set of rows needs: with a single one, residuals can only change
# their sign.
LEAST_FREEDOM = 2


# Leverages and squared singular values from here on are one; rounding moves them by less.
ONE = 1 - 1e-9
OTHER = "(other)"


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
    """A set of rows with too few residual degrees of freedom."""

    where: str  # what makes it a set, for people; never a code or a value
    rows: Whole  # its rows
    crossing: tuple[str, ...] = ()  # the factors whose cell it is, if it is one


def safe_model(formula: ModelFormula, rows: Rows, merge: Merge | None) -> ModelMatrices:
    """The matrices of a model in which all records have residuals to draw; others are refused."""
    model = merged_model(formula, rows, merge)
    found = _fit_all_columns(model)
    refuse(unsafe_sets(model, found.basis), len(rows.Y), found.rank)
    refuse_fixed_columns(formula.confidential, rows.Y, model.to_original_scale(found.residuals))
    return model


def merged_model(formula: ModelFormula, rows: Rows, merge: Merge | None) -> ModelMatrices:
    """The matrices of a model, in which levels of small cells are merged if that is asked for."""
    model = build(formula, rows.Y, rows.columns, rows.weights)
    while merge:
        found = unsafe_sets(model, _fit_all_columns(model).basis)
        columns = merged_columns(model.columns, found)
        if columns is None:
            break
        model = build(formula, rows.Y, columns, rows.weights)
    return model


def hybrid_arguments(scaled: ModelMatrices, rows: Rows) -> dict[str, Any]:
    """What a hybrid method takes beside the confidential values of a `scaled` model."""
    return {
        "X_local": scaled.X,
        "X_shared": scaled.others.get(SHARED),
        "clusters": rows.clusters,
        "groups": rows.groups,
        "X_groups": scaled.others.get(GROUPS),
        "pieces": rows.pieces,
        "X_pieces": None if rows.pieces is None else _crossed_with(PIECES, scaled),
    }


def _crossed_with(word: str, scaled: ModelMatrices) -> Real:
    """What is crossed with pieces or groups: the constant, and the terms that say so."""
    constant = scaled.X[:, :1]
    return np.hstack([constant, scaled.others.get(word, constant[:, :0])])


def safe_clusters(model: ModelMatrices, rows: Rows, merge: Merge | None) -> Rows:
    """Rows whose clusters, and pieces of clusters, leave residuals to draw.

    Small pieces are merged within clusters and small clusters within groups, or they are refused.
    """
    clusters, scaled = rows.clusters, model.without_weights
    if clusters is None:
        return rows
    if rows.pieces is not None:
        cells = np.unique(clusters * (rows.pieces.max() + 1) + rows.pieces, return_inverse=True)[1]
        find = partial(unsafe_clusters, _crossed_with(PIECES, scaled), None)
        rows = replace(rows, pieces=_safe_labels("pieces", cells, clusters, find, merge))

    def unsafe(labels: Whole) -> UnsafeClusters:
        return unsafe_clusters(**hybrid_arguments(scaled, replace(rows, clusters=labels)))

    rows = replace(rows, clusters=_safe_labels("clusters", clusters, rows.groups, unsafe, merge))
    _refuse_cells_within(scaled, rows)
    return rows


def _safe_labels(
    role: str,
    labels: Whole,
    within: Whole | None,
    unsafe: Callable[[Whole], UnsafeClusters],
    merge: Merge | None,
) -> Whole:
    if merge:
        within = np.zeros(len(labels), dtype=np.int64) if within is None else within
        labels = merged_labels(labels, within, lambda each: unsafe(each).names)
    found = unsafe(labels)
    where = role if len(found.names) else "records of leverage 1"
    refuse([Unsafe(where, np.flatnonzero(found.rows))] if found else [], len(labels), 0)
    return labels


def _refuse_cells_within(scaled: ModelMatrices, rows: Rows) -> None:
    """Refuse small cells within clusters, pieces and groups, for what is crossed with these."""
    n = len(scaled.Y)
    levels_of = [(rows.clusters, scaled.X)]
    levels_of += [(getattr(rows, w), _crossed_with(w, scaled)) for w in (PIECES, GROUPS)]
    own = hybrid_model(n, **hybrid_arguments(scaled, rows))
    if _is_known_between(own.levels(own.blocks)):
        levels_of.append((rows.clusters, scaled.all_columns))
    for labels, X in levels_of:
        if labels is not None:
            own = hybrid_model(n, X, clusters=labels)
            Q = own.levels(own.blocks).local[-1].Q
            basis = np.empty(Q.shape[::-1])
            basis[own.blocks.order] = Q.T
            refuse(unsafe_cells_within(scaled, labels, basis), n, 0)


def _fit_all_columns(model: ModelMatrices) -> RegressionFit:
    # Crossed with nothing: what is crossed with clusters is looked at by `safe_clusters`.
    scaled = model.without_weights
    return fit(scaled.Y, scaled.all_columns)


@dataclass(frozen=True)
class UnsafeClusters:
    """What would come out as it went in, or mirrored."""

    names: Array  # labels of the clusters with too few residual degrees of freedom, `degrees` each
    degrees: Whole
    rows: Mask  # for each row whether it lies in such a cluster or has leverage one

    def __bool__(self) -> bool:
        """Whether there is anything unsafe."""
        return bool(self.rows.any())


def unsafe_clusters(X_local: Any, X_shared: Any, clusters: Any, **crossed: Any) -> UnsafeClusters:
    """Clusters with fewer than two residual degrees of freedom, and rows of leverage one.

    The arguments are those of `hybrid`, with groups and pieces and what is crossed with them. It
    does not look at the confidential variables.
    """
    given = (clusters, X_local, X_shared, *crossed.values())
    n = len(next(values for values in given if values is not None))
    own = hybrid_model(n, X_local, X_shared, clusters, **crossed)
    found = own.levels(own.blocks)
    degrees = found.local_degrees
    if found.within is not None:
        # The rank of X_2 that would be lost without a cluster depends on that cluster alone.
        basis = np.concatenate([level.Q for level in found.above])
        sizes = np.linalg.eigvalsh(products_within(found.blocks.clusters, basis))
        degrees = degrees - np.asarray((sizes >= ONE).sum(axis=1))
    leverage = found.leverage
    if found.within is not None and _is_known_between(found):
        degrees = np.minimum(degrees, found.local_degrees - found.within.ranks)
        leverage = np.maximum(leverage, replace(found, above=[found.within]).leverage)
    unsafe = degrees < LEAST_FREEDOM
    rows = np.empty(n, dtype=np.bool_)
    in_unsafe = np.repeat(unsafe, np.diff(own.blocks.clusters))
    rows[own.blocks.order] = in_unsafe | (leverage >= ONE)
    return UnsafeClusters(own.blocks.names[unsafe], degrees[unsafe], rows)


def _is_known_between(found: HybridBases) -> bool:
    # What X_B would explain within clusters has too few directions to be drawn anew: then E_3 comes
    # out as it went in, or mirrored, and counts as preserved.
    if found.within is None:
        return False
    return bool(found.within.ranks.sum() - found.rank_above < LEAST_FREEDOM)


def unsafe_sets(model: ModelMatrices, basis: Real) -> list[Unsafe]:
    """Sets of rows with too few residual degrees of freedom: cells, supports, single rows."""
    leverage = np.einsum("ij,ij->i", basis, basis)
    found = []
    for crossing in model.crossings:
        codes, where = cells_of(crossing, model.columns), f"cells of {' × '.join(crossing)}"
        found += [Unsafe(where, s, crossing) for s in _unsafe(codes, basis, leverage)]
    for name, codes in _supports(model):
        where = f"records that alone determine the effect of {name}"
        found += [Unsafe(where, s) for s in _unsafe(codes, basis, leverage)]
    # Last, and only where no set explains them: a user can merge cells, but not single rows.
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
    # As for components: below this share residuals are taken for dependent and none are drawn.
    fixed = np.linalg.norm(residuals, axis=0) <= DEPENDENT_RESIDUALS * spread
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


def unsafe_cells_within(model: ModelMatrices, labels: Whole, basis: Real) -> list[Unsafe]:
    """The same for cells within clusters; `basis` spans what is preserved within each cluster."""
    leverage = np.einsum("ij,ij->i", basis, basis)
    found = []
    for crossing in (*model.crossings, *_binary_columns(model)):
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


def _binary_columns(model: ModelMatrices) -> Iterator[tuple[str, ...]]:
    # A column of two numbers is a factor in all but name.
    for name, column in model.columns.items():
        if isinstance(column, np.ndarray):
            others = column[column != column[0]]
            if len(others) and (others == others[0]).all():
                yield (name,)


def _values(column: Column) -> Real | Whole:
    return column.codes if isinstance(column, Factor) else column


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


def merged_labels(labels: Whole, within: Whole, find_small: Callable[[Whole], Whole]) -> Whole:
    """Labels, numbered from 0, of which the small ones are one within each of some sets."""
    while len(small := find_small(labels)):
        before = len(np.unique(labels))
        is_small = np.isin(labels, small)
        for part in np.unique(within[is_small]):
            here = within == part
            chosen = np.unique(labels[is_small & here])
            others, sizes = np.unique(labels[here & ~is_small], return_counts=True)
            # One that stays alone would be as small as before, so the smallest other goes with it.
            if len(chosen) == 1 and len(others):
                chosen = np.append(chosen, others[np.argmin(sizes)])
            labels = np.where(here & np.isin(labels, chosen), chosen[0], labels)
        labels = np.unique(labels, return_inverse=True)[1].astype(np.int64)
        if len(np.unique(labels)) == before:
            break  # one label is left in each set that is still too small; it will be refused
    return labels


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
