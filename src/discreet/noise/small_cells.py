r"""Invariance together with "no small cells": counts of 1 and 2 are never published.

Counts 1, 2 and 3 form one state of the invariant matrix; the flows out of it are then shared out
among them so that only zeros and threes are published below four (Giessing & Höhne 2011,
section 3.2).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from discreet.arrays import Real
from discreet.errors import DataError, InfeasibleError
from discreet.noise.invariant import tridiagonal, two_stage
from discreet.noise.matrix import TransitionMatrix

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
