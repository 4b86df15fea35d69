r"""Drop/add-up-to-q: uniform noise whose reach grows with the count.

.. math:: q(i) = \min(c, \lceil s\,i\rceil),\qquad \Pr(u) = 1/(2q + 1),\quad u = -q,\dots,q
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from discreet.noise.checks import whole, within
from discreet.noise.matrix import TransitionMatrix


def drop_add(share: float = 0.01, cap: int = 7) -> TransitionMatrix:
    r"""Uniform noise up to a `share` of the count, rounded up, and never beyond `cap`.

    Promise: mean zero, variance :math:`q(q + 1)/3`, zeros stay. Not differential privacy: from any
    count above zero a share :math:`1/(2q+1)` of the outcomes rules out a neighbour.

    Args:
      share: The share `s` of the count, in (0, 1]; decimal fractions are taken exactly.
      cap: The largest move `c`.

    See Li & Krenzke (2016), Shlomo, Krenzke & Li (2019).
    """
    within("share", share, 1)
    cap = whole("cap", cap, 1)
    exact = Fraction(str(share))
    starts = [0, *(int((q - 1) / exact) + 1 for q in range(1, cap + 1))]
    reach = np.abs(np.arange(-cap, cap + 1))
    law = np.array([(reach <= q) / (2 * q + 1) for q in range(cap + 1)])
    return TransitionMatrix.from_law(
        "drop/add-up-to-q", law, starts=starts, parameters={"share": float(share), "cap": cap}
    )
