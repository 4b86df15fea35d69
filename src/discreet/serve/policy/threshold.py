"""Small figures that are not shown: a rule of presentation, since totals may tell them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.serve.policy.rule import Figures, Judged, Limit
from discreet.serve.question import Question


@dataclass(frozen=True)
class Threshold(Limit):
    """Protected figures below a threshold, zero excepted, are not shown."""

    def judge(self, question: Question, judged: Judged, figures: Figures) -> Judged:
        """Hide small figures."""
        cube = judged.cube
        small = cube.shown & (cube.values != 0) & (np.abs(cube.values) < self.limit)
        if not small.any():
            return judged
        return judged.noting(self.said("Figures below {} are not shown.")).hiding(small)
