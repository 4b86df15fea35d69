"""Synthetic and hybrid microdata that keep regression fits and covariances exactly.

`discreet.synthesize(data, "income ~ age + region")` makes them.
"""

from __future__ import annotations

from discreet.lazy import lazy_names

__getattr__ = lazy_names(
    __name__,
    {
        "Preserved": "discreet.synthesis.preserved",
        "Synthetic": "discreet.synthesis.result",
        "SyntheticTrial": "discreet.synthesis.result",
        "records_from": "discreet.synthesis.mixed",
        "swap_records": "discreet.synthesis.swap",
    },
)
