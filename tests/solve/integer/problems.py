"""Random small problems over whole numbers, of every kind the search knows."""

import numpy as np

import discreet as dc
from discreet.solve import Domain, LatticeProblem


def small_design(rng):
    """A flat table with some of its margins, or a matrix without structure."""
    if rng.random() < 0.25:
        return dc.Design.from_matrix((rng.random((8, 10)) < 0.4).astype(np.int64))
    sizes = [(2, 2, 2), (3, 2, 2), (2, 3), (3, 3), (4, 3)][rng.integers(5)]
    shape = dict(zip("abc", sizes, strict=False))
    order = int(rng.integers(1, len(shape) + 1))
    return dc.Design.product(shape, dc.margins(list(shape), order=order, lower=True))


def domain_of(kind, y):
    """A domain around given counts."""
    high = np.full(len(y), 40)
    kinds = {
        "gapped": lambda: Domain.gapped(3, high),
        "multiples": lambda: Domain(0, high, 3, False),
        "pair": lambda: Domain.pair(y // 3 * 3, y // 3 * 3 + 3),
        "interval": lambda: Domain.interval(np.maximum(y - 2, 0), y + 2),
        "mixed": lambda: Domain(np.where(y % 2, 3, y), np.where(y % 2, high, y), 1, y % 2 == 1),
    }
    return kinds[kind]()


KINDS = ("gapped", "multiples", "pair", "interval", "mixed")


def problem_on(design, rng, **options):
    """A problem with random counts, domain, power, weights and target, and a feasible start."""
    y = rng.poisson(rng.gamma(0.8, 3.0, design.n_inner))
    target = design.aggregate(y) + rng.integers(-3, 4, design.n_published) * (rng.random() < 0.3)
    weights = rng.integers(1, 5, design.n_published).astype(float) if rng.random() < 0.3 else None
    domain = domain_of(rng.choice(KINDS), y)
    settings = {"power": float(rng.choice([1, 2, 2, 3])), "weights": weights, **options}
    return LatticeProblem(design, target, domain, **settings), domain.nearest(y)
