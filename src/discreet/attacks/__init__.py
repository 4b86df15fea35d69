"""The intruder: attacks that see the public side alone, and a judge that sees the truth."""

from discreet.attacks.frame import Attack, Claims, Knowledge, PublicAttack
from discreet.attacks.privacy_audit import audit_privacy
from discreet.attacks.privacy_game import play
from discreet.attacks.run import Findings, attack, attack_method
from discreet.attacks.scoring import Finding, judge

__all__ = [
    "Attack", "Claims", "Finding", "Findings", "Knowledge", "PublicAttack", "attack",
    "attack_method", "audit_privacy", "judge", "play",
]  # fmt: skip
