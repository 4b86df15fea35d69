"""Refits: one inner table from everything that is published; and inner tables that are released."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from discreet.attacks.frame import About, Claims, Knowledge, PublicAttack
from discreet.errors import DiscreetError
from discreet.release.fitting import fit_cells
from discreet.release.uncertainty import likelihoods_of
from discreet.tables.protected import COUNT

_LARGEST = 500_000  # inner cells, for fits of a few seconds
_NAMES = {"non-negative": "least-squares"}
_LARGEST_OF = {"least-absolute": 20_000, "noise-likelihood": 1_500}
"""Smaller limits of fits by programs: a minute for more."""


@dataclass(frozen=True)
class InnerTable(PublicAttack):
    """Claims the people of the inner table that comes with a release, as they stand."""

    name: ClassVar[str] = "inner-table"
    about: ClassVar[About] = "inner"
    remedy: ClassVar[str] = "publish the tables alone, or coarser inner cells"

    def refusal(self, release: Any, knowledge: Knowledge) -> str:
        """No counts, or no inner table."""
        if release.unit != COUNT:
            return "the values are no counts"
        return "" if isinstance(release.y, np.ndarray) else "no inner table comes with the release"

    def __call__(self, release: Any, knowledge: Knowledge, *, rng: np.random.Generator) -> Claims:
        """Inner cells with people in them, by their positions; small counts are less sure."""
        y = np.rint(np.asarray(release.y, dtype=np.float64)).astype(np.int64)
        cells = np.flatnonzero(y > 0)
        return Claims.ranked(cells.tolist(), y[cells].tolist(), np.sqrt(y[cells]))


@dataclass(frozen=True)
class Refit(PublicAttack):
    """Claims the people of a fitted table, rounded; surer the nearer a fit is to a whole number.

    Args:
      fitter: By which fitter: `"non-negative"` (least squares), `"least-absolute"`, `"log-linear"`
        or `"noise-likelihood"`, which knows the law of the noise from the statement.
    """

    fitter: str = "non-negative"
    about: ClassVar[About] = "inner"
    remedy: ClassVar[str] = "more noise, fewer margins, or one released inner table"

    @property
    def name(self) -> str:
        """The attack's name in the registry."""
        return f"refit-{_NAMES.get(self.fitter, self.fitter)}"

    def refusal(self, release: Any, knowledge: Knowledge) -> str:
        """Too large, no counts, or noise whose law is not told."""
        most = _LARGEST_OF.get(self.fitter, _LARGEST)
        if release.unit != COUNT:
            return "the values are no counts"
        if release.design.n_inner > most:
            return f"more than {most:,} inner cells"
        if self.fitter == "noise-likelihood":
            try:
                likelihoods_of(release)
            except DiscreetError as error:
                return str(error).rstrip(".")
        return ""

    def __call__(self, release: Any, knowledge: Knowledge, *, rng: np.random.Generator) -> Claims:
        """Inner cells with people in them, by their positions; nothing is drawn."""
        if self.fitter == "log-linear":  # which has no answer to noise below zero
            release = replace(release, z=np.maximum(release.z, 0))
        y = np.asarray(fit_cells(release, self.fitter).y, dtype=np.float64)
        whole = np.rint(y)
        cells = np.flatnonzero(whole > 0)
        sure = 1.0 - 2.0 * np.abs(y - whole)[cells]
        return Claims.ranked(cells.tolist(), whole[cells].astype(int).tolist(), sure)
