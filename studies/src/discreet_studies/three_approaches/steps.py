"""Weighted counts in whole steps of a declared mean weight, as the product publishes them.

The paper publishes equations (4) and (5) to the last digit, from which the noise can be read. These
checks are our own: what whole steps cost in distance, and what they cost in privacy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from discreet.arrays import Real, Whole
from discreet.assessment.cells import hellinger
from discreet.facade.table import Table
from discreet.noise import laplace_law
from discreet.protect.private_methods import DiscreteLaplace
from discreet.protect.publication import by_mean
from discreet.protect.publish import simulate as simulate_method
from discreet.randomness import stream
from discreet.tables.protected import Method
from discreet.tables.truth import Bounds, CellValues, DataSet
from discreet_studies.chance import orders
from discreet_studies.model import Finding, own
from discreet_studies.three_approaches.simulation import (
    ASSOCIATION,
    CAP,
    EPSILON,
    INNER,
    METHODS,
    WEIGHTS,
    mean_weight,
    populations,
    sample,
)

Steps = Literal["mean-weight", "cell-weight"]
TABLES = 250
"""Tables at most, half as many as the paper has: they take a second or two."""
LARGEST = WEIGHTS[1]
STEP = sum(WEIGHTS) / 2
VARIANCE = (WEIGHTS[1] - WEIGHTS[0]) ** 2 / 12 / STEP**2
"""Declared before a sample is drawn, from the law of the weights alone."""
LITTLE = 0.1
_ACCEPTED = 1e-5
_SAME = 1e-9
_PLACES = 300  # positions of a sum between two steps, and weights of a record, that are tried


@dataclass(frozen=True, eq=False)
class StepResults:
    """Hellinger distances by release, relative variances of weights, and what a release states."""

    distances: dict[str, Real]
    variances: Real
    epsilon: float
    delta: float
    says_little: bool


def publish_in_steps(replicates: int, seed: int) -> StepResults:
    """Tables with dependent attributes, published to the last digit and in whole steps."""
    rng = stream(seed, "three approaches, steps")
    found: dict[str, list[float]] = {}
    variances = []
    for done in range(min(replicates, TABLES)):
        people = populations(rng, ASSOCIATION["dependent"])[0]
        n = sample(rng, people)
        table = _survey(people, n, rng)
        variances.append(table.weight_variance)
        for name, distance in _distances(table, people, n, seed, f"steps {done}"):
            found.setdefault(name, []).append(distance)
    private = table.simulate(_in_steps("DP", "mean-weight"), seed=seed).statement
    stated = private.privacy
    return StepResults(
        {name: np.array(values) for name, values in found.items()},
        np.array(variances),
        math.nan if stated is None else stated.epsilon,
        math.nan if stated is None else stated.delta,
        private.says("weights-vary-little"),
    )


def _survey(people: Whole, n: Whole, rng: np.random.Generator) -> Table:
    """Sampled records with equal weights in a cell; larger ones are cut to the declared bound."""
    weight = np.minimum(people / n, LARGEST)
    values = CellValues(n, weight * n, weight**2 * n)
    bounds = Bounds(weight=LARGEST, mean_weight=STEP, weight_variance=VARIANCE)
    table = replace(Table.from_inner(INNER, values), data_set=DataSet("survey", bounds=bounds))
    return table.rekeyed(rng)


def _in_steps(name: str, grid: Steps) -> Method:
    method = METHODS[name]
    if isinstance(method, DiscreteLaplace):
        method = replace(method, accept_delta=_ACCEPTED)
    return replace(method, grid=grid)


def _distances(
    table: Table, people: Whole, n: Whole, seed: int, name: str
) -> Iterator[tuple[str, float]]:
    weighted, average = people.astype(np.float64), mean_weight(people, n)
    for method, chosen in METHODS.items():
        counts = simulate_method(
            table, chosen, {}, seed=seed, unit="count", name=f"{name} {method}"
        )
        p = counts.z - n
        yield f"{method} (4)", hellinger(weighted, by_mean(weighted, p, average))
        grids: dict[str, Steps] = {"(4)": "mean-weight"}
        if method != "DP":
            grids["(5)"] = "cell-weight"
        for equation, grid in grids.items():
            label = f"{method} {equation} in steps"
            released = simulate_method(
                table, _in_steps(method, grid), {}, seed=seed, name=f"{name} {label}"
            )
            yield label, hellinger(weighted, released.z.astype(np.float64))


def step_findings(found: StepResults) -> Iterator[Finding]:
    """What whole steps cost, and whether weights are such that they may be used."""
    yield _cost_of_the_published_figure(found)
    yield _order(
        "Whole steps make distances larger than the last digit does, and those of the private "
        "noise stay below those of drop/add to the last digit.",
        found,
        [("DP (4)", "DP (4) in steps", "Q (4)"), ("PRAM (4)", "PRAM (4) in steps")],
    )
    yield _order(
        "In whole steps, too, the overall average weight gives smaller distances than the cell's.",
        found,
        [
            ("PRAM (4) in steps", "PRAM (5) in steps"),
            ("Q (4) in steps", "Q (5) in steps"),
        ],
    )
    yield _weights_vary_little(found)


def _order(text: str, found: StepResults, chains: list[tuple[str, ...]]) -> Finding:
    holds, shown = orders([found.distances[name] for name in chain] for chain in chains)
    names = dict.fromkeys(name for chain in chains for name in chain)
    means = ", ".join(f"{name} {found.distances[name].mean():.4g}" for name in names)
    return own(
        text, holds, f"Mean Hellinger distances of {len(found.variances)} tables: {means}; {shown}."
    )


def _cost_of_the_published_figure(found: StepResults) -> Finding:
    """The stated cost beside the laws of all figures that one record tells apart."""
    steps = most_steps(LARGEST, STEP)
    law = laplace_law(EPSILON, CAP)
    epsilon = float(np.abs(np.log(law[steps:] / law[:-steps])).max())
    delta = float(law[:steps].sum())
    return own(
        "The cost that is stated for weighted counts in steps is that of the published figures, "
        "and not the ε of the sample counts.",
        abs(found.epsilon - epsilon) < _SAME and abs(found.delta - delta) < _SAME,
        f"ε = {EPSILON:g} for sample counts. One record of weight up to {LARGEST:g} moves a sum by "
        f"up to {steps} steps of {STEP:g}, and the laws of such figures differ by "
        f"ε = {epsilon:.6g} and δ = {delta:.2e}; stated are ε = {found.epsilon:.6g} "
        f"and δ = {found.delta:.2e}.",
    )


def most_steps(largest: float, step: float) -> int:
    """By how many steps one record can move a rounded sum: tried, wherever the sum may lie."""
    start = (np.arange(_PLACES) + 0.5) / _PLACES
    weight = largest / step * np.arange(1, _PLACES + 1) / _PLACES
    moved = np.floor(start[:, None] + weight + 0.5) - np.floor(start[:, None] + 0.5)
    return int(moved.max())


def _weights_vary_little(found: StepResults) -> Finding:
    v = 100 * found.variances
    return own(
        "Weights vary less than the paper asks for (a relative variance below 10 %), and the "
        "statement says so.",
        bool(found.variances.max() < LITTLE) and found.says_little,
        f"Relative variance of the weights of sampled records {v.mean():.1f} % on average, "
        f"{v.min():.1f} to {v.max():.1f} %; declared {100 * VARIANCE:.1f} %.",
    )
