"""The policy of a data set: its rules, in the order in which they are asked."""

from __future__ import annotations

from dataclasses import dataclass, field

from discreet.errors import ParameterError
from discreet.release.cube import Cube
from discreet.serve.policy.rule import Judged, Rule
from discreet.serve.policy.size import MaxCells, MaxVariables
from discreet.serve.question import Question


@dataclass(frozen=True)
class Policy:
    """What visitors may ask of a data set.

    Attributes:
      max_variables: Most variables in one table, filters included.
      max_cells: Most cells in one table, totals included.
    """

    max_variables: int = field(default=3, metadata={"help": "Most variables in one table."})
    max_cells: int = field(default=10_000, metadata={"help": "Most cells, totals included."})

    def __post_init__(self) -> None:
        for name in ("max_variables", "max_cells"):
            if getattr(self, name) < 1:
                raise ParameterError(f"{name} must be at least 1, got {getattr(self, name)}.")

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules, cheap ones first."""
        return (MaxVariables(self.max_variables), MaxCells(self.max_cells))

    def check(self, question: Question) -> None:
        """Refuse what public sizes forbid."""
        for rule in self.rules:
            rule.check(question)

    def judged(self, question: Question, cube: Cube) -> Judged:
        """The cube as far as its protected values allow it to be shown."""
        found = Judged(cube)
        for rule in self.rules:
            found = rule.judge(question, found)
        return found
