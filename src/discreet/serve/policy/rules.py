"""What a rule of a policy is, and the rules on names, sizes, groups and small figures.

A rule looks at a question, then at protected figures, never at records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from discreet.arrays import Mask, Real
from discreet.release.cube import ABSENT, Cube, Entry
from discreet.serve.question import Question
from discreet.serve.refusals import Refusal
from discreet.tables.protected import CellStatus

Figures = Callable[[tuple[str, ...]], Cube]
"""Gives the protected crossing of some details, in public order."""
_REST = ""  # the code of what a level leaves out; no category has it


@dataclass(frozen=True, eq=False)
class JudgedTable:
    """A protected cube as far as rules have judged it, with notes for the reader."""

    cube: Cube
    notes: tuple[str, ...] = ()

    def noting(self, text: str) -> JudgedTable:
        """The same with one more note, each once."""
        return replace(self, notes=tuple(dict.fromkeys((*self.notes, text))))

    def hiding(self, where: Mask) -> JudgedTable:
        """The same with some cells hidden, and a note that totals may tell what they held."""
        cube = self.cube
        values = np.where(where, np.zeros((), cube.values.dtype), cube.values)
        status = np.where(where, np.int8(CellStatus.below_threshold), cube.status)
        hidden = replace(cube, values=values, status=status.astype(np.int8))
        return replace(self, cube=hidden).noting(
            "Figures are left out to keep the table readable. They are protected like all others, "
            "and some can be worked out from totals."
        )


class PolicyRule:
    """A rule of a policy; one that does not say otherwise lets everything pass."""

    def check(self, question: Question) -> None:
        """Refuse by what is public: names and sizes of the question."""

    def judge(self, question: Question, judged: JudgedTable, figures: Figures) -> JudgedTable:
        """Refuse, or hide cells, by the protected figures that would be shown."""
        return judged


@dataclass(frozen=True)
class LimitRule(PolicyRule):
    """A rule with one figure, which the public is told or not.

    Attributes:
      limit: The figure.
      is_public: Whether a refusal may name it.
    """

    limit: float
    is_public: bool = True

    def said(self, text: str) -> str:
        """A text about the limit with the figure in place of `{}`, or without it."""
        figure = f"{self.limit:,g}" if self.limit % 1 else f"{int(self.limit):,}"
        return text.format(figure) if self.is_public else text.format("a certain number of")

    def refusal(self, code: str, message: str, allowed: str) -> Refusal:
        """A refusal by this limit."""
        return Refusal(code, message, self.said(allowed))


def finest_cells(cube: Cube, but: str = "") -> tuple[Real, Mask]:
    """The values of the cells that are no sums of others, and which of them can occur.

    Args:
      cube: The cube.
      but: A variable of which every entry is taken, sums included.
    """
    places = [
        [k for k, e in enumerate(a.entries) if a.name == but or not (e.is_total or e.is_sum)]
        for a in cube.axes
    ]
    where = np.ix_(*places)
    status = cube.status[where]
    possible = (status != CellStatus.structural_zero) & (status != ABSENT)
    return np.where(possible, cube.values[where], 0).astype(np.float64), possible


def whole_crossing(question: Question, figures: Figures) -> Cube:
    """The crossing that a table is cut from, before filters, groups and choices of categories.

    A rule that looks at it says the same of a table and of all its slices, so that what is refused
    cannot be put together from slices. Where a level leaves categories out, they make one more
    entry together: everybody can subtract the level from the total.
    """
    cube = figures(question.details)
    for asked in question.in_public_order:
        if asked.leaves_out:
            cube = _with_rest(cube, asked.name)
    return cube


def has_few(cube: Cube, limit: float) -> bool:
    """Whether some figure, sums included, is below a limit but not zero."""
    return bool((cube.shown & (cube.values > 0) & (cube.values < limit)).any())


def _with_rest(cube: Cube, name: str) -> Cube:
    """The cube with one more entry of a variable: its total less all other entries."""
    axis, dimension = cube.axis(name), cube.names.index(name)
    total = cube.at(name, axis.entries[0].code)
    rest = replace(total, values=2 * total.values - cube.values.sum(axis=dimension))
    return cube.with_slice(name, len(axis), Entry(_REST, _REST, 1, is_sum=False), rest)


def total_people(cube: Cube) -> float:
    """The protected number of people in a table."""
    found = cube
    for axis in cube.axes:
        if axis.total is None:
            codes = [e.code for e in axis.entries if not e.is_sum]
            found = found.summed(axis.name, codes)
        else:
            found = found.at(axis.name, axis.entries[axis.total].code)
    return float(found.values)


@dataclass(frozen=True)
class MaxVariablesRule(LimitRule):
    """At most so many variables, filters included."""

    def check(self, question: Question) -> None:
        """Refuse a table of too many variables."""
        used = len(question.in_public_order)
        if used > self.limit:
            message = f"The table asks for {used} variables."
            allowed = "At most {} variables in one table, filters included."
            raise self.refusal("too_many_variables", message, allowed)


@dataclass(frozen=True)
class MaxCellsRule(LimitRule):
    """At most so many cells, counted on the full crossing before any record is."""

    def check(self, question: Question) -> None:
        """Refuse a table of too many cells."""
        if question.cells > self.limit:
            message = f"The table would have {question.cells:,} cells, totals included."
            raise self.refusal("too_many_cells", message, "At most {} cells.")


@dataclass(frozen=True)
class ForbiddenRule(PolicyRule):
    """Sets of variables of which no table has all, filters included."""

    sets: tuple[tuple[str, ...], ...]

    def check(self, question: Question) -> None:
        """Refuse a table that brings all variables of a set together."""
        used = {asked.name: asked.variable.label_inside for asked in question.in_public_order}
        for together in self.sets:
            if {*together} <= {*used}:
                named = " and ".join(used[name] for name in together)
                message = f"{named} must not be combined in one table."
                raise Refusal("forbidden_combination", message, "Tables without one of them.")


Groups = Literal["own", "fixed", "none"]


@dataclass(frozen=True)
class GroupingRule(PolicyRule):
    """Groups of the visitor's own, those that the office fixed, or none.

    Attributes:
      allowed: Which groups.
      fixed: By variable the fixed groups, label → codes.
    """

    allowed: Groups
    fixed: Mapping[str, Mapping[str, Sequence[str]]]

    def check(self, question: Question) -> None:
        """Refuse groups and populations of several categories that are not allowed."""
        if self.allowed == "own":
            return
        for variable, groups in question.query.groups.items():
            for label, codes in groups.items():
                self._require({*codes} == self._known(variable).get(label), variable)
        for variable, codes in question.query.where.items():
            is_known = {*codes} in self._known(variable).values()
            self._require(len(codes) == 1 or is_known, variable)

    def _known(self, variable: str) -> dict[str, set[str]]:
        """The groups of a variable that are allowed."""
        fixed = self.fixed.get(variable, {}) if self.allowed == "fixed" else {}
        return {label: {*codes} for label, codes in fixed.items()}

    def _require(self, is_allowed: bool, variable: str) -> None:
        if is_allowed:
            return
        if self.allowed == "none":
            message = "Categories cannot be added up to own groups or populations in this data set."
            raise Refusal("own_groups", message, "The categories and levels on offer.")
        listed = ", ".join(self._known(variable)) or "none"
        message = f"Groups of {variable!r} are fixed in this data set, in filters too."
        raise Refusal("own_groups", message, f"Groups: {listed}.")


@dataclass(frozen=True)
class ThresholdRule(LimitRule):
    """Protected figures below a threshold, zero excepted, are not shown."""

    def judge(self, question: Question, judged: JudgedTable, figures: Figures) -> JudgedTable:
        """Hide small figures."""
        cube = judged.cube
        small = cube.shown & (cube.values != 0) & (np.abs(cube.values) < self.limit)
        if not small.any():
            return judged
        return judged.noting(self.said("Figures below {} are not shown.")).hiding(small)
