"""What a data set gives the public side: variables, and protected cubes of their crossings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from discreet.arrays import Index
from discreet.design.axis import LEAVES, OUTSIDE, Axis, Level
from discreet.design.formula import Term, margins, words
from discreet.errors import ParameterError
from discreet.release.cube import Cube, CubeEntry, outline

if TYPE_CHECKING:
    from discreet.serve.data.price import Price
    from discreet.tables.statement import Statement

Mode = Literal["release-once", "on-the-fly"]
"""Every table is a sum of one protected inner table, or each is protected when it is asked for."""


@dataclass(frozen=True, eq=False)
class Detail:
    """A variable in the detail a table shows: every level, or one.

    Attributes:
      name: As margins name it, `region` or `region[province]`.
      label: What a reader is shown beside the variable; empty where there is nothing to choose.
      levels: The levels that are published.
      has_total: Whether categories have a total; periods have none.
    """

    name: str
    label: str
    levels: tuple[Level, ...]
    has_total: bool = True

    @property
    def cells(self) -> int:
        """Cells along the variable, the total included."""
        return sum(len(level) for level in self.levels) + self.has_total


@dataclass(frozen=True, eq=False)
class OfferedVariable:
    """A variable that may be put into a table.

    Attributes:
      axis: Its codes, levels and labels.
      details: The details on offer, the one that is offered first in front.
      title: Its name for readers, as it stands inside a sentence; the axis's name when empty.
    """

    axis: Axis
    details: tuple[Detail, ...]
    title: str = ""

    @property
    def name(self) -> str:
        """The variable's name."""
        return self.axis.name

    @property
    def label(self) -> str:
        """The variable's name for readers."""
        text = self.label_inside
        return text[:1].upper() + text[1:]

    @property
    def label_inside(self) -> str:
        """The same inside a sentence, in upper and lower case as it was given."""
        return self.title or words(self.axis.name)

    @property
    def is_time(self) -> bool:
        """Whether the categories are periods, over which nothing is summed."""
        return not self.details[0].has_total

    def as_periods(self) -> OfferedVariable:
        """The variable as one of periods: each for itself, without a total.

        A coarser level would add periods up, so that only the finest one is on offer.
        """
        finest = [d for d in self.details if d.levels == (self.axis.finest,)]
        if not finest:
            raise ParameterError(
                f"time={self.name!r}: a level of it would add periods up. Offer the periods "
                f"themselves, {self.name!r}, in the margins or variables of the data set."
            )
        return replace(self, details=(replace(finest[0], label="", has_total=False),))

    @cached_property
    def smallest(self) -> Detail:
        """The detail with the fewest cells."""
        return min(self.details, key=lambda detail: detail.cells)

    def entries(self, detail: Detail) -> tuple[CubeEntry, ...]:
        """The total, where there is one, and the codes of a detail, in reading order."""
        return self._outlines[detail.name]

    def labels_of(self, codes: Iterable[str]) -> list[str]:
        """Codes as readers see them."""
        return [self.axis.labels.get(code) or code for code in codes]

    @cached_property
    def _outlines(self) -> dict[str, tuple[CubeEntry, ...]]:
        outlines = {d: tuple(outline(self.axis, d.levels)) for d in self.details}
        return {d.name: all_[not d.has_total :] for d, all_ in outlines.items()}


@dataclass(frozen=True, eq=False)
class DetailedVariable:
    """A variable in one of the details on offer."""

    variable: OfferedVariable
    detail: Detail

    @property
    def name(self) -> str:
        """The variable's name."""
        return self.variable.name

    @property
    def label(self) -> str:
        """The variable and, where there is a choice, its detail."""
        return self.variable.label + self._detail_label

    @property
    def label_inside(self) -> str:
        """The same inside a sentence."""
        return self.variable.label_inside + self._detail_label

    @cached_property
    def entries(self) -> tuple[CubeEntry, ...]:
        """The total and the codes of the detail, in reading order."""
        return self.variable.entries(self.detail)

    def has(self, codes: Iterable[str]) -> bool:
        """Whether all these codes belong to the detail."""
        return {*codes} <= {entry.code for entry in self.entries}

    def leaves(self, codes: Iterable[str]) -> frozenset[int]:
        """The places of the finest categories that belong to some codes."""
        axis = self.variable.axis
        found: set[int] = set()
        for code in codes:
            members = axis.node_leaves.get(code)
            found |= {axis.leaf_position[code]} if members is None else {*members.tolist()}
        return frozenset(found)

    @cached_property
    def slots(self) -> Index:
        """For each of the finest categories the place of what tells it apart in this detail.

        That is itself, or the category of a single level; those that are left out share one place.
        """
        axis, (level, *others) = self.variable.axis, self.detail.levels
        if others or level.is_identity:
            return np.arange(len(axis))
        return np.where(level.group == OUTSIDE, len(level), level.group).astype(np.int64)

    @property
    def leaves_out(self) -> bool:
        """Whether some categories belong to no code of the detail, but to the total."""
        levels = self.detail.levels
        return len(levels) == 1 and bool((levels[0].group == OUTSIDE).any())

    @property
    def _detail_label(self) -> str:
        return f" ({self.detail.label})" if self.detail.label else ""


@dataclass(frozen=True)
class BudgetStatus:
    """What private tables may cost and have cost, as ε at the budget's δ; public.

    Attributes:
      spent: ε spent by all tables of the data set so far, in all its editions.
      limit: ε of the budget; `None` where the ledger has none.
      delta: δ of the budget.
      drawn: Tables of the universe that were drawn.
      tables: Tables of the universe.
    """

    spent: float
    limit: float | None
    delta: float
    drawn: int
    tables: int

    @property
    def text(self) -> str:
        """The budget in a sentence."""
        planned = f"{self.drawn} of {self.tables} planned tables were drawn"
        if self.limit is None:
            return f"Epsilon {self.spent:g} was spent; {planned}."
        return f"Epsilon {self.spent:g} of {self.limit:g} was spent; {planned}."


class Source(Protocol):
    """What pages and programs know of the data."""

    @property
    def variables(self) -> tuple[OfferedVariable, ...]:
        """The variables on offer, in their public order."""

    @property
    def statement(self) -> Statement:
        """What is done to every table."""

    @property
    def units(self) -> tuple[str, ...]:
        """What is published, the first by default."""

    @property
    def mode(self) -> Mode:
        """How tables come about."""

    @property
    def edition(self) -> str:
        """The edition of the records."""

    @property
    def made_on(self) -> str:
        """The day when figures were made, `2026-11-16`; empty where it is that of the question."""

    @property
    def budget(self) -> BudgetStatus | None:
        """What private tables may cost and have cost; nothing for other methods."""

    @property
    def is_current(self) -> bool:
        """Whether the files that tables are made of are those that were opened."""

    def cube(self, details: tuple[str, ...], unit: str) -> Cube:
        """The crossing of these details with its totals; details come in public order."""

    def price(self, asked: Sequence[DetailedVariable]) -> Price:
        """What the crossing costs, by public figures."""

    def has(self, details: tuple[str, ...], unit: str) -> bool:
        """Whether the crossing was made before, so that its price is not to be paid again."""


def by_detail(variables: Iterable[OfferedVariable]) -> dict[str, DetailedVariable]:
    """What can be asked for, by the name of the detail, `region` or `region[province]`."""
    return {d.name: DetailedVariable(v, d) for v in variables for d in v.details}


def coarsest(variable: OfferedVariable, codes: Iterable[str]) -> DetailedVariable:
    """The smallest detail that has these codes, or the largest where none has them all."""
    options = [
        DetailedVariable(variable, d) for d in sorted(variable.details, key=lambda d: d.cells)
    ]
    having = (asked for asked in options if asked.has(codes))
    return next(having, options[-1])


def at_detail(cube: Cube, asked: DetailedVariable) -> Cube:
    """The cube with the codes of one detail of a variable, as that detail lists them."""
    known = set(cube.axis(asked.name).codes)
    listed = {e.code: e for e in asked.entries if e.code in known}
    chosen = cube.select(asked.name, list(listed))
    return chosen.with_entries(asked.name, [listed[c] for c in chosen.axis(asked.name).codes])


def crossing(details: Sequence[str]) -> list[Term]:
    """The margins of a crossing: it, its lower margins and the total."""
    return margins(details, order=len(details))


def variables_on_offer(
    axes: Mapping[str, Axis], names: Sequence[str], titles: Mapping[str, str] | None = None
) -> tuple[OfferedVariable, ...]:
    """The variables that names such as `region` and `region[province]` put on offer.

    Args:
      axes: For each name the axis it belongs to.
      names: The names; `region` offers every level, `region[province]` that one alone.
      titles: Names for readers, by variable.
    """
    found: dict[str, Axis] = {}
    details: dict[str, dict[str, Detail]] = {}
    for name in dict.fromkeys(names):
        axis = axes[name]
        require_declared(axis)
        found.setdefault(axis.name, axis)
        details.setdefault(axis.name, {}).update(_details_of(axis, name))
    if not found:
        raise ParameterError("nothing is on offer; name variables in the recipe's margins.")
    given = titles or {}
    return tuple(
        OfferedVariable(axis, tuple(details[name].values()), given.get(name, ""))
        for name, axis in found.items()
    )


def _details_of(axis: Axis, name: str) -> dict[str, Detail]:
    """What a name puts on offer."""
    if name != axis.name:
        level = axis.level(name.removeprefix(f"{axis.name}[").removesuffix("]"))
        return {name: Detail(name, _level_label(axis, level), (level,))}
    if len(axis.levels) == 1:
        return {name: Detail(name, "", axis.levels)}
    found = {name: Detail(name, "every level", axis.levels)}
    for level in (*axis.levels[:-1], axis.finest):  # branches may end above the deepest level
        single = f"{axis.name}[{axis.short_name(level)}]"
        found[single] = Detail(single, _level_label(axis, level), (level,))
    return found


def _level_label(axis: Axis, level: Level) -> str:
    short = axis.short_name(level)
    if short in (LEAVES, axis.name):
        return "finest detail"
    return f"level {short}" if short.isdigit() else words(short)


def require_declared(axis: Axis) -> None:
    """Refuse a variable whose codes were found in the records."""
    if not axis.declared:
        raise ParameterError(
            f"the codes of {axis.name!r} were found in the records, so every visitor would see "
            "which codes occur. Declare them: draft a list with `discreet codes people.csv --out "
            "codes.toml`, review it, and serve with --codes codes.toml."
        )
