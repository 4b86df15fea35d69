"""Primary rules: what makes a published cell sensitive.

Rules for counts are `Threshold`, `DirectDisclosure`, `GroupDisclosure` and `KDisclosure`; rules for
sums of a value are `Dominance`, `PPercent`, `PQ`, `FewContributors` and `ZeroUnsafe`. A rule with
exceptions, and a rule that is a list of cells, stand in `discreet.suppress`: they read files of
τ-ARGUS.
"""

from discreet.rules.counts import DirectDisclosure, GroupDisclosure, KDisclosure, Threshold
from discreet.rules.magnitudes import PQ, Dominance, FewContributors, PPercent, ZeroUnsafe

__all__ = [
    "DirectDisclosure",
    "Dominance",
    "FewContributors",
    "GroupDisclosure",
    "KDisclosure",
    "PPercent",
    "PQ",
    "Threshold",
    "ZeroUnsafe",
]
