"""Minimise a loss of X'y - t over a domain for y; nothing here knows of disclosure control."""

from __future__ import annotations

from discreet.lazy import lazy_names

__getattr__ = lazy_names(
    __name__,
    {
        "Auto": "discreet.solve.auto",
        "Chain": "discreet.solve.auto",
        "FromMargins": "discreet.solve.margins.from_margins",
        "NoiseLikelihood": "discreet.solve.likelihood.noise_likelihood",
        "Poisson": "discreet.solve.likelihood.poisson",
        "WholeNumber": "discreet.solve.integer.whole_number",
    },
)
