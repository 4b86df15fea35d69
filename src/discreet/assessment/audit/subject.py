"""What an audit looks at: the values behind a table, and what is known of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from discreet.arrays import Array, Index, Mask, Real, Whole
from discreet.assessment.cells import true_values
from discreet.design.base import Design
from discreet.errors import InfeasibleError, ParameterError
from discreet.facade.table import Table
from discreet.progress import report
from discreet.solve.linear.program import Program
from discreet.suppress.pattern import Pattern, of_table, published_values
from discreet.tables.protected import COUNT, CellStatus, Protected

_EXACT = 1e-6  # differences of whole numbers, and shares of other values, that count as none
_PROGRAMS = 1e-10  # share of the values to which linear programs are exact
WITHHELD = (CellStatus.suppressed, CellStatus.below_threshold, CellStatus.decimal)
"""States of released cells that do not show their true value."""


@dataclass(frozen=True, eq=False)
class Subject:
    """A pattern with what is known about its cells.

    Attributes:
      design: Which inner cells make up which published cells.
      z: Values of the published cells; where the truth is not at hand, NaN for suppressed ones.
      suppressed: Which published cells are not shown.
      primary: Which of them are sensitive.
      lower: How far below its value each sensitive cell's interval must reach.
      upper: How far above.
      y: True values of the inner cells, where they are known.
      lone: Inner cells with a single contributor.
      owner: Who that is.
      known: Inner cells that everybody knows.
      differences: Columns of sums and differences that are sensitive too.
      whys: Why they are.
      bounds: What is public of each published cell, smallest and largest values.
    """

    design: Design
    z: Real
    suppressed: Mask
    primary: Mask
    lower: Real
    upper: Real
    y: Array | None = None
    lone: Mask | None = None
    owner: Whole | None = None
    known: Mask | None = None
    differences: Any = None
    whys: tuple[str, ...] = ()
    bounds: tuple[Any, Any] | None = None

    @cached_property
    def X(self) -> Any:
        """The design's matrix by columns."""
        return self.design.matrix().tocsc()

    @cached_property
    def shown(self) -> Index:
        """Positions of the published cells that are shown."""
        return np.flatnonzero(~self.suppressed)

    @cached_property
    def hidden(self) -> Index:
        """Positions of the published cells that are not shown."""
        return np.flatnonzero(self.suppressed)

    @cached_property
    def targets(self) -> Any:
        """The inner cells of each suppressed cell, then of each sensitive difference."""
        from scipy import sparse

        columns = self.X[:, self.hidden]
        if self.differences is None or not self.differences.shape[1]:
            return columns
        return sparse.hstack([columns, self.differences], format="csc")

    @cached_property
    def is_sensitive(self) -> Mask:
        """Which targets are sensitive."""
        rest = self.targets.shape[1] - len(self.hidden)
        return np.concatenate([self.primary[self.hidden], np.ones(rest, dtype=bool)])

    @cached_property
    def values(self) -> Real:
        """True values of the targets; NaN where they are not at hand."""
        if self.y is not None:
            found: Real = (self.targets.T @ self.y).astype(np.float64)
            return found
        rest = self.targets.shape[1] - len(self.hidden)
        return np.concatenate([self.z[self.hidden], np.full(rest, np.nan)])

    @cached_property
    def needs(self) -> tuple[Real, Real]:
        """What the intervals of the targets need, below and above; nothing for differences."""
        rest = np.zeros(self.targets.shape[1] - len(self.hidden))
        below, above = self.lower[self.hidden], self.upper[self.hidden]
        return np.concatenate([below, rest]), np.concatenate([above, rest])

    @property
    def is_signed(self) -> bool:
        """Whether some value is negative, as far as they are at hand."""
        return bool((self.z < 0).any() or (self.y is not None and (self.y < 0).any()))

    def rounding(self, values: Real) -> Real:
        """By how much programs on values of this size may be off; amounts are known to a share."""
        size = np.abs(np.where(np.isfinite(values), values, 0.0))
        return _EXACT + _PROGRAMS * size if self.is_whole else _EXACT * np.maximum(1.0, size)

    @cached_property
    def is_whole(self) -> bool:
        """Whether the values are whole numbers, as counts are."""
        shown = self.z[self.shown]
        return bool((shown == np.rint(shown)).all())


def subject_of(source: Pattern | Protected, table: Table | None) -> Subject:
    """What is audited, from whatever was given."""
    if isinstance(source, Pattern):
        if table is not None:
            raise ParameterError("a pattern holds its true values; give no table beside it.")
        return _of_pattern(source)
    if isinstance(source, Protected):
        return _of_release(source, table)
    raise ParameterError(
        f"a pattern or a release was expected, got {type(source).__name__}. Patterns of other "
        "programs are made by `Pattern.from_labels`."
    )


def _of_pattern(pattern: Pattern) -> Subject:
    none = np.zeros(len(pattern.z))
    return Subject(
        pattern.design,
        pattern.z.astype(np.float64),
        pattern.suppressed,
        pattern.primary,
        none if pattern.lower is None else pattern.lower,
        none if pattern.upper is None else pattern.upper,
        pattern.y,
        pattern.lone,
        pattern.owner,
        pattern.known,
        pattern.difference_columns() if pattern.differences else None,
        tuple(each.why for each in pattern.differences),
        pattern.bounds,
    )


def _of_release(release: Protected, table: Table | None) -> Subject:
    """All suppressed cells count as sensitive, since a release does not say which are."""
    if release.status is None:
        raise ParameterError("this release hides no cells, so there is nothing to audit.")
    suppressed = np.isin(release.status, WITHHELD)
    none = np.zeros(len(release.z))
    z = np.where(suppressed, np.nan, release.z.astype(np.float64))
    parts: dict[str, Any] = {}
    if table is not None and release.unit == COUNT:
        z = true_values(table, release.design, "published").astype(np.float64)
        if table.inner is not None:
            y = true_values(table, release.design, "inner")
            parts = {"y": y, "lone": y == 1}
    elif table is not None:
        z, parts = _sums(release, table)
    bounds = _positive(release, z, suppressed)
    return Subject(release.design, z, suppressed, suppressed, none, none, **parts, bounds=bounds)


def _positive(release: Protected, z: Real, hidden: Mask) -> tuple[Any, Any] | None:
    """Hidden counts are at least one where the release says that empty cells are shown."""
    if release.unit != COUNT or not release.statement.says("empty-cells"):
        return None
    return np.where(hidden & (z != 0), 1.0, -np.inf), np.inf


def _sums(release: Protected, table: Table) -> tuple[Real, dict[str, Any]]:
    """True sums of a table of magnitudes, and who is alone in its inner cells."""
    given = table.contributions
    sizes = (table.design.n_published, table.design.n_inner)
    is_same = sizes == (release.design.n_published, release.design.n_inner)
    if given is None or given.value != release.unit or not is_same:
        raise ParameterError(
            f"the table does not hold {release.unit!r} of the cells that were released. Audit the "
            "pattern instead: `dc.audit(method.pattern(table))`."
        )
    named = replace(table, unit=release.unit)
    return published_values(named).astype(np.float64), of_table(named)


_NOTHING = 1e-7
_NEAR = 1e-6


class Term(NamedTuple):
    """A published cell with its coefficient in a sum that gives a hidden cell."""

    cell: int
    coefficient: float


class Bracket(NamedTuple):
    """Combinations of published cells between which a hidden cell lies, both with its value."""

    below: tuple[Term, ...]
    above: tuple[Term, ...]


def disclosing_cells(
    X: Any, published: Array, targets: Any, known: Mask | None = None
) -> list[tuple[Term, ...]]:
    """For each disclosed target a combination of published cells that gives it.

    Of all such combinations one with the smallest sum of absolute coefficients is found, which has
    few cells.

    Args:
      X: Inner cells × published cells, sparse.
      published: Positions of the cells that are shown.
      targets: Inner cells × targets, sparse.
      known: Inner cells that everybody knows, which need no published cell.
    """
    both, wanted = _prepare_equations(X, published, targets, known)
    found = []
    for k, column in enumerate(wanted, 1):
        found.append(_terms(both, column, column, published))
        report("sources", k / len(wanted))
    return found


def bracketing_cells(
    X: Any, published: Array, z: Real, targets: Any, values: Real, known: Mask | None
) -> list[Bracket | None]:
    r"""For targets that follow from signs, published cells that bound them from both sides.

    None do where a target follows from public bounds only.

    A combination :math:`X\lambda \ge t` bounds :math:`t^\top y \le \lambda^\top z` for all
    :math:`y \ge 0`; one whose value is that of the target, and one from below, prove it.

    Args:
      X: Inner cells × published cells, sparse.
      published: Positions of the cells that are shown.
      z: Values of the published cells.
      targets: Inner cells × targets, sparse.
      values: Values of the targets.
      known: Inner cells that everybody knows to be zero.
    """
    from scipy import sparse

    both, wanted = _prepare_equations(X, published, targets, known)
    size = max(1.0, float(np.abs(z[published]).max(initial=0.0)))
    cost = sparse.csr_array(np.concatenate([z[published], -z[published]])[:, None] / size)
    matrix = sparse.hstack([both, cost], format="csr")
    found: list[Bracket | None] = []
    for k, (column, value) in enumerate(zip(wanted, values, strict=True), 1):
        near = (value + _NEAR * max(1.0, abs(value)) * np.array([-1.0, 1.0])) / size
        free = np.full(len(column), np.inf)
        sides = (
            (np.append(-free, near[0]), np.append(column, np.inf)),
            (np.append(column, -np.inf), np.append(free, near[1])),
        )
        try:
            found.append(Bracket(*(_terms(matrix, *side, published) for side in sides)))
        except InfeasibleError:
            found.append(None)
        report("sources", k / len(wanted))
    return found


def _prepare_equations(
    X: Any, published: Array, targets: Any, known: Mask | None
) -> tuple[Any, list[Real]]:
    """Published columns with both signs as variables, and dense targets, on unknown rows."""
    from scipy import sparse

    rows = slice(None) if known is None else np.flatnonzero(~known)
    shown = X.tocsr()[rows].tocsc()[:, published].astype(np.float64)
    both = sparse.vstack([shown.T, -shown.T], format="csr")
    return both, list(targets.tocsr()[rows].toarray().T.astype(np.float64))


def _terms(matrix: Any, low: Real, high: Real, published: Array) -> tuple[Term, ...]:
    """The smallest coefficients of published cells with sums between the given ones."""
    n = matrix.shape[0]
    program = Program(matrix, low, high, np.zeros(n), np.full(n, np.inf), changing="nothing")
    solution = program.minimise(np.ones(n))
    if solution is None:
        return ()
    coefficients = solution[: n // 2] - solution[n // 2 :]
    used: Sequence[int] = np.flatnonzero(np.abs(coefficients) > _NOTHING).tolist()
    return tuple(Term(int(published[j]), _neat(float(coefficients[j]))) for j in used)


def _neat(value: float) -> float:
    """A coefficient without rounding errors."""
    return float(round(value)) if abs(value - round(value)) < _NOTHING else value
