"""Counts from a CSV file, a Parquet file and an object store, beside plain DuckDB.

Each contender runs in a process of its own, from the file to the cells of four string variables;
contenders take turns, and the best turn counts. The store is moto's server on this machine, which
`make system` installs. DuckDB itself would have to download an extension to read from it, so it is
compared with DuckDB on the same Parquet file on the disk.

Run: python -m benchmarks.files --rows 10000000
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks._measure import print_table
from benchmarks.tabulate import VARIABLES, peak_mib, write_records

ROOT = Path(__file__).parents[1]
STORE = ROOT / ".deps" / "moto" / "bin" / "moto_server"
Figures = dict[str, float]


def count_by_sql(place: str) -> int:
    """What a careful person would write: codes are texts."""
    import duckdb

    reader = "read_parquet" if place.endswith(".parquet") else "read_csv"
    options = "" if place.endswith(".parquet") else ", all_varchar = true"
    by = ", ".join(VARIABLES)
    query = f"SELECT {by}, count(*) AS n FROM {reader}('{place}'{options}) GROUP BY {by}"
    return int(duckdb.connect().sql(query).to_arrow_table().num_rows)


def count_by_us(place: str) -> int:
    """A whole table with its margins, from a file or an address."""
    import discreet as dc

    return int((dc.open(place).tabulate("*".join(VARIABLES)).y > 0).sum())


CONTENDERS = {"sql": count_by_sql, "ours": count_by_us}


def run_one(name: str, place: str) -> None:
    """One contender, here: a turn to warm up and two that count."""
    work, turns = CONTENDERS[name], []
    cells = work(place)
    for _ in range(2):
        wall, cpu = time.perf_counter(), time.process_time()
        work(place)
        turns.append((time.perf_counter() - wall, time.process_time() - cpu))
    seconds, cpu = (min(parts) for parts in zip(*turns, strict=True))
    print(json.dumps({"seconds": seconds, "cpu": cpu, "peak": peak_mib(), "cells": cells}))


def _in_a_process(name: str, place: str) -> Figures:
    command = [sys.executable, "-m", "benchmarks.files", "--contender", name, "--place", place]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


@contextmanager
def store_with(path: Path) -> Iterator[str]:
    """The address of the file in a store of its own, which ends with the block."""
    from pyarrow import fs

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    quiet = subprocess.DEVNULL
    server = subprocess.Popen([STORE, "-p", str(port)], stdout=quiet, stderr=quiet)
    try:
        for _ in range(400):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/moto-api/").close()
                break
            except OSError:
                time.sleep(0.05)
        os.environ |= {"AWS_ACCESS_KEY_ID": "user", "AWS_SECRET_ACCESS_KEY": "none"}
        system = fs.S3FileSystem(
            endpoint_override=f"127.0.0.1:{port}", scheme="http", allow_bucket_creation=True
        )
        system.create_dir("records")
        fs.copy_files(str(path), "records/people.parquet", destination_filesystem=system)
        here = f"endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1"
        yield f"s3://records/people.parquet?{here}"
    finally:
        server.kill()
        server.wait()


def measure(places: dict[str, tuple[str, str]], rounds: int) -> list[list[object]]:
    """Rows of the table: each place with SQL on the file beside it, and us."""
    rows: list[list[object]] = []
    for what, (plain, ours) in places.items():
        found: dict[str, list[Figures]] = {"sql": [], "ours": []}
        for _ in range(rounds):
            found["sql"].append(_in_a_process("sql", plain))
            found["ours"].append(_in_a_process("ours", ours))
        best = {
            name: {part: min(f[part] for f in turns) for part in ("seconds", "cpu", "peak")}
            for name, turns in found.items()
        }
        assert found["sql"][0]["cells"] == found["ours"][0]["cells"]
        ratio = best["ours"]["cpu"] / best["sql"]["cpu"]
        for name, f in best.items():
            times = f"{ratio:.2f}" if name == "ours" else ""
            rows.append([what, name, f["seconds"], f["cpu"], round(f["peak"]), times])
    return rows


def main() -> None:
    """Make the files, run every contender, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--place", help=argparse.SUPPRESS)
    parser.add_argument("--contender", choices=CONTENDERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contender:
        run_one(options.contender, options.place)
        return
    import duckdb

    with tempfile.TemporaryDirectory() as folder:
        parquet, text = Path(folder) / "people.parquet", Path(folder) / "people.csv"
        write_records(parquet, options.rows)
        by = ", ".join(VARIABLES)
        duckdb.sql(f"COPY (SELECT {by} FROM '{parquet}') TO '{text}' (HEADER)")
        places = {"CSV": (str(text), str(text)), "Parquet": (str(parquet), str(parquet))}
        rows = measure(places, options.rounds)
        if STORE.exists():
            with store_with(parquet) as address:
                rows += measure({"object store": (str(parquet), address)}, options.rounds)
        else:
            print("the object store is left out: `make system` was not run")
        print(f"{options.rows:,} records by {len(VARIABLES)} string variables")
        header = ["from", "by", "seconds", "CPU s", "peak MiB", "CPU ours / SQL"]
        print_table(header, rows)


if __name__ == "__main__":
    main()
