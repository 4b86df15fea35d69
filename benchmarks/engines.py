"""Records in DuckDB, PostgreSQL and Spark to a table, beside the engine's own SQL.

The same records, four string columns of the demo census with a weight and a 32-bit key, lie in a
Parquet file (DuckDB, Spark with two executors) and in a table of a temporary PostgreSQL. Each
engine has a process of its own, in which the contenders take turns:

- `sql`: counts, sums of weights, squared weights and keys, grouped by the four columns, fetched as
  fast as the engine hands them over and thrown away;
- `sql with checks`: the same with the number of records that have a valid weight and key;
- `ours`: a whole table from those cells, with all margins and cell keys.

Times are the best of all turns; memory is the largest peak of this process during a turn (DuckDB
lives in it, the others do not).

Run: python -m benchmarks.engines --rows 10000000
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks._measure import print_table
from benchmarks.tabulate import ROOT, VARIABLES, write_records
from tests import servers

Contenders = dict[str, Callable[[], int]]
Figures = dict[str, dict[str, float]]
GOAL = 1.2
BY = ", ".join(VARIABLES)
SUMS = "count(*) AS n, sum(weight) AS w, sum(weight * weight) AS w2, sum(key) AS k"
VALID = "weight >= 0 AND key >= 0 AND key < 4294967296"
CHECKS = f"count(CASE WHEN {VALID} THEN 1 END) AS valid"
COMPILER = dict.fromkeys(
    ["spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"], "-XX:+UseParallelGC"
)
SERVER = {"shared_buffers": "1GB", "work_mem": "512MB", "log_statement": "none"}


def queries(source: str) -> dict[str, str]:
    """What a careful person would write."""
    return {
        "sql": f"SELECT {BY}, {SUMS} FROM {source} GROUP BY {BY}",
        "sql with checks": f"SELECT {BY}, {SUMS}, {CHECKS} FROM {source} GROUP BY {BY}",
    }


def ours(source: Any, **options: Any) -> int:
    """A whole table, from opening the records on."""
    import discreet as dc

    people = dc.open(source, weight="weight", key="key", **options)
    return int((people.tabulate("*".join(VARIABLES)).y > 0).sum())


@contextmanager
def on_duckdb(path: Path, address: str) -> Iterator[Contenders]:
    """DuckDB in this process, on the file."""
    import duckdb

    def ask(query: str) -> int:
        return int(duckdb.connect().sql(query).to_arrow_table().num_rows)

    texts = queries(f"read_parquet('{path}')")
    asked = {name: lambda query=query: ask(query) for name, query in texts.items()}
    yield {**asked, "ours": lambda: ours(path)}


@contextmanager
def on_postgres(path: Path, address: str) -> Iterator[Contenders]:
    """A PostgreSQL server with the records in a table."""
    import psycopg

    with psycopg.connect(address) as connection:

        def ask(query: str) -> int:
            with connection.cursor().copy(f"COPY ({query}) TO STDOUT (FORMAT csv)") as answer:
                return sum(bytes(part).count(b"\n") for part in answer)

        texts = queries("people")
        asked = {name: lambda query=query: ask(query) for name, query in texts.items()}
        yield {**asked, "ours": lambda: ours(f"{address}::people")}


@contextmanager
def on_spark(path: Path, address: str) -> Iterator[Contenders]:
    """Spark with two executors in processes of their own, on the file."""
    with servers.spark(**COMPILER, **{"spark.sql.shuffle.partitions": "4"}) as session:

        def ask(query: str) -> int:
            return int(session.sql(query).toArrow().num_rows)

        texts = queries(f"parquet.`{path}`")
        asked = {name: lambda query=query: ask(query) for name, query in texts.items()}
        yield {**asked, "ours": lambda: ours(session, table=str(path))}


ENGINES = {"duckdb": on_duckdb, "postgresql": on_postgres, "spark": on_spark}


def run_engine(name: str, path: Path, address: str, turns: int) -> Figures:
    """All contenders on one engine, here."""
    found: Figures = {}
    with ENGINES[name](path, address) as contenders:
        for _ in range(turns):
            for contender, work in contenders.items():
                new, best = one_turn(work), found.get(contender)
                if best is not None:
                    new["seconds"] = min(new["seconds"], best["seconds"])
                    new["peak"] = max(new["peak"], best["peak"])
                found[contender] = new
    return found


def one_turn(work: Callable[[], int]) -> dict[str, float]:
    """Seconds, peak memory of this process in MiB and cells of one piece of work."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    began = time.perf_counter()
    cells = work()
    seconds = time.perf_counter() - began
    status = Path("/proc/self/status").read_text()
    return {
        "seconds": seconds,
        "peak": int(status.split("VmHWM:")[1].split()[0]) / 1024,
        "cells": cells,
    }


def measure(name: str, path: Path, address: str, turns: int) -> Figures:
    """All contenders on one engine, in a process of its own."""
    options = ["--file", str(path), "--address", address, "--turns", str(turns)]
    command = [sys.executable, "-m", "benchmarks.engines", "--only", name, *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    found: Figures = json.loads(done.stdout.splitlines()[-1])
    return found


@contextmanager
def filled_server(path: Path) -> Iterator[str]:
    """The address of a PostgreSQL server that holds the records."""
    with servers.postgres(**SERVER) as server:
        program = (
            "import sys, pyarrow.parquet as pq\n"
            "from discreet.records.postgres import PostgresConnection, connect\n"
            "server = PostgresConnection(connect(sys.argv[1])[0])\n"
            "server.store('people', pq.read_table(sys.argv[2]))"
        )
        subprocess.run([sys.executable, "-c", program, server.url, str(path)], check=True, cwd=ROOT)
        yield server.url


def show(found: dict[str, Figures], rows: int) -> None:
    """A line for each contender on each engine, with ratios to plain SQL."""
    print(f"{rows:,} records by {len(VARIABLES)} string variables")
    print_table(
        ["engine", "contender", "seconds", "cells", "peak MiB here", "time / sql"],
        [
            [engine, contender, f["seconds"], int(f["cells"]), round(f["peak"]), _ratio(all_, f)]
            for engine, all_ in found.items()
            for contender, f in all_.items()
        ],
    )
    for engine, all_ in found.items():
        print(f"Goal on {engine}: at most {GOAL} times SQL; {_ratio(all_, all_['ours']):.2f} here.")


def _ratio(all_: Figures, one: dict[str, float]) -> float:
    return one["seconds"] / all_["sql"]["seconds"]


def main() -> None:
    """Make the records, run every engine, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--only", choices=ENGINES, action="append", help="one engine")
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--address", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.file:
        print(json.dumps(run_engine(options.only[0], options.file, options.address, options.turns)))
        return
    found: dict[str, Figures] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.parquet"
        write_records(path, options.rows)
        for name in options.only or ENGINES:
            if name == "postgresql":
                with filled_server(path) as address:
                    found[name] = measure(name, path, address, options.turns)
            else:
                found[name] = measure(name, path, "", options.turns)
    show(found, options.rows)


if __name__ == "__main__":
    main()
