"""Redrawn keys and redrawn roundings: how the figures vary."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.assess.risk.exact import ExactDisclosure
from discreet.assess.utility.hellinger import HellingerUtility
from discreet.design.release import Protected
from discreet.design.table import Table
from discreet.progress import report
from discreet.protect.simulate import simulate
from discreet_studies.fair_comparison.example import SENSITIVE, Example, cell_key, rounding

CELL_KEY_DRAWS = 1_500
ROUNDING_DRAWS = 300


@dataclass(frozen=True)
class Draw:
    """Utility and risk of one release."""

    published: float
    restored: float
    risk: float
    risk_own: float


@dataclass(frozen=True, eq=False)
class Draws:
    """All draws of one method, one array for each figure."""

    published: NDArray[np.float64]
    restored: NDArray[np.float64]
    risk: NDArray[np.float64]
    risk_own: NDArray[np.float64]

    @classmethod
    def of(cls, drawn: Iterator[Draw]) -> Draws:
        """Gather single draws."""
        listed = list(drawn)
        names = Draw.__dataclass_fields__
        return cls(**{name: np.array([getattr(d, name) for d in listed]) for name in names})

    def risks(self, table: str) -> NDArray[np.float64]:
        """The risk by the probabilities of Table 9 or Table 10."""
        return self.risk if table == "Table 9" else self.risk_own


def redrawn_keys(example: Example, replicates: int, seed: int) -> Draws:
    """The cell key method with new record keys, over and over."""
    return Draws.of(_cell_key_draws(example, replicates, seed))


def _cell_key_draws(example: Example, replicates: int, seed: int) -> Iterator[Draw]:
    for done in range(replicates):
        name = f"fair comparison, keys {done}"
        z = simulate(example.table, cell_key(), {}, seed=seed, name=name).z
        restored = example.restored(z)
        yield Draw(
            utility(example.table, example.release(z)),
            utility(example.table, restored),
            *_risks(example, restored),
        )
        report("redrawing keys", (done + 1) / replicates)


def redrawn_roundings(example: Example, replicates: int, seed: int) -> Draws:
    """Small count rounding with new random choices, over and over."""
    return Draws.of(_rounding_draws(example, replicates, seed))


def _rounding_draws(example: Example, replicates: int, seed: int) -> Iterator[Draw]:
    for done in range(replicates):
        name = f"fair comparison, rounding {done}"
        release = simulate(example.table, rounding(), {}, seed=seed, name=name)
        value = utility(example.table, release)
        yield Draw(value, value, *_risks(example, release))
        report("redrawing roundings", (done + 1) / replicates)


def utility(table: Table, release: Protected) -> float:
    """Hellinger utility of the published cells."""
    return HellingerUtility()(table, release).value


def _risks(example: Example, release: Protected) -> tuple[float, float]:
    fitted = example.expected(release)
    outsider, insider = (
        ExactDisclosure(sensitive=SENSITIVE),
        ExactDisclosure(sensitive=SENSITIVE, intruder="own"),
    )
    return outsider(example.table, fitted).value, insider(example.table, fitted).value
