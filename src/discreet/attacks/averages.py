"""Averages: noise that is drawn apart is averaged over repeated releases and over sums.

Every published cell is also the sum of finer ones in each table that crosses further variables, and
the same table may have been released before. Least squares weigh all these estimates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from discreet.attacks.frame import Claims, Knowledge, PublicAttack
from discreet.errors import ParameterError
from discreet.solve.least_squares.least_squares import LeastSquares
from discreet.tables.protected import COUNT

_LARGEST = 500_000  # inner cells: a fit of seconds


@dataclass(frozen=True)
class Averages(PublicAttack):
    """Claims the mean of all that is known of each shown count, rounded.

    `knowledge.earlier` holds further releases of the same table. Without them, and where published
    cells add up, this takes the values as they stand.
    """

    name: ClassVar[str] = "averages"
    beside: ClassVar[Literal["alone"]] = "alone"
    remedy: ClassVar[str] = "release once: every table a sum of one inner table, never drawn again"

    def refusal(self, release: Any, knowledge: Knowledge) -> str:
        """Too large, or no counts."""
        if release.unit != COUNT:
            return "the values are no counts"
        return f"more than {_LARGEST:,} inner cells" if release.design.n_inner > _LARGEST else ""

    def __call__(self, release: Any, knowledge: Knowledge, *, rng: np.random.Generator) -> Claims:
        """Shown cells by their positions; nothing is drawn."""
        every = (*knowledge.earlier, release)
        if any(len(each.z) != len(release.z) for each in every):
            raise ParameterError("repeated releases must have the same cells to be averaged.")
        mean = np.mean([np.asarray(each.z, dtype=np.float64) for each in every], axis=0)
        fitted = LeastSquares()(release.design, mean, weights=release.fit_weights()).z
        shown, whole = np.flatnonzero(~release.hidden), np.maximum(np.rint(fitted), 0.0)
        sure = 1.0 - 2.0 * np.abs(fitted - whole)[shown]
        return Claims.ranked(shown.tolist(), whole[shown].tolist(), sure)
