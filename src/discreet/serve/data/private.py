"""Tables with a privacy budget: a declared universe of them, each drawn once and kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from discreet.design.formula import Term, parse
from discreet.errors import BudgetError, ParameterError
from discreet.release.cube import Cube
from discreet.serve.data.source import Budget, Detail, Mode, Variable
from discreet.serve.query import Query
from discreet.serve.refusals import Refusal

if TYPE_CHECKING:
    from discreet.design.statement import Statement
    from discreet.serve.data.live import Tables
    from discreet.serve.data.shelf import Shelf


class PrivateSource:
    """A declared universe of private tables.

    Each table of the universe is drawn when it is first needed; its cost is entered in the ledger
    before, and the cube is kept on the disk, so that it is never drawn again. Questions are
    answered from the smallest table that has their variables: smaller tables cost nothing.

    Args:
      tables: Draws tables of a recipe whose margins are the universe.
      shelf: Where drawn tables are kept.
      titles: Names of variables for readers.
    """

    mode: Mode = "on-the-fly"

    def __init__(
        self, tables: Tables, shelf: Shelf, titles: Mapping[str, str] | None = None
    ) -> None:
        if tables.ledger is None:
            raise ParameterError(
                "private noise on the fly spends a budget, and nothing keeps it. Name the "
                "custodian's ledger: ledger = 'ledger.db' beside the records."
            )
        self._tables, self._shelf, self._ledger = tables, shelf, tables.ledger
        self.variables: tuple[Variable, ...] = tables.offered(titles)
        self._detail: dict[str, tuple[Variable, Detail]] = {
            d.name: (v, d) for v in self.variables for d in v.details
        }
        self.universe = _in_public_order(_largest(parse(tables.recipe.margins)), self._detail)
        self.statement: Statement = tables.statement(self.universe[0])

    @property
    def edition(self) -> str:
        """The edition of the records."""
        return self._tables.edition

    @property
    def units(self) -> tuple[str, ...]:
        """What is published."""
        return (self._tables.unit,)

    @property
    def budget(self) -> Budget:
        """What tables may cost and have cost."""
        name = self._tables.name
        spent = self._ledger.spent(name)
        limit = self._ledger.budget_of(name) or self._ledger.budget  # kept with the first table
        delta = 0.0 if limit is None else limit.delta
        drawn = sum(self._key(term) in self._shelf for term in self.universe)
        limit = None if limit is None else limit.epsilon
        return Budget(spent.epsilon_at(delta), limit, delta, drawn, len(self.universe))

    def cube(self, details: tuple[str, ...], unit: str) -> Cube:
        """The crossing of these details, taken from a table of the universe."""
        term = self._covering(details)
        cube = self._drawn(term)
        wanted = dict(self._detail[name] for name in details)
        for axis in cube.axes:
            variable = next(v for v in self.variables if v.name == axis.name)
            if variable in wanted:
                cube = _at_detail(cube, variable, wanted[variable])
            else:
                cube = cube.at(axis.name, variable.axis.total)
        return cube

    def _drawn(self, term: Term) -> Cube:
        try:
            return self._shelf.get(self._key(term), lambda: self._tables.cube(term))
        except BudgetError as error:
            raise Refusal(
                "budget_spent", error.public(), "Tables that were drawn before.", 403
            ) from None

    def _key(self, term: Term) -> tuple[str, ...]:
        return ("drawn", *term)

    def _covering(self, details: Sequence[str]) -> Term:
        """The smallest table of the universe that has these details."""
        fitting = [term for term in self.universe if self._covers(term, details)]
        if fitting:
            return min(fitting, key=self._cells)
        listed = "; ".join(
            " by ".join(self._label(name) for name in term) for term in self.universe
        )
        message = "This crossing is not among the tables that the privacy budget was planned for."
        offers = [
            (
                " by ".join(self._label(name) for name in term),
                Query(rows=term[:1], columns=term[1:]),
            )
            for term in self.universe
        ]
        raise Refusal(
            "not_planned", message, f"Tables: {listed}; and parts of them.", offers=offers
        )

    def _covers(self, term: Term, details: Sequence[str]) -> bool:
        return all(d in term or self._detail[d][0].name in term for d in details)

    def _cells(self, term: Term) -> int:
        cells = 1
        for name in term:
            cells *= self._detail[name][1].cells
        return cells

    def _label(self, name: str) -> str:
        variable, detail = self._detail[name]
        return variable.label_inside + (f" ({detail.label})" if detail.label else "")


def _largest(terms: Sequence[Term]) -> list[Term]:
    """The terms that no other contains."""
    return [t for t in terms if t and not any(set(t) < set(other) for other in terms)]


def _in_public_order(terms: Sequence[Term], known: Mapping[str, Any]) -> list[Term]:
    place = {name: k for k, name in enumerate(known)}
    return [tuple(sorted(term, key=lambda name: place[name])) for term in terms]


def _at_detail(cube: Cube, variable: Variable, detail: Detail) -> Cube:
    """The cube with the codes of one detail of a variable, as that detail lists them."""
    known = set(cube.axis(variable.name).codes)
    entries = [e for e in variable.entries(detail) if e.code in known]
    chosen = cube.picked(variable.name, [e.code for e in entries])
    by_code = {e.code: e for e in entries}
    listed = tuple(by_code[code] for code in chosen.axis(variable.name).codes)
    axes = [replace(a, entries=listed) if a.name == variable.name else a for a in chosen.axes]
    return replace(chosen, axes=tuple(axes))
