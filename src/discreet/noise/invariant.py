r"""Transition matrices that keep the expected frequencies of the states they act on.

For states with frequencies `t` and any transition matrix `P`,

.. math:: Q_{ks} = \frac{t_s P_{sk}}{\sum_r t_r P_{rk}},\qquad R = PQ,\qquad
          R^* = \alpha R + (1 - \alpha) I

satisfies :math:`t R^* = t`, and the expected flows :math:`\mathrm{diag}(t) R^*` are symmetric.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.arrays import Real
from discreet.errors import DataError, DesignError, ParameterError
from discreet.noise.checks import within
from discreet.noise.lookup import whole_counts
from discreet.noise.matrix import TransitionMatrix

_MAX_STATES = 1_000
_SINGULAR = 1e12


def two_stage(P: npt.ArrayLike, t: npt.ArrayLike, alpha: float = 1.0) -> Real:
    """The invariant matrix `R*` of `P` for the frequencies `t`.

    States that do not occur are left alone: their rows are those of the identity.
    Cost: one product of square matrices.

    See Willenborg & De Waal (2001), Shlomo & Young (2008).
    """
    P, t = np.asarray(P, dtype=float), np.asarray(t, dtype=float)
    _check(P, t, alpha)
    reached = t @ P
    share = np.divide(1.0, reached, out=np.zeros_like(reached), where=reached > 0)
    Q = (t[:, None] * P * share).T
    R = np.where(t[:, None] > 0, P @ Q, np.eye(len(t)))
    return alpha * R + (1 - alpha) * np.eye(len(t))


def tridiagonal(size: int, q: float, first: float | None = None) -> Real:
    """A starting matrix that moves to each neighbour with probability `q`.

    The two end states have one neighbour; the first leaves with probability `first`, or `q`.
    """
    if size < 2 or not 0 < q <= 0.5 or not 0 <= (first or 0) <= 1:
        raise ParameterError(f"need two states and q in (0, 0.5], got size={size}, q={q}.")
    P = np.diag(np.full(size - 1, q), 1) + np.diag(np.full(size - 1, q), -1)
    P[0, 1] = q if first is None else first
    return P + np.diag(1 - P.sum(axis=1))


def invariant_matrix(
    matrix: TransitionMatrix, counts: npt.ArrayLike, alpha: float = 1.0, *, zeros: bool = False
) -> TransitionMatrix:
    """`matrix` made invariant for the counts of a table.

    States are the counts 0 to the largest at hand; moves beyond it are replaced by no change.
    Counts that are larger still stay as they are.

    Promise: the expected number of cells at every count is unchanged. The matrix depends on the
    table, so the same cell may move otherwise in another table.

    Args:
      matrix: The matrix to start from.
      counts: The counts of the table.
      alpha: Strength; a share `1 - alpha` of the identity is mixed in.
      zeros: Whether zero is a state like the others. When not, zeros stay and no other count
        becomes zero; when it is, some zeros become positive to make up for new ones.
    """
    n = whole_counts(counts).ravel()
    if not n.size or n.min() < 0:
        raise DataError("an invariant matrix needs counts, all of them at least 0.")
    size = int(n.max()) + 1
    if size > _MAX_STATES:
        raise ParameterError(
            f"the table has counts up to {size - 1}, more than the {_MAX_STATES} states that an "
            "invariant matrix is made for. Use invariant_pram, which works on residues."
        )
    P = matrix.dense(size)
    P[np.diag_indices(size)] += 1 - P.sum(axis=1)
    R = np.zeros((size + 1, size + 1))
    t = np.bincount(n)
    t[0] *= zeros
    R[:size, :size] = two_stage(P, t, alpha)
    R[size, size] = 1.0
    parameters = {**matrix.parameters, "alpha": alpha, "zeros": zeros}
    return TransitionMatrix.from_targets(f"invariant {matrix.name}", R, parameters=parameters)


def moment_estimate(t_star: npt.ArrayLike, M: npt.ArrayLike) -> Real:
    r"""The unbiased estimate :math:`\hat t = t^* M^{-1}` of the frequencies before perturbation.

    Args:
      t_star: Frequencies of the states after perturbation.
      M: The transition matrix that was used, on the same states.

    See Shlomo, Krenzke & Li (2019), section 2.2.
    """
    M, t = np.asarray(M, dtype=float), np.asarray(t_star, dtype=float)
    if M.shape != (len(t), len(t)):
        raise DesignError(f"{len(t)} frequencies need a square matrix, got shape {M.shape}.")
    condition = float(np.linalg.cond(M))
    if not condition < _SINGULAR:
        raise ParameterError(
            f"the matrix cannot be inverted (condition number {condition:.2g}): two states have "
            "the same law, so their frequencies cannot be told apart. Merge such states."
        )
    return np.linalg.solve(M.T, t)


def _check(P: Real, t: Real, alpha: float) -> None:
    if P.shape != (len(t), len(t)):
        raise DesignError(f"{len(t)} frequencies need a square matrix, got shape {P.shape}.")
    within("alpha", alpha, 1)
    if np.any(t < 0) or not np.all(np.isfinite(t)):
        raise DataError("frequencies must be finite and at least 0.")
    if np.any(P < 0) or np.any(np.abs(P.sum(axis=1) - 1) > 1e-8):
        raise ParameterError("P must be non-negative with rows that sum to one.")
