"""Cell suppression: sensitive cells are not shown, and neither are cells that would give them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from discreet.arrays import Array, Mask, Real
from discreet.design.support import spread
from discreet.errors import ParameterError, UnknownNameError
from discreet.noise.checks import truth_value
from discreet.protect.sentences import statement_of
from discreet.rules.counts import CountRule, Difference, Needs, Rule, Threshold, told
from discreet.suppress.decimals import Decimals
from discreet.suppress.gauss import Plan, suppress_by_gauss
from discreet.suppress.interval import suppress_by_interval
from discreet.suppress.optimal import lower_bound, suppress_by_optimum
from discreet.suppress.options import (
    CellLike,
    bounds_of,
    cells_of,
    decimals_of,
    factors_of,
    least_counts,
    priority,
    room_below,
    rules_of,
    with_doubted_cells,
)
from discreet.suppress.pattern import PRIMARY, Pattern, of_table, published_values
from discreet.suppress.sentences import limits, suppressed_cells, thresholds, widths
from discreet.tables.canonical import Arrangement, canonical_order, canonical_table
from discreet.tables.protected import COUNT, VALUE, CellStatus, Claims, Draws, Protected
from discreet.tables.statement import Sentence, Statement
from discreet.tables.truth import TrueTable

_COSTS = ("value", "cells")
_SECONDARY = {
    "gauss": suppress_by_gauss,
    "interval": suppress_by_interval,
    "optimal": suppress_by_optimum,
}


@dataclass(frozen=True)
class Suppress:
    r"""Suppression of sensitive cells, and of others that protect them.

    With `"interval"`, cells are suppressed until other tables with the same published cells and
    nothing negative prove that each sensitive cell could be as far from its value as its rule asks.
    Where empty cells are shown, these tables have no hidden count of zero.
    `"optimal"` finds the cheapest such pattern of a small table. With `"gauss"`, cells are
    published by priority, each unless some sensitive column :math:`x_p` of the design would become
    a linear combination of published ones. All tables of the design are protected at once.

    Promise: cells that are shown are true; no sensitive cell is a linear combination of published
    cells, which `"gauss"` decides in whole numbers without rounding; with `singletons`, none
    follows for somebody who is alone in a cell and knows it either. `"interval"` and `"optimal"`
    promise the widths of the rules, to everybody and with `singletons` to lone contributors. The
    pattern follows from the true values.
    Cost: for 20,000 cells a few seconds; with `"interval"` a minute for counts, five for sums.

    Args:
      rules: What makes a cell sensitive: a rule, or several, also as texts such as `"p%(10)"`.
      secondary: How cells that protect others are chosen: `"interval"`, `"gauss"` or `"optimal"`.
      zeros: Whether empty cells may be suppressed to protect others. When absent, they may if a
        rule calls empty cells sensitive or can hide a cell among them only.
      singletons: Whether someone alone in a cell must not learn other sensitive cells.
      forced: Cells that are shown even if a rule calls them sensitive.
      frozen: Cells that are not suppressed to protect others.
      forbidden: Cells that are never shown, sensitive or not.
      cost: What is to be kept small: the `"value"` of suppressed cells, or the number of `"cells"`.
      priorities: Cells with a factor on their cost; above one they are rather shown.
      decimals: Decimal numbers in place of suppressed cells; the name of their residual or plain
        data, `{"residual": "rmse", "rmse": 2.0}`, will do. None when absent.
      bounds: Cells with what the public knows them to be at least and at most. Intervals are proven
        within these bounds; `"gauss"` does not look at them.

    See Langsrud (2024), Lupp & Langsrud (2021), and Fischetti & Salazar-González (2000).
    """

    rules: Sequence[Rule | str] | Rule | str = Threshold(3)
    secondary: str = "interval"
    zeros: bool | None = None
    singletons: bool = True
    forced: Sequence[CellLike] = ()
    frozen: Sequence[CellLike] = ()
    forbidden: Sequence[CellLike] = ()
    cost: str = "value"
    priorities: Sequence[tuple[CellLike, float]] = ()
    decimals: Decimals | None = None
    bounds: Sequence[tuple[CellLike, float, float]] = ()

    name: ClassVar[str] = "suppress"
    source: ClassVar[str] = "table"
    units: ClassVar[tuple[str, ...]] = (COUNT, VALUE)

    def __post_init__(self) -> None:
        given: dict[str, Any] = {
            "rules": rules_of(self.rules),
            "decimals": decimals_of(self.decimals),
            "priorities": factors_of(self.priorities),
            "bounds": bounds_of(self.bounds),
        }
        given |= {o: cells_of(o, getattr(self, o)) for o in ("forced", "frozen", "forbidden")}
        for option, read in given.items():
            object.__setattr__(self, option, read)
        if self.zeros is not None:
            truth_value("zeros", self.zeros)
        truth_value("singletons", self.singletons)
        if self.secondary not in _SECONDARY:
            raise UnknownNameError("secondary suppression", self.secondary, _SECONDARY)
        if self.cost not in _COSTS:
            raise UnknownNameError("cost", self.cost, _COSTS)

    @property
    def claims(self) -> Claims:
        """What every release of this method keeps; its pattern follows the truth."""
        limits_ = [r.max for r in self._rules if isinstance(r, Threshold)]
        small = 0 if self.forced else max(limits_, default=0)
        has_decimals = self.decimals is not None
        return Claims(
            additive=has_decimals,
            unbiased=False,
            keeps_zeros=not has_decimals or self.zeros_are_public,
            max_move=math.inf if has_decimals else 0.0,
            blocked=() if has_decimals else range(1, small + 1),
            follows_truth=("neighbour",) if has_decimals else ("neighbour", "source"),
        )

    @property
    def zeros_are_public(self) -> bool:
        """Whether every empty cell is shown as an empty one."""
        if self.zeros is not None:
            return not self.zeros
        return not any(
            getattr(rule, "zeros", False) or getattr(rule, "needs_zeros", False)
            for rule in self._rules
        )

    @property
    def _says_zeros(self) -> bool:
        """Whether a hidden cell is told not to be empty; forbidden ones may be."""
        return self.zeros_are_public and not self.forbidden

    @property
    def _rules(self) -> tuple[Rule, ...]:
        return tuple(self.rules)  # type: ignore[arg-type]  # a tuple since it was made

    def __call__(self, table: TrueTable, *, draws: Draws) -> Protected:
        """Suppress cells; nothing is drawn unless decimals take their place."""
        pattern = self.pattern(table)
        if self.decimals is not None:
            return self._with_decimals(table, pattern, self.decimals, draws)
        hidden = pattern.suppressed
        status = np.where(hidden, CellStatus.suppressed, CellStatus.published).astype(np.int8)
        shown = np.where(hidden, 0, pattern.z)
        statement = self._statement()
        return Protected.of(
            pattern.design, shown, statement, status=status, unit=_published_unit(table)
        )

    def _with_decimals(
        self, table: TrueTable, pattern: Pattern, decimals: Decimals, draws: Draws
    ) -> Protected:
        made = decimals(pattern, rng=draws.generator(self, table))
        status = np.where(made.is_decimal, CellStatus.decimal, CellStatus.published)
        return Protected.of(
            pattern.design,
            made.z,
            self._statement(),
            y=made.y,
            status=status.astype(np.int8),
            unit=_published_unit(table),
        )

    def pattern(self, table: TrueTable) -> Pattern:
        """Which cells are suppressed and why. **Confidential**: it holds the true values."""
        table = with_doubted_cells(table, zeros_are_public=self.zeros_are_public)
        order = canonical_order(table.design)
        if order is None:
            return self._suppressed(table)
        return _as_given(self._suppressed(canonical_table(table, order)), table, order)

    def lower_bound(self, table: TrueTable) -> float:
        """What every pattern costs at least that keeps all intervals; for small tables.

        It follows from a linear relaxation of `"optimal"`, and stands beside the cost of other
        patterns. Patterns by `"gauss"` that miss intervals may cost less. **Confidential.**
        """
        table = with_doubted_cells(table, zeros_are_public=self.zeros_are_public)
        order = canonical_order(table.design)
        table = table if order is None else canonical_table(table, order)
        pattern, plan = self._sensitive(table)
        return lower_bound(pattern, plan, singletons=self.singletons)

    def primary(self, table: TrueTable) -> Pattern:
        """The sensitive cells alone, with the reasons and the intervals they need."""
        n = table.design.n_published
        sensitive, reasons = np.zeros(n, dtype=bool), {}
        lower, upper = np.zeros(n), np.zeros(n)
        differences: list[Difference] = []
        forced = self._positions(table, "forced")
        for rule in self._rules:
            _check_kind(rule, table)
            found = rule.primaries(table)
            found[forced] = False
            below, above = self._needs(rule, table)
            lower = np.where(found, np.maximum(lower, below), lower)
            upper = np.where(found, np.maximum(upper, above), upper)
            reasons.update({int(k): rule.why for k in np.flatnonzero(found & ~sensitive)})
            sensitive |= found
            differences += getattr(rule, "differences", lambda _: [])(table)
        state = np.where(sensitive, PRIMARY, 0)
        return Pattern(
            table.design,
            published_values(table),
            state.astype(np.int8),
            reasons=reasons,
            lower=lower,
            upper=upper,
            differences=tuple(differences),
            **of_table(table),
        )

    def _needs(self, rule: Rule, table: TrueTable) -> Needs:
        """What a rule asks for; widths of counts move up as far as there is no room below."""
        below, above = rule.needs(table)
        if not self._asks_for_widths(rule, table):
            return below, above
        missing = np.maximum(below - room_below(table.design, table.z), 0.0)
        return below - missing, above + missing

    def _asks_for_widths(self, rule: Rule, table: TrueTable) -> bool:
        """Whether a rule asks for widths of counts that are known not to be zero."""
        needs_zeros = getattr(rule, "needs_zeros", True)
        return not needs_zeros and self._hidden_counts_are_positive(table)

    def _hidden_counts_are_positive(self, table: TrueTable) -> bool:
        return self.zeros_are_public and _published_unit(table) == COUNT

    def _suppressed(self, table: TrueTable) -> Pattern:
        pattern, plan = self._sensitive(table)
        return _SECONDARY[self.secondary](pattern, plan, singletons=self.singletons)

    def _sensitive(self, table: TrueTable) -> tuple[Pattern, Plan]:
        primary = self.primary(table)
        pattern = replace(
            primary,
            costs=self._costs(table, primary.z),
            bounds=self._bounds(table, primary.z),
        )
        return pattern, self._plan(table, pattern)

    def _costs(self, table: TrueTable, z: Array) -> Real:
        costs = np.abs(z).astype(np.float64) if self.cost == "value" else np.ones(len(z))
        for cell, factor in self.priorities:
            costs[table.design.position(cell)] *= factor
        return costs

    def _bounds(self, table: TrueTable, z: Array) -> tuple[Real, Real] | None:
        """What is public of each published cell."""
        low, high = np.full(len(z), -np.inf), np.full(len(z), np.inf)
        if self._hidden_counts_are_positive(table):
            low = least_counts(z)
        for cell, least, most in self.bounds:
            place = table.design.position(cell)
            if not least <= z[place] <= most:
                raise ParameterError(
                    f"cell {dict(cell)} is said to lie between {least:g} and {most:g}, but its "
                    "value does not. Public bounds must hold."
                )
            low[place], high[place] = max(least, low[place]), most
        return (low, high) if np.isfinite([low, high]).any() else None

    def _plan(self, table: TrueTable, pattern: Pattern) -> Plan:
        n = len(pattern.z)
        must, never = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
        must[self._positions(table, "forced")] = True
        must[self._positions(table, "frozen")] = True
        never[self._positions(table, "forbidden")] = True
        _refuse_both(pattern, must & never)
        if self.zeros_are_public:
            must |= (pattern.z == 0) & ~never
        costs = pattern.costs
        score = priority(pattern, np.ones(n) if costs is None else costs + _unit(pattern.z))
        free = np.flatnonzero(~must & ~never & ~pattern.primary)
        order = free[np.argsort(-score[free], kind="stable")]
        return Plan(
            np.flatnonzero(must & ~pattern.primary),
            order,
            self.zeros_are_public,
            widths_rise=all(self._asks_for_widths(rule, table) for rule in self._rules),
        )

    def _positions(self, table: TrueTable, option: str) -> list[int]:
        return [table.design.position(cell) for cell in getattr(self, option)]

    def _statement(self) -> Statement:
        parameters = {
            "rules": [told(rule)[0] for rule in self._rules],
            "secondary": self.secondary,
            "zeros": not self.zeros_are_public,
            "singletons": self.singletons,
            "cost": self.cost,
            "decimals": None if self.decimals is None else self.decimals.residual,
        }
        return statement_of(self.name, parameters, self._said())

    def _said(self) -> list[Sentence]:
        has_intervals = self.secondary != "gauss"
        has_decimals = self.decimals is not None
        said = suppressed_cells(self._rules, has_intervals=has_intervals, has_decimals=has_decimals)
        if not self.forced:
            said += thresholds(self._rules, has_decimals=has_decimals)
        if has_intervals and not self.forced:
            said += widths(self._rules, zeros_are_public=self._says_zeros)
        said += limits(
            zeros_are_public=self._says_zeros,
            singletons=self.singletons,
            has_forced=bool(self.forced),
            has_intervals=has_intervals,
            has_sums=not all(isinstance(rule, CountRule) for rule in self._rules),
        )
        return said + ([] if self.decimals is None else list(self.decimals.sentences()))


def _check_kind(rule: Rule, table: TrueTable) -> None:
    """Refuse rules for counts where sums are published, and the other way round."""
    unit = _published_unit(table)
    if unit == COUNT and table.contributions is not None and getattr(rule, "units", ()) == (VALUE,):
        raise ParameterError(
            f"rule {type(rule).__name__} is about sums of {table.contributions.value!r}, but "
            "counts are published. Use a rule for counts, such as Threshold(3), or leave unit= out."
        )
    if unit != COUNT and isinstance(rule, CountRule):
        raise ParameterError(
            f"rule {type(rule).__name__} is about counts, but sums of {unit!r} are published. "
            "Use a rule for sums: FewContributors(3), PPercent(10), Dominance(1, 80); or "
            "unit='count'."
        )


def _published_unit(table: TrueTable) -> str:
    given = table.contributions
    return COUNT if given is None or table.unit == COUNT else given.value


def _unit(z: Array) -> float:
    """What an empty cell costs: as much as one more in a count, nothing beside magnitudes."""
    return 1.0 if z.dtype.kind in "iu" else 0.0


def _refuse_both(pattern: Pattern, both: Mask) -> None:
    for cell in pattern.cells(both):
        named = ", ".join(f"{name}={code}" for name, code in cell.items()) or "the total"
        raise ParameterError(
            f"cell {named} is forbidden, but also among the cells that must be shown (forced or "
            "frozen). Take it out of one of the lists."
        )


def _as_given(pattern: Pattern, table: TrueTable, order: Arrangement) -> Pattern:
    """A pattern of the canonical table in the order of the table that was given."""
    place, moved = order.published, {}
    for name in ("z", "state", "lower", "upper", "costs"):
        moved[name] = _put_back(getattr(pattern, name), place)
    for name in ("y", "lone", "owner", "known"):
        moved[name] = _put_back(getattr(pattern, name), order.inner)
    moved["reasons"] = {int(place[k]): why for k, why in pattern.reasons.items()}
    moved["differences"] = tuple(
        replace(d, cells=tuple(int(place[k]) for k in d.cells)) for d in pattern.differences
    )
    if pattern.bounds is not None:
        moved["bounds"] = tuple(_put_back(side, place) for side in pattern.bounds)
    if pattern.proofs is not None:
        moved["proofs"] = pattern.proofs.placed(order.inner)
    return replace(pattern, design=table.design, **moved)


def _put_back(values: Array | None, place: Array) -> Any:
    return None if values is None else spread(values, place, len(place))
