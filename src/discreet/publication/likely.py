"""Likely claims about people: what attacks on one table reached, on as many draws as it takes.

An attack has one draw at least. While its lift, or that of its surest claims, is above the rule of
the office but may be chance, it has further ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet import registry
from discreet.attacks.custodian import Custodian, Maker
from discreet.attacks.frame import Knowledge
from discreet.attacks.games import play_with, trait
from discreet.attacks.run import refusal_of
from discreet.attacks.scoring import Finding
from discreet.publication.rules import Gate

if TYPE_CHECKING:
    from discreet.facade.table import Table
    from discreet.tables.protected import Protected

SEED = 1  # of the experiments; fixed, so that a second run finds what the first one found
DRAWS = 2  # that proofs and attacks have at least, as far as there is time
_MOST_DRAWS = 12  # of one attack, while its lift is above the rule but perhaps by chance
_LEVEL = 0.999  # of a lift that stops: a publication has a hundred of them
_ABOUT_PEOPLE = ("attributes", "hidden")
"""What a lift is judged by. Claims about shown counts are reported: a count near the truth is what
tables are published for."""
_EXACT = ("integer-reconstruction", "bounds")


@dataclass
class LikelyClaims:
    """What attacks on one table reached, all draws together.

    Attributes:
      name: The table.
      table: Its true counts.
      make: Draws its release.
      rules: What the office allows.
      attacks: What was tried.
      findings: What each of them reached.
      stops: Which of them stop a publication by their lift.
    """

    name: str
    table: Table
    make: Maker
    rules: Gate
    attacks: list[Any] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    stops: list[bool] = field(default_factory=list)

    def attack_first(self, release: Protected) -> Iterator[str]:
        """Every attack on one draw."""
        custodian = self._custodian(release, SEED)
        for attack in _attacks(self.rules, release):
            yield f"{attack.name} in {self.name}"
            self.findings.append(play_with(attack, custodian))
            self.attacks.append(attack)
            self.stops.append(_is_about_people(attack, custodian))

    def attack_again(self) -> None:
        """Further draws for what is above the rule, or may be, but perhaps by chance."""
        left = [k for k, stops in enumerate(self.stops) if stops]
        for draw in range(1, _MOST_DRAWS):
            left = [k for k in left if self._is_in_doubt(self.findings[k], draw)]
            if not left:
                return
            seed = SEED + 104729 * draw  # apart from the seeds of the draws without records
            custodian = self._custodian(self.make(self.table, seed), seed)
            for k in left:
                again = play_with(self.attacks[k], custodian)
                self.findings[k] = self.findings[k].pooled(again)

    def verdict(self) -> tuple[list[str], list[str]]:
        """Lines of the report, and what is above the rule beyond chance."""
        lines, broken = [], []
        for attack, finding, stops in zip(self.attacks, self.findings, self.stops, strict=True):
            variable = getattr(attack, "variable", None)
            where = f"{self.name}, {variable}" if variable else self.name
            lines.append(f"- {where}: {finding}")
            for part, which in ((finding, ""), (finding.surest, "the surest claims of ")):
                low = part.gain(_LEVEL)
                if stops and low > self.rules.lift:
                    broken.append(
                        f"{which}{where}: {attack.name} has a lift of {part.lift:.2f}, at least "
                        f"{low:.2f}, where {self.rules.lift:g} is allowed "
                        f"({', '.join(finding.worst) or 'no cell'}); {finding.remedy}"
                    )
                    break
        return lines, broken

    def _custodian(self, release: Protected, seed: int) -> Custodian:
        return Custodian.of(self.table, release, Knowledge(), method=self.make, seed=seed)

    def _is_in_doubt(self, finding: Finding, draws: int) -> bool:
        parts = (finding, finding.surest)
        if any(part.gain(_LEVEL) > self.rules.lift for part in parts):
            return False
        return draws < DRAWS or any(part.lift > self.rules.lift for part in parts)


def _attacks(rules: Gate, release: Protected) -> Iterator[Any]:
    """The attacks that have something to attack, for each variable where they look for one."""
    for name in rules.attacks:
        attack = registry.build("attack", name)
        each = [attack]
        if hasattr(attack, "variable") and attack.variable is None:
            each = [replace(attack, variable=axis.name) for axis in release.design.axes]
        for one in each:
            if name not in _EXACT and not refusal_of(one, release, Knowledge(), False):
                yield one


def _is_about_people(attack: Any, custodian: Custodian) -> bool:
    """Whether a lift stops; counts that a table shows anyway are judged as counts."""
    about = trait(attack, "about")
    if about != "inner":
        return about in _ABOUT_PEOPLE
    shown = custodian.release.design.members(np.arange(len(custodian.y)))
    sizes = np.append(custodian.release.design.column_sizes, 0)
    return not (sizes[shown] == 1).any(axis=1).all()
