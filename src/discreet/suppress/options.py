"""What `Suppress` is told, as people and recipes write it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from discreet import registry
from discreet.arrays import Array, Real
from discreet.design.base import Design
from discreet.design.support import Lift
from discreet.errors import ParameterError
from discreet.noise.checks import is_number
from discreet.protect.cells import lifted, on_public_support
from discreet.rules.counts import Rule, lines, rule_named
from discreet.suppress.decimals import Decimals
from discreet.suppress.pattern import Pattern, of_table
from discreet.tables.truth import TrueTable

CellLike = Mapping[str, object]
Cells = tuple[dict[str, str], ...]
_RULE = ("name", "why", "primaries", "needs")


def rules_of(given: Any) -> tuple[Rule, ...]:
    """One rule or several, some perhaps as texts."""
    several = given if isinstance(given, Sequence) and not isinstance(given, str) else (given,)
    rules = tuple(rule_named(each) if isinstance(each, str) else each for each in several)
    if not rules or not all(map(_is_rule, rules)):
        raise ParameterError(f"rules such as Threshold(3) were expected, got {given!r}.")
    return rules


def _is_rule(given: Any) -> bool:
    return not isinstance(given, type) and all(hasattr(given, part) for part in _RULE)


def decimals_of(given: Any) -> Decimals | None:
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


def cells_of(option: str, given: Any) -> Cells:
    """Cells by their codes."""
    if isinstance(given, Mapping) or not isinstance(given, Sequence):
        raise ParameterError(f'{option} is a list of cells such as {{"sex": "f"}}, got {given!r}.')
    for cell in given:
        if not isinstance(cell, Mapping):
            raise ParameterError(
                f'cells of {option} are given by their codes, such as {{"sex": "f"}}, got {cell!r}.'
            )
    return tuple(dict(cell) for cell in given)


def factors_of(given: Any) -> tuple[tuple[dict[str, str], float], ...]:
    """Cells with a factor on their cost."""
    entries = _entries("priorities", given, "a cell and a factor", 2)
    cells = cells_of("priorities", [cell for cell, _ in entries])
    factors = [factor for _, factor in entries]
    for factor in factors:
        if not is_number(factor) or not 0 < factor < np.inf:
            raise ParameterError(f"factors of priorities must be positive, got {factor!r}.")
    return tuple(zip(cells, map(float, factors), strict=True))


def bounds_of(given: Any) -> tuple[tuple[dict[str, str], float, float], ...]:
    """Cells with their smallest and largest possible values."""
    entries = _entries("bounds", given, "a cell, a smallest and a largest value", 3)
    cells = cells_of("bounds", [cell for cell, _, _ in entries])
    sides = [(low, high) for _, low, high in entries]
    for low, high in sides:
        if not is_number(low) or not is_number(high) or not low <= high:
            raise ParameterError(
                f"bounds are a cell, a smallest and a largest value, got {low!r} and {high!r}."
            )
    return tuple((c, float(a), float(b)) for c, (a, b) in zip(cells, sides, strict=True))


def _entries(option: str, given: Any, parts: str, length: int) -> list[Sequence[Any]]:
    """Entries that have as many parts as they need."""
    is_list = isinstance(given, Sequence) and not isinstance(given, str)
    for entry in given if is_list else [given]:
        if not isinstance(entry, list | tuple) or len(entry) != length or not is_list:
            raise ParameterError(f"{option} is a list, each entry {parts}; got {entry!r}.")
    return list(given)


_DETOUR = 2.0
"""A cell none of whose lines has a sensitive cell counts as this many times more expensive again.

Its suppression would need further ones in all its lines, and protect nothing there.
"""


def priority(pattern: Pattern, costs: Real) -> Real:
    """A number for each published cell: the larger, the sooner it is published.

    Costs come first; where they tie, cells with large neighbours do. Cells in lines that have a
    sensitive cell already are suppressed rather than others.
    """
    design = pattern.design
    near = np.asarray(design.aggregate(design.adjoint(costs)), dtype=np.float64)
    near /= max(float(near.max(initial=0.0)), 1.0)
    return (costs + 0.99 * _scale(costs) * near) * (1.0 + _DETOUR * (1.0 - _useful(pattern)))


def _scale(costs: Real) -> float:
    """The smallest difference between costs of whole numbers; a small part of others."""
    if (costs == np.rint(costs)).all():
        return 1.0
    return 1e-6 * float(np.abs(costs).max(initial=0.0))


def _useful(pattern: Pattern) -> Real:
    """The share of each cell's lines that have a sensitive cell."""
    n = len(pattern.z)
    needed, total = np.zeros(n), np.zeros(n)
    for line in lines(pattern.design):
        sensitive = np.zeros(n, dtype=bool)
        sensitive[line.parent[pattern.primary[line.child]]] = True
        needed[line.child] += sensitive[line.parent]
        total[line.child] += 1
    return np.divide(needed, total, out=np.ones(n), where=total > 0)


def least_counts(z: Array) -> Real:
    """What is public of each cell by itself: one, or nothing where it is shown as empty."""
    return np.where(z > 0, 1.0, -np.inf)


def room_below(design: Design, z: Array) -> Real:
    """How far each count can go down until parts that are not empty would be."""
    least = np.asarray(z > 0, dtype=np.float64)
    place = design.inner_in_published()
    least = np.maximum(least, design.aggregate(np.where(place >= 0, least[place], 0.0)))
    along = lines(design)
    before = least - 1
    while (least > before).any():
        before = least.copy()
        for line in along:
            parts = np.bincount(line.parent, least[line.child], len(least))
            least = np.maximum(least, parts)
    return np.asarray(z - least, dtype=np.float64)


_MOST_CELLS = 5_000_000  # of a full crossing that is searched for cells in doubt


def with_doubted_cells(table: TrueTable, *, zeros_are_public: bool) -> TrueTable:
    """The table with all inner cells that somebody could doubt, most of them empty.

    Which inner cells occur is confidential, and the intruder does not know it. Where empty
    published cells are shown as such, he rules out the inner cells in them and no others.

    Args:
      table: Any table.
      zeros_are_public: Whether every empty published cell is shown as empty.
    """
    if "known" in of_table(table):
        return table
    if not zeros_are_public:
        return on_public_support(table, with_inner=True)
    design = table.design
    if table.inner is None or design.support != "occurring":
        return table
    if math.prod(len(axis) for axis in design.axes) > _MOST_CELLS:
        return table
    return lifted(table, _in_doubt(design), with_inner=True)


def _in_doubt(design: Design) -> Lift[Design]:
    """To the design with every inner cell that lies in no empty published cell."""
    whole = design.public()
    is_empty = whole.publish(np.zeros(design.n_published, dtype=np.int64), outside=1)
    doubted = np.flatnonzero(whole.design.adjoint(is_empty) == 0)
    if len(doubted) == design.n_inner:
        return Lift(design, slice(None), slice(None))
    wider = whole.design.restricted(doubted, occurring=True).design
    return Lift(wider, slice(None), np.searchsorted(doubted, whole.require_inner()))
