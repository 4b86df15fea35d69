"""Code lists as plain data: codes, labels and parents, from which hierarchies are made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

TOTAL = "TOTAL"
NOT_APPLICABLE = "NAP"


@dataclass(frozen=True)
class CodeEntry:
    """One code: its label and the code it is part of (None for the total)."""

    code: str
    label: str
    parent: str | None


@dataclass(frozen=True)
class CodeList:
    """The codes of one variable, from the total down to the codes that records carry.

    Every entry but the first has a parent that stands before it. Depth may be unequal: "not
    applicable" is a direct child of the total.

    Args:
      variable: The column the codes belong to.
      levels: Names of the levels, the total first.
      entries: The codes, each parent before its children.
    """

    variable: str
    levels: tuple[str, ...]
    entries: tuple[CodeEntry, ...]

    @cached_property
    def parents(self) -> Mapping[str, str]:
        """From each code but the total to the code it is part of."""
        return {e.code: e.parent for e in self.entries if e.parent is not None}

    @cached_property
    def labels(self) -> Mapping[str, str]:
        """From each code to its label."""
        return {e.code: e.label for e in self.entries}

    @cached_property
    def leaves(self) -> tuple[str, ...]:
        """The codes that records carry, in the order of the list."""
        inner = set(self.parents.values())
        return tuple(e.code for e in self.entries if e.code not in inner)

    def leaves_under(self, *codes: str) -> frozenset[str]:
        """The leaves that belong to any of `codes`."""
        return frozenset(leaf for leaf in self.leaves if not self._line(leaf).isdisjoint(codes))

    def _line(self, code: str) -> set[str]:
        """The code and everything it is part of."""
        line = {code}
        while code in self.parents:
            code = self.parents[code]
            line.add(code)
        return line


Pair = tuple[str, str]


def nested(
    variable: str,
    levels: tuple[str, ...],
    groups: Iterable[tuple[Pair, Iterable[Pair]]],
    *,
    not_applicable: str | None = None,
) -> CodeList:
    """A list with one level of groups between the total and the leaves.

    Args:
      variable: The column the codes belong to.
      levels: Names of the three levels.
      groups: Each group as (code, label), followed by its leaves as (code, label).
      not_applicable: Label of the leaf "not applicable", directly under the total, if there is one.
    """
    entries = [CodeEntry(TOTAL, "Total", None)]
    for (group, group_label), leaves in groups:
        entries.append(CodeEntry(group, group_label, TOTAL))
        entries.extend(CodeEntry(code, label, group) for code, label in leaves)
    if not_applicable is not None:
        entries.append(CodeEntry(NOT_APPLICABLE, not_applicable, TOTAL))
    return CodeList(variable, levels, tuple(entries))


def flat(variable: str, leaves: Iterable[Pair]) -> CodeList:
    """A list of leaves directly under the total."""
    entries = [CodeEntry(code, label, TOTAL) for code, label in leaves]
    return CodeList(variable, ("total", variable), (CodeEntry(TOTAL, "Total", None), *entries))
