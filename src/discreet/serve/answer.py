"""A table that was asked for: the protected cube as the query wants it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from discreet.release.cube import Cube, CubeAxis
from discreet.release.outline import Entry
from discreet.serve.data.source import Asked
from discreet.serve.query import Query
from discreet.serve.question import Question

if TYPE_CHECKING:
    from discreet.serve.data.dataset import Dataset


@dataclass(frozen=True, eq=False)
class Answer:
    """**Public.** A table with what explains it.

    Attributes:
      dataset: The data set.
      question: What was asked, checked.
      cube: The figures: axes of rows, columns and layers in this order, each with its total first;
        filtered, grouped and picked, but neither folded nor turned into per cent.
      notes: What a reader should know of this table, in plain sentences.
    """

    dataset: Dataset
    question: Question
    cube: Cube
    notes: tuple[str, ...] = ()

    @property
    def query(self) -> Query:
        """What was asked."""
        return self.question.query

    @property
    def title(self) -> str:
        """What the table shows."""
        return self.question.title + "".join(f", {text}" for text in self.population)

    @property
    def population(self) -> tuple[str, ...]:
        """The filters, each as a text: `age: 0-14, 15-64`."""
        return tuple(
            f"{asked.label_inside}: {', '.join(_labels(asked, codes))}"
            for name, codes in sorted(self.query.where.items())
            for asked in [self.question.asked(name)]
        )

    @property
    def groups(self) -> tuple[str, ...]:
        """The visitor's groups with what they add up, each as a text: `Not old: 0-14, 15-64`."""
        return tuple(
            f"{label}: {', '.join(_labels(asked, codes))}"
            for asked in self.question.shown
            for label, codes in self.query.groups.get(asked.name, {}).items()
        )

    @property
    def rows(self) -> tuple[str, ...]:
        """The names of the cube's variables in rows."""
        return tuple(asked.name for asked in self.question.rows)

    @property
    def columns(self) -> tuple[str, ...]:
        """Those in columns."""
        return tuple(asked.name for asked in self.question.columns)

    @property
    def layers(self) -> tuple[str, ...]:
        """Those in layers."""
        return tuple(asked.name for asked in self.question.layers)

    @property
    def unit(self) -> str:
        """What is counted."""
        return self.question.unit

    @cached_property
    def shown(self) -> Cube:
        """The figures as the view asks for them: values, or per cent of row, column or table."""
        over = {
            "count": (),
            "row": self.columns,
            "column": self.rows,
            "total": (*self.rows, *self.columns),
        }[self.query.view.show]
        return self.cube if self.query.view.show == "count" else self.cube.shares(over)


def arranged(cube: Cube, question: Question) -> Cube:
    """The crossing filtered, grouped, picked and put in order: sums and choices of its cells."""
    query = question.query
    for asked in question.filters:
        cube = cube.summed(asked.name, query.where[asked.name])
    for asked in question.shown:
        if asked.name in query.where:
            cube = _restricted(cube, asked, query.where[asked.name])
        if asked.name in query.groups:
            cube = cube.grouped(asked.name, query.groups[asked.name])
        if asked.name in query.picked:
            cube = _picked(cube, asked.name, query.picked[asked.name])
    return _titled(cube.arranged([a.name for a in question.shown]), question.shown)


def _restricted(cube: Cube, asked: Asked, codes: Sequence[str]) -> Cube:
    """A variable with the codes within a population; its total is their sum."""
    axis, dimension = cube.axis(asked.name), cube.names.index(asked.name)
    within = asked.leaves(codes)
    kept = [e for e in axis.entries if not e.is_total and within >= asked.leaves([e.code])]
    inside, total = cube.picked(asked.name, [e.code for e in kept]), cube.summed(asked.name, codes)
    first = next((e for e in axis.entries if e.is_total), Entry("total", "Total", 0, is_sum=True))
    changed = replace(axis, entries=(first, *inside.axis(asked.name).entries))
    return replace(
        inside,
        axes=tuple(changed if a.name == asked.name else a for a in inside.axes),
        values=np.concatenate([np.expand_dims(total.values, dimension), inside.values], dimension),
        status=np.concatenate([np.expand_dims(total.status, dimension), inside.status], dimension),
    )


def _picked(cube: Cube, name: str, codes: Sequence[str]) -> Cube:
    """The chosen codes with the total, which shares need."""
    axis = cube.axis(name)
    total = [] if axis.total is None else [axis.entries[axis.total].code]
    known = [code for code in codes if code in axis.codes]
    return cube.picked(name, [*total, *known])


def _titled(cube: Cube, shown: Sequence[Asked]) -> Cube:
    """The axes with the labels that readers see."""
    axes = [
        CubeAxis(a.name, asked.label, a.entries) for a, asked in zip(cube.axes, shown, strict=True)
    ]
    return replace(cube, axes=tuple(axes))


def _labels(asked: Asked, codes: Sequence[str]) -> list[str]:
    label = {e.code: e.label for e in asked.entries}
    return [label.get(code, code) for code in codes]
