"""Prices of the table builder beside what tables cost: how well they rank, and how far they err.

Random tables of the demo's census, on the fly by cells in memory, on the fly by the engine, and
released once; each is priced and then made, once for its time and once for its memory (that of
Python and NumPy; an engine's own is not seen). A price is good when the ranks agree and no table
costs much more than it says: what is priced too high waits in the queue without need, what is
priced too low keeps others waiting.

Run: python -m benchmarks.serve_price --persons 100000 --tables 40
"""

from __future__ import annotations

import argparse
import math
import os
import random
import tempfile
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks._measure import print_table
from benchmarks.serve import prepared

MOST_CELLS = 400_000


def sources(folder: Path, persons: int) -> dict[str, Any]:
    """The census in three ways."""
    from discreet.publication import Choice, Publication
    from discreet.records import query_engine
    from discreet.serve.data import live
    from discreet.serve.site.config import read_site
    from discreet.serve.site.start import start_site

    config = read_site(prepared(folder, persons))
    census = next(d for d in config.datasets if d.name == "census")
    recipe = Publication(census.recipe.margins, Choice("cell-key", {"D": 5, "V": 3, "js": 2}))
    made = replace(census, mode="on-the-fly", recipe=recipe, declared_records=persons)
    found = {}
    for name, dataset in {"released once": census, "cells in memory": made}.items():
        site = start_site(replace(config, datasets=(dataset,)))
        found[name] = site.datasets["census"].source
    live.MOST_CELLS = 0
    site = start_site(replace(config, datasets=(made,)))
    found["engine"] = site.datasets["census"].source
    live.MOST_CELLS = query_engine.MOST_CELLS
    return found


def some_tables(source: Any, n: int, seed: int) -> list[list[Any]]:
    """Crossings of one to five variables in any detail, not larger than a limit."""
    from discreet.serve.data.source import DetailedVariable

    rng, found = random.Random(seed), []
    while len(found) < n:
        chosen = rng.sample(range(len(source.variables)), rng.randint(1, 5))
        variables = [source.variables[k] for k in sorted(chosen)]
        asked = [DetailedVariable(v, rng.choice(v.details)) for v in variables]
        if math.prod(one.detail.cells for one in asked) <= MOST_CELLS:
            found.append(asked)
    return found


def measured(source: Any, asked: list[Any]) -> tuple[float, float]:
    """Processor seconds and megabytes of one table that nobody asked before."""
    details, unit = tuple(one.detail.name for one in asked), source.units[0]
    began = time.process_time()
    source.cube(details, unit)
    seconds = time.process_time() - began
    tracemalloc.start()
    source.cube(details, unit)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return seconds, peak / 1e6


def judged(name: str, source: Any, n: int, seed: int) -> list[Any]:
    """A line for one source: rank correlations, and the tables that were priced worst."""
    from scipy.stats import spearmanr

    tables = some_tables(source, n, seed)
    prices = [source.price(asked) for asked in tables]
    costs = [measured(source, asked) for asked in tables]
    seconds = [(p.seconds, c[0]) for p, c in zip(prices, costs, strict=True)]
    memory = [(p.bytes / 1e6, c[1]) for p, c in zip(prices, costs, strict=True)]
    line: list[Any] = [name, n]
    for pairs in (seconds, memory):
        line += [
            round(float(spearmanr(*zip(*pairs, strict=True)).statistic), 2),
            round(max(cost / price for price, cost in pairs), 2),
            round(max(price / cost for price, cost in pairs), 2),
            round(max(cost for _, cost in pairs), 3),
        ]
    return line


def main() -> None:
    """Price, make, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--persons", type=int, default=100_000)
    parser.add_argument("--tables", type=int, default=40)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = sources(Path(folder), options.persons)
        rows = [judged(name, s, options.tables, options.seed) for name, s in found.items()]
    print(f"{options.persons:,} people, seed {options.seed}, load {os.getloadavg()[0]:.1f}")
    by = ["rank", "worst under", "worst over", "most"]
    heads = [f"{what} {one}" for what in ("CPU s:", "MB:") for one in by]
    print_table(["source", "tables", *heads], rows)
    print("worst under: the largest cost over its price; worst over: the largest price over cost")


if __name__ == "__main__":
    main()
