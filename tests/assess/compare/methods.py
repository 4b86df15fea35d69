"""Small methods for tests of comparisons; in a module, so that other processes can load them."""

from dataclasses import dataclass

import numpy as np

from discreet.assessment import NotApplicableError, Score
from discreet.solve import Certificate, Status
from discreet.solve.fit import Fit
from discreet.tables import Claims, Protected, Statement, Step


@dataclass(frozen=True)
class Shift:
    """Adds a whole number to every inner cell that is not empty, and publishes inner cells."""

    by: int = 0
    name = "shift"
    source = "table"
    claims = Claims(additive=True, unbiased=False, keeps_zeros=True)

    def __call__(self, table, *, draws):
        y = np.where(table.y > 0, table.y + self.by, 0)
        statement = Statement((Step("protect:shift"),))
        return Protected.of(table.design, table.design.aggregate(y), statement, y=y)


@dataclass(frozen=True)
class Sometimes:
    """Adds one to every cell in about half of the draws."""

    name = "sometimes"
    source = "table"
    claims = Shift.claims

    def __call__(self, table, *, draws):
        return Shift(int(draws.generator(self, table).integers(2)))(table, draws=draws)


@dataclass(frozen=True)
class Even:
    """A measure that applies to releases with an odd total only, and is 1 there."""

    name = "even"
    kind = "risk"

    def __call__(self, table, release):
        if release.y.sum() % 2 == 0 or release.y[0] > table.y[0]:
            raise NotApplicableError("the total is even.")
        return Score("even", 1.0, "risk", (0, 1), "lower")


@dataclass(frozen=True)
class Noisy:
    """Adds whole-number noise from the system to the inner cells."""

    name = "noisy"
    source = "system"
    claims = Claims(additive=True, unbiased=True, keeps_zeros=False)

    def __call__(self, table, *, draws):
        y = table.y + draws.laplace(len(table.y), 1.0)
        statement = Statement((Step("protect:noisy"),))
        return Protected.of(table.design, table.design.aggregate(y), statement, y=y)


@dataclass(frozen=True)
class Sourceless(Shift):
    """Says that its noise comes from nowhere that is known."""

    source = "seed"


@dataclass(frozen=True)
class Stalled:
    """A fitter that spreads the total evenly and says that it stalled."""

    name = "stalled"

    def __call__(self, design, z, *, weights=None):
        return self.prepare(design)(z, weights=weights)

    def prepare(self, design):
        def fit(z, *, weights=None):
            y = np.full(design.n_inner, float(np.max(z)) / design.n_inner)
            return Fit(y, design.aggregate(y), Status.stalled, Certificate())

        return fit
