"""Which groups of categories visitors may form, by their definitions alone.

A filter of several categories is such a group. The rule is one of presentation where a visitor can
add up categories by hand.
"""

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
        """Refuse groups and populations of several categories that are not allowed."""
        if self.allowed == "own":
            return
        for variable, groups in question.query.groups.items():
            for label, codes in groups.items():
                self._require({*codes} == self._known(variable).get(label), variable)
        for variable, codes in question.query.where.items():
            is_known = {*codes} in self._known(variable).values()
            self._require(len(codes) == 1 or is_known, variable)

    def _known(self, variable: str) -> dict[str, set[str]]:
        """The groups of a variable that are allowed."""
        fixed = self.fixed.get(variable, {}) if self.allowed == "fixed" else {}
        return {label: {*codes} for label, codes in fixed.items()}

    def _require(self, is_allowed: bool, variable: str) -> None:
        if is_allowed:
            return
        if self.allowed == "none":
            message = "Categories cannot be added up to own groups or populations in this data set."
            raise Refusal("own_groups", message, "The categories and levels on offer.")
        listed = ", ".join(self._known(variable)) or "none"
        message = f"Groups of {variable!r} are fixed in this data set, in filters too."
        raise Refusal("own_groups", message, f"Groups: {listed}.")
