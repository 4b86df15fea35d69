"""How far the noise of one table is from balanced, count by count."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from discreet.errors import DataError
from discreet.noise.lookup import whole_counts

if TYPE_CHECKING:
    import pyarrow

    from discreet.noise.matrix import TransitionMatrix


def realised_bias(
    matrix: TransitionMatrix, counts: npt.ArrayLike, noise: npt.ArrayLike
) -> pyarrow.Table:
    r"""Mean deviation of the cells of each true count, beside what the design lets expect.

    Zero-mean noise is balanced over all keys, not in the table at hand: with `n` cells at a count
    the realised mean has standard deviation :math:`\sqrt{V/n}`.

    Confidential: the result is a function of true counts.

    Returns:
      Columns count, cells, bias (realised mean deviation), mean and sd (of that mean, by design).

    See Giessing & Höhne (2011), section 4.
    """
    import pyarrow as pa

    n, u = whole_counts(counts).ravel(), whole_counts(noise).ravel()
    if n.shape != u.shape:
        raise DataError(f"there are {n.size} counts but {u.size} deviations.")
    levels, place, cells = np.unique(n, return_inverse=True, return_counts=True)
    law, v = matrix.law[matrix.row_of(levels)], matrix.deviations
    mean = law @ v
    return pa.table(
        {
            "count": levels,
            "cells": cells,
            "bias": np.bincount(place, weights=u, minlength=len(levels)) / cells,
            "mean": mean,
            "sd": np.sqrt((law @ v**2 - mean**2) / cells),
        }
    )
