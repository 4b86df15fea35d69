"""What to ask the engine: all variables at once, or one margin after the other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from discreet.design.product import LARGEST_DENSE

HELD = 8_000_000
"""Inner cells that are read and held whatever is published."""

_AFFORDABLE = 8  # the crossing may be this many times larger than the margins that are asked for

Variables = tuple[str, ...]


def largest_sets(sets: Sequence[Variables]) -> list[Variables]:
    """The sets of variables that lie in no other, each once."""
    unique = list({frozenset(s): s for s in sets}.values())
    return [s for s in unique if not any(set(s) < set(other) for other in unique)]


def crossing(variables: Variables, sizes: Mapping[str, int]) -> int:
    """Number of combinations of categories."""
    return math.prod(sizes[v] for v in variables)


def holds_inner(variables: Variables, sets: Sequence[Variables], sizes: Mapping[str, int]) -> bool:
    """Whether the full crossing of the variables is worth holding.

    It is when it has at most `HELD` cells, or at most eight times the cells of the largest margins
    asked for, and in any case at most `LARGEST_DENSE`.
    """
    inner = crossing(variables, sizes)
    asked = sum(crossing(s, sizes) for s in sets)
    return inner <= LARGEST_DENSE and (inner <= HELD or inner <= _AFFORDABLE * asked)
