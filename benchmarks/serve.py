"""A table builder under load: visitors with think time, a mixed log, memory over time.

The demo's census (released once) and survey (on the fly) are served by one process with its audit
log on the disk; the visitors live in this process, on the other core. Times are those of the
visitors, from the request to the last byte of the answer. Afterwards the audit log must hold an
entry for every table that was answered or refused.

With `--new once` or `--new live` every visitor asks only for tables that nobody asked before, of
the census released once or on the fly: the server keeps nothing in memory.

Run: python -m benchmarks.serve --visitors 200 --seconds 300
     python -m benchmarks.serve --visitors 50 --think 0 --new live --workers 2 --persons 2000000
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from benchmarks._measure import print_table
from benchmarks._visitors import LARGE, SMALL, Result, Visitor

GOALS = {"p50": 100.0, "p95": 500.0}
LONGEST = 2.0  # seconds at p99 for new tables below 1,000 cells
ASKING = (
    "first table", "released once", "on the fly", "download", "program", "refused", SMALL, LARGE,
)  # fmt: skip
Memory = list[tuple[float, float]]


def prepared(folder: Path, persons: int) -> Path:
    """The demo's site, built, with visitors behind a proxy, and its census on the fly as well."""
    command = [sys.executable, "-m", "discreet.cli", "demo", "--persons", str(persons)]
    subprocess.run(
        [*command, "--folder", str(folder), "--check"], check=True, stdout=subprocess.DEVNULL
    )
    import tomli_w

    site = folder / "site.toml"
    given = tomllib.loads(site.read_text(encoding="utf-8"))
    given["accounts"] = {"trusted_proxies": ["127.0.0.1"]}
    given["server"] = {"metrics": ["127.0.0.1"]}
    census = given["datasets"]["census"]
    protect = {"method": "cell-key", "parameters": {"D": 5, "V": 3, "js": 2}}
    recipe = {"tabulate": census["recipe"]["tabulate"], "protect": protect}
    live = {"title": "Census on the fly", "mode": "on-the-fly", "declared_records": persons}
    given["datasets"]["live"] = {**census, **live, "recipe": recipe}
    site.write_text(tomli_w.dumps(given), encoding="utf-8")
    return site


@contextmanager
def serving(
    site: Path, cores: set[int], workers: int = 1, *, is_new: bool = False
) -> Iterator[tuple[int, int]]:
    """The table builder in processes of its own; gives the id of the first and the port."""
    module = "benchmarks._uncached_site" if is_new else "discreet.cli"
    command = [sys.executable, "-m", module, "serve", str(site), "--port", "0"]
    command += ["--workers", str(workers)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        with suppress(OSError):
            os.sched_setaffinity(process.pid, cores)
        try:
            port = _port(process)
            _await_all(port, workers)
            yield process.pid, port
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)


def _await_all(port: int, workers: int) -> None:
    """Wait until every worker answers: their port is open before the first of them is there."""
    seen: set[str] = set()
    until = time.monotonic() + 300
    while len(seen) < workers and time.monotonic() < until:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=300) as answer:
            seen |= {*re.findall(r'process="(\d+)"', answer.read().decode())}
    if len(seen) < workers:
        raise RuntimeError(f"{len(seen)} of {workers} workers answer.")


def _port(process: subprocess.Popen[str]) -> int:
    for line in process.stdout or ():
        if found := re.search(r"answers at http://[^:]+:(\d+)/", line):
            return int(found[1])
    raise RuntimeError("the table builder did not start.")


async def loaded(
    port: int, pid: int, visitors: int, think: float, seconds: float, new: str = ""
) -> tuple[dict[str, Result], Memory]:
    """All visitors at once, while the server's memory is read every few seconds."""
    results: dict[str, Result] = {}
    until = time.monotonic() + seconds
    memory: Memory = []
    watch = asyncio.create_task(_watch(pid, memory))
    crowd = (Visitor(k, port, think, new).stay(results, until) for k in range(visitors))
    await asyncio.gather(*crowd)
    watch.cancel()
    return results, memory


async def _watch(pid: int, memory: Memory) -> None:
    began = time.monotonic()
    while True:
        memory.append((time.monotonic() - began, sum(map(_megabytes, processes_of(pid)))))
        await asyncio.sleep(2)


def processes_of(pid: int) -> list[int]:
    """A process and those that it started."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            found += processes_of(int(child))
    return found


def _megabytes(pid: int) -> float:
    """Memory of a process; what several share counts once among them."""
    with suppress(OSError, IndexError):
        return int(Path(f"/proc/{pid}/smaps_rollup").read_text().split("Pss:")[1].split()[0]) / 1024
    return 0.0


def cpu_seconds(pid: int) -> float:
    """Processor seconds of a process and those that it started."""
    ticks = 0
    for one in processes_of(pid):
        with suppress(OSError):
            stat = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
            ticks += int(stat[11]) + int(stat[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def show(results: dict[str, Result], memory: Memory, logged: int) -> None:
    """A line for each kind of request, memory, errors and the audit log."""
    print_table(
        ["kind", "requests", "p50 ms", "p95 ms", "p99 ms", "slowest ms", "statuses"],
        [
            [
                kind,
                len(r.seconds),
                *(round(r.quantile(q), 1) for q in (0.5, 0.95, 0.99, 1.0)),
                r.statuses,
            ]
            for kind, r in sorted(results.items())
        ],
    )
    failures = [text for r in results.values() for text in r.failures]
    broken = sum(n for r in results.values() for s, n in r.statuses.items() if s >= 500 or s == 429)
    print(f"Errors: {len(failures) + broken} {failures[:3]}")
    if "released once" in results:
        table = results["released once"]
        for name, share in (("p50", 0.5), ("p95", 0.95)):
            print(
                f"Goal for tables released once, {name}: {GOALS[name]:g} ms; "
                f"{table.quantile(share):.1f} here."
            )
    if SMALL in results:
        late = results[SMALL].quantile(0.99)
        print(
            f"Goal for new tables below 1,000 cells, p99: {1000 * LONGEST:g} ms; {late:.0f} here."
        )
    _show_memory(memory)
    asked = sum(len(results[kind].seconds) for kind in ASKING if kind in results)
    print(f"Audit log: {logged} entries for {asked} answered or refused questions.")


def _show_memory(memory: Memory) -> None:
    half = memory[len(memory) // 2][1]
    print(
        f"Memory of the server, MiB: {memory[0][1]:.0f} at the start, {half:.0f} half way, "
        f"{memory[-1][1]:.0f} at the end, {max(m for _, m in memory):.0f} at most."
    )


def entries(site: Path) -> int:
    """Lines of the audit log."""
    command = [sys.executable, "-m", "discreet.cli", "log", "export", "--site", str(site)]
    return (
        len(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines())
        - 1
    )


def main() -> None:
    """Make the site, let visitors in, print what they met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--visitors", type=int, default=200)
    parser.add_argument("--think", type=float, default=10.0)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--persons", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--new", choices=["once", "live"], default="")
    parser.add_argument("--folder", type=Path, help="A site that this benchmark made before.")
    options = parser.parse_args()
    mine, *others = sorted(os.sched_getaffinity(0))
    cores = {mine, *others} if options.workers > 1 else {*others} or {mine}
    made = tempfile.TemporaryDirectory() if options.folder is None else nullcontext(options.folder)
    with made as folder:
        site = Path(folder) / "site.toml"
        if not site.exists():
            site = prepared(Path(folder), options.persons)
        before = entries(site)
        with serving(site, cores, options.workers, is_new=bool(options.new)) as (pid, port):
            if options.workers == 1:
                os.sched_setaffinity(0, {mine})
            load, began = os.getloadavg()[0], cpu_seconds(pid)
            given = (options.visitors, options.think, options.seconds, options.new)
            results, memory = asyncio.run(loaded(port, pid, *given))
            spent = cpu_seconds(pid) - began
        print(
            f"{options.visitors} visitors, {options.think:g} s of mean think time, "
            f"{options.workers} processes, {options.seconds:g} s; {spent:.0f} processor seconds; "
            f"load {load:.1f} before and {os.getloadavg()[0]:.1f} after"
        )
        show(results, memory, entries(site) - before)


if __name__ == "__main__":
    main()
