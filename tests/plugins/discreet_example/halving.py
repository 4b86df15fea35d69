"""A fitter of another package."""

from dataclasses import dataclass

from discreet import LeastSquares
from discreet.solve.fit import FitterBase


@dataclass(frozen=True, eq=False)
class Halving(FitterBase):
    """Least squares to half the tolerance."""

    name = "halving"

    tolerance: float = 1e-6

    def prepare(self, design):
        """Do once what depends on the design alone."""
        return LeastSquares(tolerance=self.tolerance / 2).prepare(design)
