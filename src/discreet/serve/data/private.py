"""Tables with a privacy budget: a declared universe of them, each drawn once and kept."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from discreet.design.formula import Term, parse
from discreet.errors import BudgetError, LedgerError, ParameterError
from discreet.release.cube import Cube
from discreet.serve.data.source import (
    BudgetStatus,
    DetailedVariable,
    Mode,
    OfferedVariable,
    by_detail,
)
from discreet.serve.query import Query
from discreet.serve.refusals import Refusal

if TYPE_CHECKING:
    from discreet.serve.data.cache import DiskCache
    from discreet.serve.data.live import RecipeTables
    from discreet.tables.statement import Statement


class PrivateSource:
    """A declared universe of private tables.

    Each table of the universe is drawn when it is first needed; its cost is entered in the ledger
    before, and the cube is kept on the disk, so that it is never drawn again. Questions are
    answered from the smallest table that has their variables: smaller tables cost nothing.

    Args:
      tables: Draws tables of a recipe whose margins are the universe.
      disk_cache: Where drawn tables are kept.
      titles: Names of variables for readers.
    """

    mode: Mode = "on-the-fly"

    def __init__(
        self, tables: RecipeTables, disk_cache: DiskCache, titles: Mapping[str, str] | None = None
    ) -> None:
        if tables.ledger is None:
            raise ParameterError(
                "private noise on the fly spends a budget, and nothing keeps it. Name the "
                "custodian's ledger: ledger = 'ledger.db' beside the records."
            )
        self._tables, self._disk_cache, self._ledger = tables, disk_cache, tables.ledger
        self.variables: tuple[OfferedVariable, ...] = tables.variables(titles)
        self._asked = by_detail(self.variables)
        terms = parse(tables.recipe.margins)
        # A table that another one contains costs nothing: it is read from the larger one.
        largest = [t for t in terms if t and not any({*t} < {*other} for other in terms)]
        in_order = list(self._asked).index
        self.universe: list[Term] = [tuple(sorted(term, key=in_order)) for term in largest]
        self.edition, self.units = tables.edition, (tables.unit,)
        self.statement: Statement = tables.statement(self.universe[0])

    @property
    def budget(self) -> BudgetStatus:
        """What tables may cost and have cost."""
        name = self._tables.name
        spent = self._ledger.spent(name)
        limit = self._ledger.budget_of(name) or self._ledger.budget  # kept with the first table
        drawn = sum(_key(term) in self._disk_cache for term in self.universe)
        if limit is None:
            return BudgetStatus(spent.epsilon_at(0.0), None, 0.0, drawn, len(self.universe))
        try:
            proved = spent.under(limit.relation.change).epsilon_at(limit.delta)
        except LedgerError:  # something was entered that has no finite cost under the budget
            proved = math.inf
        return BudgetStatus(proved, limit.epsilon, limit.delta, drawn, len(self.universe))

    def cube(self, details: tuple[str, ...], unit: str) -> Cube:
        """The crossing of these details, taken from a table of the universe."""
        cube = self._draw(self._find_covering(details))
        wanted = {asked.name: asked for asked in map(self._asked.__getitem__, details)}
        for axis in cube.axes:
            if axis.name in wanted:
                cube = _at_detail(cube, wanted[axis.name])
            else:
                variable = next(v for v in self.variables if v.name == axis.name)
                cube = cube.at(axis.name, variable.axis.total)
        return cube

    def _draw(self, term: Term) -> Cube:
        """A table of the universe, drawn once and for all: a second draw would cost again."""
        try:
            return self._disk_cache.get(_key(term), lambda: self._tables.cube(term))
        except BudgetError as error:
            allowed = "Tables that were drawn before."
            raise Refusal("budget_spent", error.public(), allowed, 403) from None

    def _find_covering(self, details: Sequence[str]) -> Term:
        """The smallest table of the universe that has these details."""
        asked = self._asked
        fitting = [
            term
            for term in self.universe
            if all(d in term or asked[d].name in term for d in details)
        ]
        if fitting:
            return min(fitting, key=lambda t: math.prod(asked[name].detail.cells for name in t))
        offers = [
            (
                " by ".join(asked[name].label_inside for name in term),
                Query(rows=term[:1], columns=term[1:]),
            )
            for term in self.universe
        ]
        listed = "; ".join(label for label, _ in offers)
        message = "This crossing is not among the tables that the privacy budget was planned for."
        allowed = f"Tables: {listed}; and parts of them."
        raise Refusal("not_planned", message, allowed, offers=offers)


def _key(term: Term) -> tuple[str, ...]:
    return ("drawn", *term)


def _at_detail(cube: Cube, asked: DetailedVariable) -> Cube:
    """The cube with the codes of one detail of a variable, as that detail lists them."""
    known = set(cube.axis(asked.name).codes)
    listed = {e.code: e for e in asked.entries if e.code in known}
    chosen = cube.select(asked.name, list(listed))
    return chosen.with_entries(asked.name, [listed[c] for c in chosen.axis(asked.name).codes])
