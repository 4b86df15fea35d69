"""SAFE over the number of non-empty cells, with thirty controlled tables: memory and progress."""

import itertools
import sys
import time

import numpy as np

import discreet as dc
from benchmarks._five_way import load
from benchmarks._measure import peak_gib, print_table
from discreet.design.axis import Axis
from discreet.design.sparse import SparseDesign
from discreet.progress import listening

SHAPE = {"a": 400, "b": 60, "c": 40, "d": 30, "e": 20, "f": 10, "g": 4}
CONTROLLED = 30
SWEEPS = 20
LONGEST = 60.0  # seconds, for the largest sizes


def table_of(cells: int) -> dc.Table:
    """Many cells of one to a few people over seven variables, and thirty margins."""
    rng = np.random.default_rng(1)
    columns = [
        np.minimum((n * rng.random(cells) ** 1.7).astype(np.int32), n - 1) for n in SHAPE.values()
    ]
    flat = np.unique(np.ravel_multi_index(columns, tuple(SHAPE.values())))
    codes = [c.astype(np.int32) for c in np.unravel_index(flat, tuple(SHAPE.values()))]
    axes = [Axis.flat(name, [str(k) for k in range(n)]) for name, n in SHAPE.items()]
    orders = (itertools.combinations(SHAPE, k) for k in (1, 2, 3))
    margins = list(itertools.chain([()], *orders))[:CONTROLLED]
    design = SparseDesign(axes, margins, codes, occurring=True)
    return dc.Table.from_inner(design, 1 + rng.poisson(0.7, len(flat)))


def run(cells: int) -> list:
    """Peak memory, speed, how steadily the search went on, and what it reached."""
    table, seen = table_of(cells), [time.perf_counter()]
    built = peak_gib()
    timed = LONGEST if cells > 2_000_000 else None
    method = dc.Safe(proposals=SWEEPS * table.design.n_inner, seconds=timed)
    began = time.perf_counter()
    with listening(lambda task, fraction: seen.append(time.perf_counter())):
        found = method.search(table, rng=np.random.default_rng(1))
    wall = time.perf_counter() - began
    size = np.abs(found.deviation)
    speed = found.proposals / wall / 1e6
    longest = float(np.diff(seen).max())
    quality = [int(size.max()), float(size.mean())]
    return [table.design.n_inner, len(size), wall, speed, longest, *quality, built, peak_gib()]


def main(sizes: list[int]) -> None:
    """Print one line for each size."""
    small = table_of(10_000)
    dc.Safe(proposals=1e5).search(small, rng=np.random.default_rng(1))
    print(load())
    header = ["cells", "controlled cells", "seconds", "million proposals/s", "longest silence s"]
    header += ["largest", "mean", "GiB before", "peak GiB"]
    print_table(header, [run(size) for size in sizes])


if __name__ == "__main__":
    main([int(float(size)) for size in sys.argv[1:]] or [100_000, 1_000_000])
