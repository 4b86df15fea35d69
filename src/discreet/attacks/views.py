"""Tables as an intruder takes them together: alone, in pairs that share a variable, or all.

People of a whole publication are combinations of everything that any table shows, often millions.
Attacks then look at fewer tables at a time, over no more combinations than these tell apart.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from discreet.arrays import Array
from discreet.design.formula import Term, resolve
from discreet.design.parts import sum_to_levels
from discreet.design.structured import StructuredDesign
from discreet.facade.table import Table
from discreet.release.tabulate import take_part
from discreet.tables.protected import Protected

TOGETHER = 4_000
"""Combinations up to which tables are attacked together: reconstruction decides so many."""


def views_of(design: StructuredDesign) -> dict[str, list[Term]]:
    """Margins that are attacked together, by a name for people."""
    tables = {name: list(terms) for name, terms in design.tables.items()}
    every = list(dict.fromkeys(term for terms in tables.values() for term in terms))
    if len(tables) <= 1 or combinations(design, every) <= TOGETHER:
        return {"all tables" if len(tables) > 1 else next(iter(tables), "the table"): every}
    views = dict(tables)
    for one, other in itertools.combinations(tables, 2):
        both = list(dict.fromkeys([*tables[one], *tables[other]]))
        shared = _variables(design, tables[one]) & _variables(design, tables[other])
        if shared and combinations(design, both) <= TOGETHER:
            views[f"{one} + {other}"] = both
    return views


def combinations(design: StructuredDesign, terms: Sequence[Term]) -> int:
    """How many combinations some margins can tell apart at most."""
    blocks = resolve(design.axes, terms)
    sizes = []
    for a, axis in enumerate(design.axes):
        levels = list({id(b.levels[a]): b.levels[a] for b in blocks}.values())
        groups = [level.group for level in levels if level is not None]
        if any(level.is_identity for level in levels if level is not None):
            sizes.append(len(axis))
        elif groups:
            sizes.append(len(np.unique(np.array(groups), axis=1).T))
    return math.prod(sizes)


def _variables(design: StructuredDesign, terms: Sequence[Term]) -> set[int]:
    blocks = resolve(design.axes, terms)
    return {a for b in blocks for a, level in enumerate(b.levels) if level is not None}


def public_view(release: Protected, terms: Sequence[Term]) -> Protected:
    """Some margins of a release over the combinations that they tell apart."""
    part: Any = take_part(release, list(terms))  # type: ignore[type-var]
    coarse = part.design.at_published_levels()
    if coarse is None:
        return part  # type: ignore[no-any-return]
    y = sum_to_levels(part.design, coarse, part.y) if isinstance(part.y, np.ndarray) else None
    found: Protected = replace(part, design=coarse, y=y)
    return found


def true_view(table: Table) -> Table:
    """A table over the combinations that its margins tell apart; one without counts as it is."""
    if table.inner is None or table.contributions is not None:
        return table
    design = table.design.require_variables("variables to be attacked by")
    coarse = design.at_published_levels()
    if coarse is None:
        return table

    def sum_values(values: Array) -> Array:
        return sum_to_levels(design, coarse, values)

    inner = table.inner.apply_linear(sum_values, table.convention)
    found: Table = replace(table, design=coarse, inner=inner)
    return found
