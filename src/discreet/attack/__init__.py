"""The intruder: attacks that see the public side alone, and a judge that sees the truth."""

from discreet.attack.frame import Attack, Claims, Knowledge
from discreet.attack.scoring import Finding, judge
from discreet.attack.several_laws import SeveralLaws

__all__ = ["Attack", "Claims", "Finding", "Knowledge", "SeveralLaws", "judge"]
