"""Perturbation tables and their look-up by key: time beside quality."""

import numpy as np

from benchmarks._measure import best_of, peak_gib, print_table
from discreet.noise import (
    TransitionMatrix,
    discrete_laplace,
    drop_add,
    linear_table,
    perturbation_table,
    pram,
)

PEER_SECONDS = {(5, 3, 2): 0.072, (10, 5, 2): 0.19}
REFERENCE = [
    (2, 1, 0),
    (3, 2, 0),
    (3, 2, 1),
    (4, 2, 0),
    (5, 1, 0),
    (5, 3, 0),
    (5, 3, 2),
    (10, 5, 2),
]
OURS = [(5, 1, 0), (5, 3, 2), (10, 5, 2)]
CELLS = 10_000_000


def building(variant: str, D: int, V: float, js: int, pstay: float | None = None) -> list:
    """Time to build one table, factor against the peer, and how well the moments are met."""
    seconds, table = best_of(15, lambda: perturbation_table(D, V, js, pstay, variant=variant))
    peer = PEER_SECONDS.get((D, V, js))
    name = f"{variant} D={D} V={V} js={js}" + (f" pstay={pstay}" if pstay else "")
    return [name, *quality(table, seconds), peer / seconds if peer else "-"]


def quality(table: TransitionMatrix, seconds: float) -> list:
    """Milliseconds, largest bias, smallest and largest variance above zero."""
    audit = table.audit()
    variance = audit.variance[1:]
    return [
        seconds * 1e3,
        float(np.abs(audit.mean).max()),
        float(variance.min()),
        float(variance.max()),
    ]


def looking_up(name: str, matrix: TransitionMatrix) -> list:
    """Time to look up many cells, and the realised mean and variance of the noise above zero."""
    rng = np.random.default_rng(1)
    counts = rng.poisson(rng.gamma(0.7, 20, CELLS))
    keys = rng.integers(0, 2**32, CELLS)
    matrix.noise(counts[:10], keys[:10], 2**32)
    seconds, noise = best_of(5, lambda: matrix.noise(counts, keys, 2**32))
    used = noise[counts > 0]
    return [name, CELLS, seconds, float(used.mean()), float(used.var()), peak_gib()]


def main() -> None:
    """Print both tables."""
    rows = [building("ptable", *case) for case in REFERENCE]
    rows.append(building("ptable", 3, 2, 0, 0.5))
    rows += [building("discreet", *case) for case in OURS]
    seconds, linear = best_of(5, lambda: linear_table(5, 2.002))
    rows.append(["linear D=5 V=2.002 js=2", *quality(linear, seconds), "-"])
    print_table(
        ["table", "ms", "max |mean|", "min var", "max var", "times faster than ptable"], rows
    )
    table = perturbation_table(5, 3, 2)
    matrices = {
        "designed table": table,
        "its modified form": table.modified(seed=1),
        "drop/add": drop_add(),
        "post-randomisation": pram(),
        "discrete Laplace": discrete_laplace(2, 7),
    }
    print_table(
        ["look-up", "cells", "s", "mean", "variance", "peak GiB"],
        [looking_up(name, matrix) for name, matrix in matrices.items()],
    )
    print("The R package ptable 1.0.0 needs 0.072 s (D=5 V=3 js=2) and 0.19 s (D=10 V=5 js=2).")


if __name__ == "__main__":
    main()
