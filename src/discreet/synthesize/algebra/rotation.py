"""Rotation of components for better interpretability."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.arrays import Real
from discreet.errors import NotConvergedError, ParameterError
from discreet.synthesize.algebra.decompose import Scores
from discreet.synthesize.algebra.matrices import as_matrix, lengths
from discreet.synthesize.tolerances import ORTHOGONAL


def rotated(old: Scores, rotation: Any) -> Scores:
    r"""The same residuals in other components: :math:`TW = (TU)(U^\top W)` with U orthogonal.

    Args:
      old: Scores and loadings of r components.
      rotation: An orthogonal r×r matrix, or `"varimax"`.
    """
    if isinstance(rotation, str) and rotation != "varimax":
        raise ParameterError(
            f"rotation must be 'varimax' or an orthogonal matrix, got {rotation!r}."
        )
    U = varimax(old.W.T) if isinstance(rotation, str) else as_matrix(rotation, "the rotation")
    r = old.rank
    if U.shape != (r, r) or np.abs(U.T @ U - np.eye(r)).max(initial=0.0) > ORTHOGONAL:
        raise ParameterError(
            f"the rotation must be an orthogonal matrix with {r} rows and columns, since there "
            f"are {r} components; got {U.shape[0]} rows and {U.shape[1]} columns."
        )
    U = _nearest_orthogonal(U)
    return Scores(old.T @ U, U.T @ old.W)


def varimax(L: Real, *, tolerance: float = 1e-12, max_steps: int = 10_000) -> Real:
    r"""The rotation U that makes the squared loadings :math:`LU` most unequal (Kaiser 1958).

    Variables count alike whatever their scale: each row of L is divided by its length first.
    """
    U = np.eye(L.shape[1])
    size = lengths(L.T)
    L = L[size > 0] / size[size > 0, None]
    if not len(L):
        return U
    reached = 0.0
    for _ in range(max_steps):
        A = L @ U
        gradient = L.T @ (A**3 - A * (A**2).mean(axis=0))
        U = _nearest_orthogonal(gradient)
        before, reached = reached, float(np.linalg.norm(gradient, "nuc"))
        if reached - before <= tolerance * reached:
            return U
    raise NotConvergedError(
        f"varimax did not settle in {max_steps} steps. Give a rotation matrix instead."
    )


def _nearest_orthogonal(A: Real) -> Real:
    left, _, right = np.linalg.svd(A)
    return np.asarray(left @ right)
