"""The one door to the confidential side: a recipe goes in, a release comes out."""

from __future__ import annotations

import functools
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from discreet import registry
from discreet.design.axis import LEAVES, Axis, Level
from discreet.design.formula import Term, parse
from discreet.design.structured import StructuredDesign
from discreet.errors import DesignError, ParameterError

if TYPE_CHECKING:
    from discreet.design.release import Release
    from discreet.design.statement import Statement
    from discreet.microdata.microdata import Microdata
    from discreet.recipe import Recipe


@dataclass(frozen=True, eq=False)
class Detail:
    """A variable in the detail a table shows: every level, or one.

    Attributes:
      name: As margins name it, `region` or `region[province]`.
      label: What a reader is shown beside the variable; empty where there is nothing to choose.
      levels: The levels that are published.
    """

    name: str
    label: str
    levels: tuple[Level, ...]

    @property
    def cells(self) -> int:
        """Cells along the variable, the total included."""
        return sum(len(level) for level in self.levels) + 1


@dataclass(frozen=True, eq=False)
class Variable:
    """A variable that may be put into a table."""

    axis: Axis
    details: tuple[Detail, ...]

    @property
    def name(self) -> str:
        """The variable's name."""
        return self.axis.name

    @property
    def label(self) -> str:
        """The variable's name for readers."""
        return worded(self.axis.name)


class Source(Protocol):
    """What the pages know of the data."""

    @property
    def variables(self) -> Sequence[Variable]:
        """The variables on offer, in their public order."""

    @property
    def statement(self) -> Statement:
        """What is done to every table."""

    def release(self, margins: Sequence[Term]) -> Release:
        """The protected table of these margins."""


class RecipeSource:
    """Releases of one recipe for whatever margins are asked.

    Variables, levels and labels are read from releases too, so a source that starts is one that
    can answer. Releases are deterministic; the latest ones are kept.

    Args:
      recipe: How tables are protected. Its margins name what is on offer: `region` offers every
        level, `region[province]` that one alone. The method must give a cell the same value in
        every table: other noise can be averaged away by asking for the cell in many of them.
      data: The records.
      keep: Number of releases to keep.
    """

    def __init__(self, recipe: Recipe, data: Microdata, keep: int = 64) -> None:
        _require_consistent(recipe)
        self._recipe, self._data = recipe, data
        self._lock = threading.Lock()
        self._kept = functools.lru_cache(maxsize=keep)(self._made)
        self.variables = self._offered()
        first = self.variables[0].details[0]
        self.statement = self.release([(first.name,)]).statement

    def release(self, margins: Sequence[Term]) -> Release:
        """The protected table of these margins."""
        with self._lock:  # an engine's connection answers one question at a time
            return self._kept(tuple(margins))

    def _made(self, margins: tuple[Term, ...]) -> Release:
        return self._recipe.of(margins).run(self._data)

    def _offered(self) -> tuple[Variable, ...]:
        axes: dict[str, Axis] = {}
        details: dict[str, dict[str, Detail]] = {}
        names = dict.fromkeys(name for term in parse(self._recipe.margins) for name in term)
        for name in names:
            design = self.release([(name,)]).design
            if not isinstance(design, StructuredDesign):
                raise DesignError("the table builder needs a design made of variables.")
            (axis,) = design.axes
            _require_declared(axis)
            levels = tuple(b.levels[0] for b in design.blocks if b.levels[0] is not None)
            axes.setdefault(axis.name, axis)
            details.setdefault(axis.name, {}).update(_details(axis, name, levels))
        if not axes:
            raise ParameterError("nothing is on offer; name variables in the recipe's margins.")
        return tuple(Variable(axis, tuple(details[name].values())) for name, axis in axes.items())


def worded(name: str) -> str:
    """A name for readers: `major_group` becomes `Major group`."""
    text = words(name)
    return text[:1].upper() + text[1:]


def words(name: str) -> str:
    """The words of a name: `major_group` becomes `major group`, `INDP_CAT` `INDP CAT`."""
    return " ".join(name.replace("_", " ").split())


def _details(axis: Axis, name: str, levels: tuple[Level, ...]) -> dict[str, Detail]:
    """What a name in a recipe puts on offer."""
    if name != axis.name:
        level = levels[0]
        return {name: Detail(name, _level_label(axis, level), (level,))}
    if len(levels) == 1:
        return {name: Detail(name, "", levels)}
    every = Detail(name, "every level", levels)
    single = [*levels[:-1], axis.finest]  # branches may end above the deepest level
    return {d.name: d for d in (every, *(_at_level(axis, level) for level in single))}


def _at_level(axis: Axis, level: Level) -> Detail:
    name = f"{axis.name}[{axis.short_name(level)}]"
    return Detail(name, _level_label(axis, level), (level,))


def _level_label(axis: Axis, level: Level) -> str:
    short = axis.short_name(level)
    if short in (LEAVES, axis.name):
        return "finest detail"
    return f"level {short}" if short.isdigit() else words(short)


def _require_declared(axis: Axis) -> None:
    if not axis.declared:
        raise ParameterError(
            f"the codes of {axis.name!r} were found in the records, so every visitor would see "
            "which codes occur. Declare them: draft a list with `discreet codes people.csv --out "
            "codes.toml`, review it, and serve with --codes codes.toml."
        )


def _require_consistent(recipe: Recipe) -> None:
    method = registry.build("method", recipe.method.name, recipe.method.parameters)
    if method.source != "keys" or not method.claims.consistent:
        raise ParameterError(
            f"method {recipe.method.name!r} with these parameters gives a cell new noise in every "
            "table, so a visitor could average it away. The table builder needs a method that "
            "takes its noise from cell keys, with margins='own': 'cell-key' does."
        )
