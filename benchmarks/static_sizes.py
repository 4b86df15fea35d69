"""A site of files: how large it is, how quick its tables are in a browser, and what visitors cost.

`python -m benchmarks.static_sizes [sizes] [browser] [visitors]`; all of them without a word. The
demo is made in `demo-files/` of the temporary folder, or used again where it is there.
"""

import asyncio
import gzip
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import tomli_w

from benchmarks._measure import peak_gib, print_table
from benchmarks._visitors import new_visits
from discreet.design.axis import Axis
from discreet.serve.data.inner import InnerSource
from discreet.serve.site.config import SiteConfig
from discreet.serve.site.site import Site
from discreet.serve.static.build import write_site
from tests.browser.file_servers import plain_server
from tests.serve.process import started
from tests.serve.sites import inner_table, once

TEMPORARY = Path(tempfile.gettempdir())
DEMO = TEMPORARY / "demo-files"
SHAPES = {"region": 400, "age": 100, "sex": 2, "occupation": 50, "education": 30}
CENSUS = {"region": 30, "age": 24, "sex": 2, "marital": 6, "education": 10, "citizenship": 5}
LINE = {"latency": 20, "downloadThroughput": 1.25e6, "uploadThroughput": 1.25e6, "offline": False}
"""10 Mbit/s, and 20 ms there and back."""
TABLES = ("rows=region&columns=sex", "rows=age&columns=sex", "rows=age&columns=marital&chart=heat")
TABLES += ("rows=education&columns=sex&show=row", "rows=region&columns=age[broad_age]&chart=bars")
VISITORS, SECONDS, AT_ONCE = 10_000, 75.0, 20


def table_of(shape, cells, seed):
    """A protected inner table of random counts."""
    draws = np.random.default_rng(seed)
    size = int(np.prod([*shape.values()]))
    flat = np.unique(draws.integers(0, size, int(cells * 1.2)))
    flat = np.sort(draws.permutation(flat)[:cells]) if cells < size else np.arange(size)
    axes = [Axis.flat(name, [f"{name}{k}" for k in range(n)]) for name, n in shape.items()]
    codes = zip(np.unravel_index(flat, tuple(shape.values())), axes, strict=True)
    return replace(
        inner_table(),
        axes=tuple(axes),
        codes=tuple(c.astype(np.min_scalar_type(len(axis))) for c, axis in codes),
        values=draws.integers(1, 20, len(flat)),
        zeros=(),
    )


def site_of(case):
    """A site by the name of its case."""
    made = {"census of 10⁷ cells": [table_of(SHAPES, 10**7, 1)]}
    if case not in made:
        made[case] = [table_of(CENSUS, 432_000, seed) for seed in range(50)]
    datasets = {f"d{k}": InnerSource(table) for k, table in enumerate(made[case])}
    return Site(
        SiteConfig("Site"),
        {name: replace(once(), name=name, source=source) for name, source in datasets.items()},
    )


def demo():
    """The demo's census as files, from 100,000 people."""
    if not (DEMO / "static" / "site.json").exists():
        command = ["demo", "--persons", "100000", "--folder", str(DEMO), "--static", "--check"]
        subprocess.run([sys.executable, "-m", "discreet.cli", *command], check=True)
    return DEMO / "static"


def describe(folder):
    """Files, bytes, and what a visitor loads."""
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    cells = sorted(path.stat().st_size for path in (folder / "files").glob("*.bin"))
    program = [path.read_bytes() for path in (folder / "app").rglob("*.js")]
    packed = sum(len(gzip.compress(one, 9)) for one in program)
    return [len(sizes), sum(sizes), len(cells), cells[len(cells) // 2], cells[-1], packed]


def measure_sizes():
    """Each site in a process of its own, so that its memory is its own."""
    rows = [["demo census", *describe(demo()), "", ""]]
    for case in ("census of 10⁷ cells", "50 data sets"):
        command = [sys.executable, "-m", "benchmarks.static_sizes", "one", case]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        rows.append([case, *json.loads(done.stdout)])
    head = ("site", "files", "bytes", "cell files", "median", "largest", "client gzipped")
    print_table((*head, "CPU s", "peak GiB"), rows)


def measure_one(case):
    """Write one site; its sizes, seconds and memory as a line of JSON."""
    site, began = site_of(case), time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        write_site(site, Path(folder))
        seconds = time.process_time() - began
        print(json.dumps([*describe(Path(folder)), seconds, peak_gib()]))


SHOWN = """
const done = arguments[arguments.length - 1];
const look = () => document.querySelector("main table") ? done(performance.now())
  : requestAnimationFrame(look);
look();
"""
NEXT = """
const [address, done] = arguments;
const began = performance.now();
window.answer_page(address).then((page) => page.text()).then((text) => {
  const found = new DOMParser().parseFromString(text, "text/html").getElementById("main");
  document.getElementById("main").replaceChildren(...found.childNodes);
  requestAnimationFrame(() => done(performance.now() - began));
});
"""
READ = """return [performance.getEntriesByType("resource").reduce((n, e) => n + e.transferSize, 0),
  performance.memory.usedJSHeapSize];"""


def measure_browser():
    """The first table over a slow line, those after it, bytes and memory, in Chromium."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options, webdriver.ChromeService("/usr/bin/chromedriver"))
    rows = []
    try:
        with plain_server(demo()) as address:
            driver.execute_cdp_cmd("Network.enable", {})
            driver.execute_cdp_cmd("Network.emulateNetworkConditions", LINE)
            for _ in range(3):
                driver.execute_cdp_cmd("Network.clearBrowserCache", {})
                driver.get(f"{address}/d/census/table/index.html?{TABLES[0]}")
                first = driver.execute_async_script(SHOWN)
                loaded, _ = driver.execute_script(READ)
                path = f"{address}/d/census/table/index.html?"
                later = [driver.execute_async_script(NEXT, path + one) for one in TABLES[1:]]
                again = [driver.execute_async_script(NEXT, path + one) for one in TABLES]
                total, memory = driver.execute_script(READ)
                each = (total - loaded) / len(TABLES[1:])
                rows.append([first, max(later), max(again), loaded, each, memory / 2**20])
    finally:
        driver.quit()
    head = ("first table ms", "slowest new ms", "slowest known ms", "bytes at first")
    print_table((*head, "bytes a new table", "MiB of scripts"), rows)


async def visit(address, paths):
    """One visitor, who asks one after another; how many bytes came."""
    host, port = address.removeprefix("http://").split(":")
    came = 0
    for path in paths:
        asked = f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n"
        answer = b""
        while not answer:
            try:
                reader, writer = await asyncio.open_connection(host, int(port))
                writer.write(asked.encode())
                answer = await reader.read(-1)
                writer.close()
            except ConnectionResetError:  # Python's server lets five wait, and sends others away
                await asyncio.sleep(0.05)
        assert answer.split(b"\r\n", 1)[0].split()[1] == b"200", answer[:200]
        came += len(answer)
    return came


async def crowd(address, visits):
    """Visitors, so many at once, until all came or the time is over; how many, and their bytes."""
    came, n, began, waiting = 0, 0, time.monotonic(), iter(visits)

    async def one_after_another():
        nonlocal came, n
        for paths in waiting:
            if time.monotonic() - began > SECONDS:
                return
            bytes_read = await visit(address, paths)
            came, n = came + bytes_read, n + 1

    await asyncio.gather(*(one_after_another() for _ in range(AT_ONCE)))
    return n, came, time.monotonic() - began


def cpu_of(pid):
    """The CPU seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children_of(pid):
    """The processes that a process started, itself first."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *map(int, found)]


def measure_visitors():
    """What a table costs a plain file server, and the table builder's."""
    files = demo()
    cells = [f"/files/{path.name}" for path in sorted((files / "files").glob("*.bin"))]
    of_files = [["/site.json", cells[k % len(cells)]] for k in range(VISITORS)]
    tables = [one.path for one in itertools.islice(new_visits(Random(1), "census"), VISITORS)]
    with plain_server(files) as address:
        pid = _server_pid(address)
        rows = [["files", *_counted(address, of_files, [pid])]]
    site = DEMO / "visited.toml"  # the same site without a limit on one visitor's requests
    told = tomllib.loads((DEMO / "static.toml").read_text(encoding="utf-8"))
    site.write_text(tomli_w.dumps({**told, "accounts": {"rate": 1e6, "burst": 1_000_000}}))
    with started("serve", site, "--port", 0) as (process, address):
        pids = children_of(process.pid)
        rows.append(["builder", *_counted(address.rstrip("/"), [[t] for t in tables], pids)])
    head = ("server", "visitors", "seconds", "a second", "bytes each", "server's CPU ms each")
    print_table(head, rows)


def _server_pid(address):
    port = f":{int(address.rsplit(':', 1)[1]):04X} "
    lines = Path("/proc/net/tcp").read_text().splitlines()
    inode = next(line.split()[9] for line in lines if port in line and " 0A " in line)
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if os.readlink(link) == f"socket:[{inode}]":
                return int(link.parts[2])
        except OSError:
            continue
    raise RuntimeError(f"nobody listens at {address}")


def _counted(address, visits, pids):
    before = sum(map(cpu_of, pids))
    n, came, seconds = asyncio.run(crowd(address, visits))
    used = sum(map(cpu_of, pids)) - before
    return n, seconds, n / seconds, came / max(n, 1), 1000 * used / max(n, 1)


if __name__ == "__main__":
    if sys.argv[1:2] == ["one"]:
        measure_one(sys.argv[2])
    else:
        for part in sys.argv[1:] or ("sizes", "browser", "visitors"):
            print(f"{part}; load {os.getloadavg()[0]:.1f}")
            {
                "sizes": measure_sizes,
                "browser": measure_browser,
                "visitors": measure_visitors,
            }[part]()
