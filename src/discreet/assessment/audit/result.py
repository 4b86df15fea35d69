"""What an audit found, for the custodian's eyes only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Array, Index, Mask, Real
from discreet.assessment.audit.equations import Told
from discreet.assessment.audit.subject import Bracket, Subject, Term
from discreet.tables.show import frame_of, to_pandas

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


MARKING = "Confidential: an audit shows true values and how to find them."
_MOST_SHOWN = 12


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
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
        every = {k for told in self.told if told.members == 1 for k in told.targets}
        return self.positions[sorted(every)]

    @property
    def told_to_coalitions(self) -> Index:
        """Sensitive cells that several who are alone in cells can compute together."""
        every = {k for told in self.told if told.members > 1 for k in told.targets}
        return self.positions[sorted(every)]

    @property
    def at_risk(self) -> Index:
        """Sensitive cells that fail any of the checks."""
        parts = (
            self.disclosed,
            self.disclosed_with_signs,
            self.one_whole_number,
            self.too_near_below,
            self.too_near_above,
            self.told_to_lone,
            self.told_to_coalitions,
            self.positions[:0] if self.unproven is None else self.unproven,
        )
        return np.intersect1d(self.positions[self.subject.is_sensitive], np.concatenate(parts))

    @property
    def is_clean(self) -> bool:
        """Whether no sensitive cell is at risk."""
        return len(self.at_risk) == 0

    def name_of(self, position: int) -> str:
        """A published cell, or a sensitive difference, in words."""
        n = len(self.subject.z)
        if position >= n:
            return self.subject.whys[position - n]
        codes = self.subject.design.cell(position) if self.subject.design.axes else None
        if codes is None:
            return f"cell {position}"
        return ", ".join(f"{name}={code}" for name, code in codes.items()) or "the total"

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

    def to_arrow(self) -> pa.Table:
        """A row for each suppressed cell: value, interval, and what is wrong with it."""
        import pyarrow as pa

        n = len(self.subject.hidden)
        state = np.where(self.subject.primary[self.subject.hidden], "primary", "secondary")
        wrong = [
            "; ".join(self._faults(k))
            if self.subject.is_sensitive[k] or self.by_equations[k]
            else ""
            for k in range(n)
        ]
        cells = frame_of(self.subject.design, {}).take(pa.array(self.subject.hidden))
        columns = {
            "position": self.subject.hidden,
            "value": np.ma.masked_invalid(self.subject.values[:n]),
            "state": state,
            "low": np.ma.masked_invalid(self.low[:n]),
            "high": np.ma.masked_invalid(self.high[:n]),
            "wrong": np.array(wrong, dtype=object),
        }
        for name, values in columns.items():
            cells = cells.append_column(name, _arrow(values))
        return cells

    def to_pandas(self) -> pd.DataFrame:
        """The same as a pandas frame."""
        return to_pandas(self.to_arrow())

    @property
    def text(self) -> str:
        """The findings as lines of text."""
        lines = [MARKING, self._counts(), *(f"{name}: {said}" for name, said in self._findings())]
        lines += self._explanations()
        return "\n".join(line for line in lines if line)

    def to_html(self) -> str:
        """The findings as a piece of HTML."""
        from discreet.assessment.report.page import templates  # start-up time: jinja2

        return (
            templates()
            .get_template("audit.html")
            .render(
                marking=MARKING,
                counts=self._counts(),
                findings=self._findings(),
                explained=self._explanations(),
            )
        )

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.to_html()

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

    def _faults(self, k: int) -> list[str]:
        position = self.positions[k]
        checks = {
            "disclosed by equations": self.disclosed,
            "disclosed because values are not negative": self.disclosed_with_signs,
            "one whole number possible": self.one_whole_number,
            "interval too short below": self.too_near_below,
            "interval too short above": self.too_near_above,
            "told to a lone contributor": self.told_to_lone,
            "told to lone contributors together": self.told_to_coalitions,
            "not proven": () if self.unproven is None else self.unproven,
        }
        return [name for name, found in checks.items() if position in found]

    def _counts(self) -> str:
        n, sensitive = len(self.by_equations), int(self.subject.is_sensitive.sum())
        fate = "none of them is at risk" if self.is_clean else f"{len(self.at_risk):,} at risk"
        return (
            f"{len(self.subject.z):,} published cells, {n:,} of them suppressed, "
            f"{sensitive:,} sensitive: {fate}."
        )

    def _findings(self) -> list[tuple[str, str]]:
        found = [
            ("disclosed by equations alone", self._list_cells(self.disclosed)),
            (
                "disclosed further because values are not negative",
                self._list_cells(self.disclosed_with_signs),
            ),
        ]
        if self.subject.is_whole:
            found.append(
                ("only one whole number possible", self._list_cells(self.one_whole_number))
            )
        if max(need.max(initial=0.0) for need in self.subject.needs) > 0:
            found.append(("interval too short below", self._list_cells(self.too_near_below)))
            found.append(("interval too short above", self._list_cells(self.too_near_above)))
        if self.attackers:
            name = f"told to somebody alone in a cell ({self.attackers:,} could be)"
            found.append((name, self._list_cells(self.told_to_lone)))
        if self.attackers and self.coalition > 1:
            name = f"told to {self.coalition} of them together"
            found.append((name, self._list_cells(self.told_to_coalitions)))
        if self.unproven is not None:
            found.append(("interval not proven", self._list_cells(self.unproven)))
        return found

    def _list_cells(self, positions: Iterable[int]) -> str:
        names = [self.name_of(int(k)) for k in positions]
        if not names:
            return "none"
        shown = "; ".join(names[:_MOST_SHOWN])
        return f"{len(names):,} ({shown}{'; …' if len(names) > _MOST_SHOWN else ''})"


def _coefficient(value: float) -> str:
    sign = "+" if value > 0 else "−"
    return f"{sign} " if abs(value) == 1 else f"{sign} {abs(value):g}·"


def _arrow(values: Array) -> Any:
    import pyarrow as pa

    if isinstance(values, np.ma.MaskedArray):
        return pa.array(values.data, mask=np.ma.getmaskarray(values))
    return pa.array(values, pa.string()) if values.dtype == object else pa.array(values)
