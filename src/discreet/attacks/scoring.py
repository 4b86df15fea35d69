r"""Claims judged against the truth, beside what guessing gives.

With success :math:`s` and baseline :math:`b` the lift is :math:`(s - b)/(1 - b)`: the share of what
guessing leaves open that the release gave away. Everything here is confidential.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.arrays import Array, Real
from discreet.attacks.frame import Claims
from discreet.display import Display, Displayed
from discreet.errors import ParameterError

LEVEL = 0.95
WORST = 5
"""How many of the cells that were told are named in a finding."""
_SUREST, _FEWEST = 10, 10  # one claim in so many is the surest, and so many claims at least


@dataclass(frozen=True, eq=False)
class Tally:
    """How many of some claims are right.

    Attributes:
      right: Whether each claim is right, the surest claim first.
      targets: How many targets there were to find.
      sure: The confidence of each claim, by which claims of two runs are put in one order.
    """

    right: Array
    targets: int
    sure: Real | None = None

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

    def with_more(self, other: Tally) -> Tally:
        """Both together, the surest claim first; without confidences one follows the other."""
        right, n = np.concatenate([self.right, other.right]), self.targets + other.targets
        if self.sure is None or other.sure is None:
            return Tally(right, n)
        sure = np.concatenate([self.sure, other.sure])
        order = np.argsort(-sure, kind="stable")
        return Tally(right[order], n, sure[order])

    @property
    def surest(self) -> Tally:
        """The surest tenth of the claims, ten of them at least."""
        n = max(_FEWEST, math.ceil(len(self.right) / _SUREST))
        return Tally(self.right[:n], self.targets, None if self.sure is None else self.sure[:n])

    @property
    def curve(self) -> tuple[Array, Array]:
        """Recall and precision after each claim, the surest first."""
        found = np.cumsum(self.right)
        return found / max(1, self.targets), found / np.arange(1, len(found) + 1)

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """Clopper and Pearson's interval of the precision; everything without claims."""
        return proportion_interval(int(self.right.sum()), len(self.right), level)


@dataclass(frozen=True, eq=False)
class Finding(Displayed):
    """**Confidential.** What one attack reached, beside its baseline.

    Attributes:
      attack: Name of the attack.
      tally: How all its claims fared; its curve is that of precision and recall.
      baseline: How the same attack fares where there is nothing to learn of the target, or a share.
      seconds: Time the attack took.
      drawn: How claims about the targets of the judge fared, which the baseline is about too; all
        claims when absent.
      blind: Share that a guess without any release gets right.
      usual: How naming the commonest value fares on the very targets that were claimed, in the same
        order; nothing where nobody could name a value without the release.
      proven: How many claims follow from the release with certainty.
      fixed: How many people these are about.
      undecided: How many cells might be certain too: no proof was found, and no counterexample.
      worst: Names of cells or people that were told, the smallest first.
      remedy: The setting that would stop the attack.
      beside: What the baseline is, in words.
    """

    attack: str
    tally: Tally
    baseline: Tally | float
    seconds: float = 0.0
    drawn: Tally | None = None
    blind: float = 0.0
    usual: Tally | None = None
    proven: int = 0
    fixed: int = 0
    undecided: int = 0
    worst: tuple[str, ...] = ()
    remedy: str = ""
    beside: str = "guessing"

    @property
    def judged(self) -> Tally:
        """The claims that success and baseline are about."""
        return self.tally if self.drawn is None else self.drawn

    @property
    def success(self) -> float:
        """Share of the claims that are right."""
        return self.judged.precision

    @property
    def guess(self) -> float:
        """Share that the baseline gets right; where it claims nothing, that of a blind guess."""
        if isinstance(self.baseline, float):
            return self.baseline
        return self.baseline.precision if self.baseline.claims else self.blind

    @property
    def lift(self) -> float:
        """Share of what guessing leaves open that was learnt; nothing where nothing is claimed."""
        return _lift(self.success, self.guess) if self.judged.claims else 0.0

    def lift_interval(self, level: float = LEVEL) -> tuple[float, float]:
        """Interval of the lift; success and baseline are both uncertain, half the error each.

        Where the baseline made no claim it is taken to be what a blind guess gets right.
        """
        if not self.judged.claims:
            return 0.0, 0.0
        if not isinstance(self.baseline, float) and not self.baseline.claims:
            return replace(self, baseline=self.blind).lift_interval(level)
        if isinstance(self.baseline, float):
            low, high = self.judged.interval(level)
            return _lift(low, self.baseline), _lift(high, self.baseline)
        each = (1 + level) / 2
        low, high = self.judged.interval(each)
        below, above = self.baseline.interval(each)
        return _lift(low, above), _lift(high, below)

    def is_above(self, level: float = LEVEL) -> bool:
        """Whether the release told more than the baseline, beyond chance."""
        return self.lift_interval(level)[0] > 0

    @property
    def surest(self) -> Finding:
        """The same of the surest tenth of the claims, which an intruder would act on.

        The baseline is the surest tenth of what the same attack claims without the records, so that
        an attack which learns nothing is right as often in both.
        """
        parts: dict[str, Any] = {"drawn": self.judged.surest}
        for name in ("baseline", "usual"):
            if isinstance(each := getattr(self, name), Tally):
                parts[name] = each.surest
        return replace(self, **parts)

    def gain(self, level: float = LEVEL) -> float:
        """The least lift beside the baseline and beside naming the commonest value.

        Without the record of a person her group leans to the other side, so that the baseline can
        be worse than a coin.
        """
        low = self.lift_interval(level)[0]
        if self.usual is None or not self.usual.claims:
            return low
        # A share of the same people: what they have is no matter of chance.
        return min(low, replace(self, baseline=self.usual.precision).lift_interval(level)[0])

    def pooled(self, other: Finding) -> Finding:
        """This finding and another one of the same attack, on another draw, as one."""
        parts: dict[str, Any] = {
            "tally": self.tally.with_more(other.tally),
            "drawn": None if self.drawn is None else self.drawn.with_more(other.judged),
            "seconds": self.seconds + other.seconds,
            "proven": self.proven + other.proven,
            "fixed": self.fixed + other.fixed,
            "undecided": self.undecided + other.undecided,
            "worst": (*self.worst, *other.worst)[:WORST],
        }
        if self.usual is not None and other.usual is not None:
            parts["usual"] = self.usual.with_more(other.usual)
        for name in ("baseline", "blind"):
            one, two = getattr(self, name), getattr(other, name)
            if isinstance(one, Tally) and isinstance(two, Tally):
                parts[name] = one.with_more(two)
            else:  # shares are those of as many claims as were judged beside them
                n, m = self.judged.claims, other.judged.claims
                parts[name] = (n * float(one) + m * float(two)) / max(n + m, 1)
        return replace(self, **parts)

    def __str__(self) -> str:
        if not self.judged.targets:
            return f"{self.attack}: {self._certain}"
        if not self.judged.claims:
            return "; ".join([f"{self.attack}: {self._silence}", *self._certain_if_any])
        low, high = self.judged.interval()
        ends = self.lift_interval()
        found = (
            f"{self.attack}: {self.success:.1%} of {self.judged.claims} claims are right "
            f"({low:.1%} to {high:.1%}), {self.judged.recall:.1%} of {self.judged.targets} targets "
            f"named; {self.beside} is right in {self.guess:.1%}; "
            f"lift {self.lift:.2f} ({ends[0]:.2f} to {ends[1]:.2f})"
        )
        return "; ".join([found, *self._said_of_the_surest, *self._certain_if_any])

    @property
    def _said_of_the_surest(self) -> list[str]:
        part = self.surest
        if part.judged.claims == self.judged.claims or not isinstance(self.baseline, Tally):
            return []
        shares = f"{part.success:.1%} are right, of the baseline's {part.guess:.1%}"
        return [f"of the surest {part.judged.claims} {shares}"]

    def _display(self) -> Display:
        low, high = self.judged.interval()
        ends = self.lift_interval()
        facts = {
            "claims that are right": f"{self.success:.1%} of {self.judged.claims:,} "
            f"({low:.1%} to {high:.1%})",
            "targets named": f"{self.judged.recall:.1%} of {self.judged.targets:,}",
            self.beside: f"{self.guess:.1%}",
            "lift": f"{self.lift:.2f} ({ends[0]:.2f} to {ends[1]:.2f})",
            "the surest claims": "".join(self._said_of_the_surest),
        }
        if not self.judged.claims:
            facts = {"claims": self._silence} if self.judged.targets else {}
        return Display(
            f"Attack: {self.attack}",
            "confidential",
            {**facts, "certain": "".join(self._certain_if_any)},
            lines=self.worst_lines,
        )

    @property
    def worst_lines(self) -> list[str]:
        """What the release told, the smallest first, and what would stop it."""
        if not (self.is_above() or self.proven):
            return []
        cells = [f"told: {cell}" for cell in self.worst]
        return [*cells, f"what would stop it: {self.remedy}"]

    @property
    def _silence(self) -> str:
        return f"no claim about any of {self.judged.targets:,} targets"

    @property
    def _certain_if_any(self) -> list[str]:
        return [self._certain] if self.proven or self.undecided else []

    @property
    def _certain(self) -> str:
        said = f"{self.proven} claims about {self.fixed} people are certain"
        if self.undecided:
            said += f", and {self.undecided:,} cells were not decided: others may be certain too"
        return said


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
    return Tally(np.array(right, dtype=bool), len(truth), np.asarray(claims.confidence))


def proportion_interval(right: int, n: int, level: float = LEVEL) -> tuple[float, float]:
    """Clopper and Pearson's interval of a share: at least `level` whatever the share is."""
    from scipy.stats import beta

    tail = (1 - level) / 2
    low = float(beta.ppf(tail, right, n - right + 1)) if right else 0.0
    high = float(beta.ppf(1 - tail, right + 1, n - right)) if right < n else 1.0
    return low, high


def _lift(success: float, guess: float) -> float:
    return 0.0 if guess >= 1 else max(-1.0, (success - guess) / (1 - guess))
