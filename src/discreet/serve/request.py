"""A table that is asked for: which variables in which detail, in rows or in columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from discreet.design.formula import Term, margins
from discreet.errors import suggest
from discreet.serve.refusals import Refusal
from discreet.serve.settings import Settings
from discreet.serve.source import Detail, Source, Variable, words


@dataclass(frozen=True, eq=False)
class Asked:
    """A variable in one of the details on offer."""

    variable: Variable
    detail: Detail

    @property
    def label(self) -> str:
        """The variable and, where there is a choice, its detail."""
        return self.variable.label + self._detail

    @property
    def label_inside(self) -> str:
        """The same inside a sentence, in upper and lower case as the variable's name."""
        return words(self.variable.name) + self._detail

    @property
    def _detail(self) -> str:
        return f" ({self.detail.label})" if self.detail.label else ""


@dataclass(frozen=True, eq=False)
class TableRequest:
    """Variables in rows and in columns, checked against what is public."""

    rows: tuple[Asked, ...]
    columns: tuple[Asked, ...]
    in_public_order: tuple[Asked, ...]

    @classmethod
    def checked(
        cls, source: Source, settings: Settings, rows: Sequence[str], columns: Sequence[str]
    ) -> TableRequest:
        """The request, or a refusal that says what would be allowed."""
        named = {d.name: Asked(v, d) for v in source.variables for d in v.details}
        asked = [[_known(named, name) for name in names if name] for names in (rows, columns)]
        both = asked[0] + asked[1]
        _check_number(both, settings)
        _check_once(both)
        _check_size(both, settings)
        order = {v.name: place for place, v in enumerate(source.variables)}
        ordered = sorted(both, key=lambda a: order[a.variable.name])
        return cls(tuple(asked[0]), tuple(asked[1]), tuple(ordered))

    @property
    def margins(self) -> list[Term]:
        """The crossing, its lower margins and the total, whatever the order of the request."""
        names = [a.detail.name for a in self.in_public_order]
        return margins(names, order=len(names))

    @property
    def title(self) -> str:
        """What the table shows, for its caption."""
        first, *others = (*self.rows, *self.columns)
        labels = [first.label, *(a.label_inside for a in others)]
        if len(labels) == 1:
            return labels[0]
        return f"{' and '.join(labels[:-1])} by {labels[-1]}"

    @property
    def query(self) -> str:
        """The request as a query string."""
        return _query(self.rows, self.columns)

    @property
    def turned_query(self) -> str:
        """The same table with rows and columns exchanged."""
        return _query(self.columns, self.rows)


def _query(rows: Sequence[Asked], columns: Sequence[Asked]) -> str:
    pairs = [("rows", a.detail.name) for a in rows] + [("columns", a.detail.name) for a in columns]
    return urlencode(pairs)


def _known(named: dict[str, Asked], name: str) -> Asked:
    if name not in named:
        message = f"There is no variable or level {name!r}. {suggest(name, list(named))}"
        raise Refusal("unknown_name", message, f"Variables and levels: {', '.join(named)}.")
    return named[name]


def _check_number(asked: Sequence[Asked], settings: Settings) -> None:
    allowed = f"Between 1 and {settings.max_variables} variables in one table."
    if not asked:
        raise Refusal("no_variables", "No variable was chosen.", allowed)
    if len(asked) > settings.max_variables:
        message = f"The table asks for {len(asked)} variables."
        raise Refusal("too_many_variables", message, allowed)


def _check_once(asked: Sequence[Asked]) -> None:
    names = [a.variable.name for a in asked]
    for name in names:
        if names.count(name) > 1:
            message = f"Variable {name!r} was chosen more than once."
            raise Refusal("repeated_variable", message, "Each variable at most once in a table.")


def _check_size(asked: Sequence[Asked], settings: Settings) -> None:
    """Cells are counted on the full crossing of the public code lists, before any record is."""
    cells = math.prod(a.detail.cells for a in asked)
    if cells > settings.max_cells:
        message = f"The table would have {cells:,} cells, subtotals and totals included."
        allowed = f"At most {settings.max_cells:,} cells. {_smaller(asked, settings)}"
        raise Refusal("too_many_cells", message, allowed)


def _smaller(asked: Sequence[Asked], settings: Settings) -> str:
    """The change of one detail that leaves the largest table within the limit."""
    cells = math.prod(a.detail.cells for a in asked)
    options = [
        (cells // a.detail.cells * detail.cells, f"{a.variable.label} ({detail.label})")
        for a in asked
        for detail in a.variable.details
    ]
    fitting = [option for option in options if option[0] <= settings.max_cells]
    if not fitting:
        return "Leave out a variable, or choose coarser levels."
    size, label = max(fitting)
    return f"With {label} it would have {size:,}."
