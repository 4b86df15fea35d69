"""Audit of suppression patterns of any origin."""

from __future__ import annotations

from discreet.assessment.audit.audit import View, Which, audit
from discreet.assessment.audit.equations import DisagreementError
from discreet.assessment.audit.subject import Audit

__all__ = ["Audit", "DisagreementError", "View", "Which", "audit"]
