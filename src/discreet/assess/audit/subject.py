"""What is audited: a pattern of any origin, or a release with or without its true table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from discreet.arrays import Array, Index, Mask, Real, Whole
from discreet.assess.cells import true_values
from discreet.design.base import Design
from discreet.errors import ParameterError
from discreet.facade.table import Table
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
