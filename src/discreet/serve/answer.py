"""A table that was asked for: the protected cube as the query wants it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from discreet.release.cube import Cube, Entry
from discreet.serve.data.source import DetailedVariable
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
    def groups(self) -> tuple[str, ...]:
        """The visitor's groups with what they add up, each as a text: `Not old: 0-14, 15-64`."""
        return tuple(
            f"{label}: {', '.join(asked.variable.labels_of(codes))}"
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
    shown = cube.arranged([asked.name for asked in question.shown])
    return shown.with_labels([asked.label for asked in question.shown])


def _restricted(cube: Cube, asked: DetailedVariable, codes: Sequence[str]) -> Cube:
    """A variable with the codes within a population; its total is their sum."""
    entries, within = cube.axis(asked.name).entries, asked.leaves(codes)
    kept = [e.code for e in entries if not e.is_total and within >= asked.leaves([e.code])]
    first = next((e for e in entries if e.is_total), Entry("total", "Total", 0, is_sum=True))
    inside, total = cube.picked(asked.name, kept), cube.summed(asked.name, codes)
    return inside.with_slice(asked.name, 0, first, total)


def _picked(cube: Cube, name: str, codes: Sequence[str]) -> Cube:
    """The chosen codes with the total, which shares need."""
    axis = cube.axis(name)
    total = [] if axis.total is None else [axis.entries[axis.total].code]
    known = [code for code in codes if code in axis.codes]
    return cube.picked(name, [*total, *known])
