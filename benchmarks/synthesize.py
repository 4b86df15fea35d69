"""Synthetic microdata of ten variables, beside the recorded times of the R package.

Each row is the best of three runs in a process of its own, so that peak memory is that of one
method. `peak` is all memory of the process in units of the data that the method is given.
"""

import multiprocessing
import resource
import time

import numpy as np

from benchmarks._five_way import load
from benchmarks._measure import print_table
from discreet.randomness import stream
from discreet.synthesis.methods import (
    from_residuals,
    ipso,
    residual_correlation,
    romm,
    score_correlation,
)

K = 10
METHODS = {
    "ipso": lambda Y, X, other, rng: ipso(Y, X, rng=rng),
    "from_residuals": lambda Y, X, other, rng: from_residuals(Y, X, other, rng=rng),
    "from_residuals svd": lambda Y, X, other, rng: from_residuals(Y, X, other, rng=rng, how="svd"),
    "romm": lambda Y, X, other, rng: romm(Y, X, 0.5, rng=rng),
    "score_correlation": lambda Y, X, other, rng: score_correlation(Y, X, 0.5, rng=rng),
    "residual_correlation": lambda Y, X, other, rng: residual_correlation(Y, X, 0.5, rng=rng),
}
# Seconds (CPU seconds) of RegSDC 1.0.0 under R 4.2.2 with reference BLAS.
PEER = {
    (100_000, 10): [(3.4, 0.8), (3.1, 1.0), (2.0, 0.7), (2.8, 0.9), (4.8, 1.6), (4.3, 1.4)],
    (100_000, 20): [(4.3, 1.1), (6.5, 1.2), (6.7, 1.1), (5.4, 1.1), (5.6, 1.9), (6.1, 2.1)],
    (1_000_000, 10): [(17.6, 4.4), (16.1, 4.0), (14.2, 3.5), (17.4, 4.3), (35.2, 8.7), (25.9, 7.7)],
    (1_000_000, 20): [
        (23.6, 5.8),
        (20.9, 5.4),
        (19.4, 5.1),
        (22.4, 5.8),
        (43.5, 10.8),
        (45.7, 10.9),
    ],
}


def data(n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Variables that depend on covariates and on each other."""
    rng = stream(1, "benchmark")
    X = rng.standard_normal((n, m))
    X[:, 0] = 1
    Y = rng.standard_normal((n, K))
    mixing, effects = rng.standard_normal((K, K)), rng.standard_normal((m, K))
    for start in range(0, n, 10_000):
        rows = slice(start, start + 10_000)
        Y[rows] = Y[rows] @ mixing + X[rows] @ effects
    return Y, X


def measure(name: str, n: int, m: int) -> list[float]:
    """Wall and CPU seconds, peak memory over data, and the largest relative error of moments."""
    Y, X = data(n, m)
    other = stream(2, "other").standard_normal((n, K)) if name.startswith("from") else Y[:, :0]
    wall, cpu, made = np.inf, np.inf, None
    for _ in range(3):
        del made
        before = time.perf_counter(), time.process_time()
        made = METHODS[name](Y, X, other, stream(3, name)).Y
        wall = min(wall, time.perf_counter() - before[0])
        cpu = min(cpu, time.process_time() - before[1])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    own = Y.nbytes + X.nbytes + other.nbytes
    return [wall, cpu, own / 2**20, peak / own, error(Y, X, made)]


def error(Y: np.ndarray, X: np.ndarray, made: np.ndarray) -> float:
    """Largest deviation of XᵀY and YᵀY relative to the columns' lengths."""
    y, x = np.linalg.norm(Y, axis=0), np.linalg.norm(X, axis=0)
    fits = np.abs(X.T @ made - X.T @ Y) / np.outer(x, y)
    squares = np.abs(made.T @ made - Y.T @ Y) / np.outer(y, y)
    return float(max(fits.max(), squares.max()))


def main() -> None:
    """Print our times beside the recorded ones."""
    print(load())
    header = ["method", "n", "m", "seconds", "CPU s", "data MB", "peak", "error"]
    header += ["R seconds", "R CPU s", "faster", "faster (CPU)"]
    rows = []
    context = multiprocessing.get_context("spawn")
    with context.Pool(1, maxtasksperchild=1) as alone:
        for (n, m), peers in PEER.items():
            for name, (wall, cpu) in zip(METHODS, peers, strict=True):
                ours = alone.apply(measure, (name, n, m))
                rows.append([name, n, m, *ours, wall, cpu, wall / ours[0], cpu / ours[1]])
    print_table(header, rows)


if __name__ == "__main__":
    main()
