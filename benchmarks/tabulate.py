"""Records to a table with counts, weights and keys: ours, hand-written SQL, and a peer.

Every contender runs in a process of its own on the same Parquet file: four string columns of the
demo census, a weight and a 32-bit record key. Contenders take turns; times, of the wall and of all
processors together, are the best of all turns, from the file to the cells; memory is the largest
peak. On a machine that others use as well, the processors' time says more.

Run: python -m benchmarks.tabulate --rows 10000000
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks._measure import print_table

Figures = dict[str, float]

ROOT = Path(__file__).parents[1]
VARIABLES = ("region", "age", "education", "sex")
PEER = "cell-key-perturbation==3.1.0"
PEER_HOME = ROOT / ".deps" / "peer"
LARGEST_FOR_PEER = 20_000_000


def write_records(path: Path, rows: int) -> None:
    """The demo census with string codes, weights and keys, chunk by chunk."""
    import pyarrow.parquet as pq

    chunks = _chunks(rows)
    first = next(chunks)
    with pq.ParquetWriter(path, first.schema, compression="snappy") as writer:
        writer.write_table(first)
        for chunk in chunks:
            writer.write_table(chunk)


def _chunks(rows: int) -> Iterator[object]:
    import numpy as np
    import pyarrow as pa

    from discreet.demo import generate

    rng = np.random.default_rng(1)
    for people in (chunk.to_arrow() for chunk in generate(rows, seed=1)):
        n = people.num_rows
        columns = {v: people.column(v).cast(pa.string()) for v in VARIABLES}
        yield pa.table({**columns, "weight": rng.gamma(4, 10, n), "key": rng.integers(0, 2**32, n)})


def count_by_sql(path: Path) -> Callable[[], int]:
    """What a careful person would write."""
    import duckdb

    by = ", ".join(VARIABLES)
    sums = "count(*) AS n, sum(weight) AS w, sum(weight * weight) AS w2, sum(key) AS k"
    query = f"SELECT {by}, {sums} FROM read_parquet('{path}') GROUP BY {by}"
    return lambda: duckdb.connect().sql(query).to_arrow_table().num_rows


def count_by_us(path: Path) -> Callable[[], int]:
    """A whole table: inner cells, all margins, weights and cell keys, with the checks."""
    import discreet as dc

    def work() -> int:
        people = dc.open(path, weight="weight", key="key")
        table = people.tabulate("*".join(VARIABLES))
        return int((table.y > 0).sum())

    return work


def count_linked_by_us(path: Path) -> Callable[[], int]:
    """Three linked margins instead of the crossing."""
    import discreet as dc

    def work() -> int:
        people = dc.open(path, weight="weight", key="key")
        return len(people.tabulate("region*age + region*education + age*education*sex").z)

    return work


def count_by_peer(path: Path) -> Callable[[], int]:
    """The peer's own function: counts, cell keys and noise, from pandas strings."""
    import pandas as pd
    from cell_key_perturbation.create_perturbed_table import create_perturbed_table
    from cell_key_perturbation.utils.generate_test_ptable import generate_ptable_10_5_rule

    ptable = generate_ptable_10_5_rule()
    modulus = int(ptable["ckey"].max()) + 1

    def work() -> int:
        people = pd.read_parquet(path)
        people["key"] %= modulus
        table = create_perturbed_table(people, ptable, ["region"], list(VARIABLES[1:]), "key")
        return int((table["pre_sdc_count"] > 0).sum())

    return work


CONTENDERS = {
    "sql": count_by_sql,
    "ours": count_by_us,
    "linked": count_linked_by_us,
    "peer": count_by_peer,
}


def run_one(name: str, path: Path) -> None:
    """One contender, here: a turn to warm up and two that count."""
    work = CONTENDERS[name](path)
    cells = work()
    turns = [_timed(work) for _ in range(2)]
    seconds, cpu = (min(parts) for parts in zip(*turns, strict=True))
    print(json.dumps({"seconds": seconds, "cpu": cpu, "peak": peak_mib(), "cells": cells}))


def _timed(work: Callable[[], int]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def peak_mib() -> float:
    """Peak resident memory of this program alone; `ru_maxrss` would include who started it."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def measure(names: list[str], path: Path, rounds: int) -> dict[str, Figures]:
    """Every contender in processes of its own, taking turns."""
    found: dict[str, list[Figures]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            found[name].append(_in_a_process(name, path))
    return {name: _best(figures) for name, figures in found.items()}


def _in_a_process(name: str, path: Path) -> Figures:
    python = str(PEER_HOME / "bin" / "python") if name == "peer" else sys.executable
    command = [python, "-m", "benchmarks.tabulate", "--contender", name, "--file", str(path)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


def _best(several: list[Figures]) -> Figures:
    least = {part: min(f[part] for f in several) for part in ("seconds", "cpu", "cells")}
    return {**least, "peak": max(f["peak"] for f in several)}


def install_peer() -> None:
    """The peer in an environment of its own."""
    python = PEER_HOME / "bin" / "python"
    if not python.exists():
        venv.create(PEER_HOME, with_pip=True)
        needed = [PEER, "pandas", "pyarrow"]
        subprocess.run([python, "-m", "pip", "install", "-q", *needed], check=True)


def show(found: dict[str, Figures], rows: int) -> None:
    """A line for each contender, with ratios to hand-written SQL, and the goals."""
    base, ours = found["sql"], found["ours"]
    print(f"{rows:,} records by {len(VARIABLES)} string variables")
    header = ["contender", "seconds", "CPU s", "peak MiB", "cells", "time", "CPU", "memory / SQL"]
    print_table(
        header,
        [
            [name, f["seconds"], f["cpu"], round(f["peak"]), int(f["cells"]), *_ratios(f, base)]
            for name, f in found.items()
        ],
    )
    wall, cpu, _ = _ratios(ours, base)
    print(f"Goal: ours at most 1.2 times SQL; {wall} here, {cpu} in CPU time.")
    if "peer" in found:
        wall, cpu, peak = _ratios(found["peer"], ours)
        print(f"Goal: the peer at least 5 times slower; {wall} here, {cpu} in CPU time.")
        print(f"Goal: the peer at least 4 times larger; {peak} here.")


def _ratios(one: Figures, other: Figures) -> list[str]:
    return [f"{one[part] / other[part]:.2f}" for part in ("seconds", "cpu", "peak")]


def main() -> None:
    """Make the records, run every contender, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-peer", action="store_true", help="leave the PyPI package out")
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--contender", choices=CONTENDERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contender:
        run_one(options.contender, options.file)
        return
    names = ["sql", "ours", "linked"]
    if not options.no_peer and options.rows <= LARGEST_FOR_PEER:
        install_peer()
        names.append("peer")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.parquet"
        write_records(path, options.rows)
        show(measure(names, path, options.rounds), options.rows)


if __name__ == "__main__":
    main()
