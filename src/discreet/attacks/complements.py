"""Complements: hidden cells as what is left of a sum when the shown ones are taken away.

The tracker of query systems: a set that is not answered is padded with its complement. Least
squares take all such differences together, noisy ones too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from discreet.attacks.frame import About, Claims, Knowledge, PublicAttack
from discreet.solve.non_negative.non_negative import NonNegative
from discreet.tables.protected import COUNT

_LARGEST = 500_000  # inner cells: a fit of seconds


@dataclass(frozen=True)
class Complements(PublicAttack):
    """Claims the counts of hidden cells from a fit to the shown ones."""

    name: ClassVar[str] = "complements"
    about: ClassVar[About] = "hidden"
    remedy: ClassVar[str] = "hide further cells (secondary suppression), or add noise"

    def refusal(self, release: Any, knowledge: Knowledge) -> str:
        """Nothing is hidden, too large, or no counts."""
        if not release.hidden.any():
            return "no cell is hidden"
        if release.unit != COUNT:
            return "the values are no counts"
        return f"more than {_LARGEST:,} inner cells" if release.design.n_inner > _LARGEST else ""

    def __call__(self, release: Any, knowledge: Knowledge, *, rng: np.random.Generator) -> Claims:
        """Hidden cells by their positions; nothing is drawn."""
        hidden = np.flatnonzero(release.hidden)
        given = np.where(release.hidden, 0.0, np.asarray(release.z, dtype=np.float64))
        fitted = NonNegative()(release.design, given, weights=release.fit_weights()).z[hidden]
        whole = np.rint(fitted)
        sure = (1.0 - 2.0 * np.abs(fitted - whole)) / (1.0 + whole)
        return Claims.ranked(hidden.tolist(), whole.tolist(), sure)
