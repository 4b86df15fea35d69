"""The simulation of Shlomo, Krenzke & Li (2019), a small part of it, through the measures."""

import numpy as np
import pytest

from discreet.assessment.cells import hellinger
from discreet.assessment.risk.entropy import entropy_risk
from discreet.noise import discrete_laplace, drop_add, invariant_pram
from discreet.randomness import stream

MODULUS = 2**32
# Printed, dependent attributes: Hellinger distance of sample and of weighted counts (Table 5), RM
# of weighted counts and percent perturbed (Table 4).
PRINTED = {
    "laplace": (0.352, 1.931, 0.9892, 24.5),
    "pram": (0.404, 2.224, 0.9870, 27.7),
    "drop-add": (0.491, 2.696, 0.9751, 66.8),
}


def population(rng):
    """A 7 × 7 table with dependence; effects uniform on (-1, 1) give the printed population."""
    alpha, beta = rng.uniform(-1, 1, (7, 1)), rng.uniform(-1, 1, (1, 7))
    return rng.poisson(np.exp(6.5 + alpha + beta + 0.2 * rng.uniform(-1, 1, (7, 7)))).ravel()


def replicate(rng, name):
    people = population(rng)
    n = np.maximum(np.rint(people / rng.uniform(20, 40, 49)), 1).astype(np.int64)
    matrices = {"laplace": discrete_laplace(2, 7), "drop-add": drop_add()}
    matrix = matrices[name] if name in matrices else invariant_pram(n)
    change = matrix.noise(n, rng.integers(MODULUS, size=49), MODULUS)
    released = np.maximum(people + change * (people / n).mean(), 0)
    return (
        hellinger(n, n + change),
        hellinger(people, released),
        entropy_risk(people, released),
        100 * np.mean(change != 0),
    )


@pytest.mark.parametrize("name", PRINTED)
def test_measures_of_the_simulation(name):
    rng = stream(1, name)
    found = np.mean([replicate(rng, name) for _ in range(300)], axis=0)
    sample, weighted, risk, changed = PRINTED[name]
    assert found[:2] == pytest.approx([sample, weighted], rel=0.06)
    assert found[2] == pytest.approx(risk, abs=0.001)
    assert found[3] == pytest.approx(changed, abs=1.5)
