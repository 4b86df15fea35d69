"""A synthesizer of another package."""

from discreet.synthesis import ipso


def twice(Y, X, *, rng):
    """Draw residuals anew, and then once more."""
    return ipso(ipso(Y, X, rng=rng).Y, X, rng=rng)
