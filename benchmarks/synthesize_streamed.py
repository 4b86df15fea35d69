"""Synthesis of records that are streamed from Parquet to Parquet: time, peak memory, exactness.

`python -m benchmarks.synthesize_streamed ROWS CONFIDENTIAL COVARIATES` takes other sizes than 10⁶
rows of 4 confidential variables and 6 covariates.
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import discreet as dc
from benchmarks._five_way import load
from benchmarks._measure import print_table
from discreet.randomness import stream
from discreet.synthesis.streamed import streamed_ipso

ROWS = 1_000_000
CHUNK = 500_000


def invent(path: Path, n: int, k: int, m: int) -> None:
    """Write records whose variables depend on covariates and on each other."""
    rng = stream(1, "streamed")
    effects, mixing = rng.standard_normal((m, k)), rng.standard_normal((k, k))
    names = [f"x{j}" for j in range(m)] + [f"y{j}" for j in range(k)]
    schema = pa.schema([(name, pa.float64()) for name in names])
    with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for start in range(0, n, CHUNK):
            rows = min(CHUNK, n - start)
            X = 100 + rng.standard_normal((rows, m))
            Y = 1e4 + X @ effects + rng.standard_normal((rows, k)) @ mixing
            columns = [pa.array(column) for column in np.hstack([X, Y]).T]
            writer.write_table(pa.table(columns, schema=schema))


def measure(folder: Path, k: int, m: int) -> None:
    """Synthesize the records in a folder and print one line of figures."""
    covariates, confidential = [f"x{j}" for j in range(m)], [f"y{j}" for j in range(k)]
    data = dc.open(str(folder / "records.parquet"))
    wall, cpu = time.perf_counter(), time.process_time()
    rng = stream(2, "streamed")
    done = streamed_ipso(data, folder / "synthetic.parquet", confidential, covariates, rng=rng)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    held = done.rows * (k + m) * 8 / 2**30
    header = ["rows", "k", "m", "seconds", "CPU s", "data GiB", "peak GiB", "error"]
    print_table(header, [[done.rows, k, m, wall, cpu, held, peak, done.error]])


def main(arguments: list[str]) -> None:
    """Make records, and measure in a process of its own."""
    if arguments[:1] == ["measure"]:
        measure(Path(arguments[1]), int(arguments[2]), int(arguments[3]))
        return
    n, k, m = (int(float(a)) for a in [*arguments, *[str(ROWS), "4", "6"][len(arguments) :]])
    print(load(), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        invent(Path(folder) / "records.parquet", n, k, m)
        module = "benchmarks.synthesize_streamed"
        subprocess.run(
            [sys.executable, "-m", module, "measure", folder, str(k), str(m)], check=True
        )


if __name__ == "__main__":
    main(sys.argv[1:])
