"""Pictures of risk, utility and noise. Confidential: they are drawn from true counts."""

from __future__ import annotations

from discreet.assessment.plots.cells import before_after as before_after
from discreet.assessment.plots.cells import deviations as deviations
from discreet.assessment.plots.cells import transitions as transitions
from discreet.assessment.plots.groups import deviations_by_size as deviations_by_size
from discreet.assessment.plots.groups import disclosure_by_group as disclosure_by_group
from discreet.assessment.plots.groups import edition_changes as edition_changes
from discreet.assessment.plots.risk_utility import frontier_map as frontier_map
from discreet.assessment.plots.risk_utility import risk_utility_map as risk_utility_map
from discreet.assessment.plots.style import save as save
from discreet.assessment.plots.style import to_svg as to_svg
from discreet.assessment.plots.suppressed import preserved as preserved
from discreet.assessment.plots.suppressed import suppressed as suppressed
