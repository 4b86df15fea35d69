"""Journey: records in a CSV file → a release of 24 cells by cell keys → a CSV file.

`python ../shared/tools/house.py --walk FILE` counts what it passes through. Its counter rests while
modules are imported and the perturbation table is made: neither is part of the journey.
"""

from __future__ import annotations

import csv
import sys
import tempfile
from pathlib import Path

COUNTER = sys.getprofile()
sys.setprofile(None)
import discreet as dc  # noqa: E402  (after the counter rests)

REGIONS, AGES = ("north", "south", "west"), ("0-19", "20-39", "40-64", "65+", "unknown")


def run(folder: Path, method: dc.CellKey) -> Path:
    """Tabulate records by region and age, protect the table and write the release."""
    source = folder / "people.csv"
    with source.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["pid", "region", "age"])
        rows.writerows([k, REGIONS[k % 7 % 3], AGES[k % 11 % 5]] for k in range(1_000))
    people = dc.open(source, id="pid", secret=dc.Secret.demo())
    release = people.tabulate("region*age").protect(method)
    return release.write(folder / "release.csv")


if __name__ == "__main__":
    cell_key = dc.CellKey(dc.perturbation_table(5, 3, 2))
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder), cell_key)
        sys.setprofile(COUNTER)
        run(Path(folder), cell_key)
