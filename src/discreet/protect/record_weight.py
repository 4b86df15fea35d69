"""By how much one record of a survey changes one weighted count."""

from __future__ import annotations

import math
from dataclasses import dataclass

from discreet.design.table import Table
from discreet.errors import DataError, ParameterError
from discreet.noise.checks import positive
from discreet.protect.weights import (
    LARGEST_RELATIVE_VARIANCE,
    Weighting,
    mean_weight_of,
    relative_variance,
)


@dataclass(frozen=True)
class RecordWeight:
    r"""The weight of a record in the sensitivity of a differentially private release.

    * counts: a record counts once;
    * ``"mean"``: noise on counts, carried over with the mean weight (Shlomo et al. 2019, eq. 3
      and 4), where weights vary little;
    * ``"scale"``: noise on weighted counts rounded to whole numbers, which one record changes by at
      most :math:`\lfloor w\rfloor + 1`, with `w` the bound (Rinott et al. 2018) or, without one,
      the mean weight where weights vary little.
    """

    weighting: Weighting | None = None
    mean_weight: float | None = None
    bound: float | None = None

    def __post_init__(self) -> None:
        if self.weighting == "cell":
            raise ParameterError(
                "weighting='cell' uses the true mean weight of each cell, which voids the "
                "guarantee. Use weighting='scale' with weight_bound=, or weighting='mean'."
            )
        if self.bound is not None:
            positive("weight_bound", self.bound)
            if self.weighting != "scale":
                raise ParameterError("weight_bound needs weighting='scale'; remove one of them.")

    @property
    def uses_mean(self) -> bool:
        """Whether records are treated as if all had the mean weight."""
        return self.weighting == "mean" or (self.weighting == "scale" and self.bound is None)

    def change(self, table: Table) -> int:
        """The largest change of a cell by one record."""
        if self.uses_mean:
            _check_even(table)
        if self.weighting != "scale":
            return 1
        mean = mean_weight_of(table) if self.mean_weight is None else self.mean_weight
        return math.floor(mean if self.bound is None else self.bound) + 1

    def caveat(self) -> str:
        """What the choice takes away from the guarantee."""
        if not self.uses_mean:
            return ""
        if self.weighting == "scale":
            return (
                "This holds for records of the mean weight or less; for a heavier one ε grows "
                "with its weight over the mean."
            )
        return (
            "This holds for the perturbed sample counts. The weighted counts made from them are "
            "covered only as far as all records have the mean weight."
        )


def _check_even(table: Table) -> None:
    spread = relative_variance(table)
    if spread is not None and spread >= LARGEST_RELATIVE_VARIANCE:
        raise DataError(
            f"the squared coefficient of variation of the weights is {spread:.3g}, too large to "
            f"treat them as equal (limit {LARGEST_RELATIVE_VARIANCE:g}). Use weighting='scale' "
            "with weight_bound=, the largest weight a record can have."
        )
