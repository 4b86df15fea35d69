"""Small count rounding of ten three-way margins, base 3, over efforts of the search."""

import itertools
import time

import numpy as np

import discreet as dc
from benchmarks._five_way import five_way, load
from benchmarks._measure import peak_gib, print_table
from discreet.facade.release import Trial

EFFORTS = (0, 5e4, 1e6, 5e6, 1e7)
PEER = ["R SmallCountRounding 1.2.5", 2.8, 2.8, 7, 0.801, 0.97896, 0, "-"]


def run(table: dc.Table, proposals: float) -> list:
    """Time, deviations, Hellinger utility and small cells left."""
    wall, cpu = time.perf_counter(), time.process_time()
    release = table.simulate(dc.SmallCountRounding(base=3, proposals=proposals), seed=1)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    z = effect_of(table, release)
    size = np.abs(z - table.z)
    apart = np.sqrt(0.5 * ((np.sqrt(z) - np.sqrt(table.z)) ** 2).sum())
    small = int(((z > 0) & (z < 3)).sum())
    utility = float(1 - apart / np.sqrt(table.z.sum()))
    quality = [int(size.max()), float(size.mean()), round(utility, 5), small]
    return [f"{proposals:.0e}", wall, cpu, *quality, peak_gib()]


def effect_of(table: dc.Table, release: Trial) -> np.ndarray:
    """Released values of the table's own published cells."""
    return release.z[table.design.public().published]


def main() -> None:
    """Print quality beside time."""
    table = five_way(list(itertools.combinations("abcde", 3)))
    table.simulate(dc.SmallCountRounding(base=3, proposals=1e4), seed=1)
    print(load())
    header = ["proposals", "seconds", "CPU s", "largest", "mean", "utility", "small", "peak GiB"]
    print_table(header, [*(run(table, proposals) for proposals in EFFORTS), PEER])


if __name__ == "__main__":
    main()
