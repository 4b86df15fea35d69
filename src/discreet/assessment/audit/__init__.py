"""Audit of suppression patterns of any origin."""

from __future__ import annotations

from discreet.assessment.audit.audit import audit
from discreet.assessment.audit.equations import DisagreementError
from discreet.assessment.audit.result import Audit

__all__ = ["Audit", "DisagreementError", "audit"]
