"""Every tolerance and size of synthesis, with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from discreet.arrays import Real

DEPENDENT_X = 1e-12
"""Share of a column of X below which it depends on the columns before it: rounding alone, since a
column that is left out is no longer preserved."""
DEPENDENT_RESIDUALS = 1e-7
"""The same for residuals, where leaving out a share s changes products by s² alone."""
ZERO = 1e-12
"""Residuals of at most this share of their variable are rounding, and are set to zero."""
SAFE_PIVOT = 1e-6
"""Squared sine between a column and those before it from which the Cholesky route is trusted."""
ORTHONORMAL = 1e-13
"""Largest deviation of products from the identity at which the second division is left out."""
ORTHOGONAL = 1e-8
"""Largest deviation of a given rotation from orthogonality."""
MARGIN = 1e-7
"""The largest multiplier of other residuals is made smaller by this share, so that the root of what
is left stays well defined."""
ROUNDING = 1e-12
"""Singular and eigenvalues this near to a limit are at the limit, on a scale where they are one."""
PIVOT = 1e-14
"""Pivots of a Cholesky root up to here are zero, on the same scale."""
ESTIMABLE = 1e-8
"""New rows may leave the space of the original ones by this share of their length."""
ONE = 1 - 1e-9
"""Leverages and squared singular values from here on are one."""
LEAST_FREEDOM = 2
"""Residual degrees of freedom that a set of rows needs: with a single one, residuals can only
change their sign."""
NO_RESIDUAL = 1e-7
"""Residuals of at most this share of a column's spread are none."""
UNCHANGED = 1e-9
"""Values that move by at most this share of their column's spread are unchanged."""
EXACT = 1e-8
"""Relative difference up to which a predicate of a statement takes two moments for equal."""
SAME_ROWS = 1e-6
"""Error from which the rows of two passes cannot have been the same."""
ROWS = 1024
"""Rows handled at a time, so that a block of a few dozen columns stays in the processor's cache."""
SINGLE_THREAD = 2**18
"""Multiplications up to which BLAS does not divide a product among threads. Products of few columns
stay below it: dividing them costs more than the product itself, above all on a busy machine."""
SINGLE_THREAD_VECTOR = 2**13
"""The same for products with a vector."""
CLUSTERED_ROWS = 8192
"""Rows of clusters handled at a time; thirty columns of so many stay in the processor's cache."""
STREAMED_ROWS = 65_536
"""Rows read from an engine at a time."""
DRAWN_ROWS = 4096
"""Rows of a stream that are drawn together."""
LARGEST_MODEL = 2**30
"""Entries of a model matrix that are held at most, 8 GiB of them."""
LARGEST_DRAW = 500_000_000
"""Records that are drawn from a table at most."""


@dataclass(frozen=True)
class Synthesis:
    """Synthetic values in the place of the confidential ones.

    Attributes:
      Y: The synthetic values, n×k, rows and columns as in the original.
      details: What the method found out on the way, by name (e.g. `alpha`, `largest_alpha`,
        `rank_X`, `rank_residuals`). It is confidential.
    """

    Y: Real
    details: Mapping[str, Any] = field(default_factory=dict)
