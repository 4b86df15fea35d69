"""A site of files: how large it is, how quick its tables are in a browser, and what visitors cost.

`python -m benchmarks.static_sizes [questions] [sizes] [browser] [visitors]`; all of them without a
word. Sites are made in `static-sites/` of the temporary folder, or used again where they are there.
What is measured goes to docs/static_site.json, and from there to the tables of docs/static_site.md.
"""

import asyncio
import gzip
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import replace
from pathlib import Path
from random import Random
from urllib.parse import parse_qsl

import numpy as np
import tomli_w

from benchmarks._measure import peak_gib
from benchmarks._visitors import new_visits
from benchmarks.serve_static import compare
from discreet.design.axis import Axis
from discreet.serve.data.inner import InnerSource
from discreet.serve.site.config import SiteConfig, read_site
from discreet.serve.site.site import Site
from discreet.serve.site.start import start_site
from discreet.serve.static.build import write_site
from tests.browser.file_servers import plain_server
from tests.serve.process import started
from tests.serve.sites import inner_table, once

ROOT = Path(__file__).parents[1]
PAGE, FIGURES = ROOT / "docs" / "static_site.md", ROOT / "docs" / "static_site.json"
MARK = "<!-- made by benchmarks/static_sizes.py -->"
SITES = Path(tempfile.gettempdir()) / "static-sites"
DEMO = SITES / "demo"
CASES = {
    "the demo's census, 432,000 inner cells, with Parquet": "census",
    "a census of 10⁷ inner cells that are not empty, five variables": "d0",
    "50 data sets of 432,000 inner cells": "d7",
}
"""The sites, and the data set of each that is looked at."""
SHAPES = {"region": 400, "age": 100, "sex": 2, "occupation": 50, "education": 30}
CENSUS = {"region": 30, "age": 24, "sex": 2, "marital": 6, "education": 10, "citizenship": 5}
LINE = {"latency": 20, "downloadThroughput": 1.25e6, "uploadThroughput": 1.25e6, "offline": False}
"""10 Mbit/s, and 20 ms there and back."""
_COMMON = ("rows=region&columns=sex", "rows=age&columns=sex", "rows=education&columns=sex&show=row")
TABLES = {
    "census": (*_COMMON, "rows=age&columns=marital&chart=heat"),
    "d0": (*_COMMON, "rows=age&columns=occupation&chart=heat"),
    "d7": (*_COMMON, "rows=region&columns=age&chart=bars"),
}
"""Tables that are asked for one after the other."""
VISITORS, SECONDS, AT_ONCE = 10_000, 120.0, 20
VISITS = 5


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
    """A site of invented tables, by its case."""
    shapes = [(SHAPES, 10**7, 1)] if "10⁷" in case else [(CENSUS, 432_000, k) for k in range(50)]
    datasets = {f"d{k}": InnerSource(table_of(*shape)) for k, shape in enumerate(shapes)}
    return Site(
        SiteConfig("Site"),
        {name: replace(once(), name=name, source=source) for name, source in datasets.items()},
    )


def folder_of(case):
    """The folder of a site."""
    return DEMO / "static" if CASES[case] == "census" else SITES / CASES[case]


def write_case(case):
    """Write a site, in a process of its own, and say what that took; nothing where it is there."""
    if (folder_of(case) / "site.json").exists():
        return {}
    commands = [["-m", "benchmarks.static_sizes", "one", case]]
    if CASES[case] == "census":
        demo = ["demo", "--persons", "100000", "--folder", str(DEMO), "--static", "--check"]
        commands.insert(0, ["-m", "discreet.cli", *demo])
    for one in commands:
        said = subprocess.run([sys.executable, *one], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(said.stdout)


def write_one(case):
    """Write a site anew; the seconds and memory that it takes as a line of JSON."""
    is_demo = CASES[case] == "census"
    site = start_site(read_site(DEMO / "static.toml")) if is_demo else site_of(case)
    shutil.rmtree(folder_of(case), ignore_errors=True)
    began = time.process_time()
    write_site(site, folder_of(case), parquet=is_demo)
    print(json.dumps({"cpu": time.process_time() - began, "gib": peak_gib()}))


def describe(folder):
    """Files, bytes, and what a visitor loads."""
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    cells = sorted(path.stat().st_size for path in (folder / "files").glob("*.bin"))
    program = sum(len(gzip.compress(p.read_bytes(), 9)) for p in (folder / "app").rglob("*.js"))
    return {
        "files": len(sizes),
        "bytes": sum(sizes),
        "cell files": len(cells),
        "median": cells[len(cells) // 2],
        "largest": cells[-1],
        "client gzipped": program,
    }


def measure_questions():
    """Ten thousand questions, of twenty seeds."""
    parts = [compare(500, seed) for seed in range(20)]
    counted = {name: sum(part[name] for part in parts) for name in parts[0]}
    return {**counted, "data sets": parts[0]["data sets"]}


def measure_sizes():
    """What each site holds, and what it took to write."""
    return {case: {**write_case(case), **describe(folder_of(case))} for case in CASES}


SHOWN = """
const [wanted, done] = arguments;
const look = () => document.querySelector(wanted) ? done(performance.now())
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
    try:
        return {case: measure_tables(driver, case) for case in CASES}
    finally:
        driver.quit()


def measure_tables(driver, case):
    """Shortest times and largest sizes of five visitors who were never here before, on one site."""
    write_case(case)
    driver.execute_cdp_cmd("Network.enable", {})
    driver.execute_cdp_cmd("Network.emulateNetworkConditions", LINE)
    tables, found = TABLES[CASES[case]], []
    with plain_server(folder_of(case)) as address:
        path = f"{address}/d/{CASES[case]}/table/index.html?"
        for _ in range(VISITS):
            driver.execute_cdp_cmd("Network.clearBrowserCache", {})
            driver.get(f"{address}/index.html")
            catalogue = driver.execute_async_script(SHOWN, "main h1")
            driver.execute_cdp_cmd("Network.clearBrowserCache", {})
            driver.get(path + tables[0])
            first = driver.execute_async_script(SHOWN, "main table")
            loaded, _ = driver.execute_script(READ)
            new = [driver.execute_async_script(NEXT, path + one) for one in tables[1:]]
            known = [driver.execute_async_script(NEXT, path + one) for one in tables]
            total, memory = driver.execute_script(READ)
            found.append(
                {
                    "catalogue ms": catalogue,
                    "first ms": first,
                    "new ms": max(new),
                    "known ms": max(known),
                    "bytes at first": loaded,
                    "bytes a new table": (total - loaded) / len(new),
                    "MiB of scripts": memory / 2**20,
                }
            )
    least = {name: min if name.endswith(" ms") else max for name in found[0]}
    return {name: which(visit[name] for visit in found) for name, which in least.items()}


def cell_files_of(folder, tables):
    """For each of the census' tables the path of the file that a browser reads for it."""

    def read(path):
        return json.loads((folder / path).read_text(encoding="utf-8"))

    told = read(read("site.json")["site"])["datasets"]["census"]
    files, variables = read(told["cells"])["files"], read(told["rules"]["en"])["variables"]
    bases = {d["name"]: d["base"] for v in variables for d in v["details"]}  # in public order
    for table in tables:
        asked = {detail for _, detail in parse_qsl(table.partition("?")[2])}
        crossing = "*".join(base for name, base in bases.items() if name in asked)
        yield f"/files/{files[crossing]}.bin"


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
    write_case(next(iter(CASES)))
    files = DEMO / "static"
    tables = [one.path for one in itertools.islice(new_visits(Random(1), "census"), VISITORS)]
    of_files = [["/site.json", path] for path in cell_files_of(files, tables)]
    with plain_server(files) as address:
        pid = _server_pid(address)
        found = {"files": _counted(address, of_files, [pid])}
    site = DEMO / "visited.toml"  # the same site without a limit on one visitor's requests
    told = tomllib.loads((DEMO / "static.toml").read_text(encoding="utf-8"))
    site.write_text(tomli_w.dumps({**told, "accounts": {"rate": 1e6, "burst": 1_000_000}}))
    with started("serve", site, "--port", 0) as (process, address):
        pids = children_of(process.pid)
        found["builder"] = _counted(address.rstrip("/"), [[t] for t in tables], pids)
    return found


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
    each = {"bytes each": came / max(n, 1), "cpu ms each": 1000 * used / max(n, 1)}
    return {"visitors": n, "seconds": seconds, **each}


def write_page():
    """The tables of the page, between their marks."""
    head, *_, tail = PAGE.read_text(encoding="utf-8").split(MARK)
    told = json.loads(FIGURES.read_text(encoding="utf-8"))
    loads = ", ".join(f"{told[part]['load']:.1f} for {part}" for part in MEASURES)
    said = f"A machine with {os.cpu_count()} cores did other work beside: its load was {loads}."
    parts = [_asked(told["questions"]), said, _sizes(told), _shown(told), _visited(told)]
    text = "\n\n".join(parts)
    PAGE.write_text(f"{head}{MARK}\n{text}\n{MARK}{tail}", encoding="utf-8")


def _asked(told):
    n, sets = f"{told['questions']:,}", told["data sets"]
    names = ("pages", "refusals", "files", "different")
    pages, refused, files, wrong = (f"{told[name]:,}" for name in names)
    return (
        f"{n} random questions to {sets} data sets were {pages} tables and other pages and "
        f"{refused} refusals.\n{files} of the tables were made files as well. Of all these {wrong} "
        "differ from the server's pages, figures and files, or from DuckDB's sums."
    )


def _sizes(told):
    head = ("site", "files", "MB in all", "cell files", "median, bytes", "largest, bytes")
    rows = []
    for case, s in ((case, told["sizes"][case]) for case in CASES):
        took = [f"{s[name]:.1f}" if name in s else "–" for name in ("cpu", "gib")]
        cells = [f"{s[name]:,}" for name in ("cell files", "median", "largest")]
        rows.append([case, f"{s['files']:,}", f"{s['bytes'] / 1e6:.1f}", *cells, *took])
    program = max(told["sizes"][case]["client gzipped"] for case in CASES) / 1000
    said = (
        f"The whole program of the pages is one file, {program:.0f} kB when a server compresses "
        "it, and can be at\nmost 300. `python -m http.server` does not compress."
    )
    return _table((*head, "processor s", "peak GiB"), rows) + f"\n\n{said}"


def _shown(told):
    head = ("site", "catalogue, ms", "first table, ms", "a new one, ms", "a known one, ms")
    rows = []
    for case, s in ((case, told["browser"][case]) for case in CASES):
        times = [f"{s[name]:.0f}" for name in ("catalogue ms", "first ms", "new ms", "known ms")]
        read = [f"{s['bytes at first'] / 1000:.0f}", f"{s['bytes a new table']:,.0f}"]
        rows.append([case, *times, *read, f"{s['MiB of scripts']:.0f}"])
    return _table((*head, "kB at first", "bytes a new one", "MiB of scripts"), rows)


def _visited(told):
    rows = [
        [name, f"{s['visitors']:,}", f"{s['seconds']:.0f}", f"{s['bytes each']:,.0f}",
         f"{s['cpu ms each']:.2f}"]
        for name, s in told["visitors"].items() if name != "load"
    ]  # fmt: skip
    return _table(("server", "visitors", "seconds", "bytes each", "its processor, ms each"), rows)


def _table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


MEASURES = {
    "questions": measure_questions,
    "sizes": measure_sizes,
    "browser": measure_browser,
    "visitors": measure_visitors,
}


def main(parts):
    """Measure, keep the figures, and write the page."""
    told = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
    for part in parts or MEASURES:
        load = os.getloadavg()[0]
        told[part] = {"load": load, **MEASURES[part]()}
        FIGURES.write_text(json.dumps(told, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        print(part, json.dumps(told[part], ensure_ascii=False, indent=1), flush=True)
    if set(MEASURES) <= set(told):
        write_page()


if __name__ == "__main__":
    if sys.argv[1:2] == ["one"]:
        write_one(sys.argv[2])
    else:
        main(sys.argv[1:])
