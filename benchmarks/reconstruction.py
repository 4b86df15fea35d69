"""Public reconstruction models of a census: which records are the same in every solution.

Run `python -m benchmarks.reconstruction [FOLDER [OUT]]` on a folder with `model_*.lp.gz` and
`.sol.gz` (the replication package of the 2010 census); without it the script says what it needs. In
`OUT` a file for each model says of every record with people whether it is fixed. A record is
a combination of block, sex, age, race and ethnicity; columns of the model that differ in the number
of the person alone stand for the same record. The published solution must agree with what is fixed.
"""

from __future__ import annotations

import csv
import gzip
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csc_array

from benchmarks._measure import print_table
from discreet.attacks.reconstruction import Variability, solution_variability
from discreet.randomness import stream

USUAL = Path(__file__).parents[2] / "shared" / "data" / "recon"
Record = tuple[str, ...]


def read(path: Path) -> tuple[Any, Any, Any, list[Record], Any]:
    """Sums × records of a model, the sums, the records, and how many of each there may be."""
    import highspy

    with tempfile.NamedTemporaryFile(suffix=".lp") as plain:
        plain.write(gzip.decompress(path.read_bytes()))
        plain.flush()
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        solver.readModel(plain.name)
    model = solver.getLp()
    parts = (model.a_matrix_.value_, model.a_matrix_.index_, model.a_matrix_.start_)
    matrix = csc_array(tuple(map(np.array, parts)), (model.num_row_, model.num_col_))
    names = list(model.col_names_)  # each look at the attribute copies it
    people = [k for k, name in enumerate(names) if name.startswith("C_")]
    matrix, most = matrix[:, people], np.array(model.col_upper_)[people]
    number: dict[Record, int] = {}
    kind = np.array([number.setdefault(record_of(names[k]), len(number)) for k in people])
    first = np.unique(kind, return_index=True)[1]
    if (matrix != matrix[:, first[kind]]).nnz:
        raise SystemExit(f"{path.name}: columns of one record count in different sums.")
    ends = np.array(model.row_lower_), np.array(model.row_upper_)
    return matrix[:, first], *ends, list(number), np.bincount(kind, most)


def record_of(column: str) -> Record:
    """Block, sex, age, race and ethnicity of a column's name."""
    parts = column.split("_")
    return (parts[1], *parts[5:])


def published_solution(path: Path, records: list[Record]) -> Any:
    """How many people have each record in the solution that came with the model."""
    place = {record: k for k, record in enumerate(records)}
    found = np.zeros(len(records), dtype=np.int64)
    for line in gzip.decompress(path.read_bytes()).decode().splitlines():
        if line.startswith("C_"):
            name, value = line.split()
            found[place[record_of(name)]] += round(float(value))
    return found


def solve(path: Path, out: Path | None) -> list[Any]:
    """One row of the table; fixed records are held against the published solution."""
    began = time.process_time()
    matrix, low, high, records, most = read(path)
    read_in = time.process_time()
    ends = low, high, np.zeros(len(records)), most.astype(float)
    found = solution_variability(matrix.T, *ends, rng=stream(1, "reconstruction"))
    seconds = time.process_time() - read_in
    theirs = published_solution(path.with_name(path.name.replace(".lp.", ".sol.")), records)
    if (theirs != found.table)[found.is_fixed].any():
        raise SystemExit(f"{path.name}: a fixed record differs in the published solution.")
    describe(records, found)
    if out is not None:
        list_records(out / f"{path.name.split('.')[0]}.csv", records, found)
    people, fixed = int(found.table.sum()), int(found.table[found.is_fixed].sum())
    counts = [int(most.sum()), len(records), people, fixed, people - fixed, found.undecided]
    return [path.name.split(".")[0], *counts, found.programs, read_in - began, seconds]


def describe(records: list[Record], found: Variability) -> None:
    """Fixed and open people of every block."""
    blocks: dict[str, list[int]] = {}
    for record, count, is_fixed in zip(records, found.table, found.is_fixed, strict=True):
        both = blocks.setdefault(record[0], [0, 0])
        both[0] += int(count * is_fixed)
        both[1] += int(count)
    print(
        "block: people fixed of all,", "; ".join(f"{b}: {f} of {n}" for b, (f, n) in blocks.items())
    )


def list_records(path: Path, records: list[Record], found: Variability) -> None:
    """Every record that some table has people in: how many, and whether all tables have them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["block", "sex", "age", "race", "ethnicity", "people", "record"])
        for k in np.flatnonzero((found.table > 0) | found.is_free):
            said = "fixed" if found.is_fixed[k] else "free" if found.is_free[k] else "undecided"
            block, sex, age, *races, ethnicity = records[k]
            rows.writerow([block, sex, age, "".join(races), ethnicity, found.table[k], said])


def main() -> int:
    """Solve every model of the folder."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else USUAL
    models = sorted(folder.glob("model_*.lp.gz"))
    if not models:
        print(f"no model_*.lp.gz in {folder}: name the folder of the replication package.")
        return 0
    out = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    rows = [solve(path, out) for path in models]
    header = ["model", "columns", "records", "people", "fixed", "free", "undecided", "programs"]
    print_table([*header, "read, s", "solved, s"], rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
