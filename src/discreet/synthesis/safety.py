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

Where squares and products of k columns are kept too, f directions are left to the others of a
cluster when one of them knows itself. They can turn as long as f is two or more. Values are whole
numbers of some unit, though, and among the turned ones only those on the lattice are possible:
their number grows with the power k(f − k − 1)/2 of the sum of squares, and is a handful whatever
the unit is unless f is at least k + 2. So a cluster needs k + 3 residual degrees of freedom.
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
from discreet.synthesis.large import (
    LEVERAGE,
    KeptSquares,
    breaking,
    cut_columns,
    cut_values,
    sensitive_sums,
    weighs_too_much,
)
from discreet.synthesis.model import Column, Factor, ModelMatrices, Rows, build, cells_of
from discreet.synthesis.request import Merge, SynthesisRequest

# Residual degrees of freedom that a set of rows needs: with a single one, residuals can only change
# their sign.
LEAST_FREEDOM = 2
# Members of a cluster who pool what they know of themselves.
INSIDERS = 1


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
    _refuse_large(np.flatnonzero(weighs_too_much(found.basis)))
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


def _refuse_large(rows: Whole) -> None:
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


def safe_clusters(request: SynthesisRequest, model: ModelMatrices, rows: Rows) -> Rows:
    """Rows whose clusters, and pieces of clusters, leave residuals to draw.

    Small pieces are merged within clusters, and small clusters within groups, as are those that a
    large unit dominates; or they are refused.
    """
    clusters, scaled, merge = rows.clusters, model.without_weights, request.merge
    if clusters is None:
        return rows
    if rows.pieces is not None:
        cells = np.unique(clusters * (rows.pieces.max() + 1) + rows.pieces, return_inverse=True)[1]
        find = partial(unsafe_clusters, _crossed_with(PIECES, scaled), None)
        rows = replace(rows, pieces=_safe_labels("pieces", cells, clusters, find, merge))

    def unsafe(labels: Whole) -> UnsafeClusters:
        given = hybrid_arguments(scaled, replace(rows, clusters=labels))
        return unsafe_clusters(**given, least=least_freedom(request), bound=LEVERAGE)

    def dominated(labels: Whole) -> Whole:
        return sensitive_sums(model, labels, request.rules, squares=request.keeps_squares)

    labels = _safe_labels("clusters", clusters, rows.groups, unsafe, merge, dominated)
    rows = replace(rows, clusters=labels)
    _refuse_cells_within(scaled, rows)
    _refuse_large(np.flatnonzero(unsafe(labels).rows))
    return rows


def _safe_labels(
    role: str,
    labels: Whole,
    within: Whole | None,
    unsafe: Callable[[Whole], UnsafeClusters],
    merge: Merge | None,
    dominated: Callable[[Whole], Whole] | None = None,
) -> Whole:
    if merge:
        within = np.zeros(len(labels), dtype=np.int64) if within is None else within

        def to_merge(each: Whole) -> Whole:
            found = unsafe(each)
            more = np.zeros(0, np.int64) if dominated is None else dominated(each)
            return np.concatenate([found.names, np.unique(each[found.rows]), more])

        labels = merged_labels(labels, within, to_merge)
    found = unsafe(labels)
    if len(found.names):
        small = np.flatnonzero(np.isin(labels, found.names))
        refuse([Unsafe(role, small)], found.least)
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
            refuse(unsafe_cells_within(scaled, labels, basis))


def _fit_all_columns(model: ModelMatrices) -> RegressionFit:
    # Crossed with nothing: what is crossed with clusters is looked at by `safe_clusters`.
    scaled = model.without_weights
    return fit(scaled.Y, scaled.all_columns)


@dataclass(frozen=True)
class UnsafeClusters:
    """What would come out as it went in, or mirrored."""

    names: Array  # labels of the clusters with too few residual degrees of freedom, `degrees` each
    degrees: Whole
    rows: Mask  # for each row whether it lies in such a cluster or weighs too much in its fit
    least: int = LEAST_FREEDOM  # how many they need

    def __bool__(self) -> bool:
        """Whether there is anything unsafe."""
        return bool(self.rows.any())


def unsafe_clusters(
    X_local: Any,
    X_shared: Any,
    clusters: Any,
    *,
    least: int = LEAST_FREEDOM,
    bound: float = ONE,
    **crossed: Any,
) -> UnsafeClusters:
    """Clusters with too few residual degrees of freedom, and rows of a leverage above a bound.

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
    unsafe = degrees < least
    rows = np.empty(n, dtype=np.bool_)
    in_unsafe = np.repeat(unsafe, np.diff(own.blocks.clusters))
    rows[own.blocks.order] = in_unsafe | (leverage > min(ONE, bound + (1 - ONE)))
    return UnsafeClusters(own.blocks.names[unsafe], degrees[unsafe], rows, least)


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
