"""Pictures of risk, utility and noise. Confidential: they are drawn from true counts."""

from __future__ import annotations

from discreet.assessment.plots.cells import before_after, deviations, transitions
from discreet.assessment.plots.risk_utility import frontier_map, risk_utility_map
from discreet.assessment.plots.style import save, to_svg
from discreet.assessment.plots.suppressed import preserved, suppressed

__all__ = [
    "before_after",
    "deviations",
    "frontier_map",
    "preserved",
    "risk_utility_map",
    "save",
    "suppressed",
    "to_svg",
    "transitions",
]
