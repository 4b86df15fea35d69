"""Tables and records that attacks are run on, and the secret that the attacker does not have."""

import numpy as np

from discreet import Secret, Table, TransitionMatrix, perturbation_table
from discreet.design import Axis, ProductDesign
from discreet.tables import CellValues

SECRET = Secret(b"what the custodian knows and the attacker does not")
PTABLE = perturbation_table(D=5, V=3, js=2)
MODULUS = 2**32


def moving_zeros(reach=4):
    """A law that moves every count by up to `reach`, zeros too."""
    u = np.arange(-reach, reach + 1)
    law = np.where(u >= -np.arange(reach + 1)[:, None], np.exp(-np.abs(u) / 2), 0.0)
    return TransitionMatrix.from_law("zeros move", law / law.sum(axis=1, keepdims=True))


MOVES_ZEROS = moving_zeros()


def flat_axes(**sizes):
    """Variables with declared codes, so many each."""
    return [Axis.flat(name, [f"{name}{k}" for k in range(n)]) for name, n in sizes.items()]


def keyed_table(counts, axes, terms, seed=1, secret=SECRET, keys=None):
    """A table of these inner counts, with random keys (or given ones) and a secret."""
    counts = np.asarray(counts).ravel()
    if keys is None:
        keys = np.random.default_rng(seed).integers(MODULUS, size=len(counts))
    keys = np.where(counts > 0, keys, 0)
    table = Table.from_inner(ProductDesign(axes, terms), CellValues(counts, key=keys))
    return table.with_secret(secret)


def country(seed=1, smallest=0, mean=30.0, terms="region*age*sex", **sizes):
    """A three-way table with all margins; the counts are skewed and many are small."""
    sizes = sizes or {"region": 9, "age": 7, "sex": 2}
    rng = np.random.default_rng(seed)
    n = int(np.prod(list(sizes.values())))
    counts = smallest + rng.poisson(rng.exponential(mean, n))
    return keyed_table(counts, flat_axes(**sizes), terms, seed)


def inner_cells(design):
    """Where the inner cells are among the published ones."""
    levels = design.inner_block.levels
    return design.slice_of([block.levels for block in design.blocks].index(levels))


def exact_share(guess, truth):
    """How many cells are guessed to the unit."""
    return float(np.mean(np.rint(guess) == truth))


def correlation(one, other):
    """How far two vectors of noise go together."""
    return float(np.corrcoef(one, other)[0, 1])
