r"""Truncated discrete Laplace noise.

.. math:: \Pr(u) \propto e^{-\varepsilon|u|/\Delta},\qquad u = -c,\dots,c
"""

from __future__ import annotations

import numpy as np

from discreet.arrays import Real
from discreet.noise.checks import positive, whole
from discreet.noise.matrix import TransitionMatrix


def laplace_law(epsilon: float, cap: int, sensitivity: float = 1.0) -> Real:
    """Probabilities of the noise `-cap..cap`, before negative results are set to zero.

    A draw from the untruncated law that is rejected and repeated beyond the cap has this law.
    """
    rate = positive("epsilon", epsilon) / positive("sensitivity", sensitivity)
    reach = np.abs(np.arange(-whole("cap", cap, 1), cap + 1))
    weights: Real = np.exp(-rate * reach)
    return np.asarray(weights / weights.sum())


def discrete_laplace(epsilon: float, cap: int, sensitivity: float = 1.0) -> TransitionMatrix:
    r"""Counts plus truncated discrete Laplace noise, negative results set to zero.

    Promise: largest move `cap`; neighbouring counts are
    :math:`(\varepsilon/\Delta, \delta)`-indistinguishable with :math:`\delta = \Pr(u = c)`, counts
    of zero included. Setting negatives to zero costs no privacy but biases counts below the cap
    upwards.

    Args:
      epsilon: The budget ε for all the cells that one person counts in.
      cap: Largest move.
      sensitivity: The number of perturbed cells that one person counts in, or their weight.

    See Rinott et al. (2018), Shlomo, Krenzke & Li (2019).
    """
    law = laplace_law(epsilon, cap, sensitivity)
    cap = int(cap)
    rows = np.zeros((cap + 1, 2 * cap + 1))
    for count in range(cap + 1):
        zero = cap - count
        rows[count, zero:] = law[zero:]
        rows[count, zero] = law[: zero + 1].sum()
    parameters = {"epsilon": float(epsilon), "cap": cap, "sensitivity": float(sensitivity)}
    return TransitionMatrix.from_law(
        "truncated discrete Laplace noise", rows, parameters=parameters
    )
