"""Inner cells that no table shows, and that every fit gets right: what is hidden in the margins.

Margins that are published as they are can determine inner cells that are not: a margin of zero, a
margin whose other cells are known, a set of equations with one solution. A fit of these margins
then has the true value in such a cell, whatever its loss (Langsrud 2019b, section 5).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from discreet.arrays import Array, Mask, Real, Whole
from discreet.assessment.audit.equations import disclosed_by_equations
from discreet.assessment.audit.subject import Subject, subject_of
from discreet.design.base import Cell, Design
from discreet.facade.table import Table
from discreet.protect.cells import definitions
from discreet.randomness import stream
from discreet.solve.linear.intervals import feasible_intervals
from discreet.solve.linear.unknowns import unknowns
from discreet.suppress.pattern import Pattern
from discreet.tables.protected import Protected

# Open cells up to which the interval of each is computed: two programs for each.
_MOST_PROGRAMS = 2_000
# Ends of intervals are solutions of programs, exact to about this share of the values.
_NEAR = 1e-5
_NAMED = 5  # cells that a printed report names


@dataclass(frozen=True, eq=False, repr=False)
class PerfectFits:
    """**Confidential** where it comes of true margins. Unpublished inner cells that are determined.

    Attributes:
      design: The design.
      cells: Positions of the inner cells.
      values: What every table with these margins has in them.
      hidden: How many inner cells are not published.
      is_complete: Whether no other cell is determined; in large tables signs are followed through
        margins of zero and lone cells only.
    """

    design: Design
    cells: Whole
    values: Real
    hidden: int
    is_complete: bool

    @cached_property
    def named(self) -> list[tuple[Cell, float]]:
        """The cells by their codes, with their values."""
        names = definitions(self.design, self.cells, inner=True)
        return list(zip(names, self.values.tolist(), strict=True))

    def below(self, threshold: float) -> PerfectFits:
        """Those that are positive and below a threshold: counts that were meant to be hidden."""
        small = (self.values > 0) & (self.values < threshold)
        return PerfectFits(
            self.design, self.cells[small], self.values[small], self.hidden, self.is_complete
        )

    def __len__(self) -> int:
        return len(self.cells)

    def __repr__(self) -> str:
        more = "" if self.is_complete else " at least"
        head = f"{self.hidden:,} inner cells are not published;{more} {len(self):,} are determined"
        some = [f"{cell}: {value:g}" for cell, value in self.named[:_NAMED]]
        rest = "" if len(self) <= _NAMED else f", and {len(self) - _NAMED:,} more"
        return f"{head}: {'; '.join(some)}{rest}" if some else head


def perfect_fits(
    source: Pattern | Protected | Table, table: Table | None = None, *, programs: bool = True
) -> PerfectFits:
    """Unpublished inner cells that published cells determine, so that every fit gets them right.

    Args:
      source: A suppressed release or its pattern, whose shown cells are true, or a true table whose
        margins are all to be published as they are.
      table: The true table of a release.
      programs: Whether up to 2,000 cells that equations leave open are followed by linear programs.
    """
    if isinstance(source, Table):
        nobody = np.zeros(len(source.z), dtype=bool)
        none = np.zeros(len(source.z))
        z = source.z.astype(np.float64)
        return perfect_fits_of(Subject(source.design, z, nobody, nobody, none, none), programs)
    return perfect_fits_of(subject_of(source, table), programs)


def perfect_fits_of(subject: Subject, programs: bool) -> PerfectFits:
    """The same of what is audited."""
    design, z, shown, known = subject.design, subject.z, subject.shown, subject.known
    signs = not subject.is_signed
    X = subject.X
    sums, values = X[:, shown], z[shown]
    is_hidden = ~_published_alone(X, design.n_inner)
    system = unknowns(sums, values, signs=signs, known=known, y=subject.y)
    fixed = np.ones(design.n_inner, dtype=bool)
    fixed[system.cells] = False
    value = system.known.copy()
    open_cells = np.flatnonzero(~fixed & is_hidden)
    is_complete = not len(open_cells) or (programs and len(open_cells) <= _MOST_PROGRAMS)
    if is_complete and len(open_cells):
        targets = _columns(open_cells, design.n_inner)
        found = feasible_intervals(sums, values, targets, signs=signs, known=known, y=subject.y)
        exact = found.is_proven & (found.width <= _NEAR * np.maximum(1.0, np.abs(found.low)))
        value[open_cells[exact]] = (found.low + found.high)[exact] / 2
        fixed[open_cells[exact]] = True
    elif len(open_cells):
        told = _find_disclosed(system, open_cells, design.n_inner)
        value[open_cells[told]] = _solve(sums, values, open_cells[told])
        fixed[open_cells[told]] = True
    cells = np.flatnonzero(fixed & is_hidden)
    rounded = np.rint(value[cells]) if (z[shown] == np.rint(z[shown])).all() else value[cells]
    return PerfectFits(design, cells, rounded, int(is_hidden.sum()), is_complete)


def _published_alone(X: Any, n: int) -> Mask:
    """Inner cells that are a published cell by themselves, shown or not."""
    found = np.zeros(n, dtype=bool)
    single = np.flatnonzero(np.diff(X.indptr) == 1)
    found[X.indices[X.indptr[single]]] = True
    return found


def _columns(cells: Array, n: int) -> Any:
    from scipy import sparse  # start-up time

    m = len(cells)
    return sparse.csc_array((np.ones(m), (cells, np.arange(m))), shape=(n, m))


def _find_disclosed(system: Any, cells: Array, n: int) -> Mask:
    return disclosed_by_equations(system, _columns(cells, n), rng=stream(1, "perfect-fits"))


def _solve(sums: Any, values: Array, cells: Array) -> Real:
    """Values of cells that equations determine: those of the least squares fit."""
    from scipy.sparse.linalg import lsqr  # start-up time

    return np.asarray(lsqr(sums.T, values, atol=1e-14, btol=1e-14)[0][cells])
