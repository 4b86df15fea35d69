"""One method, one file: from a confidential table to a public release."""

from __future__ import annotations

from discreet.lazy import lazy_names

__getattr__ = lazy_names(
    __name__,
    {
        "budget": "LaplaceShare",
        "controlled_rounding": "ControlledRounding",
        "draws": "SeededDraws",
        "magnitude_key": "MagnitudeKey",
        "publication": "by_cell by_mean",
        "quality": "Quality",
        "sentences": "mean_p",
    },
)
