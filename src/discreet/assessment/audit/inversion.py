"""What a pattern tells beside its intervals: by its own program, and by fits that cannot miss.

Whoever knows the program keeps the tables for which it hides the same cells. Where costs are drawn
from a secret, a table counts by how often it has the pattern over draws of the costs. All tables
are looked at where they are few; else a walk along whole-numbered changes of the hidden cells draws
some of them, each as likely as any other.

Margins that are published as they are can determine inner cells that are not: a margin of zero, a
margin whose other cells are known, a set of equations with one solution. A fit of these margins
then has the true value in such a cell, whatever its loss (Langsrud 2019b, section 5).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from discreet.arrays import Array, Index, Mask, Real, Whole
from discreet.assessment.audit.equations import disclosed_by_equations
from discreet.assessment.audit.subject import Subject, subject_of
from discreet.design.base import Cell, Design
from discreet.design.codes import cell_text
from discreet.errors import InfeasibleError, ParameterError
from discreet.facade.table import Table
from discreet.progress import report
from discreet.protect.cells import definitions
from discreet.protect.draws import SeededSecret
from discreet.randomness import stream
from discreet.solve.linear.intervals import feasible_intervals
from discreet.solve.linear.unknowns import Unknowns, unknowns
from discreet.suppress.pattern import Pattern
from discreet.tables.protected import Protected

_MOST_TABLES, _MOST_NODES = 400, 200_000  # of the tree in which all tables are looked for
_SAMPLED = 100  # tables that a walk draws
_BETWEEN = 5  # moves between two of them, for each dimension of what is open
RUNS = 4_000  # of the program, all tables and draws of costs together: about a minute
_LARGEST_DENOMINATOR, _NOTHING = 12, 1e-9
# Open cells up to which the interval of each is computed: two programs for each.
_MOST_PROGRAMS = 2_000
# Ends of intervals are solutions of programs, exact to about this share of the values.
_NEAR = 1e-5
_NAMED = 5  # cells that a printed report names


@dataclass(frozen=True, eq=False)
class Inversion:
    """**Confidential.** What follows from which cells are hidden.

    Attributes:
      positions: The sensitive cells.
      before: Probability of the best guess of each, all tables with the shown cells being alike.
      after: The same among tables weighed by the probability of their pattern.
      values_before: How many values each can have.
      values_after: How many it can have in tables with the pattern.
      tables: Tables that were looked at.
      is_all: Whether they are all that agree with the shown cells.
      draws: Draws of the costs for each; one where they are fixed.
      is_met: Whether some table had the pattern in some draw. If not, nothing is told apart.
    """

    positions: Index
    before: Real
    after: Real
    values_before: Whole
    values_after: Whole
    tables: int
    is_all: bool
    draws: int
    is_met: bool

    @property
    def exact(self) -> Index:
        """Sensitive cells with one value left, where the shown cells alone leave several."""
        if not self.is_met or not self.is_all:
            return self.positions[:0]
        is_one = (self.values_after == 1) & (self.values_before > 1)
        return np.asarray(self.positions[is_one])

    def __str__(self) -> str:
        if not len(self.positions):
            return "no cell is sensitive"
        if not self.is_met:
            return (
                f"none of {self.tables:,} tables had the pattern in {self.draws} draws of costs: "
                "it is too rare to tell them apart"
            )
        before, after = float(self.before.mean()), float(self.after.mean())
        kind = "all" if self.is_all else "drawn at random from those"
        return (
            f"best guess {before:.0%} → {after:.0%}, known exactly {len(self.exact):,} of "
            f"{len(self.positions):,} ({self.tables:,} tables, {kind} that agree with the shown "
            f"cells; {self.draws} draws of costs)"
        )


def invert_pattern(pattern: Pattern) -> Inversion:
    """Run the pattern's own method on tables with the same shown cells."""
    y = pattern.y
    is_count = y is not None and np.asarray(y).dtype.kind in "iu" and pattern.contributions is None
    if pattern.method is None or not is_count or pattern.method.forbidden:
        raise ParameterError(
            "program=True runs the method again on other tables of counts. It needs a pattern of "
            "counts with inner cells, made by Suppress(...).pattern(table) without forbidden cells."
        )
    tables, is_all = _fitting_tables(pattern)
    draws = _draws(pattern, tables, RUNS)
    weights = _pattern_weights(pattern, tables, draws)
    is_met = bool(weights.any())
    weights = weights if is_met else np.ones(len(tables))
    positions = np.flatnonzero(pattern.primary)
    values = tables @ pattern.design.matrix().tocsc()[:, positions].toarray()
    before, fewest = _best_guesses(values, np.ones(len(tables)))
    after, left = _best_guesses(values, weights)
    return Inversion(positions, before, after, fewest, left, len(tables), is_all, draws, is_met)


def weigh_tables(pattern: Pattern, runs: int) -> tuple[Whole, Real]:
    """Tables with the same shown cells, and how often each has the pattern; all alike if none has.

    Without a method nobody knows the program, and all are alike.
    """
    tables, _ = _fitting_tables(pattern)
    alike = np.ones(len(tables))
    if pattern.method is None:
        return tables, alike
    weights = _pattern_weights(pattern, tables, _draws(pattern, tables, runs))
    return tables, weights if weights.any() else alike


def _draws(pattern: Pattern, tables: Whole, runs: int) -> int:
    return max(10, runs // len(tables)) if pattern.is_drawn else 1


def _best_guesses(values: Array, weights: Real) -> tuple[Real, Whole]:
    """The largest probability of a value of each column, and how many values have any."""
    found, left = [], []
    for column in values.T:
        _, number = np.unique(column, return_inverse=True)
        share = np.bincount(number.ravel(), weights) / weights.sum()
        found.append(float(share.max()))
        left.append(int((share > 0).sum()))
    return np.array(found), np.array(left, dtype=np.int64)


def _pattern_weights(pattern: Pattern, tables: Whole, draws: int) -> Real:
    """How often each table has the pattern, over draws of the costs."""
    found = np.zeros(len(tables))
    for k, y in enumerate(tables):
        table = Table.from_inner(pattern.design, y)
        for draw in range(draws):
            one = table.with_secret(SeededSecret(draw, "inversion")) if pattern.is_drawn else table
            try:
                again = pattern.method.pattern(one)
            except InfeasibleError:
                continue
            found[k] += bool((again.suppressed == pattern.suppressed).all())
        report("tables", (k + 1) / len(tables))
    return found / draws


def _fitting_tables(pattern: Pattern) -> tuple[Whole, bool]:
    """Tables with the same shown cells, and whether these are all."""
    X, shown = pattern.design.matrix().tocsc().astype(np.float64), ~pattern.suppressed
    y = np.asarray(pattern.y)
    system = unknowns(X[:, shown], pattern.z[shown], signs=True, known=pattern.known, y=y)
    # Where no shown cell bounds a hidden one, values up to the largest shown figure are looked at.
    most = np.full(len(system.cells), int(pattern.z[shown].max(initial=0)))
    inside = system.equations.tocoo()
    np.minimum.at(most, inside.row, np.rint(system.right[inside.col]).astype(np.int64))
    low = np.zeros(len(pattern.z)) if pattern.bounds is None else pattern.bounds[0]
    hidden = np.flatnonzero(pattern.suppressed & (low > 0))
    columns = X[:, hidden].tocsr()[system.cells].T.toarray()
    rest = X[:, hidden].T @ y - columns @ y[system.cells]
    least = np.maximum(low[hidden] - rest, 0.0)
    found = np.array([*_all_tables(system, most, columns, least)][: _MOST_TABLES + 1])
    is_all = 0 < len(found) <= _MOST_TABLES
    if not is_all:
        found = _walk(system, y[system.cells], most, columns, least)
    tables = np.tile(y, (len(found), 1))
    tables[:, system.cells] = found
    return tables, is_all


def _all_tables(system: Unknowns, most: Whole, columns: Real, least: Real) -> Iterator[Whole]:
    """The unknown cells of every table; more than are wanted where they are too many."""
    equations = np.abs(system.equations.toarray().T) > 0
    left = np.rint(system.right).astype(np.int64)
    n = equations.shape[1]
    last = np.array([row.nonzero()[0].max(initial=-1) for row in equations])
    floor = np.zeros(n, dtype=np.int64)
    for column, need in zip(columns, least, strict=True):
        if (column > 0).sum() == 1:
            floor[column.argmax()] = max(floor[column.argmax()], int(np.ceil(need)))
    rows = [np.flatnonzero(equations[:, i]) for i in range(n)]
    ends = [rows[i][last[rows[i]] == i] for i in range(n)]
    table, nodes, made = np.zeros(n, dtype=np.int64), 0, 0
    stack: list[Iterator[int]] = [iter(_choices(left, rows[0], ends[0], floor[0], most[0]))]
    while stack and nodes < _MOST_NODES and made <= _MOST_TABLES:
        i = len(stack) - 1
        left[rows[i]] += table[i]
        table[i] = 0
        value = next(stack[-1], None)
        if value is None:
            stack.pop()
            continue
        nodes += 1
        table[i] = value
        left[rows[i]] -= value
        if i + 1 < n:
            stack.append(iter(_choices(left, rows[i + 1], ends[i + 1], floor[i + 1], most[i + 1])))
        elif (columns @ table >= least).all():
            made += 1
            yield table.copy()
    # A tree that was not searched to its end says so by one table too many.
    if stack and nodes >= _MOST_NODES:
        yield from (table.copy() for _ in range(_MOST_TABLES + 1))


def _choices(left: Whole, rows: Index, ends: Index, floor: int, ceiling: int) -> range:
    """Values of one cell: what its sums leave, and all of it where it is the last of one."""
    most = int(left[rows].min(initial=ceiling))
    if not len(ends):
        return range(int(floor), most + 1)
    value = int(left[ends[0]])
    is_possible = bool((left[ends] == value).all()) and floor <= value <= most
    return range(value, value + int(is_possible))


def _walk(system: Unknowns, start: Whole, most: Whole, columns: Real, least: Real) -> Whole:
    """Tables drawn by moves along whole-numbered changes; a uniform move along each line."""
    basis = _whole_changes(system.equations.toarray().T)
    rng, now, found = stream(0, "tables with the same shown cells"), start.astype(np.int64), []
    limits = np.vstack([np.eye(len(now)), -np.eye(len(now)), columns])
    ends = np.concatenate([np.zeros(len(now)), -np.maximum(most, now), least])
    for step in range(_SAMPLED * _BETWEEN * max(len(basis), 1)):
        move = (
            basis[rng.integers(len(basis))] + rng.integers(-1, 2) * basis[rng.integers(len(basis))]
        )
        pace, room = limits @ move, limits @ now - ends
        if not pace.any():
            continue
        up = int(np.floor((room[pace < 0] / -pace[pace < 0]).min(initial=2**31) + _NOTHING))
        down = int(np.floor((room[pace > 0] / pace[pace > 0]).min(initial=2**31) + _NOTHING))
        now = now + rng.integers(-down, up + 1) * move
        if (step + 1) % (_BETWEEN * len(basis)) == 0:
            found.append(now.copy())
    return np.array(found)


def _whole_changes(rows: Real) -> Whole:
    """Whole-numbered solutions of homogeneous equations, one for each open dimension."""
    reduced = rows.astype(np.float64).copy()
    pivots: list[int] = []
    for j in range(rows.shape[1]):
        top = len(pivots)
        if top == len(reduced):
            break
        best = top + int(np.abs(reduced[top:, j]).argmax())
        if abs(reduced[best, j]) < _NOTHING:
            continue
        reduced[[top, best]] = reduced[[best, top]]
        reduced[top] /= reduced[top, j]
        others = np.arange(len(reduced)) != top
        reduced[others] -= np.outer(reduced[others, j], reduced[top])
        pivots.append(j)
    free = np.setdiff1d(np.arange(rows.shape[1]), pivots)
    found = np.zeros((len(free), rows.shape[1]))
    found[np.arange(len(free)), free] = 1.0
    found[:, pivots] = -reduced[: len(pivots), free].T
    for each in found:
        times = [
            t
            for t in range(1, _LARGEST_DENOMINATOR + 1)
            if np.allclose(each * t, np.rint(each * t))
        ]
        each *= times[0] if times else 0
    whole = np.rint(found).astype(np.int64)
    return np.asarray(whole[(rows @ whole.T == 0).all(axis=0) & whole.any(axis=1)])


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
        some = [f"{cell_text(cell)}: {value:g}" for cell, value in self.named[:_NAMED]]
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
        rng, columns = stream(1, "perfect-fits"), _columns(open_cells, design.n_inner)
        told = disclosed_by_equations(system, columns, rng=rng)
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


def _solve(sums: Any, values: Array, cells: Array) -> Real:
    """Values of cells that equations determine: those of the least squares fit."""
    from scipy.sparse.linalg import lsqr  # start-up time

    return np.asarray(lsqr(sums.T, values, atol=1e-14, btol=1e-14)[0][cells])
