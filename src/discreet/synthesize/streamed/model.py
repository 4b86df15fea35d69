"""The model of streamed records: its columns, and first coefficients from the engine's moments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InfeasibleError
from discreet.microdata.microdata import Microdata
from discreet.synthesize.algebra.matrices import Matrix
from discreet.synthesize.streamed.terms import Term, products, terms_of

if TYPE_CHECKING:
    import pyarrow as pa

DEPENDENT = 1e-10
"""Squared sine between a column and those before it from which it depends on them: products
cannot tell smaller ones from rounding."""


@dataclass(frozen=True)
class Model:
    """Columns, and what the engine knows of them.

    Attributes:
      X: Terms of the model beside the constant.
      Y: Terms of the confidential variables.
      gram: Products of the constant and X.
      inverse: Inverse of `gram` on its independent columns, zero elsewhere.
      B: First coefficients of Y on the constant and X.
      rank: Rank of the constant and X together.
    """

    X: list[Term]
    Y: list[Term]
    gram: Matrix
    inverse: Matrix
    B: Matrix
    rank: int

    def design(self, batch: pa.RecordBatch) -> Matrix:
        """The constant and X for some rows."""
        ones = np.ones(len(batch))
        return np.column_stack([ones, *(term.values(batch) for term in self.X)])

    def confidential(self, batch: pa.RecordBatch) -> Matrix:
        """Centred and scaled Y for some rows."""
        return np.column_stack([term.values(batch) for term in self.Y])


def model_of(data: Microdata, confidential: Sequence[str], covariates: Sequence[str]) -> Model:
    """Ask the engine for all moments and solve for the coefficients."""
    X = terms_of(data, covariates, factors=True)
    Y = terms_of(data, confidential, factors=False)
    moments = products(data, [*X, *Y])
    m = len(X) + 1
    gram = moments[:m, :m]
    kept = _independent(gram)
    inverse = np.zeros((m, m))
    length = np.sqrt(np.diag(gram)[kept])
    scaled = gram[np.ix_(kept, kept)] / np.outer(length, length)
    inverse[np.ix_(kept, kept)] = np.linalg.inv(scaled) / np.outer(length, length)
    if gram[0, 0] < len(kept) + len(Y):
        msg = (
            f"{len(Y)} new score columns need n ≥ rank of X + {len(Y)} = {len(kept) + len(Y)} "
            f"rows, but there are n = {int(gram[0, 0])}. Use fewer columns, or more rows."
        )
        raise InfeasibleError(msg)
    return Model(X, Y, gram, inverse, inverse @ moments[:m, m:], len(kept))


def _independent(gram: Matrix) -> NDArray[np.intp]:
    """Columns that do not depend on those before them, by Cholesky steps on their products."""
    left, kept = gram.copy(), []
    for j in range(len(gram)):
        if left[j, j] > DEPENDENT * gram[j, j]:
            kept.append(j)
            left -= np.outer(left[:, j], left[j]) / left[j, j]
    return np.array(kept, dtype=np.intp)
