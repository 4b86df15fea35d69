"""Privacy statements: the guarantee of a differentially private release, in numbers and words."""

from __future__ import annotations

import math
from collections.abc import Sequence

from discreet.design.release import PrivacyStatement
from discreet.errors import ParameterError
from discreet.protect.budget import Share

UNIT = "one record added or removed"


def privacy_statement(
    shares: Sequence[Share], cap: int | None, caveat: str = ""
) -> PrivacyStatement:
    """The guarantee of noise on these shares of the budget.

    Args:
      shares: The parts of the budget.
      cap: Largest noise, where draws beyond it were rejected.
      caveat: What limits the guarantee further.
    """
    epsilon = sum(share.epsilon for share in shares)
    delta = sum(share.delta(cap) for share in shares)
    if delta >= 1:
        raise ParameterError(
            f"a cap of {cap} leaves no guarantee at this ε: δ would reach one. Raise the cap to "
            f"several times the scale of the noise ({max(s.scale for s in shares):.3g})."
        )
    sensitivity = sum(share.sensitivity for share in shares)
    text = " ".join(part for part in (_odds(epsilon, delta), *map(_spent, shares), caveat) if part)
    return PrivacyStatement(epsilon, delta, sensitivity, UNIT, text)


def _odds(epsilon: float, delta: float) -> str:
    but = (
        ""
        if delta == 0
        else f", except with a probability of at most δ = {delta:.3g} that comes from the cap"
    )
    return (
        f"Differential privacy with ε = {epsilon:.6g} for {UNIT}: whoever knows everything about "
        f"all other records can sharpen the odds of any guess about this one by a factor of at "
        f"most e^ε = {math.exp(epsilon):.4g}{but}."
    )


def _spent(share: Share) -> str:
    n = len(share.cells)
    who, whom = ("1 cell spends", "it") if n == 1 else (f"{n:,} cells spend", "them")
    return (
        f"{who} ε = {share.epsilon:.6g}: one record changes {whom} by {share.sensitivity:,} in "
        f"all, so each gets noise of scale {share.scale:.6g}."
    )
