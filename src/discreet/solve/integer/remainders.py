"""Whole parts and what is left over: the choice that rounding has, held in whole numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.arrays import Array, Real, Whole
from discreet.design.base import Design
from discreet.errors import DataError

WHOLE = 1e-7  # values this near to a whole number are taken to be it
_TOO_LARGE = 2**62
_GRID = 2**40  # fractions are held as multiples of 1/_GRID, so that their sums are exact
_MOST_DOUBT = 0.25
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Remainders:
    r"""Inner cells as whole parts and remainders, :math:`y_j = q_j + r_j/m` with `0 <= r_j < m`.

    Sums of remainders are exact and as small as the number of cells, so that whether a sum is
    whole does not depend on how large it is.

    Attributes:
      whole: The whole parts `q`.
      over: The remainders `r`.
      unit: What makes a whole, `m`.
      doubt: How much of each remainder may be due to the rounding of real numbers; `None` where
        remainders are exact.
    """

    whole: Whole
    over: Whole
    unit: int
    doubt: Real | None = None

    @classmethod
    def of_counts(cls, y: Whole, base: int) -> Remainders:
        """Counts in multiples of a base."""
        if (y < 0).any() or (y >= _TOO_LARGE).any():
            raise DataError(
                "counts must lie in 0..2**62 to be rounded to multiples; found at least one that "
                "does not."
            )
        whole, over = np.divmod(y, base)
        return cls(whole, over, base)

    @classmethod
    def of_reals(cls, y: Array) -> Remainders:
        """Real numbers in multiples of one, their fractions on a fine grid."""
        whole, fraction = parts(y)
        over = np.clip(np.rint(fraction * _GRID), fraction > 0, _GRID - 1).astype(np.int64)
        return cls(whole, over, _GRID, (over > 0) + _EPS * _GRID * (whole + fraction))

    @property
    def fraction(self) -> Real:
        """What each inner cell is above its whole part."""
        return self.over / self.unit

    def sums(self, design: Design) -> tuple[Whole, Whole, Real]:
        """Published cells of the remainders: rounded down, rounded up, and as they are.

        All three are equal where a sum is whole, or may be.
        """
        total = design.aggregate(self.over)
        below, rest = np.divmod(total, self.unit)
        above = below + (rest > 0)
        if self.doubt is not None:
            doubt = WHOLE * self.unit + design.aggregate(self.doubt)
            doubt = np.minimum(doubt, _MOST_DOUBT * self.unit)
            below, above = (
                np.where(self.unit - rest <= doubt, above, below),
                np.where(rest <= doubt, below, above),
            )
        return below, above, np.where(below < above, total / self.unit, below)


def parts(y: Array) -> tuple[Whole, Real]:
    """Whole parts and fractions; values that are whole but for rounding errors are whole."""
    real = np.asarray(y, dtype=np.float64)
    if not np.isfinite(real).all() or (real < -WHOLE).any():
        raise DataError(
            "inner cells must be finite and not negative to be rounded to counts. "
            "Fit them without negative values first (`release.fit(dc.NonNegative())`)."
        )
    if (real >= _TOO_LARGE).any():
        raise DataError(
            f"inner cells must lie below 2**62 to be rounded to counts, got {real.max():g}."
        )
    nearest = np.rint(real)
    is_whole = np.abs(real - nearest) <= np.clip(2 * _EPS * real, WHOLE, _MOST_DOUBT)
    whole = np.where(is_whole, nearest, np.floor(real))
    return whole.astype(np.int64), np.where(is_whole, 0.0, real - whole)
