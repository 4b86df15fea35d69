"""Audit of suppression patterns of any origin."""

from discreet.assess.audit.audit import audit
from discreet.assess.audit.equations import DisagreementError
from discreet.assess.audit.result import Audit

__all__ = ["Audit", "DisagreementError", "audit"]
