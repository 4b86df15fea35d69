"""What an audit looks at, the values behind a table, and what it found of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from discreet.arrays import Array, Index, Mask, Real
from discreet.assessment.audit.equations import Bracket, Term, Told
from discreet.assessment.cells import true_values
from discreet.columns import Column
from discreet.design.base import Design
from discreet.display import Display, Displayed
from discreet.errors import ParameterError
from discreet.facade.table import Table
from discreet.frames import Frame, value_names
from discreet.protect.cells import on_public_support
from discreet.solve.linear.intervals import Limits
from discreet.suppress.attackers import Attackers, attackers
from discreet.suppress.pattern import Pattern, of_table, published_values
from discreet.suppress.unions import Unions
from discreet.tables.protected import COUNT, CellStatus, Protected
from discreet.tables.show import Frames, frame_of

if TYPE_CHECKING:
    from discreet.assessment.audit.inversion import Inversion

_EXACT = 1e-6  # differences of whole numbers, and shares of other values, that count as none
_PROGRAMS = 1e-10  # share of the values to which linear programs are exact
WITHHELD = (CellStatus.suppressed, CellStatus.below_threshold, CellStatus.decimal)
"""States of released cells that do not show their true value."""


@dataclass(frozen=True, eq=False)
class Subject:
    """A pattern with what is known about its cells."""

    design: Design  # which inner cells make up which published cells
    # Values of the published cells; where the truth is not at hand, NaN for suppressed ones.
    z: Real
    suppressed: Mask  # which published cells are not shown
    primary: Mask  # which of them are sensitive
    lower: Real  # how far below its value each sensitive cell's interval must reach
    upper: Real  # how far above
    y: Array | None = None  # true values of the inner cells, where they are known
    # Contributors, and what they know beside what is shown.
    attackers: Attackers = field(default_factory=Attackers.nobody)
    known: Mask | None = None  # inner cells that everybody knows
    differences: Any = None  # columns of sums and differences that are sensitive too
    whys: tuple[str, ...] = ()  # why they are
    # What is public of each published cell, smallest and largest values.
    bounds: tuple[Any, Any] | None = None
    note: str = ""  # what a reader of the findings has to know about them
    may_be_signed: bool = False  # whether some contribution is negative, if no sum of them is

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

    @cached_property
    def limits(self) -> Limits | None:
        """Public bounds of the suppressed cells that have any."""
        if self.bounds is None:
            return None
        low, high = (np.broadcast_to(b, self.z.shape)[self.hidden] for b in self.bounds)
        chosen = np.flatnonzero(np.isfinite(low) | np.isfinite(high))
        columns = self.X[:, self.hidden[chosen]]
        return Limits(columns, low[chosen], high[chosen]) if len(chosen) else None

    @property
    def public_floor(self) -> Real:
        """What the public knows each inner cell to be at least, if it is published by itself."""
        floor, place = np.zeros(self.design.n_inner), self.design.inner_in_published()
        if self.bounds is not None:
            low = np.broadcast_to(self.bounds[0], self.z.shape)
            floor[place >= 0] = np.maximum(low[place[place >= 0]], 0.0)
        return floor

    @property
    def is_signed(self) -> bool:
        """Whether some value is negative, as far as they are at hand."""
        has_negative = (self.z < 0).any() or (self.y is not None and (self.y < 0).any())
        return self.may_be_signed or bool(has_negative)

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
    # Sums that protect a contributor are looked for anew.
    differences = tuple(d for d in pattern.differences if not d.owners)
    without = replace(pattern, differences=differences)
    return Subject(
        pattern.design,
        pattern.z.astype(np.float64),
        pattern.suppressed,
        pattern.primary,
        none if pattern.lower is None else pattern.lower,
        none if pattern.upper is None else pattern.upper,
        pattern.y,
        attackers(without),
        pattern.known,
        without.difference_columns() if differences else None,
        tuple(each.why for each in differences),
        pattern.bounds,
        may_be_signed=pattern.is_signed,
    )


def _of_release(release: Protected, table: Table | None) -> Subject:
    """All suppressed cells count as sensitive, since a release does not say which are."""
    if release.status is None:
        raise ParameterError("this release hides no cells, so there is nothing to audit.")
    suppressed = np.isin(release.status, WITHHELD)
    none = np.zeros(len(release.z))
    z = np.where(suppressed, np.nan, release.z.astype(np.float64))
    parts: dict[str, Any] = {}
    who = Attackers.nobody()
    if table is not None and release.unit == COUNT:
        z = true_values(table, release.design, "published").astype(np.float64)
        if table.inner is not None:
            y = true_values(table, release.design, "inner")
            parts = {"y": y, "lone": y == 1}
    elif table is not None:
        z, parts = _sums(release, table)
    if "y" in parts:
        who = attackers(Pattern(release.design, z, suppressed.astype(np.int8), **parts))
    bounds = None
    # Hidden counts are at least one where the release says that empty cells are shown.
    if release.unit == COUNT and release.statement.says("empty-cells"):
        bounds = np.where(suppressed & (z != 0), 1.0, -np.inf), np.inf
    least = (release.design, z, suppressed, suppressed, none, none)
    more = {"known": parts.get("known"), "may_be_signed": parts.get("is_signed", False)}
    return Subject(*least, parts.get("y"), who, **more, bounds=bounds, note=_ALL_COUNT)


def _sums(release: Protected, table: Table) -> tuple[Real, dict[str, Any]]:
    """True sums of a table of magnitudes, and who is alone in its inner cells."""
    # A release lies on the public support, whatever the table's own was read from.
    found = on_public_support(table, with_inner=table.inner is not None)
    given = table.contributions
    sizes = (found.design.n_published, found.design.n_inner)
    is_same = sizes == (release.design.n_published, release.design.n_inner)
    if given is None or given.value != release.unit or not is_same:
        raise ParameterError(
            f"the table does not hold {release.unit!r} of the cells that were released. Audit the "
            "pattern instead: `dc.audit(method.pattern(table))`."
        )
    named = replace(found, unit=release.unit)
    return published_values(named).astype(np.float64), of_table(named)


_ALL_COUNT = (
    "A release does not say which hidden cells are sensitive, so all of them count as sensitive "
    "here. `dc.audit(method.pattern(table))` judges the cells of the rule; so does --labels, with "
    "what `discreet protect --show-kinds` wrote."
)
MARKING = "Confidential: an audit shows true values and how to find them."
_MOST_SHOWN = 12
_FAULTS = {
    "disclosed": "disclosed by equations",
    "disclosed_with_signs": "disclosed because values are not negative",
    "one_whole_number": "one whole number possible",
    "too_near_below": "interval too short below",
    "too_near_above": "interval too short above",
    "told_to_lone": "told to a lone contributor",
    "short_to_contributors": "interval too short for a contributor",
    "told_to_coalitions": "told to lone contributors together",
    "told_of_contributors": "part of a sum that tells too much of a contributor",
    "unproven": "not proven",
    "told_by_pattern": "told by the pattern to whoever runs the program",
}
"""What can be wrong with a cell, by the property of an audit that lists such cells."""


@dataclass(frozen=True, eq=False, repr=False)
class Audit(Displayed, Frames):
    """**Confidential.** What the public, and somebody alone in a cell, can find out.

    Positions are those of published cells. Sensitive differences of a pattern follow behind the
    last published cell, in their order.

    Attributes:
      subject: What was audited.
      by_equations: For each target whether it follows from the published cells by linear algebra.
      low: Smallest possible value of each target with signs and bounds; NaN where not computed.
      high: Largest possible value.
      is_exact: Whether low and high are the ends of the interval; it may be wider where not.
      told: What contributors who are alone in a cell find out.
      sources: For disclosed targets, by number, published cells that disclose them.
      brackets: For targets that follow from signs, published cells that bound them from both sides.
      attackers: Number of contributors whose view was taken.
      coalition: How many of them were taken together, at most.
      unproven: Sensitive cells for which the pattern's own proofs do not hold; `None` where it
        carries no proofs.
      unions: Sums of hidden cells that tell too much of a contributor, and of whom this is open.
      inversion: What the pattern itself tells whoever runs the program, where it was asked for.
      perfect: Inner cells that no table shows and that published cells determine (`PerfectFits`).
    """

    subject: Subject
    by_equations: Mask
    low: Real
    high: Real
    is_exact: Mask
    told: tuple[Told, ...] = ()
    sources: Mapping[int, tuple[Term, ...]] = field(default_factory=dict)
    brackets: Mapping[int, Bracket] = field(default_factory=dict)
    attackers: int = 0
    coalition: int = 1
    unproven: Index | None = None
    unions: Unions | None = None
    inversion: Inversion | None = None
    perfect: Any = None

    @cached_property
    def positions(self) -> Index:
        """Position of each target: a suppressed cell, or behind them a sensitive difference."""
        extra = len(self.by_equations) - len(self.subject.hidden)
        n = len(self.subject.z)
        return np.concatenate([self.subject.hidden, np.arange(n, n + extra)])

    @property
    def disclosed(self) -> Index:
        """Suppressed cells that follow from the published ones by equations alone."""
        return self.positions[self.by_equations]

    @property
    def disclosed_with_signs(self) -> Index:
        """Further suppressed cells whose value follows because values are not negative."""
        return self.positions[self._narrow & ~self.by_equations]

    @property
    def one_whole_number(self) -> Index:
        """Suppressed counts for which a single whole number is possible, disclosed ones included.

        Empty for values that are not whole numbers.
        """
        if not self.subject.is_whole:
            return self.positions[:0]
        close = self.subject.rounding(self.high)
        single = np.floor(self.high + close) <= np.ceil(self.low - close)
        return self.positions[(single & self.is_exact) | self.by_equations]

    @property
    def too_near_below(self) -> Index:
        """Sensitive cells whose interval does not reach as far down as their rule asks."""
        return self.positions[self._short(self.subject.values - self.low, 0)]

    @property
    def too_near_above(self) -> Index:
        """Sensitive cells whose interval does not reach as far up as their rule asks."""
        return self.positions[self._short(self.high - self.subject.values, 1)]

    @property
    def told_to_lone(self) -> Index:
        """Sensitive cells that somebody alone in a cell can compute, and the public cannot."""
        return self._positions_where(lambda told: told.members == 1 and not told.is_short)

    @property
    def short_to_contributors(self) -> Index:
        """Sensitive cells whose interval is too short for somebody who knows his own parts."""
        return self._positions_where(lambda told: told.is_short)

    @property
    def told_to_coalitions(self) -> Index:
        """Sensitive cells that several who are alone in cells can compute together."""
        return self._positions_where(lambda told: told.members > 1)

    def _positions_where(self, which: Callable[[Told], bool]) -> Index:
        every = {k for told in self.told if which(told) for k in told.targets}
        return self.positions[sorted(every)]

    @property
    def told_of_contributors(self) -> Index:
        """Hidden cells whose sum tells too much of somebody who is in several of them."""
        sums = self.unions.sums if self.unions is not None else ()
        return np.array(sorted({k for each in sums for k in each.cells}), dtype=np.intp)

    @property
    def at_risk(self) -> Index:
        """Sensitive cells that fail any of the checks."""
        every = np.concatenate(list(self._cells_by_fault().values()))
        sensitive = np.intersect1d(self.positions[self.subject.is_sensitive], every)
        # Of a sum that tells too much all cells are at risk, sensitive or not.
        return np.union1d(sensitive, self.told_of_contributors)

    def _cells_by_fault(self) -> dict[str, Index]:
        found = {why: getattr(self, name) for name, why in _FAULTS.items()}
        return {why: cells for why, cells in found.items() if cells is not None}

    @property
    def told_by_pattern(self) -> Index | None:
        """Cells that only one value is left for in tables with the pattern, if that was asked."""
        return None if self.inversion is None else self.inversion.exact

    @property
    def is_clean(self) -> bool:
        """Whether no sensitive cell is at risk."""
        return len(self.at_risk) == 0

    def name_of(self, position: int) -> str:
        """A published cell, or a sensitive difference, in words."""
        n = len(self.subject.z)
        if position >= n:
            return self.subject.whys[position - n]
        return self.subject.design.name_of(position)

    def explain(self, position: int) -> str:
        """How published cells give a disclosed one: as a sum, or as bounds from both sides."""
        target = int(np.flatnonzero(self.positions == position)[0])
        name = f"({self.name_of(position)})"
        if target in self.sources:
            return f"{name} = {self._sum(self.sources[target])}"
        if target in self.brackets:
            below, above = (self._sum(side) for side in self.brackets[target])
            return f"{below} ≤ {name} ≤ {above}, and both are the same"
        return ""

    def _sum(self, terms: Iterable[Term]) -> str:
        first = sorted(terms, key=lambda term: -term.coefficient)
        said = " ".join(f"{_coefficient(t.coefficient)}({self.name_of(t.cell)})" for t in first)
        return said.removeprefix("+ ") or "0"

    def to_frame(self) -> Frame:
        """A row for each suppressed cell: value, interval, and what is wrong with it."""
        n = len(self.subject.hidden)
        state = np.where(self.subject.primary[self.subject.hidden], "primary", "secondary")
        faults = {why: set(cells.tolist()) for why, cells in self._cells_by_fault().items()}
        is_judged = self.subject.is_sensitive | self.by_equations
        wrong = [
            "; ".join(why for why, cells in faults.items() if position in cells and is_judged[k])
            for k, position in enumerate(self.subject.hidden.tolist())
        ]
        numbers = (self.subject.values[:n], self.low[:n], self.high[:n])
        value, low, high = (Column(v, mask=~np.isfinite(v)) for v in numbers)
        columns = {"position": Column(self.subject.hidden), "value": value}
        columns |= {"state": Column(state, "string"), "low": low, "high": high}
        cells = frame_of(self.subject.design, {}).take(self.subject.hidden)
        columns["wrong"] = Column(wrong, "string")
        for wish, name in value_names(cells.column_names, columns).items():
            cells = cells.with_column(name, columns[wish])
        return cells

    @property
    def text(self) -> str:
        """The findings as lines of text."""
        lines = [MARKING, self._counts(), self.subject.note]
        lines += [f"{name}: {said}" for name, said in self._findings()]
        lines += self._explanations()
        return "\n".join(line for line in lines if line)

    def _display(self) -> Display:
        facts = [(name, str(said)) for name, said in self._findings()]
        said = [MARKING, self._counts(), self.subject.note, *self._explanations()]
        said = [line for line in said if line]
        return Display("Audit of a suppression pattern", "confidential", facts, lines=said)

    def __repr__(self) -> str:
        return self.text

    def _explanations(self) -> list[str]:
        some = [*self.disclosed[:_MOST_SHOWN], *self.disclosed_with_signs[:_MOST_SHOWN]]
        return [line for k in some if (line := self.explain(int(k)))]

    @cached_property
    def _narrow(self) -> Mask:
        close = self.subject.rounding(self.high)
        return np.asarray(self.is_exact & (self.high - self.low <= close))

    def _short(self, reach: Real, side: int) -> Mask:
        need = self.subject.needs[side]
        is_short = reach < need - self.subject.rounding(self.subject.values)
        return np.asarray(self.subject.is_sensitive & (need > 0) & (is_short | self.by_equations))

    def _counts(self) -> str:
        n, sensitive = len(self.by_equations), int(self.subject.is_sensitive.sum())
        fate = "none of them is at risk" if self.is_clean else f"{len(self.at_risk):,} at risk"
        return (
            f"{len(self.subject.z):,} published cells, {n:,} of them suppressed, "
            f"{sensitive:,} sensitive: {fate}."
        )

    def _findings(self) -> list[tuple[str, str]]:
        found = {
            "disclosed by equations alone": self.disclosed,
            "disclosed further because values are not negative": self.disclosed_with_signs,
        }
        if self.subject.is_whole:
            found["only one whole number possible"] = self.one_whole_number
        if max(need.max(initial=0.0) for need in self.subject.needs) > 0:
            found["interval too short below"] = self.too_near_below
            found["interval too short above"] = self.too_near_above
        if self.attackers:
            who = f"somebody alone in a cell ({self.attackers:,} contributors looked at)"
            found[f"told to {who}"] = self.told_to_lone
            if any(told.is_short for told in self.told):
                found["interval too short for a contributor"] = self.short_to_contributors
        if self.attackers and self.coalition > 1:
            found[f"told to {self.coalition} of them together"] = self.told_to_coalitions
        if self.unions is not None:
            found["sums that tell too much of a contributor"] = self.told_of_contributors
        if self.unproven is not None:
            found["interval not proven"] = self.unproven
        said = [(name, self._list_cells(cells)) for name, cells in found.items()]
        if self.perfect is not None and len(self.perfect):
            said.append(("inner cells that no table shows", repr(self.perfect)))
        if self.inversion is not None:
            said.append(("told by the pattern to whoever runs the program", str(self.inversion)))
        return said

    def _list_cells(self, positions: Iterable[int]) -> str:
        return list_names([self.name_of(int(k)) for k in positions])


def list_names(names: Sequence[str]) -> str:
    """How many there are, and the first of them."""
    if not names:
        return "none"
    shown = "; ".join(names[:_MOST_SHOWN])
    return f"{len(names):,} ({shown}{'; …' if len(names) > _MOST_SHOWN else ''})"


def _coefficient(value: float) -> str:
    sign = "+" if value > 0 else "−"
    return f"{sign} " if abs(value) == 1 else f"{sign} {abs(value):g}·"
