"""An attack as a measure of risk, so that methods can be compared and tuned by what it recovers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from discreet.assessment.measure import BaseMeasure, Kind, NotApplicableError, Score
from discreet.attacks.custodian import Custodian
from discreet.attacks.frame import Attack, Knowledge
from discreet.attacks.games import OF_RECORDS, play_with, trait
from discreet.attacks.run import refusal_of
from discreet.facade.table import Table
from discreet.tables.protected import Protected

_SEED = 1  # of people and draws: the same ones for all methods that are compared


@dataclass(frozen=True)
class AttackLift(BaseMeasure):
    """The lift of an attack above its baseline; nothing where it has nothing to attack.

    Args:
      attack: The attack.
    """

    kind: ClassVar[Kind] = "risk"
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    attack: Attack

    @property
    def name(self) -> str:
        """The name of the attack."""
        return self.attack.name

    def __call__(self, table: Table, protected: Protected) -> Score:
        """The largest lift of the attack; nothing to attack is none."""
        if trait(self.attack, "about") in OF_RECORDS:
            raise NotApplicableError(f"attack {self.name!r} is about synthetic records.")
        if refusal_of(self.attack, protected, Knowledge(), False):
            return self.score(0.0, "nothing to attack")
        custodian = Custodian.of(table, protected, Knowledge(), seed=_SEED)
        found = play_with(self.attack, custodian)
        return self.score(found.lift, f"{found.judged.claims} claims, beside {found.beside}")
