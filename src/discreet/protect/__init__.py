"""One method, one file: from a confidential table to a public release."""

from __future__ import annotations

from discreet.lazy import lazy_names

__getattr__ = lazy_names(
    __name__,
    {"MagnitudeKey": "discreet.protect.magnitude_key", "Quality": "discreet.protect.quality"},
)
