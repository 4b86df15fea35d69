"""Structural zeros: combinations of codes that cannot occur, and what a recode does to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from discreet.design.codes import canonical
from discreet.design.hierarchy import Hierarchy

Trees = tuple[Hierarchy, ...]
Rules = tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Moves:
    """Where codes went: the new code of those listed; others became `rest`, or stayed."""

    new_codes: Mapping[str, str]
    rest: str | None = None

    def __call__(self, code: str) -> str:
        """The new code of an old one."""
        return self.new_codes.get(code, code if self.rest is None else self.rest)


def moved_rules(rules: Rules, variable: str, moves: Moves | None, trees: Trees) -> Rules:
    """Structural zeros after a recode: a new code is impossible when all that went into it was.

    Args:
      rules: Impossible combinations, as {variable: codes}.
      variable: The recoded variable.
      moves: Where its codes went; `None` when that is not known, and rules on it are dropped.
      trees: The variable's hierarchies before the recode.
    """
    moved = (_moved(rule, variable, moves, trees) if variable in rule else rule for rule in rules)
    return tuple(rule for rule in moved if rule is not None)


def _moved(
    rule: Mapping[str, Any], variable: str, moves: Moves | None, trees: Trees
) -> Mapping[str, Any] | None:
    if moves is None:
        return None
    old = leaves_of(rule[variable], trees)
    known = {*moves.new_codes, *(trees[0].leaves if trees else ())}
    possible = {moves(code) for code in known - old} | {moves.rest}
    codes = {moves(code) for code in old} - possible
    return {**rule, variable: frozenset(codes)} if codes else None


def leaves_of(codes: Any, trees: Trees) -> set[str]:
    """The leaves that codes of any level stand for; codes outside the trees are leaves."""
    several = [codes] if isinstance(codes, str) or not isinstance(codes, Iterable) else codes
    found: set[str] = set()
    for code in map(canonical, several):
        tree = next((t for t in trees if code in t), None)
        found.update([code] if tree is None else tree.leaves_of(code))
    return found
