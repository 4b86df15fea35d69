"""Synthetic and hybrid microdata that keep regression fits and covariances exactly.

`discreet.synthesize(data, "income ~ age + region")` makes them.
"""

from __future__ import annotations

from discreet.lazy import lazy_names

__getattr__ = lazy_names(
    __name__,
    {
        "methods": "from_residuals ipso residual_correlation romm score_correlation",
        "mixed": "records_from",
        "preserved": "Preserved",
        "result": "Synthetic SyntheticTrial",
        "safety": "UnsafeRowsError",
        "swap": "swap_records",
    },
)
