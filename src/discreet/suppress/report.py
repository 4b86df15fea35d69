"""What a pattern hides, for the custodian: by level, by rule, and the costliest cells with reasons.

Confidential: it tells sensitive cells from those that protect them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.display import Display, Displayed, Grid, align_columns
from discreet.rules.counts import PrimaryRule, lines
from discreet.suppress.pattern import Pattern
from discreet.suppress.plan import cell_name
from discreet.tables.truth import TrueTable

_COSTLIEST, _MOST_NAMED = 5, 20  # more than a screen of them is read by nobody


@dataclass(frozen=True)
class PatternReport(Displayed):
    """**Confidential.** What a pattern hides and why.

    Attributes:
      levels: For each table and level: shown, primary and secondary cells.
      found: How many cells each rule found; a cell can be found by several.
      costliest: The secondary cells with the largest values, and why each is hidden.
      unproved: Contributors of whom no proof was found that no sum of hidden cells tells too much.
    """

    levels: Mapping[str, tuple[int, int, int]]
    found: Mapping[str, int]
    costliest: Mapping[str, str]
    unproved: tuple[str, ...] = ()

    @property
    def summary(self) -> dict[str, Any]:
        """The report as plain data."""
        names = ("shown", "primary", "secondary")
        return {
            "levels": {k: dict(zip(names, v, strict=True)) for k, v in self.levels.items()},
            "found_by_rule": dict(self.found),
            "costliest_secondaries": dict(self.costliest),
            "unproved_contributors": list(self.unproved),
        }

    def __str__(self) -> str:
        head, *levels = self._rows("Confidential.")
        rows = align_columns([head, *(("  " + line[0], *line[1:]) for line in levels)], (1, 2, 3))
        return "\n".join([*rows, *("\n  ".join([said, *lines]) for said, lines in self._blocks())])

    def _display(self) -> Display:
        grid = Grid.of(self._rows("cells"), right=(1, 2, 3))
        return Display("Suppressed cells", "confidential", grids=[grid], lines=self._blocks())

    def _rows(self, corner: str) -> list[tuple[str, ...]]:
        rows = ((name, *(f"{n:,}" for n in counts)) for name, counts in self.levels.items())
        return [(corner, "shown", "primary", "secondary"), *rows]

    def _blocks(self) -> list[tuple[str, list[str]]]:
        """Headings and what stands under them."""
        rules = [f"{name}: {n:,} cells" for name, n in self.found.items()]
        costly = [f"{cell}: {why}" for cell, why in self.costliest.items()]
        blocks = [("Found by rule", rules)] if rules else []
        # Statements follow from method and design alone, so that only the custodian is told.
        hides = any(primary or secondary for _, primary, secondary in self.levels.values())
        forced = "No cell is hidden: those that the rules find are shown all the same (forced=)."
        none = forced if any(self.found.values()) else "No cell is sensitive, so all are shown."
        blocks += [] if hides else [(none, [])]
        costliest = "Costliest cells that are hidden to protect others"
        blocks += [(costliest, costly)] if costly else []
        if self.unproved:
            said = "Contributors of whom it is open whether some sum of hidden cells tells too much"
            more = len(self.unproved) - _MOST_NAMED
            rest = [f"and {more:,} others"] if more > 0 else []
            named = [*self.unproved[:_MOST_NAMED], *rest]
            blocks.append((f"{said}: {len(self.unproved):,}", named))
        return blocks


def describe_pattern(
    pattern: Pattern, table: TrueTable | None = None, rules: Sequence[PrimaryRule] = ()
) -> PatternReport:
    """What a pattern hides and why.

    Args:
      pattern: The pattern.
      table: The table, to count what each rule finds by itself; otherwise a cell counts for the
        first rule that found it.
      rules: The rules.
    """
    if table is not None and rules:
        found = {rule.name: int(rule.primaries(table).sum()) for rule in rules}
    else:
        found = dict(Counter(pattern.reasons.values()))
    # Who is alone in a cell without an identifier has a number beyond all others.
    names = (*pattern.owners, "somebody without an identifier")
    unproved = tuple(dict.fromkeys(names[min(k, len(pattern.owners))] for k in pattern.unproved))
    return PatternReport(_levels(pattern), found, _costliest(pattern), unproved)


def _levels(pattern: Pattern) -> dict[str, tuple[int, int, int]]:
    design = pattern.design.over_variables
    if design is None:
        return {"all cells": _counts(pattern.state)}
    levels: dict[str, tuple[int, int, int]] = {}
    for k, block in enumerate(design.blocks):
        named = " × ".join(level.name for level in block.levels if level is not None)
        start = design.offsets[k]
        states = pattern.state[start : start + len(design.block_cells(k))]
        levels[named or "total"] = _counts(states)
    return {**levels, "all cells": _counts(pattern.state)}


def _counts(states: Any) -> tuple[int, int, int]:
    shown, primary, secondary = np.bincount(states, minlength=3).tolist()
    return shown, primary, secondary


def _costliest(pattern: Pattern) -> dict[str, str]:
    costs = np.abs(pattern.z) if pattern.costs is None else pattern.costs
    secondary = np.flatnonzero(pattern.secondary)
    chosen = secondary[np.argsort(-costs[secondary], kind="stable")][:_COSTLIEST].tolist()
    reasons = _reasons(pattern, chosen)
    design = pattern.design
    return {f"{cell_name(design, k)} ({pattern.z[k]:,.10g})": reasons[k] for k in chosen}


def _reasons(pattern: Pattern, cells: Sequence[int]) -> dict[int, str]:
    """Why each secondary cell is hidden, from the sums that it is part of."""
    design, hidden, sensitive = pattern.design, pattern.suppressed, pattern.primary
    said: dict[int, list[tuple[int, str]]] = {k: [] for k in cells}
    for line in lines(design):
        for k in np.intersect1d(line.child, np.array(cells, dtype=np.int64)).tolist():
            for parent in line.parent[line.child == k].tolist():
                parts = line.child[line.parent == parent]
                others = parts[hidden[parts] & (parts != k)]
                total = cell_name(design, parent)
                if hidden[parent] or not len(others):
                    continue
                # Fewer hidden cells in a sum are a stronger reason: alone, one would follow.
                first = others[np.argsort(~sensitive[others], kind="stable")][0]
                kind = "sensitive" if sensitive[first] else "hidden"
                text = f"{kind} {cell_name(design, int(first))}"
                told = [d.why for d in pattern.differences if set(d.cells) == set(others.tolist())]
                if told:
                    why = f"shown, it would give {told[0]}, as the rest of {total}"
                elif len(others) == 1:
                    why = f"shown, it would give the {text}, as the rest of {total}"
                else:
                    why = f"one of {len(others) + 1} hidden parts of {total}, beside the {text}"
                is_weak = not (told or sensitive[first])
                said[k].append((len(others) + is_weak * len(hidden), why))
    fallback = "its parts or its sum are hidden, and it would narrow their intervals"
    return {k: min(whys)[1] if whys else fallback for k, whys in said.items()}
