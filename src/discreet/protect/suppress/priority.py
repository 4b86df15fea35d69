"""Which cells are rather published than others, when some must be suppressed."""

from __future__ import annotations

import numpy as np

from discreet.arrays import Real
from discreet.protect.suppress.lines import lines
from discreet.protect.suppress.pattern import Pattern

_DETOUR = 2.0
"""A cell none of whose lines has a sensitive cell counts as this many times more expensive again.

Its suppression would need further ones in all its lines, and protect nothing there.
"""


def priority(pattern: Pattern, costs: Real) -> Real:
    """A number for each published cell: the larger, the sooner it is published.

    Costs come first; where they tie, cells with large neighbours do. Cells in lines that have a
    sensitive cell already are suppressed rather than others.
    """
    design = pattern.design
    near = np.asarray(design.aggregate(design.adjoint(costs)), dtype=np.float64)
    near /= max(float(near.max(initial=0.0)), 1.0)
    return (costs + 0.99 * _scale(costs) * near) * (1.0 + _DETOUR * (1.0 - _useful(pattern)))


def _scale(costs: Real) -> float:
    """The smallest difference between costs of whole numbers; a small part of others."""
    if (costs == np.rint(costs)).all():
        return 1.0
    return 1e-6 * float(np.abs(costs).max(initial=0.0))


def _useful(pattern: Pattern) -> Real:
    """The share of each cell's lines that have a sensitive cell."""
    n = len(pattern.z)
    needed, total = np.zeros(n), np.zeros(n)
    for line in lines(pattern.design):
        sensitive = np.zeros(n, dtype=bool)
        sensitive[line.parent[pattern.primary[line.child]]] = True
        needed[line.child] += sensitive[line.parent]
        total[line.child] += 1
    return np.divide(needed, total, out=np.ones(n), where=total > 0)
