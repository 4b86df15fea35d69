"""The simulation of section 3.4: a population, a weighted sample of it, three perturbations.

What the paper leaves open, or states so that its own totals contradict it, is chosen so that the
totals, their standard errors and the shares of perturbed cells come out: effects uniform on
(-1, 1), the average weight taken over cells, and post-randomisation made invariant with strength
0.8.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from discreet.arrays import Array, Real, Whole
from discreet.assessment.cells import hellinger
from discreet.assessment.risk.entropy import entropy_risk
from discreet.design.base import Design
from discreet.facade.table import Table
from discreet.noise import discrete_laplace
from discreet.noise.matrix import TransitionMatrix
from discreet.progress import report
from discreet.protect.drop_add import DropAdd
from discreet.protect.pram import Pram
from discreet.protect.private_methods import DiscreteLaplace
from discreet.protect.publication import by_cell, by_mean
from discreet.protect.publish import simulate as simulate_method
from discreet.randomness import stream
from discreet.release.inference.chi_square import chi_square_test

SIDE = 7
INTERCEPT = 6.5
EFFECT = 1.0
ASSOCIATION = {"dependent": 0.2, "independent": 0.02}
WEIGHTS = (20.0, 40.0)
EPSILON, CAP = 2.0, 7
ALPHA = 0.8
REPLICATES = 500
TOTALS = 20_000
"""Tables whose totals alone are drawn: the paper's 500 leave them open by 1.3 %."""
METHODS: dict[str, DiscreteLaplace | Pram | DropAdd] = {
    "DP": DiscreteLaplace(EPSILON, CAP, accept_delta=1e-6),
    "PRAM": Pram(invariant=True, alpha=ALPHA, epsilon=EPSILON, cap=CAP),
    "Q": DropAdd(share=0.01, cap=CAP),
}
INNER = Design.product({"row": SIDE, "column": SIDE}, [("row", "column")])


@dataclass(frozen=True)
class Measured:
    """What one released table shows beside the true one.

    Attributes:
      total: Its total.
      difference: Percent by which the total differs.
      distance: Hellinger distance.
      changed: Percent of its cells that changed.
      likely: Percent of its cells that change, as expected given the counts.
      risk: Risk measure RM.
      chi_square: Statistic of the test of independence.
      p_value: Its p-value.
    """

    total: float
    difference: float = 0.0
    distance: float = 0.0
    changed: float = 0.0
    likely: float = 0.0
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
        people = populations(rng, ASSOCIATION[kind])[0]
        n = sample(rng, people)
        for name, measured in _releases(people, n, seed, f"{kind} {done}"):
            drawn.setdefault(name, []).append(measured)
        report(f"{kind} tables", (done + 1) / replicates)
    return Simulation({name: _columns(listed) for name, listed in drawn.items()})


def _columns(listed: list[Measured]) -> dict[str, Real]:
    names = Measured.__dataclass_fields__
    return {name: np.array([getattr(m, name) for m in listed]) for name in names}


def _releases(people: Whole, n: Whole, seed: int, name: str) -> Iterator[tuple[str, Measured]]:
    """The sample counts and the weighted counts, true and perturbed."""
    weighted, average = people.astype(np.float64), mean_weight(people, n)
    table = Table.from_inner(INNER, n).rekeyed(stream(seed, f"three approaches, keys, {name}"))
    yield "Original", Measured(float(n.sum()))
    yield "Original weighted", Measured(float(people.sum()), **_test(weighted))
    for method, chosen in METHODS.items():
        p = simulate_method(table, chosen, {}, seed=seed, name=f"{name} {method}").z - n
        yield method, Measured(**_distances(n, n + p), likely=_likely(method, n))
        yield f"{method} Avg", _measure_weighted(weighted, by_mean(weighted, p, average))
        if method != "DP":
            yield (
                f"{method} Avg cell",
                _measure_weighted(weighted, by_cell(weighted, n, p, average)),
            )


def populations(rng: np.random.Generator, association: float, tables: int = 1) -> Whole:
    """Step 1: tables of Poisson counts with row, column and interaction effects."""
    alpha = rng.uniform(-EFFECT, EFFECT, (tables, SIDE, 1))
    beta = rng.uniform(-EFFECT, EFFECT, (tables, 1, SIDE))
    gamma = rng.uniform(-EFFECT, EFFECT, (tables, SIDE, SIDE))
    mean = np.exp(INTERCEPT + alpha + beta + association * gamma)
    return rng.poisson(mean).reshape(tables, -1)


def sample(rng: np.random.Generator, people: Whole) -> Whole:
    """Steps 3 and 4: people divided by weights of their cell, rounded, at least one."""
    weights = rng.uniform(*WEIGHTS, people.shape)
    return np.maximum(np.rint(people / weights), 1).astype(np.int64)


def many_totals(kind: str, seed: int) -> dict[str, Real]:
    """Totals of many true tables, by name of the table: more than are worth perturbing."""
    rng = stream(seed, f"three approaches, totals, {kind}")
    people = populations(rng, ASSOCIATION[kind], TOTALS)
    totals = {"Original": sample(rng, people), "Original weighted": people}
    return {name: found.sum(axis=1).astype(np.float64) for name, found in totals.items()}


def expected_chi_square(association: float) -> float:
    r"""Mean statistic of true weighted tables, for a weak interaction.

    Degrees of freedom, and the non-centrality
    :math:`\tfrac{c^2e^2}{3}\,\mathbb{E}\sum_{ij} \mu_{ij}(1 - r_i)(1 - s_j)` with shares `r` of
    rows and `s` of columns.
    """
    first, second = _moments(EFFECT)
    line = SIDE * first - second / first
    noncentral = (association * EFFECT) ** 2 / 3 * math.exp(INTERCEPT) * line**2
    return (SIDE - 1) ** 2 + noncentral


def expected_total(association: float) -> float:
    r"""Mean total of the weighted tables, from the law of the population.

    A uniform effect `u` on :math:`(-e, e)` has :math:`\mathbb{E}e^{ku} = \sinh(ke)/ke`.
    """
    main, interaction = _moments(EFFECT)[0], _moments(association * EFFECT)[0]
    return SIDE**2 * math.exp(INTERCEPT) * main**2 * interaction


def _moments(e: float) -> tuple[float, float]:
    """Means of the exponential of a uniform effect, and of its square."""
    return math.sinh(e) / e, math.sinh(2 * e) / (2 * e)


def mean_weight(people: Whole, n: Whole) -> float:
    """The overall average weight: the mean over cells of the weights in them."""
    return float((people / n).mean())


def law(method: str, n: Whole) -> TransitionMatrix:
    """The law of a method's noise on these counts."""
    chosen = METHODS[method]
    if isinstance(chosen, DiscreteLaplace):
        return discrete_laplace(EPSILON, CAP)
    return chosen.matrix_for(n) if isinstance(chosen, Pram) else chosen.law


def _likely(method: str, n: Whole) -> float:
    matrix = law(method, n)
    stays = matrix.law[matrix.row_of(n), matrix.deviations.tolist().index(0)]
    return 100 * float(1 - stays.mean())


def _distances(f: Array, g: Array) -> dict[str, float]:
    total, true = float(g.sum()), float(f.sum())
    return {
        "total": total,
        "difference": 100 * abs(total - true) / true,
        "distance": hellinger(f.astype(np.float64), g.astype(np.float64)),
        "changed": 100 * float(np.mean(f != g)),
    }


def _test(g: Real) -> dict[str, float]:
    """The test of independence."""
    test = chi_square_test(g.reshape(SIDE, SIDE))
    return {"chi_square": test.statistic, "p_value": test.p_value}


def _measure_weighted(f: Real, g: Real) -> Measured:
    return Measured(**_distances(f, g), **_test(g), risk=entropy_risk(f, g))
