"""Demo census: speed, memory and file size, and how sparse its tables are beside real files.

Run: python benchmarks/demo_generate.py --persons 1000000 10000000 --real ../shared/data
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv

from discreet import demo
from discreet.demo.geography import geography

EIGHT = (
    "region", "age", "sex", "marital", "education", "occupation", "industry", "citizenship",
)  # fmt: skip
ACS_FILE, LFS_FILE = "acs_nist_national2019.csv.gz", "eurostat_lfs_puf_fr_50k.csv.gz"
# The ten broad industries used where sections are too fine.
BROAD_INDUSTRIES = ("A", "BCDE", "F", "GHI", "J", "K", "L", "MN", "OPQ", "RST")


def measure_speed(persons: int, folder: Path) -> None:
    """One line: rows per second of generating and of writing, file size, peak memory so far."""
    path = folder / "census.parquet"
    generating = timed(lambda: sum(t.num_rows for t in demo.generate(persons, seed=1)))
    writing = timed(lambda: demo.write_parquet(path, persons, seed=1))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{persons:>12,} {persons / generating / 1e6:>12.2f} {persons / writing / 1e6:>12.2f} "
        f"{writing:>9.1f} {path.stat().st_size / 2**20:>9.1f} {peak:>9.0f}"
    )


def timed(work: Callable[[], object]) -> float:
    """Seconds of wall clock."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def census(persons: int) -> pa.Table:
    """The demo census with the coarser columns the comparisons use."""
    table = next(demo.generate(persons, seed=1, chunk=persons)).to_arrow()
    years = table["age_years"].to_numpy()
    added = {
        "area20": _area20(table),
        "age6": np.searchsorted([15, 25, 40, 55, 75], years, side="right"),
        "education_level": _group(table, "education"),
        "major_group": _group(table, "occupation"),
        "section": _group(table, "industry"),
        "citizenship_group": _group(table, "citizenship"),
        "citizenship9": _largest(table["citizenship"].to_pylist(), 8),
    }
    added["industry10"] = [_broad(section) for section in added["section"]]
    for name, values in added.items():
        table = table.append_column(name, pa.array(values))
    return table


def _group(table: pa.Table, variable: str) -> list[str]:
    codes = demo.code_lists()[variable]
    up = {c: c if codes.parents[c] == "TOTAL" else codes.parents[c] for c in codes.leaves}
    return [up[c] for c in table[variable].to_pylist()]


def _broad(section: str) -> str:
    return next((group for group in BROAD_INDUSTRIES if section in group), section)


def _largest(codes: list[str], count: int) -> list[str]:
    """The `count` most frequent codes, and one code for the rest."""
    values, numbers = np.unique(codes, return_counts=True)
    keep = set(values[np.argsort(-numbers)[:count]])
    return [c if c in keep else "rest" for c in codes]


def _area20(table: pa.Table) -> list[int]:
    """Neighbouring municipalities joined into twenty areas of similar size (the capital is one)."""
    share = geography().share
    area = np.floor(20 * (np.cumsum(share) - share / 2)).astype(int)
    of = dict(zip(geography().codes.leaves, area.tolist(), strict=True))
    return [of[code] for code in table["region"].to_pylist()]


def read_acs(folder: Path) -> pa.Table:
    """The American Community Survey excerpt, ages in five-year groups."""
    table = csv.read_csv(folder / ACS_FILE)
    groups = np.minimum(table["AGEP"].to_numpy() // 5, 19)
    return table.append_column("AGE5", pa.array(groups))


def read_lfs(folder: Path) -> pa.Table:
    """The French labour force public use file, every column as text."""
    names = ("AGE", "SEX", "NATIONAL", "ISCO1D", "NACE1D", "HATLEV1D")
    kinds = csv.ConvertOptions(
        include_columns=names, column_types=dict.fromkeys(names, pa.string())
    )
    return csv.read_csv(folder / LFS_FILE, convert_options=kinds)


def report(name: str, table: pa.Table, variables: Sequence[str]) -> None:
    """One line: how many cells the three-way tables have and how many of them are small."""
    found = demo.small_cells(table, variables)
    print(
        f"{name:<34} {table.num_rows:>8,} {len(variables):>5} {found.cells:>10,} "
        f"{found.occupancy:>10.1f} {found.share:>8.3f}"
    )


def compare(folder: Path) -> None:
    """The demo census beside each real file, with as many records and like variables."""
    acs, lfs = read_acs(folder), read_lfs(folder)
    base = ("area20", "age", "sex", "marital", "education")
    real = ("PUMA", "AGE5", "SEX", "MSP", "EDU")
    ours = census(acs.num_rows)
    report("ACS, 20 industries", acs, (*real, "INDP_CAT"))
    report("demo, alike", ours, (*base, "section"))
    report("ACS, and race", acs, (*real, "INDP_CAT", "RAC1P"))
    report("demo, and citizenship", ours, (*base, "section", "citizenship9"))
    report("ACS, 264 industries, race", acs, (*real, "INDP", "RAC1P"))
    report("demo, 84 industries, citizenship", ours, (*base, "industry", "citizenship9"))
    report("LFS France", lfs, lfs.column_names)
    like_lfs = ("age6", "sex", "citizenship_group", "major_group", "industry10", "education_level")
    report("demo, alike", census(lfs.num_rows), like_lfs)


def main() -> None:
    """Prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--persons", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--real", type=Path, help="folder with the real files to compare with")
    options = parser.parse_args()
    print(
        f"{'persons':>12} {'M rows/s':>12} {'to Parquet':>12} {'seconds':>9} {'MiB':>9} {'peak':>9}"
    )
    with tempfile.TemporaryDirectory() as folder:
        for persons in options.persons:
            measure_speed(persons, Path(folder))
    print(f"\n{'three-way tables of':<34} {'records':>8} {'vars':>5} ", end="")
    print(f"{'cells':>10} {'per cell':>10} {'1 or 2':>8}")
    report("demo, finest codes", next(demo.generate(100_000, seed=1)).to_arrow(), EIGHT)
    if options.real is not None:
        compare(options.real)


if __name__ == "__main__":
    main()
