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
_FALSE_STOPS = 0.001  # of an attack that reaches no more than the rule: a publication has a hundred
_LEVEL = 1 - _FALSE_STOPS / _MOST_DRAWS
"""Of a lift that stops. An attack is looked at after each draw, twice, at all claims and the surest
ones; one end of an interval is wrong half as often as both, so all looks share the false stops."""
_ABOUT_PEOPLE = ("attributes", "hidden")
"""What a lift is judged by. Claims about shown counts are reported: a count near the truth is what
tables are published for."""
_EXACT = ("integer-reconstruction", "bounds")


@dataclass
class TriedAttack:
    """An attack on one table, and what it reached.

    Attributes:
      attack: What was tried.
      finding: What it reached, all draws together.
      stops: Whether its lift stops a publication.
    """

    attack: Any
    finding: Finding
    stops: bool

    @property
    def parts(self) -> dict[str, Finding]:
        """All claims and the surest of them, by how they are called in a report."""
        return {"": self.finding, "the surest claims of ": self.finding.surest}


@dataclass
class LikelyClaims:
    """What attacks on one table reached, all draws together.

    Attributes:
      name: The table.
      table: Its true counts.
      make: Draws its release.
      rules: What the office allows.
      tried: The attacks that had something to attack.
    """

    name: str
    table: Table
    make: Maker
    rules: Gate
    tried: list[TriedAttack] = field(default_factory=list)

    def attack_first(self, release: Protected) -> Iterator[str]:
        """Every attack on one draw."""
        custodian = self._custodian(release, SEED)
        for attack in _attacks(self.rules, release):
            yield f"{attack.name} in {self.name}"
            finding = play_with(attack, custodian)
            self.tried.append(TriedAttack(attack, finding, _is_about_people(attack, custodian)))

    def attack_again(self) -> None:
        """Further draws for what is above the rule, or may be, but perhaps by chance."""
        left = [each for each in self.tried if each.stops]
        for draw in range(1, _MOST_DRAWS):
            left = [each for each in left if self._is_in_doubt(each, draw)]
            if not left:
                return
            seed = SEED + 104729 * draw  # apart from the seeds of the draws without records
            custodian = self._custodian(self.make(self.table, seed), seed)
            for each in left:
                each.finding = each.finding.pooled(play_with(each.attack, custodian))

    def verdict(self) -> tuple[list[str], list[str]]:
        """Lines of the report, and what is above the rule beyond chance."""
        lines, broken = [], []
        for each in self.tried:
            attack, finding = each.attack, each.finding
            variable = getattr(attack, "variable", None)
            where = f"{self.name}, {variable}" if variable else self.name
            lines.append(f"- {where}: {finding}")
            for which, part in each.parts.items():
                low = part.gain(_LEVEL)
                if each.stops and low > self.rules.lift:
                    broken.append(
                        f"{which}{where}: {attack.name} has a lift of {part.lift:.2f}, at least "
                        f"{low:.2f}, where {self.rules.lift:g} is allowed "
                        f"({', '.join(finding.worst) or 'no cell'}); {finding.remedy}"
                    )
                    break
        return lines, broken

    def _custodian(self, release: Protected, seed: int) -> Custodian:
        return Custodian.of(self.table, release, Knowledge(), method=self.make, seed=seed)

    def _is_in_doubt(self, each: TriedAttack, draws: int) -> bool:
        parts = each.parts.values()
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
