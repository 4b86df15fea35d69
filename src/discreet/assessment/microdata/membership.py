"""Whether synthetic records betray who was among the original ones.

The attacker knows some people's records and asks who of them was in the data. He takes a person
for a member when a synthetic record lies near. He is tried out on members, the original records,
and on control records of the same population that were kept apart: only what he gets right more
often for members than chance does is a disclosure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from discreet.arrays import Array
from discreet.assessment.measure import NotApplicableError, Score
from discreet.assessment.microdata.record_sets import (
    CONTROL,
    ORIGINAL,
    SYNTHETIC,
    RecordMeasure,
    RecordSets,
)
from discreet.assessment.microdata.risk import nearest, places

NO_CONTROL = (
    "give records of the same population that were not synthesized: control=. Set some aside "
    "before the records are synthesized."
)
_FEW_ALARMS = 0.01
_CHANCE = 0.05


@dataclass(frozen=True)
class MembershipInference(RecordMeasure):
    r"""Probability that a member lies nearer to the synthetic records than a control record.

    The area under the curve of an attacker who takes people near to a synthetic record for
    members: :math:`P(d_m < d_c) + \tfrac12 P(d_m = d_c)`. Several are tried, one with all columns
    and one with each column alone, and the best one counts. Range: 0 to 1. 0.5 is pure guessing,
    1 is certainty; lower is safer. The breakdown has a row for each attacker, with the standard
    error of guessing, :math:`\sqrt{(m + c + 1)/(12mc)}` for m members and c control records, and
    the limit that the best one exceeds by chance at most once in twenty times.

    An attacker who does better may exist. Columns that are published as they are betray their
    people by themselves: leave them out with `columns=` to see what the synthetic ones add.

    >>> people = {"a": [1.0, 2.0, 3.0]}, {"a": [1.0, 2.0, 3.0]}
    >>> MembershipInference(control={"a": [1.5, 2.5, 3.5]})(*people).value
    1.0

    Args:
      control: Records of the same population that were not synthesized.

    See Yeom et al. (2018), Hilprecht et al. (2019).
    """

    name = "membership-inference"
    kind = "risk"

    control: Any = None

    def __call__(self, original: Any, synthetic: Any) -> Score:
        on, parts = self.attack(original, synthetic)
        return self.score(max(parts["area"]), on, parts)

    def attack(self, original: Any, synthetic: Any) -> tuple[str, dict[str, list[Any]]]:
        """What each attacker reaches, and what chance would."""
        if self.control is None:
            raise NotApplicableError(NO_CONTROL)
        sets = self.sets(original, synthetic, self.control)
        knowing = {"all columns": sets} | {f"{n} alone": sets.only(n) for n in sets.names}
        if len(sets.names) == 1:
            del knowing["all columns"]
        m, c = sets.sizes[ORIGINAL], sets.sizes[CONTROL]
        error, chance = math.sqrt((m + c + 1) / (12 * m * c)), _CHANCE / len(knowing)
        rows = [
            {
                "attacker": attacker,
                **_attack_success(known),
                "error_of_guessing": error,
                "area_limit": 0.5 - error * float(ndtri(chance)),
                "advantage_limit": math.sqrt(-math.log(chance) * (m + c) / (2 * m * c)),
            }
            for attacker, known in knowing.items()
        ]
        return sets.on, {name: [row[name] for row in rows] for name in rows[0]}


@dataclass(frozen=True)
class MembershipAdvantage(MembershipInference):
    r"""Largest lead of an attacker: members he finds less control records he takes for members.

    :math:`\max_t \{P(d_m \le t) - P(d_c \le t)\}` over thresholds t of the distance to the nearest
    synthetic record. Range: 0 to 1 (certainty). Lower is safer. The best attacker and threshold
    are found afterwards, so that guessing does not have 0: the breakdown gives the limit that it
    exceeds at most once in twenty times. The attackers are those of `membership-inference`.

    >>> people = {"a": [1.0, 2.0, 3.0, 4.0]}, {"a": [1.0, 2.0, 9.0, 9.5]}
    >>> MembershipAdvantage(control={"a": [5.0, 6.0, 3.5, 2.5]})(*people).value
    0.5

    See Yeom et al. (2018).
    """

    name = "membership-advantage"

    def __call__(self, original: Any, synthetic: Any) -> Score:
        on, parts = self.attack(original, synthetic)
        return self.score(max(parts["advantage"]), on, parts)


def _attack_success(sets: RecordSets) -> dict[str, float]:
    """What an attacker who knows these columns finds out."""
    points = places(sets)
    shown = points[sets.rows(SYNTHETIC)]
    members = nearest(points[sets.rows(ORIGINAL)], shown)
    others = nearest(points[sets.rows(CONTROL)], shown)
    return {
        "area": area(members, others),
        "advantage": advantage(members, others),
        "found_at_1_percent_false_alarms": _found(members, others, _FEW_ALARMS),
    }


def area(members: Array, others: Array) -> float:
    """Probability that a member's distance is smaller than another one's; ties count half."""
    ordered = np.sort(others)
    below = np.searchsorted(ordered, members, side="left")
    equal = np.searchsorted(ordered, members, side="right") - below
    beaten = len(others) - below - 0.5 * equal
    return float(beaten.mean() / len(others))


def advantage(members: Array, others: Array) -> float:
    """Largest difference of the shares of members and others within a distance."""
    thresholds = np.unique(members)
    hits = np.searchsorted(np.sort(members), thresholds, side="right") / len(members)
    alarms = np.searchsorted(np.sort(others), thresholds, side="right") / len(others)
    return float(max(0.0, (hits - alarms).max()))


def _found(members: Array, others: Array, alarms: float) -> float:
    """Share of members within the largest distance that has few enough false alarms."""
    ordered = np.sort(others)
    limit = ordered[min(math.floor(alarms * len(ordered)), len(ordered) - 1)]
    return float((members < limit).mean())
