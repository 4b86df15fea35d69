"""A fitter of another package."""

from dataclasses import dataclass

from discreet.solve.fit import FitterBase
from discreet.solve.least_squares.least_squares import LeastSquares


@dataclass(frozen=True, eq=False)
class Halving(FitterBase):
    """Least squares to half the tolerance."""

    name = "halving"

    tolerance: float = 1e-6

    def prepare(self, design):
        """Do once what depends on the design alone."""
        return LeastSquares(tolerance=self.tolerance / 2).prepare(design)
