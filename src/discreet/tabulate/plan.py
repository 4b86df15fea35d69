"""What to ask the engine: all variables at once, or one margin after the other."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from discreet.design.support import LARGEST_DENSE
from discreet.errors import DesignError
from discreet.progress import notice

HELD = 8_000_000
"""Inner cells that are read and held whatever is published."""

_AFFORDABLE = 8  # the crossing may be this many times larger than the margins that are asked for

ANNOUNCED = 20_000_000
"""Cells of a table from which on its memory is announced."""

REFUSED = LARGEST_DENSE
"""Cells beyond which a table is refused."""

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


@dataclass(frozen=True)
class Size:
    """How large a table becomes, counted on the leaves of its variables.

    Attributes:
      inner: Inner cells that are held.
      published: Cells of the largest margins.
      values: Kinds of value for each cell: counts, keys, weights and their squares.
    """

    inner: int
    published: int
    values: int

    @property
    def memory(self) -> int:
        """Bytes that the table takes while it is made: inner values are held twice for a moment."""
        return 8 * self.values * (2 * self.inner + self.published)

    def announce(self) -> None:
        """Say what a large table takes before it is built; refuse one that cannot be held."""
        most, gigabytes, there = max(self.inner, self.published), self.memory / 1e9, _memory()
        if most > REFUSED:
            reason = f"more than the {REFUSED:,} that are held in memory"
        elif self.memory > there:
            reason = f"about {gigabytes:.1f} GB of memory; this machine has {there / 1e9:.1f} GB"
        elif most >= ANNOUNCED:
            notice(f"the table has {most:,} cells and takes about {gigabytes:.1f} GB of memory.")
            return
        else:
            return
        raise DesignError(
            f"the table would have {most:,} cells, {reason}. Publish fewer variables in one "
            "margin, recode some to coarser codes, or count with support='occurring'."
        )


def _memory() -> float:
    """Bytes of memory of this machine, as far as it tells."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return math.inf
