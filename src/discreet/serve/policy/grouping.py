"""Which groups of categories visitors may form, by their definitions alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from discreet.serve.policy.rule import Rule
from discreet.serve.question import Question
from discreet.serve.refusals import Refusal

Groups = Literal["own", "fixed", "none"]


@dataclass(frozen=True)
class Grouping(Rule):
    """Groups of the visitor's own, those that the office fixed, or none.

    Attributes:
      allowed: Which groups.
      fixed: By variable the fixed groups, label → codes.
    """

    allowed: Groups
    fixed: Mapping[str, Mapping[str, Sequence[str]]]

    def check(self, question: Question) -> None:
        """Refuse groups that are not allowed."""
        asked = question.query.groups
        if self.allowed == "own" or not asked:
            return
        if self.allowed == "none":
            message = "Own groups of categories cannot be formed in this data set."
            raise Refusal("own_groups", message, "The categories and levels on offer.")
        for variable, groups in asked.items():
            known = {label: {*codes} for label, codes in self.fixed.get(variable, {}).items()}
            if any(known.get(label) != {*codes} for label, codes in groups.items()):
                listed = ", ".join(known) or "none"
                message = f"Groups of {variable!r} are fixed in this data set."
                raise Refusal("own_groups", message, f"Groups: {listed}.")
