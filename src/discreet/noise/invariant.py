r"""Transition matrices that keep the expected frequencies of the states they act on.

For states with frequencies `t` and any transition matrix `P`,

.. math:: Q_{ks} = \frac{t_s P_{sk}}{\sum_r t_r P_{rk}},\qquad R = PQ,\qquad
          R^* = \alpha R + (1 - \alpha) I

satisfies :math:`t R^* = t`, and the expected flows :math:`\mathrm{diag}(t) R^*` are symmetric.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from discreet.arrays import Real
from discreet.errors import DataError, DesignError, InfeasibleError, ParameterError
from discreet.noise.lookup import whole_counts
from discreet.noise.matrix import TransitionMatrix
from discreet.parameters import within

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


_HALVINGS = 20


def no_small_cells(
    frequencies: npt.ArrayLike, q: float = 0.15, alpha: float = 0.40, first: float | None = None
) -> TransitionMatrix:
    r"""An almost invariant matrix that publishes no 1 and no 2.

    With frequencies :math:`V_1, V_2, \dots` of the counts 1, 2, … and expected flows
    :math:`o_j` from the joint state {1, 2, 3} to `j ≥ 4`, all of them charged to the threes:
    :math:`n_{33} = (1-\alpha)V_3`, :math:`n_{30} = \alpha V_3 - \sum_j o_j`, and with
    :math:`\beta = 3 n_{30}/(V_1+V_2)` a one becomes 3 with probability :math:`(1+\beta)/3`, a two
    with :math:`(2+\beta)/3`, otherwise 0.

    Promise: zeros stay; the expected number of cells at every count of four or more, the expected
    number of cells that are positive and below four before (zero or three after), and their
    expected sum are unchanged. Counts beyond the last frequency stay as they are.

    Args:
      frequencies: Number of cells with count 1, 2, 3, …
      q: Probability of a step to each neighbour in the starting matrix.
      alpha: Strength of the perturbation.
      first: Probability of leaving the joint state; when absent `q / 2`, halved until the flows
        can be shared out.

    Raises:
      InfeasibleError: The flows out of the joint state cannot be charged to the threes.

    See Giessing & Höhne (2011), Tables 2 and 3.
    """
    V = np.asarray(frequencies, dtype=float)
    if V.ndim != 1 or len(V) < 4 or np.any(V < 0) or not np.all(np.isfinite(V)):
        raise DataError("frequencies of the counts 1 to at least 4 are needed, none negative.")
    flows = _joint_flows(V, q, alpha, first)
    size = len(V)
    P = np.zeros((size + 2, size + 2))
    P[0, 0] = P[size + 1, size + 1] = 1.0
    P[1:4] = _split(V, alpha, flows[0, 1:], size + 2)
    for i in range(4, size + 1):
        P[i, 3 : size + 1] = flows[i - 3] / V[i - 1] if V[i - 1] else np.eye(size - 2)[i - 3]
    parameters = {"q": q, "alpha": alpha}
    return TransitionMatrix.from_targets(
        "invariant matrix without small cells", P, blocked=2, parameters=parameters
    )


def joint_frequencies(V: Real) -> Real:
    """Frequencies of the joint state of 1, 2 and 3, then of 4, 5 and so on."""
    return np.concatenate([[V[:3].sum()], V[3:]])


def _joint_flows(V: Real, q: float, alpha: float, first: float | None) -> Real:
    """Expected flows between the states {1, 2, 3}, 4, 5, … that can be shared out."""
    t = joint_frequencies(V)
    for leave in _candidates(q, first):
        flows = t[:, None] * two_stage(tridiagonal(len(t), q, leave), t, alpha)
        spare = alpha * V[2] - flows[0, 1:].sum()
        if spare < 0:
            continue
        if 3 * spare > V[0] + V[1]:
            raise InfeasibleError(
                f"the threes that must become zero ({spare:.4g} cells) cannot be balanced by "
                f"{V[0] + V[1]:g} ones and twos. Lower alpha."
            )
        return flows
    raise InfeasibleError(
        f"the flows out of counts below four exceed alpha times the {V[2]:g} threes that must "
        f"bear them. Lower q (now {q:g}){'' if first is None else ' or first'}."
    )


def _candidates(q: float, first: float | None) -> Iterator[float]:
    if first is not None:
        yield first
        return
    yield from (q / 2 ** (k + 1) for k in range(_HALVINGS))


def _split(V: Real, alpha: float, out: Real, size: int) -> Real:
    """The rows of the counts 1, 2 and 3."""
    rows = np.zeros((3, size))
    to_zero = alpha * V[2] - out.sum()
    small = V[0] + V[1]
    bias = 3 * to_zero / small if small else 0.0
    for k in (0, 1):
        rows[k, 3] = (k + 1 + bias) / 3
        rows[k, 0] = 1 - rows[k, 3]
    if V[2]:
        rows[2, 4 : 4 + len(out)] = out / V[2]
        rows[2, 0], rows[2, 3] = to_zero / V[2], 1 - alpha
    else:
        rows[2, 3] = 1.0
    return rows
