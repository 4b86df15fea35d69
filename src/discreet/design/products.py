"""Scalar products on one core.

Libraries of linear algebra share them among threads, which wait for the next one at full speed: a
second processor is busy all the time, and nothing ends sooner.
"""

from __future__ import annotations

import numpy as np

from discreet.arrays import Array


def dot(a: Array, b: Array) -> float:
    """The sum of the products of two vectors' entries."""
    return float(np.einsum("i,i->", a, b))
