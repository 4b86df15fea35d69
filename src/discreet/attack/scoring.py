r"""Claims judged against the truth, beside what guessing gives.

With success :math:`s` and baseline :math:`b` the lift is :math:`(s - b)/(1 - b)`: the share of what
guessing leaves open that the release gave away. Everything here is confidential.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Array
from discreet.attack.frame import Claims
from discreet.errors import ParameterError

LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class Tally:
    """How many of some claims are right.

    Attributes:
      right: Whether each claim is right, the surest claim first.
      targets: How many targets there were to find.
    """

    right: Array
    targets: int

    @property
    def claims(self) -> int:
        """How many claims there are."""
        return len(self.right)

    @property
    def precision(self) -> float:
        """Share of the claims that are right; zero without claims."""
        return float(self.right.mean()) if len(self.right) else 0.0

    @property
    def recall(self) -> float:
        """Share of the targets that were named rightly."""
        return float(self.right.sum()) / self.targets if self.targets else 0.0

    @property
    def curve(self) -> tuple[Array, Array]:
        """Recall and precision after each claim, the surest first."""
        found = np.cumsum(self.right)
        return found / max(1, self.targets), found / np.arange(1, len(found) + 1)

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """Clopper and Pearson's interval of the precision; everything without claims."""
        return proportion_interval(int(self.right.sum()), len(self.right), level)


@dataclass(frozen=True, eq=False)
class Finding:
    """**Confidential.** What one attack reached, beside its baseline.

    Attributes:
      attack: Name of the attack.
      tally: How its claims fared.
      baseline: How the same attack fares where there is nothing to learn of the target, or a share.
      seconds: Time the attack took.
    """

    attack: str
    tally: Tally
    baseline: Tally | float
    seconds: float = 0.0

    @property
    def success(self) -> float:
        """Share of the claims that are right."""
        return self.tally.precision

    @property
    def guess(self) -> float:
        """Share that the baseline gets right."""
        return self.baseline if isinstance(self.baseline, float) else self.baseline.precision

    @property
    def lift(self) -> float:
        """Share of what guessing leaves open that was learnt."""
        return _lift(self.success, self.guess)

    def lift_interval(self, level: float = LEVEL) -> tuple[float, float]:
        """Interval of the lift; success and baseline are both uncertain, half the error each."""
        if isinstance(self.baseline, float):
            low, high = self.tally.interval(level)
            return _lift(low, self.baseline), _lift(high, self.baseline)
        each = (1 + level) / 2
        low, high = self.tally.interval(each)
        below, above = self.baseline.interval(each)
        return _lift(low, above), _lift(high, below)

    def __str__(self) -> str:
        low, high = self.tally.interval()
        return (
            f"{self.attack}: {self.success:.1%} of {self.tally.claims} claims are right "
            f"({low:.1%} to {high:.1%}), {self.tally.recall:.1%} of {self.tally.targets} targets "
            f"named; guessing is right in {self.guess:.1%}; lift {self.lift:.2f}"
        )


def judge(
    claims: Claims,
    truth: Mapping[Hashable, Any],
    *,
    attack: str,
    baseline: Claims | float,
    seconds: float = 0.0,
) -> Finding:
    """How claims fare against the truth.

    Args:
      claims: What the attack said.
      truth: The true value of each target that there is to find; what is absent does not exist.
      attack: Name of the attack.
      baseline: Claims of the same attack on a release without the target's record, or the share
        that guessing gets right.
      seconds: Time the attack took.
    """
    if not truth:
        raise ParameterError("there is no target to find; give at least one true value.")
    chance = baseline if isinstance(baseline, float) else tally(baseline, truth)
    return Finding(attack, tally(claims, truth), chance, seconds)


def tally(claims: Claims, truth: Mapping[Hashable, Any]) -> Tally:
    """Which claims are right."""
    absent = object()
    said = zip(claims.targets, claims.values, strict=True)
    right = [bool(truth.get(target, absent) == value) for target, value in said]
    return Tally(np.array(right, dtype=bool), len(truth))


def proportion_interval(right: int, n: int, level: float = LEVEL) -> tuple[float, float]:
    """Clopper and Pearson's interval of a share: at least `level` whatever the share is."""
    from scipy.stats import beta

    tail = (1 - level) / 2
    low = float(beta.ppf(tail, right, n - right + 1)) if right else 0.0
    high = float(beta.ppf(1 - tail, right + 1, n - right)) if right < n else 1.0
    return low, high


def _lift(success: float, guess: float) -> float:
    return 0.0 if guess >= 1 else (success - guess) / (1 - guess)
