"""Membership: who was among the records that a synthetic file was made from.

The intruder has candidates, of whom half are in the file, and takes those for members whose values
lie near to synthetic ones. Columns that are published as they are betray their people by
themselves, so synthetic columns alone are looked at.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from discreet.assessment.microdata.record_sets import ORIGINAL, SYNTHETIC, record_sets
from discreet.assessment.microdata.risk import nearest, places
from discreet.attacks.frame import About, Claims, Knowledge, PublicAttack
from discreet.attacks.public_side import ask
from discreet.attacks.scoring import Finding, judge
from discreet.errors import DataError
from discreet.frames import concat
from discreet.randomness import stream
from discreet.synthesis.result import read_records

OUTSIDE = "outside"
CANDIDATES = "candidates"
_MOST = 400  # members, and as many others: ±5 points of the share that is right


@dataclass(frozen=True)
class Membership(PublicAttack):
    """Claims of each candidate whether it is in the file: the nearer half is.

    `knowledge.extra["outside"]` has records of the same population that the file was not made from;
    the judge draws `candidates` from both, as many of each.
    """

    name: ClassVar[str] = "membership"
    about: ClassVar[About] = "members"
    remedy: ClassVar[str] = "values that are drawn anew (ipso), or a smaller correlation"

    def refusal(self, release: Any, knowledge: Knowledge) -> str:
        """Nobody is known who is not in the file."""
        return "" if OUTSIDE in knowledge.extra else "no records are given that are not in the file"

    def __call__(self, release: Any, knowledge: Knowledge, *, rng: np.random.Generator) -> Claims:
        """A claim for each candidate, by its position; ties are drawn."""
        sets = record_sets([knowledge.extra[CANDIDATES], release.frame], release.confidential)
        points = places(sets)
        distance = nearest(points[sets.rows(ORIGINAL)], points[sets.rows(SYNTHETIC)])
        n = len(distance)
        place = np.empty(n)
        place[np.lexsort((rng.random(n), distance))] = np.arange(n)
        sure = np.abs(place - (n - 1) / 2)
        return Claims.ranked(range(n), (place < n / 2).tolist(), sure)


def judge_members(attack: Any, original: Any, synthetic: Any, known: Knowledge) -> Finding:
    """Members and others in an order of chance; a coin is right about half of them."""
    rng = stream(0, "membership")
    inside, outside = (read_records(each).table for each in (original, known.extra[OUTSIDE]))
    missing = [c for c in synthetic.confidential if c not in outside.column_names]
    if missing:
        raise DataError(f"the records that are not in the file have no column {missing[0]!r}.")
    n = min(len(inside), len(outside), _MOST)
    drawn = [
        each.select(synthetic.confidential).take(rng.permutation(len(each))[:n])
        for each in (inside, outside)
    ]
    order = rng.permutation(2 * n)
    candidates = concat(drawn).take(order)
    told = replace(known, extra={CANDIDATES: candidates})
    claims = ask(attack, synthetic, told, rng=rng)
    truth: dict[Hashable, Any] = dict(enumerate((order < n).tolist()))
    found = judge(claims, truth, attack=attack.name, baseline=0.5)
    return replace(found, beside="a coin, since half of the candidates are in the file")
