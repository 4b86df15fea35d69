"""A matrix of another package."""

from discreet.noise import TransitionMatrix


def coin_matrix(p: float = 0.25) -> TransitionMatrix:
    """Counts move up or down by one with probability `p` each; zeros stay."""
    return TransitionMatrix.from_law("coin", [[0, 1, 0], [p, 1 - 2 * p, p]], parameters={"p": p})
