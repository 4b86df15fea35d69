"""Secondary suppression by elimination: no sensitive cell follows from published ones.

Cells are published by priority, each unless some sensitive column would come to lie in the span of
published ones. What lone contributors know counts as published to them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from scipy.sparse import csc_array, hstack

from discreet.arrays import Mask, Real, Whole
from discreet.errors import InfeasibleError
from discreet.randomness import stream
from discreet.solve.linear.elimination import SpanChoice, SpanConflict, SpanSelection, select
from discreet.solve.linear.elimination_kernels import NONE
from discreet.suppress.attackers import lone_owners, owners_of_sums
from discreet.suppress.pattern import Pattern
from discreet.suppress.plan import PublicationPlan, cell_name
from discreet.suppress.sums import ChosenRows, chosen_rows
from discreet.tables.magnitude import NOBODY

# Each round protects the sums that told somebody something. A table in which that goes on for so
# long is refused rather than searched for ever.
_ROUNDS = 100


def suppress_by_gauss(
    pattern: Pattern, plan: PublicationPlan, *, singletons: bool = True
) -> Pattern:
    """The pattern with secondary suppressions; nothing sensitive is spanned by published cells.

    Args:
      pattern: Sensitive cells; other states are not looked at.
      plan: What may be published, by priority.
      singletons: Whether lone contributors must not learn sensitive cells either.

    Raises:
      InfeasibleError: Cells that must be published give a sensitive one away.
    """
    model = _Model(pattern, plan, singletons)
    for _ in range(_ROUNDS):
        found = select(model.choice())
        if found.conflict is not None and model.has_every_row:
            raise _infeasible(pattern, plan, model, found.conflict)
        # Fewer rows make more cells follow from others, so that a conflict on representatives may
        # be none on all rows.
        if found.conflict is not None:
            model = _Model(pattern, plan, singletons, every_row=True)
        elif not model.protect_telling_sums(found):
            return pattern.showing(plan.publishable[~found.rejected])
    raise InfeasibleError(
        "someone alone in several cells can still combine them after "
        f"{_ROUNDS} rounds of protection. Use singletons=False, or publish fewer tables."
    )


class _Model:
    """The columns of a selection, with the sums that turned out to tell somebody something."""

    def __init__(
        self, pattern: Pattern, plan: PublicationPlan, singletons: bool, *, every_row: bool = False
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
            self.lone, self.attacker = _lone_knowledge(
                pattern, known, whole_cells=plan.zeros_are_public
            )
            # Whether a cell is somebody's own is seen on all inner cells, not on chosen rows.
            everywhere = pattern.design.matrix().astype(np.int64).tocsc()
            self.owner = owners_of_sums(pattern, self._sensitive(pattern, everywhere))

    def _sensitive(self, pattern: Pattern, columns: csc_array) -> csc_array:
        """Columns of the primary cells and of the sensitive differences."""
        return _join([columns[:, self.primary], columns @ pattern.difference_signs()])

    def choice(self) -> SpanChoice:
        """The selection to be made."""
        columns, n_forced = self.X[:, self.plan.publishable], len(self.plan.must)
        return SpanChoice(columns, self.protected, self.owner, self.lone, self.attacker, n_forced)

    def protect_telling_sums(self, chosen: SpanSelection) -> bool:
        """Protect the sums that tell a primary to someone who knows several cells, if any do."""
        # Only at the end: which of a person's cells combine depends on all published cells, and
        # trying each candidate against each combination would cost a system for every step.
        found = []
        for p, coefficients, scale in _telling_sums(
            chosen.protected, chosen.lone, self.owner, self.attacker
        ):
            column = scale * self.protected[:, [p]]
            for j, coefficient in coefficients.items():
                column = column - coefficient * self.lone[:, [j]]
            found.append(column)
        if found:
            self.protected = _join([self.protected, *found])
            self.owner = np.concatenate([self.owner, np.full(len(found), NOBODY)])
        return bool(found)


def _join(columns: list[csc_array]) -> csc_array:
    joined = csc_array(hstack(columns, format="csc"))
    joined.eliminate_zeros()
    return joined


def _infeasible(
    pattern: Pattern, plan: PublicationPlan, model: _Model, why: SpanConflict
) -> InfeasibleError:
    design = pattern.design
    if why.protected < len(model.primary):
        what = f"sensitive cell {cell_name(design, int(model.primary[why.protected]))}"
    else:
        what = "a sensitive difference of cells"
    if why.candidate == NONE:
        return InfeasibleError(
            f"{what} follows from what everybody or a lone contributor knows, whatever is "
            "suppressed. Make the table coarser, or let empty cells be suppressed (zeros=True)."
        )
    cell = cell_name(design, int(plan.must[why.candidate]))
    return InfeasibleError(
        f"{what} cannot be protected: it follows, for everybody or for a lone contributor, once "
        f"cell {cell} is published with the other cells that must be. Take it out of forced= or "
        "frozen=, or let empty cells be suppressed (zeros=True)."
    )


def _lone_knowledge(
    pattern: Pattern, known: ChosenRows, *, whole_cells: bool
) -> tuple[csc_array, Whole]:
    """What lone contributors know, a column for each thing on the known rows, and who knows it.

    Where empty cells are public, whoever is alone in a published cell knows the whole cell;
    otherwise he knows his inner cells alone.
    """
    who = np.append(lone_owners(pattern), NOBODY)[known.inner]
    alone = np.flatnonzero(who != NOBODY)
    entries = (np.ones(len(alone), np.int64), alone, np.arange(len(alone) + 1))
    units = csc_array(entries, shape=(len(who), len(alone)))
    if not whole_cells:
        return units, who[alone]
    owner = owners_of_sums(pattern, pattern.design.matrix().astype(np.int64).tocsc())
    columns = known.columns
    # A cell whose rows are all lone ones follows from them already.
    lone_rows = columns.T @ (who != NOBODY).astype(np.int64)
    cells = np.flatnonzero((owner != NOBODY) & (np.diff(columns.indptr) > lone_rows))
    both = csc_array(hstack([units, columns[:, cells]], format="csc"))
    return both, np.concatenate([who[alone], owner[cells]])


_SPARE = 4  # random sums beyond the number of things that one person knows: no chance agreements
_NEAR = 1e-6  # squared distances of columns of length one; anything nearer is looked at exactly


def _telling_sums(
    primaries: csc_array, lone: csc_array, owner: Whole, attacker: Whole
) -> Iterator[tuple[int, dict[int, int], int]]:
    """Primaries that follow for somebody who knows several cells.

    Yields the primary, the coefficients of what he knows, and that of the primary; together they
    are a sum that the published cells give.

    Args:
      primaries: What is left of the primary columns once what published cells give is taken out.
      lone: What is left of the columns that one person knows.
      owner: Who each primary belongs to wholly.
      attacker: Who knows each lone column.
    """
    known = np.flatnonzero(np.diff(lone.indptr))
    who, times = np.unique(attacker[known], return_counts=True)
    # Exact systems for each person and primary would be many and long. A column that is a
    # combination of others stays one under random sums, so short sums rule out nearly all.
    width = int(times.max(initial=0)) + _SPARE
    shadows, of_lone = _shadows(primaries, width), _shadows(lone, width)
    for one in who[times > 1]:
        cells = known[attacker[known] == one]
        near = _in_span(of_lone[:, cells], shadows) & (np.diff(primaries.indptr) > 0)
        for p in np.flatnonzero(near & (owner != one)):
            found = _combination(lone[:, cells], primaries[:, [p]])
            if found is not None:
                coefficients, scale = found
                yield int(p), dict(zip(cells.tolist(), coefficients, strict=True)), scale


def _shadows(columns: csc_array, width: int) -> Real:
    """A few random sums of each column, of length one; what holds of columns holds of them."""
    mixing = stream(0, "shadows of columns").standard_normal((width, columns.shape[0]))
    shadow = np.asarray((columns.astype(np.float64).T @ mixing.T).T)
    length = np.sqrt((shadow**2).sum(axis=0))
    return np.asarray(shadow / np.maximum(length, np.finfo(np.float64).tiny))


def _in_span(known: Real, targets: Real) -> Mask:
    """Targets that may be combinations of what is known; those that are not even near are not."""
    basis, sizes, _ = np.linalg.svd(known, full_matrices=False)
    basis = basis[:, sizes > _NEAR]
    left = targets - basis @ (basis.T @ targets)
    return np.asarray((left**2).sum(axis=0) < _NEAR)


def _combination(known: csc_array, target: csc_array) -> tuple[list[int], int] | None:
    """Whole numbers with `scale · target = known · coefficients`, if there are any."""
    rows = np.union1d(known.indices, target.indices)
    joined = np.hstack([known.tocsr()[rows].toarray(), target.tocsr()[rows].toarray()])
    # In fractions, since rounding would decide whether somebody's sum gives a cell exactly.
    lines = [[Fraction(int(value)) for value in line] for line in joined]
    pivots = _reduce(lines, known.shape[1])
    if any(line[-1] for line in lines[len(pivots) :]):
        return None
    exact = [Fraction(0)] * known.shape[1]
    for line, j in zip(lines, pivots, strict=False):
        exact[j] = line[-1]
    scale = math.lcm(*(f.denominator for f in exact))
    return [int(f * scale) for f in exact], scale


def _reduce(lines: list[list[Fraction]], n: int) -> list[int]:
    """Bring lines into reduced echelon form by their first `n` numbers; returns the pivots."""
    pivots: list[int] = []
    for j in range(n):
        top = len(pivots)
        first = next((i for i in range(top, len(lines)) if lines[i][j]), None)
        if first is None:
            continue
        lines[top], lines[first] = lines[first], lines[top]
        lines[top] = [value / lines[top][j] for value in lines[top]]
        for i, line in enumerate(lines):
            if i != top and line[j]:
                factor = line[j]
                lines[i] = [a - factor * b for a, b in zip(line, lines[top], strict=True)]
        pivots.append(j)
    return pivots
