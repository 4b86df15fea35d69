"""Variables that must not meet in one table, by their names alone."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.serve.policy.rule import Rule
from discreet.serve.question import Question
from discreet.serve.refusals import Refusal


@dataclass(frozen=True)
class Forbidden(Rule):
    """Sets of variables of which no table has all, filters included."""

    sets: tuple[tuple[str, ...], ...]

    def check(self, question: Question) -> None:
        """Refuse a table that brings all variables of a set together."""
        used = {asked.name: asked.variable.label_inside for asked in question.in_public_order}
        for together in self.sets:
            if {*together} <= {*used}:
                named = " and ".join(used[name] for name in together)
                message = f"{named} must not be combined in one table."
                raise Refusal("forbidden_combination", message, "Tables without one of them.")
