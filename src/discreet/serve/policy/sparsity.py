"""Which areas have enough people for the detail that is asked for, by protected figures.

No table is about a sparse area alone or adds it to others. What is hidden is so for presentation:
the total less all other areas tells it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from discreet.arrays import Mask
from discreet.release.cube import Cube, CubeAxis
from discreet.serve.policy.rule import Figures, Judged, Rule, finest, whole
from discreet.serve.question import Question
from discreet.serve.refusals import Refusal


@dataclass(frozen=True)
class Sparsity(Rule):
    """Areas in which too many cells are nearly empty are not shown; the others are.

    The cells are those of the crossing with the variables of all filters, whatever part of them is
    asked for. A filter or a group with such an area is refused.

    Attributes:
      area: The variable of areas.
      most: Largest share of an area's cells that may be nearly empty.
      below: What nearly empty means: protected counts below this.
    """

    area: str
    most: float
    below: float = 1.0

    def judge(self, question: Question, judged: Judged, figures: Figures) -> Judged:
        """Refuse sums over areas that are too sparse, or hide these and say how many are left."""
        full = whole(question, figures)
        if self.area not in full.names or len(full.names) < 2:
            return judged
        sparse = dict(zip(full.axis(self.area).codes, self._sparse(full).tolist(), strict=True))
        self._check_sums(question, full.axis(self.area), sparse)
        if self.area not in judged.cube.names or self.area in question.query.groups:
            return judged
        return self._without(judged, sparse)

    def _check_sums(self, question: Question, axis: CubeAxis, sparse: Mapping[str, bool]) -> None:
        """Refuse filters and groups with an area that is too sparse."""
        query = question.query
        sums = [query.where.get(self.area, ()), *query.groups.get(self.area, {}).values()]
        added = {code for codes in sums for code in codes}
        for entry in axis.entries:
            if entry.code in added and not entry.is_total and sparse[entry.code]:
                message = f"There are too few people in {entry.label} for this detail."
                raise Refusal("sparse", message, "Fewer or coarser variables, or larger areas.")

    def _without(self, judged: Judged, of_all: Mapping[str, bool]) -> Judged:
        """The table without the areas that are too sparse."""
        cube, axis = judged.cube, judged.cube.axis(self.area)
        sparse = np.array([of_all[code] for code in axis.codes])
        areas = np.array([not e.is_total for e in axis.entries])
        left, asked = int((areas & ~sparse).sum()), int(areas.sum())
        if asked and not left:
            message = f"In none of the {asked} areas are there enough people for this detail."
            raise Refusal("sparse", message, "Fewer or coarser variables, or larger areas.")
        if left == asked:
            return judged
        shape = [1] * len(cube.axes)
        shape[cube.names.index(self.area)] = len(axis)
        hidden = np.broadcast_to((sparse & areas).reshape(shape), cube.values.shape)
        note = f"{left:,} of {asked:,} areas available: the others have too few people for this "
        return judged.noting(note + "detail.").hiding(hidden)

    def _sparse(self, cube: Cube) -> Mask:
        """For each area whether too many of its cells are nearly empty."""
        moved = cube.arranged([self.area, *(n for n in cube.names if n != self.area)])
        values, possible = finest(moved, self.area)
        others = tuple(range(1, values.ndim))
        empty = (possible & (values < self.below)).sum(axis=others)
        return np.asarray(empty > self.most * np.maximum(possible.sum(axis=others), 1))
