"""SAFE on a five-way table with all margins of up to three variables controlled."""

import time

import numpy as np

import discreet as dc
from benchmarks._five_way import five_way, load
from benchmarks._measure import peak_gib, print_table
from discreet.facade.release import Trial
from discreet.protect.safe import effect

NAMES = list("abcde")
EFFORTS = (1e7, 2e8)


def run(table: dc.Table, proposals: float) -> tuple[list, Trial]:
    """Time, largest and mean deviation of the controlled cells, and the shares at 0 to 4."""
    wall, cpu = time.perf_counter(), time.process_time()
    release = table.simulate(dc.Safe(proposals=proposals), seed=1)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    size = np.abs(effect(table, release).deviation)
    shares = np.bincount(size, minlength=5)[:5] / len(size)
    row = [f"{proposals:.0e}", wall, cpu, int(size.max()), float(size.mean())]
    return [*row, *(round(100 * s, 1) for s in shares), peak_gib()], release


def main() -> None:
    """Print quality beside time, then what happened to cells of four variables."""
    table = five_way(dc.margins(NAMES, order=3, lower=True))
    table.simulate(dc.Safe(proposals=1e5), seed=1)
    print(load())
    found = [run(table, proposals) for proposals in EFFORTS]
    header = ["proposals", "seconds", "CPU s", "largest", "mean"]
    header += [f"% off {d}" for d in range(5)]
    print_table([*header, "peak GiB"], [row for row, _ in found])
    print("Bar: largest at most 4 and mean at most 0.84 within 60 s on two cores.")
    release = found[-1][1]
    four = effect(table, release, dc.margins(NAMES, order=4))
    print(f"four variables: largest {four.largest}, mean {four.mean:.2f}")
    rows = four.by_size().to_pylist()
    print_table(list(rows[0]), [list(row.values()) for row in rows])
    shares = effect(table, release).transitions(8)
    print("controlled cells, row: true count 1 to 8, column: count from 0")
    print_table([str(j) for j in range(shares.shape[1])], np.round(shares[1:], 3).tolist())


if __name__ == "__main__":
    main()
