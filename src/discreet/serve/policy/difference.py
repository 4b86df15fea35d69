"""How far a visitor's population must lie from every other, by protected figures.

Two tables of populations that differ by few people tell about those few, whatever the noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.release.cube import Cube
from discreet.serve.data.source import Variable
from discreet.serve.policy.rule import Figures, Judged, Limit
from discreet.serve.question import Asked, Question


@dataclass(frozen=True)
class MinDifference(Limit):
    """A filter or group differs from every category that holds it, or lies in it, by so many."""

    def judge(self, question: Question, judged: Judged, figures: Figures) -> Judged:
        """Refuse populations that lie too near to another one."""
        for asked, codes in _chosen(question):
            sizes = _sizes(question, asked, figures)
            if any(gap < self.limit for gap in _gaps(asked.variable, codes, sizes)):
                message = f"The chosen part of {asked.label_inside} is nearly the same as another."
                allowed = "Populations that differ from every category by at least {} people."
                raise self.refusal("small_difference", message, allowed)
        return judged


def _chosen(question: Question) -> Iterator[tuple[Asked, Sequence[str]]]:
    """Every set of codes that a visitor added up."""
    for name, codes in question.query.where.items():
        yield question.asked(name), codes
    for name, groups in question.query.groups.items():
        for codes in groups.values():
            yield question.asked(name), codes


def _sizes(question: Question, asked: Asked, figures: Figures) -> Cube:
    """The protected people in every category of a variable, within the other filters."""
    where = {name: codes for name, codes in question.query.where.items() if name != asked.name}
    details = {name: question.asked(name).detail.name for name in where}
    details[asked.name] = max(asked.variable.details, key=lambda d: d.cells).name
    order = [v.name for v in question.on_offer]
    cube = figures(tuple(details[name] for name in sorted(details, key=order.index)))
    for name, codes in where.items():
        cube = cube.summed(name, codes)
    return cube


def _gaps(variable: Variable, codes: Sequence[str], sizes: Cube) -> Iterator[float]:
    """The differences to all categories that hold the codes, or lie within them."""
    axis = variable.axis
    entry = sizes.axis(variable.name)
    value = dict(zip(entry.codes, sizes.values.tolist(), strict=True))
    leaves = {**axis.node_leaves, axis.total: np.arange(len(axis))}
    mine = frozenset(i for code in codes for i in leaves[code].tolist())
    size = sum(value.get(code, 0) for code in codes)
    for code in entry.codes:
        other = frozenset(leaves[code].tolist())
        if other != mine and (other < mine or mine < other):
            yield abs(value[code] - size)
