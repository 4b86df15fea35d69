"""Tables that nobody asked before, on many records: whole pages beside hand-written SQL.

The records lie in a Parquet file with a 32-bit key. For each crossing in turn the engine is asked
by SQL for counts and sums of keys of the finest cells that the table needs, and then the table
builder for the page of the same table: sums of hierarchies and totals, protection, layout and HTML
included, by a request to the application in this process. Nothing is kept from one crossing to the
next.

Run: python -m benchmarks.serve_uncached --rows 10000000
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from benchmarks._measure import print_table
from benchmarks.tabulate import VARIABLES, write_records

GOAL = 1.5
LARGEST = 20_000


def crossings() -> list[tuple[str, ...]]:
    """All crossings of one to three variables."""
    return [c for n in (1, 2, 3) for c in itertools.combinations(VARIABLES, n)]


def application(path: Path) -> Any:
    """A site of one data set on the fly."""
    import discreet as dc
    from discreet.demo import hierarchies
    from discreet.publication import Choice, Publication
    from discreet.records.secret import Secret
    from discreet.serve.app import make_app
    from discreet.serve.data.dataset import Dataset, DatasetInfo
    from discreet.serve.data.live import LiveSource
    from discreet.serve.policy.policy import Policy
    from discreet.serve.site.config import SiteConfig
    from discreet.serve.site.site import Site

    trees = {name: tree for name, tree in hierarchies().items() if name in VARIABLES}
    data = dc.open(path, key="key", hierarchies=trees, secret=Secret.demo())
    recipe = Publication("*".join(VARIABLES), Choice("cell-key", {"D": 5, "V": 3, "js": 2}))
    policy = Policy(max_variables=4, max_cells=LARGEST)
    dataset = Dataset("people", DatasetInfo("People"), LiveSource(recipe, data), policy)
    return make_app(Site(SiteConfig(), {"people": dataset}))


def asked_by_sql(path: Path, variables: tuple[str, ...]) -> int:
    """What a careful person would write."""
    import duckdb

    by = ", ".join(variables)
    query = f"SELECT {by}, count(*) AS n, sum(key) AS k FROM read_parquet('{path}') GROUP BY {by}"
    return int(duckdb.connect().sql(query).to_arrow_table().num_rows)


async def asked_as_page(app: Any, variables: tuple[str, ...]) -> int:
    """The page of the same table."""
    import httpx

    first, *others = variables
    question = urlencode([("rows", first), *(("columns", name) for name in others)])
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
        found = await client.get(f"/d/people/table?{question}")
    return found.status_code


def measured(path: Path, app: Any, turns: int) -> list[list[Any]]:
    """For each crossing the best times of both, taking turns."""
    rows = []
    for variables in crossings():
        best = {"sql": float("inf"), "page": float("inf")}
        for _ in range(turns):
            began = time.perf_counter()
            cells = asked_by_sql(path, variables)
            best["sql"] = min(best["sql"], time.perf_counter() - began)
            _forget(app)
            began = time.perf_counter()
            status = asyncio.run(asked_as_page(app, variables))
            best["page"] = min(best["page"], time.perf_counter() - began)
        if status == 200:
            rows.append(["*".join(variables), cells, *best.values(), best["page"] / best["sql"]])
    return rows


def _forget(app: Any) -> None:
    """Let nobody have asked before."""
    from dataclasses import replace

    from discreet.serve.site.site import Site

    holder = app.state.site
    datasets = {name: replace(d) for name, d in holder.current.datasets.items()}
    holder._current = Site(holder.current.config, datasets)


def main() -> None:
    """Make the records, ask both ways, print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.parquet"
        write_records(path, options.rows)
        load = os.getloadavg()[0]
        rows = measured(path, application(path), options.turns)
    print(f"{options.rows:,} records, load {load:.1f} before and {os.getloadavg()[0]:.1f} after")
    print_table(["table", "finest cells", "SQL s", "page s", "page / SQL"], rows)
    typical = statistics.median(row[3] for row in rows) / statistics.median(row[2] for row in rows)
    print(f"Goal at the median: at most {GOAL} times SQL; {typical:.2f} here.")


if __name__ == "__main__":
    main()
