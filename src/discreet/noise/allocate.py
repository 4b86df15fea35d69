"""Frequencies kept in the table at hand, not only on average.

Independent draws from an invariant matrix keep frequencies in expectation. Here the expected flows
are first rounded to whole numbers of cells with the right sums, and cells are then picked for them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.arrays import Real, Whole
from discreet.errors import DataError, DesignError, NotConvergedError, ParameterError
from discreet.noise.invariant import tridiagonal, two_stage
from discreet.noise.lookup import whole_counts


def controlled_flows(R: npt.ArrayLike, t: npt.ArrayLike) -> Whole:
    """Whole numbers of cells that go from state to state, near `diag(t) R`.

    Promise: row sums are `t`; every flow and every column sum is its expected value rounded down
    or up, so with an invariant `R` the frequencies stay exactly as they are.
    """
    frequencies = whole_counts(t)
    expected = frequencies[:, None] * np.asarray(R, dtype=float)
    return round_transport(expected, row_sums=frequencies)


def allocate(
    states: npt.ArrayLike,
    flows: npt.ArrayLike,
    *,
    keys: npt.ArrayLike | None = None,
    rng: np.random.Generator | None = None,
) -> Whole:
    """The new state of every cell, so that exactly `flows[i, j]` cells go from `i` to `j`.

    Args:
      states: State of every cell.
      flows: Whole numbers whose row sums are the frequencies of the states.
      keys: Cell keys; within a state, cells take their targets in the order of their keys.
      rng: A generator, instead of keys.
    """
    old, flow = whole_counts(states).ravel(), whole_counts(flows)
    if (keys is None) == (rng is None):
        raise ParameterError("give either keys or rng, to say which cells of a state move.")
    if not np.array_equal(np.bincount(old, minlength=len(flow)), flow.sum(axis=1)):
        raise DesignError("row sums of the flows must be the frequencies of the states.")
    order_by = np.asarray(keys).ravel() if rng is None else rng.permutation(old.size)
    if order_by.shape != old.shape:
        raise DataError(f"there are {old.size} cells but {order_by.size} keys.")
    targets = np.repeat(np.tile(np.arange(flow.shape[1]), len(flow)), flow.ravel())
    new = np.empty_like(old)
    new[np.lexsort((order_by, old))] = targets
    return new.reshape(np.shape(states))


def blurred_deviations(
    deviations: npt.ArrayLike,
    *,
    q: float = 0.15,
    alpha: float = 0.4,
    keys: npt.ArrayLike | None = None,
    rng: np.random.Generator | None = None,
) -> Whole:
    """Perturbed perturbations: a measure of cell quality that can be published as `|·|`.

    The deviations of a protected table go through an invariant matrix on those that occur, in
    increasing order; how often each deviation occurs is kept exactly.

    Args:
      deviations: Whole deviations of the cells.
      q: Probability of a move to each neighbour in the starting matrix.
      alpha: Strength.
      keys: Numbers that decide which cells of a state move.
      rng: A generator, instead of keys.

    See Giessing & Höhne (2011), section 7.
    """
    d = whole_counts(deviations)
    occurring, state = np.unique(d, return_inverse=True)
    if len(occurring) < 2:
        return d.copy()
    t = np.bincount(state.ravel())
    R = two_stage(tridiagonal(len(t), q), t, alpha)
    new = allocate(state.ravel(), controlled_flows(R, t), keys=keys, rng=rng)
    return np.asarray(occurring[new].reshape(d.shape))


_WHOLE = 1e-7


def round_transport(x: npt.ArrayLike, *, row_sums: npt.ArrayLike) -> Whole:
    r"""The nearest controlled rounding of a non-negative matrix.

    Promise: every entry and every column sum is rounded down or up (so it moves by less than
    one), row sums are exact; among all such matrices the sum of :math:`|n - x|` is least.
    Cost: one sparse linear program in the fractional entries.

    Args:
      x: A non-negative matrix.
      row_sums: Whole numbers, the row sums of `x`.
    """
    real, rows = np.asarray(x, dtype=float), np.asarray(row_sums)
    _check(real, rows)
    base = np.floor(real + _WHOLE)
    fraction = np.where(real - base > _WHOLE, real - base, 0.0)
    i, j = np.nonzero(fraction)
    up = _choose(fraction[i, j], i, j, rows - base.sum(axis=1), real.sum(axis=0) - base.sum(axis=0))
    result = base.astype(np.int64)
    result[i, j] += up
    moved = np.abs(result.sum(axis=0) - real.sum(axis=0))
    if not np.array_equal(result.sum(axis=1), rows) or np.any(moved >= 1):
        raise NotConvergedError("the linear program did not return whole numbers.")
    return result


def _choose(fraction: Real, i: Whole, j: Whole, rows: Real, columns: Real) -> Whole:
    """Which fractional entries are rounded up, by linear programming."""
    import scipy.sparse as sp
    from scipy.optimize import Bounds, LinearConstraint, milp

    if not len(fraction):
        return np.zeros(0, dtype=np.int64)
    ones, place = np.ones(len(fraction)), np.arange(len(fraction))
    per_row = sp.csr_array((ones, (i, place)), shape=(len(rows), len(place)))
    per_column = sp.csr_array((ones, (j, place)), shape=(len(columns), len(place)))
    low, high = np.floor(columns + _WHOLE), np.ceil(columns - _WHOLE)
    sums = LinearConstraint(
        sp.vstack([per_row, per_column]), np.concatenate([rows, low]), np.concatenate([rows, high])
    )
    found = milp(1 - 2 * fraction, constraints=sums, bounds=Bounds(0, 1))
    if found.x is None:
        raise NotConvergedError(f"the transport problem was not solved: {found.message}")
    return np.rint(np.asarray(found.x)).astype(np.int64)


def _check(x: Real, rows: npt.NDArray[np.generic]) -> None:
    if x.ndim != 2 or rows.shape != (len(x),):
        raise DesignError(f"a matrix of shape {x.shape} needs one sum per row, got {rows.shape}.")
    if rows.dtype.kind not in "iu":
        raise DataError(f"row sums must be whole numbers of an integer type, got {rows.dtype}.")
    if not np.all(np.isfinite(x)) or np.any(x < 0):
        raise DataError("the matrix must be finite and non-negative.")
    wrong = np.abs(x.sum(axis=1) - rows.astype(float))
    if np.any(wrong > 1e-6 * np.maximum(1.0, rows.astype(float))):
        worst = int(np.argmax(wrong))
        raise DesignError(
            f"row {worst} of the matrix sums to {x[worst].sum():g}, not to {rows[worst]}."
        )
