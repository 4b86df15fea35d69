"""Log-linear and non-negative fits of tables that are never stored, 10⁴ to 5·10⁸ inner cells.

Run: python -m benchmarks.fit_large [--device cpu|gpu] [--largest CELLS] [--rows FILE] [CASE …]
Draw: python -m benchmarks.fit_large --draw growth.svg FILE …
"""

import argparse
import itertools
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import discreet as dc
from benchmarks._measure import peak_gib, print_table
from discreet.design.fused.links import cupy, has_gpu

NAMES = "abcdef"
CENSUS = (2, 4, 7, 8, 111, 10_000)
GROWTH = [(5, 5), (16, 16), (50, 50), (111, 200), (111, 2_000), (111, 10_000)]
TOTAL, NOISE = 6.7e7, 20.0
HEADER = ["case", "device", "inner", "published", "seconds", "CPU s", "peak GiB", "steps"]
HEADER += ["status", "certificate", "deviation / max(1, z)"]
PEERS = [
    {"inner": 497_952, "seconds": 28.0, "curve": "log-linear, SSBtools"},
    {"inner": 497_952, "seconds": 411.0, "curve": "non-negative, glmnet"},
]
"""Recorded times of the field for ten two-way margins of a five-way table."""


def design(sizes: tuple[int, ...], *, trees: float = 0.0) -> dc.Design:
    """All two-way margins; with trees on the two longest variables, even for a power of one."""
    axes = [
        dc.design.Axis.flat(n, [f"{n}{i}" for i in range(s)])
        for n, s in zip(NAMES, sizes, strict=True)
    ]
    if trees:
        axes[4] = dc.design.Axis.from_hierarchies("e", [tree("e", sizes[4], (12,), trees)])
        axes[5] = dc.design.Axis.from_hierarchies("f", [tree("f", sizes[5], (10, 10), trees)])
    return dc.Design.product(axes, list(itertools.combinations(NAMES, 2)))


def tree(name: str, size: int, parts: tuple[int, ...], power: float = 1.0) -> dc.Hierarchy:
    """Codes in groups of groups: even ones, or with a power of two like 1, 3, 5, … in size."""

    def below(codes: list[str], left: tuple[int, ...], path: str) -> Any:
        if not left:
            return codes
        ends = np.rint(len(codes) * (np.arange(1, left[0]) / left[0]) ** power).astype(int)
        cut = [part.tolist() for part in np.split(np.array(codes), ends)]
        return {f"{path}.{i}": below(part, left[1:], f"{path}.{i}") for i, part in enumerate(cut)}

    return dc.Hierarchy.from_dict(
        {f"all {name}": below([f"{name}{i}" for i in range(size)], parts, f"{name} group")}
    )


def margins(table: Any, device: str) -> tuple[np.ndarray, np.ndarray]:
    """Margins of a table with random interactions, and the same with noise."""
    rng, nu = np.random.default_rng(1), np.zeros(table.n_published)
    for k, block in enumerate(table.blocks):
        if all(level is None or level.is_identity for level in block.levels):
            nu[table.slice_of(k)] = 0.35 * rng.standard_normal(block.size)
    passes = table.fused("exponential", device=device)
    z = passes.to_host(passes.table(passes.to_device(nu)).margins)
    total = max(TOTAL * table.n_inner / 4.97e8, 134_000.0)
    z = z * (total / z[table.slice_of(0)].sum())
    return z, z + rng.laplace(0.0, NOISE, len(z))


def measured(name: str, fitter: Any, table: Any, z: np.ndarray) -> dict[str, Any]:
    """The second of two runs, so that nothing is compiled; one run where it takes long."""
    forget()
    for _ in range(2):
        began, cpu = time.perf_counter(), time.process_time()
        fit = fitter(table, z)
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        if seconds > 30:
            break
    off = float((np.abs(fit.z - z) / np.maximum(1.0, np.abs(z))).max())
    device = fit.notes.get("device", "cpu")
    facts = [name, device, table.n_inner, table.n_published, seconds, cpu, peak(device)]
    facts += [fit.iterations, fit.status.name, str(fit.certificate), off]
    return dict(zip(HEADER, facts, strict=True))


def forget() -> None:
    """Give back the memory that earlier cases took of the card, so that each peak is its own."""
    if has_gpu():
        cupy().get_default_memory_pool().free_all_blocks()


def peak(device: str) -> float:
    """Peak memory: of the card where it computes, else of the process."""
    if device != "gpu":
        return peak_gib()
    return float(cupy().get_default_memory_pool().total_bytes() / 2**30)


def census(device: str, largest: float) -> Iterator[dict[str, Any]]:
    """The elementary table of a census: plain, with an exact margin, with hierarchies."""
    if largest < np.prod(CENSUS):
        return
    flat, nested = design(CENSUS), design(CENSUS, trees=1.0)
    truth, noisy = margins(flat, device)
    yield measured("log-linear", dc.LogLinear(device=device), flat, truth)
    yield measured("non-negative", dc.NonNegative(device=device), flat, noisy)
    held = flat.slice_of([block.name for block in flat.blocks].index("d×e"))
    noisy[held] = truth[held]
    exact = dc.NonNegative(device=device, exact=[("d", "e")])
    yield measured("non-negative, exact d×e", exact, flat, noisy)
    truth, noisy = margins(nested, device)
    yield measured("log-linear, hierarchies", dc.LogLinear(device=device), nested, truth)
    yield measured("non-negative, hierarchies", dc.NonNegative(device=device), nested, noisy)
    uneven = design(CENSUS, trees=2.0)
    noisy = margins(uneven, device)[1]
    yield measured("non-negative, uneven groups", dc.NonNegative(device=device), uneven, noisy)


def growth(device: str, largest: float) -> Iterator[dict[str, Any]]:
    """Both fits of ever larger tables."""
    for sizes in GROWTH:
        table = design((2, 4, 7, 8, *sizes))
        if table.n_inner > largest:
            return
        truth, noisy = margins(table, device)
        yield measured("log-linear", dc.LogLinear(device=device), table, truth)
        yield measured("non-negative", dc.NonNegative(device=device), table, noisy)


def draw(files: list[str], path: str) -> None:
    """Seconds and memory against inner cells, from rows that runs have written."""
    import altair as alt

    rows = [json.loads(line) for file in files for line in Path(file).read_text().splitlines()]
    found = [
        {**row, "curve": f"{row['case']}, {row['device']}"}
        for row in rows
        if row["case"] in ("log-linear", "non-negative")
    ]

    def chart(y: str, title: str, values: list[dict[str, Any]]) -> Any:
        scale = alt.Scale(type="log")
        axis = alt.Axis(format="~e", values=[1e4, 1e5, 1e6, 1e7, 1e8])
        return (
            alt.Chart(alt.Data(values=values), width=330, height=260)
            .mark_line(point=True)
            .encode(
                x=alt.X("inner:Q", scale=scale, axis=axis, title="inner cells"),
                y=alt.Y(f"{y}:Q", scale=scale, title=title),
                color=alt.Color("curve:N", title=None),
            )
        )

    memory = [{**row, "memory": row["peak GiB"]} for row in found if row["peak GiB"]]
    (chart("seconds", "seconds", found + PEERS) | chart("memory", "peak GiB", memory)).save(path)


PARTS = {"growth": growth, "census": census}


def main() -> None:
    """Print the table, and write its rows where they are asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--largest", type=float, default=2e7)
    parser.add_argument("--rows", default=None)
    parser.add_argument("--draw", default=None)
    parser.add_argument("chosen", nargs="*")
    given = parser.parse_args()
    if given.draw is not None:
        draw(given.chosen, given.draw)
        return
    rows = []
    for part in given.chosen or PARTS:
        for row in PARTS[part](given.device, given.largest):
            rows.append(row)
            if given.rows is not None:
                with Path(given.rows).open("a") as file:
                    file.write(json.dumps(row) + "\n")
    print_table(HEADER, [list(row.values()) for row in rows])


if __name__ == "__main__":
    main()
