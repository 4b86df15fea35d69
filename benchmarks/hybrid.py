"""Hybrid microdata of ten variables beside the R package, and clusters by microaggregation.

Each row is a process of its own. `peak` is all memory of the process in units of the data, `error`
the largest deviation of fits and second moments over all rows, relative to the columns' lengths.
"""

import multiprocessing
import resource
import time

import numpy as np

from benchmarks._five_way import load
from benchmarks._measure import print_table
from benchmarks.synthesize import data, error
from discreet.randomness import stream
from discreet.synthesis.hybrid import hybrid
from discreet.synthesis.microaggregation import mdav

CASES = {
    "MHa": lambda Y, X, c, rng: hybrid(Y, X, None, c(100), rng=rng),
    "MHb": lambda Y, X, c, rng: hybrid(Y, X, None, None, pieces=c(100), rng=rng),
    "MHa many": lambda Y, X, c, rng: hybrid(Y, X, None, c(len(Y) // 100), rng=rng),
    "10^4 means": lambda Y, X, c, rng: hybrid(Y, None, None, c(10**4), rng=rng),
    "10^4 shared": lambda Y, X, c, rng: hybrid(Y, None, X[:, 1:], c(10**4), rng=rng),
    "100 shared": lambda Y, X, c, rng: hybrid(Y, X[:, :5], X[:, 5:], c(100), rng=rng),
    "100 shared, c": lambda Y, X, c, rng: hybrid(
        Y, X[:, :5], X[:, 5:], c(100), variant="c", rng=rng
    ),
}
UNKNOWN = float("nan")
# Seconds (CPU seconds) of RegSDC 1.0.0 under R 4.2.2 with reference BLAS; it was stopped at 300 s.
PEER = {
    (100_000, 10): {"MHa": (4.7, 1.6), "MHb": (22.4, 7.6), "MHa many": (12.1, 4.1)},
    (100_000, 20): {"MHa": (6.4, 2.2), "MHb": (33.7, 8.4), "MHa many": (20.1, 5.0)},
    (1_000_000, 10): {"MHa": (22.3, 7.4), "MHb": (300, UNKNOWN), "MHa many": (300, UNKNOWN)},
}
GROWTH = [(n, d, size) for d in (2, 5, 10) for size in (3, 10) for n in (10**4, 10**5)]
GROWTH += [(10**6, 2, 10), (10**6, 5, 10)]


def measure(name: str, n: int, m: int) -> list[float]:
    """Wall and CPU seconds, peak memory over data, and the largest relative error of moments."""
    Y, X = data(n, m)[:2]
    labels = stream(4, "clusters").permutation(n)
    run = CASES[name]
    run(Y[:1000], X[:1000], lambda c: labels[:1000] % 3, stream(2, "warm"))
    wall, cpu = time.perf_counter(), time.process_time()
    made = run(Y, X, lambda c: labels % c, stream(3, name)).Y
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    size = Y.nbytes + X.nbytes
    kept = X[:, :1] if name == "10^4 means" else X
    return [wall, cpu, size / 2**20, peak / size, error(Y, kept, made)]


def cluster(n: int, d: int, size: int) -> list[float]:
    """CPU seconds of groups of fixed and of variable size."""
    values = stream(5, "values").standard_normal((n, d))
    seconds = []
    for gain in (None, 0.2):
        mdav(values[:100], size, gain=gain)
        started = time.process_time()
        labels = mdav(values, size, gain=gain)
        seconds.append(time.process_time() - started)
        assert np.bincount(labels).min() >= size
    return seconds


def main() -> None:
    """Print our times beside the recorded ones, and how clustering grows."""
    print(load())
    rows, growth = [], []
    context = multiprocessing.get_context("spawn")
    with context.Pool(1, maxtasksperchild=1) as alone:
        for (n, m), peers in PEER.items():
            for name in CASES:
                ours = alone.apply(measure, (name, n, m))
                wall, cpu = peers.get(name, (UNKNOWN, UNKNOWN))
                rows.append([name, n, m, *ours, wall, cpu, wall / ours[0], cpu / ours[1]])
        for n, d, size in GROWTH:
            growth.append([n, d, size, *alone.apply(cluster, (n, d, size))])
    header = ["method", "n", "m", "seconds", "CPU s", "data MB", "peak", "error"]
    print_table([*header, "R seconds", "R CPU s", "faster", "faster (CPU)"], rows)
    print_table(["rows", "columns", "size", "MDAV CPU s", "V-MDAV CPU s"], growth)


if __name__ == "__main__":
    main()
