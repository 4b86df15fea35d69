r"""The part of a vector that equations say nothing about.

For equations :math:`B^\top v = 0` every vector is :math:`g = Bc + v`; `v` is the nearest point to
`g` that satisfies all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.arrays import Real
from discreet.errors import NotConvergedError
from discreet.solve.linear.schedule import PROJECTION


def free_part(equations: Any, vectors: Real) -> Real:
    """Project vectors, as columns, on the solutions of homogeneous equations.

    Cost: some hundred products with the equations, by least squares on columns of unit length; the
    remainder is projected again, which brings it down to rounding errors.
    """
    if not equations.shape[1] or not vectors.size:
        return vectors.astype(np.float64)
    scaled = _unit_columns(equations)[0]
    return np.stack([_projected(scaled, each) for each in vectors.T], axis=1)


def _projected(scaled: Any, vector: Real) -> Real:
    free = vector.astype(np.float64)
    size = float(np.linalg.norm(free)) or 1.0
    for _ in range(PROJECTION.rounds):
        free = free - scaled @ _combination(scaled, free)
        worst = float(np.abs(scaled.T @ free).max()) / size
        if worst <= PROJECTION.accepted / 100:
            break
    if worst > PROJECTION.accepted:
        raise NotConvergedError(
            f"a projection on what the published cells leave open stopped at {worst:.1e} of its "
            f"size, more than {PROJECTION.accepted:.0e}."
        )
    return free


def combination(equations: Any, target: Real) -> Real:
    """Coefficients with which equations come nearest to a target, the smallest ones."""
    scaled, lengths = _unit_columns(equations)
    return _combination(scaled, target) / lengths


def _combination(scaled: Any, target: Real) -> Real:
    from scipy.sparse.linalg import lsmr

    tight, most = PROJECTION.precision, PROJECTION.most_steps
    found: Real = lsmr(scaled, target, atol=tight, btol=tight, conlim=0, maxiter=most)[0]
    return found


def _unit_columns(equations: Any) -> tuple[Any, Real]:
    """Columns of unit length, and the lengths they had."""
    from scipy import sparse

    lengths: Real = np.asarray(sparse.linalg.norm(equations, axis=0), dtype=np.float64)
    return (equations @ sparse.diags_array(1 / lengths)).tocsr(), lengths
