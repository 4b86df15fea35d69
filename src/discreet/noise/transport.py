r"""Rounding a real matrix to whole numbers while its row and column sums hold.

The integer points near a matrix `x` with whole row sums form a transportation polytope,

.. math:: \lfloor x\rfloor \le n \le \lceil x\rceil,\quad \sum_j n_{ij} = r_i,\quad
          \lfloor\textstyle\sum_i x_{ij}\rfloor \le \sum_i n_{ij}
          \le \lceil\textstyle\sum_i x_{ij}\rceil,

which holds `x` itself and whose vertices are whole, so a linear program finds one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.arrays import Real, Whole
from discreet.errors import DataError, DesignError, NotConvergedError

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
