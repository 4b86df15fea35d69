"""The five walks of docs/walks.md, typed as they are printed, in a clean environment, and timed.

Without `--environment` a new one is made in a temporary folder and the package is installed into
it. Files come from the folder that `--data` names (the European labour force survey, the American
Community Survey, enterprises of rtauargus and frames of the R packages, as they are published), or
are invented with the same columns. With `--write` the figures go into the table of the page.

Run: python -m benchmarks.walks --environment .venv
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import os
import random
import re
import resource
import socket
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from benchmarks._measure import print_table

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "walks.md"
PORT = 8970  # the page's; a free one takes its place
_WALK = re.compile(r"^## (.*?)$(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_SHELL = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
_DOCUMENT = re.compile(r"cat > (\S+) <<'END'")
_ACS = ("PUMA", "SEX", "MSP", "HISP", "RAC1P", "HOUSING_TYPE", "OWN_RENT", "INDP_CAT", "EDU",
        "PINCP_DECILE", "DVET", "DREM")  # fmt: skip
_PEOPLE = ("SEX", "RAC1P", "OWN_RENT", "EDU")
_FIRMS = {"A21": "Abschnitt", "NUTS2": "Kreis", "SIZE": "Größe"}


def walks(page: Path = PAGE) -> dict[str, str]:
    """What is typed, by the walk's name, in the page's order."""
    text = page.read_text(encoding="utf-8")
    return {name: block[1] for name, body in _WALK.findall(text) if (block := _SHELL.search(body))}


def steps(typed: str) -> Iterator[str | tuple[str, str]]:
    """What is typed, line by line; a document is a pair of its file and its text."""
    lines = iter(typed.splitlines())
    for line in lines:
        if name := _DOCUMENT.fullmatch(line):
            yield name[1], "".join(f"{text}\n" for text in iter(lambda: next(lines), "END"))
        elif line:
            yield line


def write_files(folder: Path, data: Path | None, rows: int = 2000) -> None:
    """The files that walks start with, from published data or invented."""
    rng = random.Random(1)
    survey = _survey(data, rng, rows)
    people = _persons(data, rng, rows)
    with gzip.open(folder / "lfs.csv.gz", "wt", encoding="utf-8", newline="") as file:
        file.write(_text(survey))
    (folder / "acs.csv").write_text(_text([{c: row[c] for c in _ACS} for row in people]))
    chosen = [{"pid": k, **{c: row[c] for c in _PEOPLE}} for k, row in enumerate(people)]
    (folder / "people.csv").write_text(_text(chosen))
    german = _text(_german(_enterprises(data, rng, rows)), ";").encode("cp1252")
    (folder / "umsatz.csv").write_bytes(german)
    for name, text in _OF_R.items():
        found = None if data is None else next(data.glob(f"peers/*_{name}"), None)
        (folder / name.replace("eDimList_", "")).write_text(found.read_text() if found else text)


def _read(path: Path) -> list[dict[str, str]]:
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8")
    return list(csv.DictReader(io.StringIO(text)))


def _text(rows: Iterable[Mapping[str, object]], delimiter: str = ",") -> str:
    rows, out = list(rows), io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _survey(data: Path | None, rng: random.Random, rows: int) -> list[dict[str, str]]:
    """People of a labour force survey: whole numbers with `.0` where some are missing."""
    if data is not None:
        return _read(data / "eurostat_lfs_puf_fr_50k.csv.gz")
    ages = ["7.0", "20.0", "32.0", "47.0", "65.0", "75.0"] * 30 + [""]
    pick = rng.choice
    return [
        {"AGE": pick(ages), "SEX": pick("12"), "DEGURBA": pick(["0.0", "3.0", "3.0", ""])}
        for _ in range(rows)
    ]


def _persons(data: Path | None, rng: random.Random, rows: int) -> list[dict[str, str]]:
    if data is not None:
        return _read(data / "acs_nist_national2019.csv.gz")
    codes = {name: "123N"[: 2 + k % 3] for k, name in enumerate(_ACS)}
    return [{name: rng.choice(codes[name]) for name in _ACS} for _ in range(rows)]


def _enterprises(data: Path | None, rng: random.Random, rows: int) -> list[dict[str, str]]:
    if data is not None:
        return _read(data / "business" / "indiv_dt.csv")
    pick = rng.choice
    return [
        {"A21": pick("BCDDEEFFF"), "NUTS2": pick(["FR10", "FR21", "FR22"]), "SIZE": pick("123"),
         "TURNOVER": str(rng.lognormvariate(5, 2))}
        for _ in range(rows // 10)
    ]  # fmt: skip


def _german(firms: Iterable[Mapping[str, str]]) -> list[dict[str, str]]:
    swap = str.maketrans(",.", ".,")
    return [
        {"Betrieb": f"B{k:05}", **{german: firm[name] for name, german in _FIRMS.items()},
         "Umsatz": f"{float(firm['TURNOVER']):,.2f}".translate(swap)}
        for k, firm in enumerate(firms)
    ]  # fmt: skip


_OF_R = {
    "e6.csv": "geo,eu,year,freq\nOslo,no,2018,2\nParis,yes,2018,3\nRome,yes,2018,7\n"
    "Oslo,no,2019,1\nParis,yes,2019,5\nRome,yes,2019,6\n",
    "eDimList_geo.csv": "levels,codes\n@,Total\n@@,yes\n@@@,Paris\n@@@,Rome\n@@,no\n@@@,Oslo\n",
    "magnitude1.csv": "sector4,geo,company,value\n"
    + "".join(
        f"{sector},{geo},{firm},{7 + 3 * k}.5\n"
        for k, (sector, geo, firm) in enumerate(
            (s, g, f) for s in ("Industry", "Trade") for g in ("north", "south") for f in "ABCD"
        )
    ),
}


def clean_environment(folder: Path) -> Path:
    """A new environment with nothing but the package and what it brings."""
    place = folder / "environment"
    venv.create(place, with_pip=True)
    pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, f"{ROOT}[serve,private]", "pandas"], check=True)
    return place


def walk(typed: str, folder: Path, environment: Path) -> tuple[float, float, str]:
    """Seconds of the wall and of the processors, and what was printed.

    Raises:
      RuntimeError: A command failed; its words and its output are told.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    path = f"{(environment / 'bin').absolute()}{os.pathsep}{os.environ['PATH']}"
    began, used = time.perf_counter(), _processors()
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", typed.replace(str(PORT), str(port))],
        cwd=folder,
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"a command failed in {folder}:\n{done.stdout}")
    return time.perf_counter() - began, _processors() - used, done.stdout


def _processors() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def with_figures(text: str, rows: Iterable[list[object]]) -> str:
    """The page with what was measured in its table; what stands behind the figures stays.

    Raises:
      ValueError: The table has no row, or several, for a walk.
    """
    for name, *figures in rows:
        row = re.compile(
            rf"^(\| {re.escape(str(name))} )(?:\| [\d.]+ ){{{len(figures)}}}",
            re.MULTILINE | re.IGNORECASE,
        )
        shown = "".join(f"| {figure} " for figure in figures)
        text, found = row.subn(rf"\g<1>{shown}", text)
        if found != 1:
            raise ValueError(f"the table of the page has {found} rows for the walk {name!r}.")
    return text


def main() -> int:
    """Walk, and print a line for each walk."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environment", type=Path, help="a clean one; made if absent")
    parser.add_argument("--data", type=Path, help="folder of published files; invented if absent")
    parser.add_argument("--out", type=Path, help="folder for the files; a temporary one if absent")
    parser.add_argument("--write", action="store_true", help="put the figures into the page")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        place = options.environment or clean_environment(Path(temporary))
        rows = []
        for number, (name, typed) in enumerate(walks().items(), start=1):
            folder = (options.out or Path(temporary)) / f"walk{number}"
            folder.mkdir(parents=True)
            write_files(folder, options.data)
            wall, processors, said = walk(typed, folder, place)
            (folder / "said.txt").write_text(said, encoding="utf-8")
            rows.append(
                [
                    name,
                    len(re.findall(r"^(?:discreet|python) ", typed, re.MULTILINE)),
                    f"{wall:.1f}",
                    f"{processors:.1f}",
                ]
            )
        print_table(["walk", "commands", "wall s", "processor s"], rows)
    if options.write:
        PAGE.write_text(with_figures(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
