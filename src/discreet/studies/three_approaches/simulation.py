"""The simulation of section 3.4: a population, a weighted sample of it, three perturbations.

What the paper leaves open, or states so that its own totals contradict it, is chosen so that the
totals, their standard errors and the shares of perturbed cells come out: effects uniform on
(-1, 1), the average weight taken over cells, and post-randomisation made invariant with strength
0.8.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.assess.risk.entropy import entropy_risk
from discreet.assess.utility.chi_square import chi_square_test
from discreet.assess.utility.hellinger import hellinger
from discreet.noise import discrete_laplace, drop_add, invariant_pram
from discreet.noise.matrix import TransitionMatrix
from discreet.progress import report
from discreet.randomness import stream

Real = NDArray[np.float64]
Whole = NDArray[np.int64]

SIDE = 7
INTERCEPT = 6.5
EFFECT = 1.0
ASSOCIATION = {"dependent": 0.2, "independent": 0.02}
WEIGHTS = (20.0, 40.0)
EPSILON, CAP = 2.0, 7
REPLICATES = 500
_KEYS = 2**32


@dataclass(frozen=True)
class Measured:
    """What one released table shows beside the true one."""

    total: float
    difference: float = 0.0
    distance: float = 0.0
    changed: float = 0.0
    risk: float = 1.0
    chi_square: float = 0.0
    p_value: float = 1.0


@dataclass(frozen=True, eq=False)
class Simulation:
    """All replications of one kind of table: by name of the release, then by measure."""

    releases: dict[str, dict[str, Real]]

    def __call__(self, name: str, measure: str) -> Real:
        """The values of one measure, one for each replication."""
        return self.releases[name][measure]


def simulate(kind: str, replicates: int, seed: int) -> Simulation:
    """Draw tables with dependent or independent attributes, and perturb each three times.

    Args:
      kind: A key of `ASSOCIATION`.
      replicates: Number of tables.
      seed: Root of the streams of random numbers.
    """
    rng = stream(seed, f"three approaches, {kind}")
    drawn: dict[str, list[Measured]] = {}
    for done in range(replicates):
        for name, measured in _replicate(rng, ASSOCIATION[kind]):
            drawn.setdefault(name, []).append(measured)
        report(f"{kind} tables", (done + 1) / replicates)
    return Simulation({name: _columns(listed) for name, listed in drawn.items()})


def _columns(listed: list[Measured]) -> dict[str, Real]:
    names = Measured.__dataclass_fields__
    return {name: np.array([getattr(m, name) for m in listed]) for name in names}


def _replicate(rng: np.random.Generator, association: float) -> Iterator[tuple[str, Measured]]:
    people = population(rng, association)
    n = np.maximum(np.rint(people / rng.uniform(*WEIGHTS, people.size)), 1).astype(np.int64)
    average = float((people / n).mean())
    yield "Original", Measured(float(n.sum()))
    yield "Original weighted", _with_test(people, people)
    for name, matrix in mechanisms(n).items():
        p = matrix.noise(n, rng.integers(_KEYS, size=n.size), _KEYS)
        yield name, _measured(n, n + p)
        yield f"{name} Avg", _with_test(people, np.maximum(people + p * average, 0))
        if name != "DP":
            yield f"{name} Avg cell", _with_test(people, people + p * people / n)


def population(rng: np.random.Generator, association: float) -> Whole:
    """Step 1: a table of Poisson counts with row, column and interaction effects."""
    alpha = rng.uniform(-EFFECT, EFFECT, (SIDE, 1))
    beta = rng.uniform(-EFFECT, EFFECT, (1, SIDE))
    gamma = rng.uniform(-EFFECT, EFFECT, (SIDE, SIDE))
    return rng.poisson(np.exp(INTERCEPT + alpha + beta + association * gamma)).ravel()


def mechanisms(n: Whole) -> dict[str, TransitionMatrix]:
    """The three perturbations of the sample counts."""
    return {
        "DP": discrete_laplace(EPSILON, CAP),
        "PRAM": invariant_pram(n, EPSILON, CAP),
        "Q": drop_add(),
    }


def _measured(a: NDArray[np.generic], b: NDArray[np.generic]) -> Measured:
    f, g = a.astype(np.float64), b.astype(np.float64)
    total = float(g.sum())
    return Measured(
        total=total,
        difference=100 * abs(total - float(f.sum())) / float(f.sum()),
        distance=hellinger(f, g),
        changed=100 * float(np.mean(f != g)),
    )


def _with_test(a: NDArray[np.generic], b: NDArray[np.generic]) -> Measured:
    """The same with the risk of the weighted table and its test of independence."""
    plain = _measured(a, b)
    test = chi_square_test(b.reshape(SIDE, SIDE))
    return Measured(
        total=plain.total,
        difference=plain.difference,
        distance=plain.distance,
        changed=plain.changed,
        risk=entropy_risk(a.astype(np.float64), b.astype(np.float64)),
        chi_square=test.statistic,
        p_value=test.p_value,
    )
