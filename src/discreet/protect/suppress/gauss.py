"""Secondary suppression by elimination: no sensitive cell follows from published ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Index
from discreet.design.base import Design
from discreet.errors import InfeasibleError
from discreet.protect.suppress.pattern import Pattern
from discreet.protect.suppress.rows import chosen_rows
from discreet.protect.suppress.singletons import lone_columns, owners, told_sums
from discreet.solve.linear.elimination import Choice, Conflict, Selection, select
from discreet.solve.linear.elimination_kernels import NONE
from discreet.tables.magnitude import NOBODY

if TYPE_CHECKING:
    from scipy.sparse import csc_array

_ROUNDS = 100


@dataclass(frozen=True, eq=False)
class Plan:
    """What may be published of a table.

    Attributes:
      must: Positions of cells that are published in any case.
      order: Positions of the others that may be, most important first.
      zeros_are_public: Whether every empty published cell is published, as an empty one.
      widths_rise: Whether an interval for which there is no room below may lie above instead.
    """

    must: Index
    order: Index
    zeros_are_public: bool
    widths_rise: bool = False

    @property
    def publishable(self) -> Index:
        """Positions of all cells that may be published; those that are in any case come first."""
        return np.concatenate([self.must, self.order])


def suppress_by_gauss(pattern: Pattern, plan: Plan, *, singletons: bool = True) -> Pattern:
    """The pattern with secondary suppressions; nothing sensitive is spanned by published cells.

    Args:
      pattern: Sensitive cells; other states are not looked at.
      plan: What may be published, by priority. Cells in neither list stay suppressed.
      singletons: Whether lone contributors must not learn sensitive cells either.

    Raises:
      InfeasibleError: Cells that must be published give a sensitive one away.
    """
    model = _Model(pattern, plan, singletons)
    for _ in range(_ROUNDS):
        found = select(model.choice())
        if found.conflict is not None and model.has_every_row:
            raise _infeasible(pattern, plan, model, found.conflict)
        if found.conflict is not None:
            model = _Model(pattern, plan, singletons, every_row=True)
        elif not model.protect_told(found):
            return pattern.showing(plan.publishable[~found.rejected])
    raise InfeasibleError(
        "someone alone in several cells can still combine them after "
        f"{_ROUNDS} rounds of protection. Use singletons=False, or publish fewer tables."
    )


class _Model:
    """The columns of a selection, and the sums that turned out to be telling."""

    def __init__(
        self, pattern: Pattern, plan: Plan, singletons: bool, *, every_row: bool = False
    ) -> None:
        known = chosen_rows(pattern, zeros_are_public=plan.zeros_are_public, every_row=every_row)
        self.has_every_row = every_row or len(known.inner) == pattern.design.n_inner
        self.X = known.columns
        self.plan = plan
        self.primary = np.flatnonzero(pattern.primary)
        self.protected = self._sensitive(pattern, self.X)
        self.owner = np.full(self.protected.shape[1], NOBODY)
        self.lone, self.attacker = self.X[:, :0], np.empty(0, np.int64)
        if singletons:
            lone = lone_columns(pattern, known, whole_cells=plan.zeros_are_public)
            self.lone, self.attacker = lone.columns, lone.attacker
            everywhere = pattern.design.matrix().astype(np.int64).tocsc()
            self.owner = owners(pattern, self._sensitive(pattern, everywhere))

    def _sensitive(self, pattern: Pattern, columns: csc_array) -> csc_array:
        """Columns of the primary cells and of the sensitive differences."""
        return _joined([columns[:, self.primary], columns @ pattern.difference_signs()])

    def choice(self) -> Choice:
        """The selection to be made."""
        candidates = self.X[:, self.plan.publishable]
        return Choice(
            candidates, self.protected, self.owner, self.lone, self.attacker, len(self.plan.must)
        )

    def protect_told(self, chosen: Selection) -> bool:
        """Protect the sums that tell a primary to someone who knows several cells, if any do."""
        found = []
        for p, coefficients, scale in told_sums(
            chosen.protected, chosen.lone, self.owner, self.attacker
        ):
            column = scale * self.protected[:, [p]]
            for j, coefficient in coefficients.items():
                column = column - coefficient * self.lone[:, [j]]
            found.append(column)
        if found:
            self.protected = _joined([self.protected, *found])
            self.owner = np.concatenate([self.owner, np.full(len(found), NOBODY)])
        return bool(found)


def _joined(columns: list[csc_array]) -> csc_array:
    from scipy.sparse import csc_array, hstack

    joined = csc_array(hstack(columns, format="csc"))
    joined.eliminate_zeros()
    return joined


def _infeasible(pattern: Pattern, plan: Plan, model: _Model, why: Conflict) -> InfeasibleError:
    design = pattern.design
    if why.protected < len(model.primary):
        what = f"sensitive cell {name_of(design, int(model.primary[why.protected]))}"
    else:
        what = "a sensitive difference of cells"
    if why.candidate == NONE:
        return InfeasibleError(
            f"{what} follows from what everybody or a lone contributor knows, whatever is "
            "suppressed. Make the table coarser, or let empty cells be suppressed (zeros=True)."
        )
    cell = name_of(design, int(plan.must[why.candidate]))
    return InfeasibleError(
        f"{what} cannot be protected: it follows, for everybody or for a lone contributor, once "
        f"cell {cell} is published with the other cells that must be. Take it out of forced= or "
        "frozen=, or let empty cells be suppressed (zeros=True)."
    )


def name_of(design: Design, position: int) -> str:
    """A published cell in words."""
    codes = design.cell(position) if design.axes else {"cell": str(position)}
    return ", ".join(f"{name}={code}" for name, code in codes.items()) or "the total"
