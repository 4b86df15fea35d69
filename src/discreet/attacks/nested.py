"""Nested crossings: a group whose count comes back in one of its parts is taken to lie there.

Noise by key gives the same people the same value in every table. So a small group that has the same
value as one of its categories, the others being zero, is made up of that category alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from discreet.attacks.frame import About, Claims, Knowledge, PublicAttack
from discreet.attacks.groups import groups_of, refusal_of_groups, shown_counts


@dataclass(frozen=True)
class NestedCrossings(PublicAttack):
    """Claims the category that has the very value of a person's group, where one alone has.

    The smaller the value, the surer: large values agree by chance.

    Args:
      variable: The variable that is looked for; the last one when absent.
    """

    variable: str | None = None
    name: ClassVar[str] = "nested-crossings"
    about: ClassVar[About] = "attributes"
    remedy: ClassVar[str] = "release once: tables as sums of one inner table"

    def refusal(self, release: Any, knowledge: Knowledge) -> str:
        """No counts, or no table that crosses the variable with others."""
        return refusal_of_groups(release, self.variable)

    def __call__(self, release: Any, knowledge: Knowledge, *, rng: np.random.Generator) -> Claims:
        """A category for each person whose group agrees with one; nothing is drawn."""
        variable = self.variable or release.design.axes[-1].name
        leaves = next(a for a in release.design.axes if a.name == variable).leaves
        z = shown_counts(release)
        targets, values, sure = [], [], []
        for number, groups in enumerate(groups_of(release, variable, knowledge.people)):
            found: dict[int, float] = {}
            for group in groups:
                total = z[group.total] if group.total >= 0 else 0.0
                same = np.flatnonzero((z[group.cells] == total) & (total > 0))
                if len(same) == 1:
                    k, others = int(same[0]), float(np.delete(z[group.cells], same).sum())
                    found[k] = max(found.get(k, 0.0), 1.0 / (1.0 + others + total / 100))
            if found:
                best = max(found, key=lambda k: found[k])
                targets.append(number)
                values.append(leaves[best])
                sure.append(found[best])
        return Claims.ranked(targets, values, sure)
