r"""Published counts that have lost all their inner cells get one back.

A Poisson loss is infinite where a positive count has an empty margin. Its dual value would rise by
a little in every step until an inner cell pays; here it rises at once, to where the largest slope
of its cells is zero, and that inner cell takes the value that goes with it, :math:`wz/(w + u)`.
"""

from __future__ import annotations

import numpy as np

from discreet.arrays import Mask, Real
from discreet.design.incidence import Incidence


def fill_empty_margins(
    members: Incidence,
    is_empty: Mask,
    counts: Real,
    weights: Real,
    y: Real,
    u: Real,
    slopes: Real,
) -> None:
    """Change `y`, `u` and `slopes` in place, going through the published cells block by block.

    Args:
      members: Published cells of the inner cells.
      is_empty: Positive published counts without an inner cell, and "no cell" at the end.
      counts: Weights times published values, with the same end.
      weights: Weights, with the same end.
      y: Inner cells.
      u: Dual values, with the same end as the weights.
      slopes: The slopes `Xu`.
    """
    for block in range(len(members.cells) + len(members.nested)):
        row = members.row(block)
        inside = np.flatnonzero(is_empty[row])
        if not len(inside):
            continue
        inside = inside[np.lexsort((-slopes[inside], row[inside]))]
        k, first, place = np.unique(row[inside], return_index=True, return_inverse=True)
        steepest = inside[first]
        still_empty = np.bincount(place, weights=y[inside]) <= 0
        raised = np.where(still_empty, np.maximum(-slopes[steepest], 0.0), 0.0)
        u[k] += raised
        slopes[inside] += raised[place]
        k = k[still_empty]
        y[steepest[still_empty]] = counts[k] / (weights[k] + u[k])
