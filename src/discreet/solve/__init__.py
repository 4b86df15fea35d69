"""Minimise a loss of X'y - t over a domain for y; nothing here knows of disclosure control."""

from __future__ import annotations

from discreet.lazy import lazy_names

__getattr__ = lazy_names(
    __name__,
    {
        "auto": "Auto Chain",
        "fit": "Certificate Status",
        "integer.problem": "Domain LatticeProblem LimitError",
        "integer.rounding": "round_to_multiples whole_and_fraction",
        "integer.search": "LatticeSearch",
        "integer.whole_number": "WholeNumber",
        "least_squares.problem": "Accuracy LeastSquaresProblem Prior",
        "likelihood.noise_likelihood": "NoiseLikelihood",
        "likelihood.poisson": "Poisson",
        "margins.from_margins": "FromMargins",
    },
)
