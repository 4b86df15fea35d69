"""Cell suppression: sensitive cells are not shown, and neither are cells that would give them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from discreet import registry
from discreet.arrays import Array, Real
from discreet.errors import (
    InfeasibleError,
    ParameterError,
    check_known,
    is_number,
    truth_value,
)
from discreet.protect.sentences import statement_of
from discreet.rules.counts import (
    CountRule,
    Difference,
    Needs,
    PrimaryRule,
    Threshold,
    public_name_and_reason,
)
from discreet.suppress.decimals import Decimals
from discreet.suppress.exceptions import rule_of_text
from discreet.suppress.interval import suppress_by_interval
from discreet.suppress.optimal import lower_bound, suppress_by_optimum
from discreet.suppress.pattern import (
    PRIMARY,
    SECONDARY,
    Pattern,
    of_table,
    published_values,
    tell_watchers,
)
from discreet.suppress.plan import (
    KEPT,
    REACH,
    PublicationPlan,
    cell_name,
    draw_decoys,
    draw_factors,
    hidden_before,
    inner_cells_with,
    room_below,
    with_doubted_cells,
)
from discreet.suppress.sentences import (
    PEOPLE,
    contributor_sums,
    limits,
    suppressed_cells,
    thresholds,
    widths,
)
from discreet.suppress.unions import closeness_of, find_unions
from discreet.tables.canonical import Arrangement, canonical_order, canonical_table
from discreet.tables.protected import COUNT, VALUE, CellStatus, Claims, Draws, Protected
from discreet.tables.statement import Statement
from discreet.tables.truth import TrueTable

CellLike = Mapping[str, object]
CellCodes = dict[str, str]
_COSTS = ("value", "cells")
# Each round protects the sums that told too much of somebody; what is left then is not proven.
_ROUNDS = 20
_SECONDARY = {"interval": suppress_by_interval, "optimal": suppress_by_optimum}
_AT_ONCE = (
    "here the whole table and all tables linked with it are protected at once, in any number of "
    'dimensions: secondary="interval", the default, keeps the intervals that the rules ask for'
)
_ELSEWHERE = {
    "hypercube": f"the hypercube of τ-ARGUS is not offered; {_AT_ONCE}.",
    "modular": f"the modular approach of τ-ARGUS works subtable by subtable; {_AT_ONCE}.",
    "network": f"the network flows of τ-ARGUS are for two dimensions; {_AT_ONCE}.",
}
"""What other programs call their ways, and which of ours stands for each."""
_NO_GAUSS = (
    'secondary="gauss", elimination, is gone: "interval" takes its place, which keeps intervals, '
    "also for tables without inner cells. Leave secondary= out; 0.4 refuses it."
)


@dataclass(frozen=True)
class Suppress:
    r"""Suppression of sensitive cells, and of others that protect them.

    With `"interval"`, cells are suppressed until other tables with the same published cells and
    nothing negative prove that each sensitive cell could be as far from its value as its rule asks.
    Where empty cells are shown, these tables have no hidden count of zero.
    `"optimal"` finds the cheapest such pattern of a small table. All tables of the design are
    protected at once.

    Promise: cells that are shown are true; every sensitive cell keeps the width of its rule, for
    everybody and with `singletons` for each contributor, who knows the cells he is alone in, at any
    level, and his parts of others. Rules for sums of a value hold of every sum of hidden cells that
    a contributor is in, as far as it is proven (`Pattern.unproved`); with `PPercent(10, n=2)`
    against every two who pool what they know. Of a table that was read without inner cells nothing
    is known of contributors, and the promise holds for the public. The pattern follows from the
    true values, and from costs that are drawn from the table's secret where it has one: without
    them whoever runs the program on every table that fits can rule out most.
    Cost: for 20,000 cells, with `"interval"`, a minute for counts, several for sums.

    Args:
      rules: What makes a cell sensitive: a rule, or several, also as texts such as `"p%(10)"`.
      secondary: How cells that protect others are chosen: `"interval"` or `"optimal"`.
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
        within these bounds.

    See Langsrud (2024), Lupp & Langsrud (2021), and Fischetti & Salazar-González (2000).
    """

    rules: Sequence[PrimaryRule | str] | PrimaryRule | str = Threshold(3)
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
            "rules": _read_rules(self.rules),
            "decimals": _read_decimals(self.decimals),
            "priorities": _read_priorities(self.priorities),
            "bounds": _read_bounds(self.bounds),
        }
        given |= {o: _read_cells(o, getattr(self, o)) for o in ("forced", "frozen", "forbidden")}
        for option, read in given.items():
            object.__setattr__(self, option, read)
        if self.zeros is not None:
            truth_value("zeros", self.zeros)
        truth_value("singletons", self.singletons)
        if self.secondary in _ELSEWHERE:
            raise ParameterError(f"secondary={self.secondary!r}: {_ELSEWHERE[self.secondary]}")
        if self.secondary == "gauss":
            # Shown to everybody, also where a file or the command line names it: results change.
            warnings.warn(_NO_GAUSS, FutureWarning, stacklevel=3)
            object.__setattr__(self, "secondary", "interval")
        check_known("secondary suppression", [self.secondary], _SECONDARY)
        check_known("cost", [self.cost], _COSTS)

    @property
    def claims(self) -> Claims:
        """What every release of this method keeps; its pattern follows the truth."""
        blocked = [r.max for r in self._rules if isinstance(r, Threshold) and not self.forced]
        has_decimals = self.decimals is not None
        return Claims(
            additive=has_decimals,
            unbiased=False,
            keeps_zeros=not has_decimals or self.zeros_are_public,
            max_move=math.inf if has_decimals else 0.0,
            blocked=() if has_decimals else range(1, max(blocked, default=0) + 1),
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
    def _rules(self) -> tuple[PrimaryRule, ...]:
        return tuple(self.rules)  # type: ignore[arg-type]  # a tuple since it was made

    def __call__(self, table: TrueTable, *, draws: Draws) -> Protected:
        """Suppress cells; nothing is drawn unless decimals take their place."""
        pattern = tell_watchers(self.pattern(table))
        if self.decimals is None:
            y, z = None, np.where(pattern.suppressed, 0, pattern.z)
            status = np.where(pattern.suppressed, CellStatus.suppressed, CellStatus.published)
        else:
            y, z, is_decimal = self.decimals(pattern, rng=draws.generator(self, table))
            status = np.where(is_decimal, CellStatus.decimal, CellStatus.published)
        return Protected.of(
            pattern.design,
            z,
            self._statement(pattern, units_of(table)),
            y=y,
            status=status.astype(np.int8),
            unit=_published_unit(table),
        )

    def pattern(self, table: TrueTable) -> Pattern:
        """Which cells are suppressed and why. **Confidential**: it holds the true values."""
        wider, order = self._with_order(table)
        ordered = canonical_table(wider, order)
        try:
            found = self._true_to_contributors(*self._sensitive(ordered))
        except InfeasibleError:
            if table.secret is None:
                raise
            # There may be no room for a decoy, which need not be one.
            found = self._true_to_contributors(*self._sensitive(ordered, decoys=False))
        found = replace(_without_decoys(found), method=self, is_drawn=table.secret is not None)
        return found if order is None else found.put_back(wider.design, order)

    def _true_to_contributors(self, pattern: Pattern, plan: PublicationPlan) -> Pattern:
        """Secondary suppressions, until no sum of hidden cells tells too much of a contributor."""
        options = {"singletons": self.singletons}
        found = _SECONDARY[self.secondary](pattern, plan, **options)
        unions = find_unions(found)
        for _ in range(_ROUNDS):
            if not unions.sums:
                break
            # Needs stay where they were moved. A search anew would take as long as the first one,
            # though a few cells are missing.
            differences = (*pattern.differences, *unions.sums)
            pattern = replace(
                pattern, differences=differences, lower=found.lower, upper=found.upper
            )
            if self.secondary == "optimal":
                found = suppress_by_optimum(pattern, plan, **options)
                unions = find_unions(found)
            else:
                wider = suppress_by_interval(pattern, plan, **options, earlier=found)
                unions, found = find_unions(wider, found, unions), wider
        left = {owner for each in unions.sums for owner in each.owners}
        return replace(found, unproved=tuple(sorted({*unions.unproved, *left})))

    def follow(self, table: TrueTable, earlier: Sequence[Protected]) -> Suppress:
        """The method for a new edition: what earlier ones hid is hidden again rather than others.

        A cell that is shown once stands in for what other editions hide.
        """
        again = [(cell, KEPT) for cell in hidden_before(table.design, earlier)]
        return replace(self, priorities=(*self.priorities, *again))

    def lower_bound(self, table: TrueTable) -> float:
        """What every pattern costs at least that keeps all intervals; for small tables.

        It follows from a linear relaxation of `"optimal"`, and stands beside the cost of other
        patterns. **Confidential.**
        """
        pattern, plan = self._sensitive(canonical_table(*self._with_order(table)))
        return lower_bound(pattern, plan, singletons=self.singletons)

    def _with_order(self, table: TrueTable) -> tuple[TrueTable, Arrangement | None]:
        """The table with all cells in doubt, and the order in which patterns are looked for."""
        # Ties between cells are broken by their order: with one order for all tables, `a*b` and
        # `b*a` have the same pattern.
        wider = with_doubted_cells(table, zeros_are_public=self.zeros_are_public)
        return wider, canonical_order(wider.design)

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
            # The strictest rule decides how far an interval reaches, the first one what is said.
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
            closeness=closeness_of(self._rules, table),
            **of_table(table),
        )

    def _needs(self, rule: PrimaryRule, table: TrueTable) -> Needs:
        """What a rule asks for; widths of counts move up as far as there is no room below."""
        below, above = rule.needs(table)
        if not self._asks_for_widths(rule, table):
            return below, above
        missing = np.maximum(below - room_below(table.design, table.z), 0.0)
        return below - missing, above + missing

    def _asks_for_widths(self, rule: PrimaryRule, table: TrueTable) -> bool:
        """Whether a rule asks for widths of counts that are known not to be zero."""
        needs_zeros = getattr(rule, "needs_zeros", True)
        return not needs_zeros and self._hidden_counts_are_positive(table)

    def _hidden_counts_are_positive(self, table: TrueTable) -> bool:
        return self.zeros_are_public and _published_unit(table) == COUNT

    def _sensitive(
        self, table: TrueTable, *, decoys: bool = True
    ) -> tuple[Pattern, PublicationPlan]:
        """The sensitive cells with costs and public bounds, and what else may be published."""
        found = self.primary(table)
        if decoys:
            found = self._with_decoys(table, found)
        costs, bounds = self._costs(table, found.z), self._bounds(table, found.z)
        y = inner_cells_with(table.design, found.z) if found.y is None else found.y
        pattern = replace(found, costs=costs, bounds=bounds, y=y)
        return pattern, self._plan(table, pattern)

    def _with_decoys(self, table: TrueTable, found: Pattern) -> Pattern:
        """The pattern with some counts that are treated as sensitive, without a reason."""
        most = max((rule.max for rule in self._rules if isinstance(rule, Threshold)), default=0)
        if not most or _published_unit(table) != COUNT:
            return found
        chosen = draw_decoys(table, most) & ~found.primary
        chosen[self._positions(table, "forced") + self._positions(table, "frozen")] = False
        needs = self._needs(Threshold(REACH * most), table)
        lower, upper = (np.where(chosen, need, 0.0) for need in needs)
        if found.lower is not None and found.upper is not None:
            lower, upper = np.maximum(lower, found.lower), np.maximum(upper, found.upper)
        state = np.where(chosen, PRIMARY, found.state)
        return replace(found, state=state.astype(np.int8), lower=lower, upper=upper)

    def _costs(self, table: TrueTable, z: Array) -> Real:
        costs = np.abs(z).astype(np.float64) if self.cost == "value" else np.ones(len(z))
        for cell, factor in self.priorities:
            costs[table.design.position(cell)] *= factor
        factors = draw_factors(table)
        if factors is None:
            return costs
        # An empty cell costs something as well, and what it costs must not be the same for all.
        return (costs + (1.0 if z.dtype.kind in "iu" else 0.0)) * factors

    def _bounds(self, table: TrueTable, z: Array) -> tuple[Real, Real] | None:
        """What is public of each published cell."""
        low, high = np.full(len(z), -np.inf), np.full(len(z), np.inf)
        if self._hidden_counts_are_positive(table):
            low = np.where(z > 0, 1.0, -np.inf)
        for cell, least, most in self.bounds:
            place = table.design.position(cell)
            if not least <= z[place] <= most:
                raise ParameterError(
                    f"cell {dict(cell)} is said to lie between {least:g} and {most:g}, but its "
                    "value does not. Public bounds must hold."
                )
            low[place], high[place] = max(least, low[place]), most
        return (low, high) if np.isfinite([low, high]).any() else None

    def _plan(self, table: TrueTable, pattern: Pattern) -> PublicationPlan:
        n = len(pattern.z)
        must, never = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
        must[self._positions(table, "forced") + self._positions(table, "frozen")] = True
        never[self._positions(table, "forbidden")] = True
        for k in np.flatnonzero(must & never).tolist():
            raise ParameterError(
                f"cell {cell_name(table.design, k)} is forbidden, but also among the cells that "
                "must be shown (forced or frozen). Take it out of one of the lists."
            )
        if self.zeros_are_public:
            must |= (pattern.z == 0) & ~never
        return PublicationPlan(
            np.flatnonzero(must & ~pattern.primary),
            np.flatnonzero(~must & ~never & ~pattern.primary),
            self.zeros_are_public,
            widths_rise=all(self._asks_for_widths(rule, table) for rule in self._rules),
        )

    def _positions(self, table: TrueTable, option: str) -> list[int]:
        return [table.design.position(cell) for cell in getattr(self, option)]

    def _statement(self, pattern: Pattern | None = None, units: str = PEOPLE) -> Statement:
        has_decimals = self.decimals is not None
        # Without inner cells it is not known who is alone in them, or what anybody has elsewhere.
        singletons = self.singletons and (pattern is None or pattern.lone is not None)
        # Where empty cells are shown, a hidden cell is not empty, unless it was forbidden.
        hides_no_zeros = self.zeros_are_public and not self.forbidden
        said = suppressed_cells(self._rules, units, has_decimals=has_decimals)
        if not self.forced:
            said += thresholds(self._rules, has_decimals=has_decimals)
        if not self.forced:
            said += widths(self._rules, zeros_are_public=hides_no_zeros)
        said += limits(
            zeros_are_public=hides_no_zeros,
            singletons=singletons,
            has_forced=bool(self.forced),
            has_sums=not all(isinstance(rule, CountRule) for rule in self._rules),
            is_drawn=pattern is not None and pattern.is_drawn,
        )
        said += contributor_sums(
            self._rules,
            is_covered=pattern is None
            or (bool(pattern.closeness) and pattern.contributions is not None),
            is_proven=pattern is None or not pattern.unproved,
        )
        parameters = {
            "rules": [public_name_and_reason(rule)[0] for rule in self._rules],
            "secondary": self.secondary,
            "zeros": not self.zeros_are_public,
            "singletons": singletons,
            "cost": self.cost,
            "decimals": None if self.decimals is None else self.decimals.residual,
        }
        decimals = [] if self.decimals is None else self.decimals.sentences()
        return statement_of(self.name, parameters, [*said, *decimals])


def _without_decoys(found: Pattern) -> Pattern:
    """The pattern in which decoys are what they are: cells that are hidden to protect others."""
    decoys = found.primary.copy()
    decoys[[*found.reasons]] = False
    lower, upper = (
        None if need is None else np.where(decoys, 0.0, need) for need in (found.lower, found.upper)
    )
    state = np.where(decoys, SECONDARY, found.state).astype(np.int8)
    return replace(found, state=state, lower=lower, upper=upper)


def units_of(table: TrueTable) -> str:
    """What the records are of, in the data set's own word."""
    usual = PEOPLE if _published_unit(table) == COUNT else "contributors"
    return table.data_set.units or usual


def _check_kind(rule: PrimaryRule, table: TrueTable) -> None:
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
            "Use rules for sums: FewContributors(3), PPercent(10), Dominance(1, 80), as texts "
            """rules=["few-contributors(3)", "p%(10)", "dominance(1,80)"]; or unit='count'."""
        )


def _published_unit(table: TrueTable) -> str:
    given = table.contributions
    return COUNT if given is None or table.unit == COUNT else given.value


def _read_rules(given: Any) -> tuple[PrimaryRule, ...]:
    """One rule or several, some perhaps as texts."""
    several = given if isinstance(given, Sequence) and not isinstance(given, str) else (given,)
    rules = tuple(rule_of_text(each) if isinstance(each, str) else each for each in several)
    parts = ("name", "why", "primaries", "needs")
    # A class has the same attributes as its instances, and `Suppress(Threshold)` is an error.
    is_rule = [not isinstance(r, type) and all(hasattr(r, part) for part in parts) for r in rules]
    if not rules or not all(is_rule):
        raise ParameterError(f"rules such as Threshold(3) were expected, got {given!r}.")
    return rules


def _read_decimals(given: Any) -> Decimals | None:
    """Decimals as they are, by the name of their residual, or as plain data."""
    if given is None or isinstance(given, Decimals):
        return given
    if isinstance(given, str):
        return Decimals(given)  # type: ignore[arg-type]  # checked where they are made
    if isinstance(given, Mapping):
        made: Decimals = registry.make(Decimals, given, "decimals")
        return made
    raise ParameterError(
        f"decimals are Decimals(), the name of a residual such as 'rmse', or None; got {given!r}."
    )


def _read_cells(option: str, given: Any) -> tuple[CellCodes, ...]:
    """Cells by their codes."""
    if isinstance(given, Mapping) or not isinstance(given, Sequence):
        raise ParameterError(f'{option} is a list of cells such as {{"sex": "f"}}, got {given!r}.')
    for cell in given:
        if not isinstance(cell, Mapping):
            raise ParameterError(
                f'cells of {option} are given by their codes, such as {{"sex": "f"}}, got {cell!r}.'
            )
    return tuple(dict(cell) for cell in given)


def _read_priorities(given: Any) -> tuple[tuple[CellCodes, float], ...]:
    """Cells with a factor on their cost."""
    entries = _entries("priorities", given, "a cell and a factor", 2)
    cells = _read_cells("priorities", [cell for cell, _ in entries])
    for _, factor in entries:
        if not is_number(factor) or not 0 < factor < np.inf:
            raise ParameterError(f"factors of priorities must be positive, got {factor!r}.")
    return tuple((c, float(factor)) for c, (_, factor) in zip(cells, entries, strict=True))


def _read_bounds(given: Any) -> tuple[tuple[CellCodes, float, float], ...]:
    """Cells with their smallest and largest possible values."""
    entries = _entries("bounds", given, "a cell, a smallest and a largest value", 3)
    cells = _read_cells("bounds", [cell for cell, _, _ in entries])
    for _, low, high in entries:
        if not is_number(low) or not is_number(high) or not low <= high:
            raise ParameterError(
                f"bounds are a cell, a smallest and a largest value, got {low!r} and {high!r}."
            )
    return tuple((c, float(a), float(b)) for c, (_, a, b) in zip(cells, entries, strict=True))


def _entries(option: str, given: Any, parts: str, length: int) -> list[Sequence[Any]]:
    """Entries that have as many parts as they need."""
    is_list = isinstance(given, Sequence) and not isinstance(given, str)
    for entry in given if is_list else [given]:
        if not isinstance(entry, list | tuple) or len(entry) != length or not is_list:
            raise ParameterError(f"{option} is a list, each entry {parts}; got {entry!r}.")
    return list(given)
