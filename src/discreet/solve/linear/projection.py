r"""The part of a vector that equations say nothing about.

For equations :math:`B^\top v = 0` every vector is :math:`g = Bc + v`; `v` is the nearest point to
`g` that satisfies all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import NotConvergedError

Vector = NDArray[np.float64]

_PRECISION = 1e-15
_ACCEPTED = 1e-10
_MOST_STEPS = 100_000
_ROUNDS = 3


def free_part(equations: Any, vectors: Vector) -> Vector:
    """Project vectors on the solutions of homogeneous equations.

    Cost: some hundred products with the equations, by least squares on columns of unit length; the
    remainder is projected again, which brings it down to rounding errors.

    Args:
      equations: Cells × equations, sparse.
      vectors: One vector, or several as columns.
    """
    if vectors.ndim > 1:
        return np.stack([free_part(equations, each) for each in vectors.T], axis=1)
    if not equations.shape[1] or not len(vectors):
        return vectors.astype(np.float64)
    scaled = _unit_columns(equations)
    free = vectors.astype(np.float64)
    size = float(np.linalg.norm(free)) or 1.0
    for _ in range(_ROUNDS):
        free = free - scaled @ _combination(scaled, free)
        if np.abs(scaled.T @ free).max() <= _ACCEPTED * size / 100:
            break
    worst = float(np.abs(scaled.T @ free).max()) / size
    if worst > _ACCEPTED:
        raise NotConvergedError(
            f"a projection on what the published cells leave open stopped at {worst:.1e} of its "
            f"size, more than {_ACCEPTED:.0e}."
        )
    return free


def combination(equations: Any, target: Vector) -> Vector:
    """Coefficients with which equations come nearest to a target, the smallest ones."""
    lengths = _lengths(equations)
    return _combination(_unit_columns(equations), target) / lengths


def _combination(scaled: Any, target: Vector) -> Vector:
    from scipy.sparse.linalg import lsmr

    found: Vector = lsmr(
        scaled, target, atol=_PRECISION, btol=_PRECISION, conlim=0, maxiter=_MOST_STEPS
    )[0]
    return found


def _unit_columns(equations: Any) -> Any:
    from scipy import sparse

    return (equations @ sparse.diags_array(1 / _lengths(equations))).tocsr()


def _lengths(equations: Any) -> Vector:
    lengths: Vector = np.sqrt(np.asarray(equations.multiply(equations).sum(axis=0)).ravel())
    return lengths
