"""Bounds: the counts that the law of the noise, signs and sums leave possible, by linear programs.

Patterns of values that only one true table can have given are found here: known reach, impossible
combinations, tables that do not add up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from discreet.assessment.audit.perturbed import audit_perturbed
from discreet.assessment.audit.ranges import is_perturbed, ranges_of
from discreet.attacks.frame import Claims, Knowledge, PublicAttack
from discreet.errors import ParameterError
from discreet.tables.protected import COUNT

_FOLLOWED = 3_000  # published cells up to which programs follow ranges: seconds, more take minutes
_INNER = 20_000  # inner cells up to which they do: a program takes a second there, grown by squares


@dataclass(frozen=True)
class CountBounds(PublicAttack):
    """Claims the middle of the possible counts of each cell; single ones are proven."""

    name: ClassVar[str] = "bounds"
    remedy: ClassVar[str] = "a larger reach of the noise (D), or margins that are sums (additive)"

    def refusal(self, release: Any, knowledge: Knowledge) -> str:
        """No perturbed counts, or noise without a bound."""
        if release.unit != COUNT or not is_perturbed(release):
            return "the values are no perturbed counts"
        try:
            told = ranges_of(release)
        except ParameterError as error:
            return str(error).rstrip(".")
        bounded = np.isfinite(told.high).any() or np.isfinite(told.inner_high).any()
        return "" if bounded else "nothing bounds the noise"

    def __call__(self, release: Any, knowledge: Knowledge, *, rng: np.random.Generator) -> Claims:
        """Cells by their positions; nothing is drawn."""
        design = release.design
        is_small = design.n_published <= _FOLLOWED and design.n_inner <= _INNER
        which = "primary" if is_small else "none"
        found = audit_perturbed(release, intervals=which, workers=1)
        width = found.high - found.low
        cells = np.flatnonzero(np.isfinite(width))
        middle = np.floor((found.low + found.high)[cells] / 2)
        # What the own value of a cell says is no finding: true zeros may be published as such.
        proven = (width[cells] == 0) & (found.alone.low < found.alone.high)[cells]
        sure = 1.0 / (1.0 + width[cells])
        return Claims.ranked(cells.tolist(), middle.tolist(), sure, proven=proven)
