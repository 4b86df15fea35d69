"""Audit of suppression patterns of any origin, and of perturbed counts."""

from __future__ import annotations

from discreet.assessment.audit.audit import View as View
from discreet.assessment.audit.audit import Which as Which
from discreet.assessment.audit.audit import audit as audit
from discreet.assessment.audit.equations import DisagreementError as DisagreementError
from discreet.assessment.audit.perturbed import PerturbedAudit as PerturbedAudit
from discreet.assessment.audit.subject import Audit as Audit
