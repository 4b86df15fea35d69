"""A table builder under load: visitors with think time, a mixed log, memory over time.

The demo's census (released once) and survey (on the fly) are served by one process with its audit
log on the disk; the visitors live in this process, on the other core. Times are those of the
visitors, from the request to the last byte of the answer. Afterwards the audit log must hold an
entry for every table that was answered or refused.

Run: python -m benchmarks.serve --visitors 200 --seconds 300
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
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks._measure import print_table
from benchmarks._visitors import Result, Visitor

GOALS = {"p50": 100.0, "p95": 500.0}
ACCOUNTS = '\n[accounts]\ntrusted_proxies = ["127.0.0.1"]\n'
ASKING = ("first table", "released once", "on the fly", "download", "program", "refused")
Memory = list[tuple[float, float]]


def prepared(folder: Path, persons: int) -> Path:
    """The demo's site, built, with visitors behind a proxy."""
    command = [sys.executable, "-m", "discreet.cli", "demo", "--persons", str(persons)]
    subprocess.run(
        [*command, "--folder", str(folder), "--check"], check=True, stdout=subprocess.DEVNULL
    )
    site = folder / "site.toml"
    site.write_text(site.read_text(encoding="utf-8") + ACCOUNTS, encoding="utf-8")
    return site


@contextmanager
def serving(site: Path, cores: set[int]) -> Iterator[tuple[int, int]]:
    """The table builder in a process of its own; gives its id and its port."""
    command = [sys.executable, "-m", "discreet.cli", "serve", str(site), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        with suppress(OSError):
            os.sched_setaffinity(process.pid, cores)
        try:
            yield process.pid, _port(process)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)


def _port(process: subprocess.Popen[str]) -> int:
    for line in process.stdout or ():
        if found := re.search(r"answers at http://[^:]+:(\d+)/", line):
            return int(found[1])
    raise RuntimeError("the table builder did not start.")


async def loaded(
    port: int, pid: int, visitors: int, think: float, seconds: float
) -> tuple[dict[str, Result], Memory]:
    """All visitors at once, while the server's memory is read every few seconds."""
    results: dict[str, Result] = {}
    until = time.monotonic() + seconds
    memory: Memory = []
    watch = asyncio.create_task(_watch(pid, memory))
    await asyncio.gather(*(Visitor(k, port, think).stay(results, until) for k in range(visitors)))
    watch.cancel()
    return results, memory


async def _watch(pid: int, memory: Memory) -> None:
    began = time.monotonic()
    while True:
        status = Path(f"/proc/{pid}/status").read_text()
        memory.append((time.monotonic() - began, int(status.split("VmRSS:")[1].split()[0]) / 1024))
        await asyncio.sleep(2)


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
    table = results["released once"]
    for name, share in (("p50", 0.5), ("p95", 0.95)):
        print(
            f"Goal for tables released once, {name}: {GOALS[name]:g} ms; "
            f"{table.quantile(share):.1f} here."
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
    options = parser.parse_args()
    mine, *others = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        site = prepared(Path(folder), options.persons)
        with serving(site, set(others or [mine])) as (pid, port):
            os.sched_setaffinity(0, {mine})
            load = os.getloadavg()[0]
            given = (options.visitors, options.think, options.seconds)
            results, memory = asyncio.run(loaded(port, pid, *given))
        print(
            f"{options.visitors} visitors, {options.think:g} s of mean think time, "
            f"{options.seconds:g} s; load {load:.1f} before and {os.getloadavg()[0]:.1f} after"
        )
        show(results, memory, entries(site))


if __name__ == "__main__":
    main()
