"""Record what the product answers on fixed inputs, and compare it after a refactoring.

    python tools/recordings.py record DIR     # runs everything; digests and raw answers go to DIR
    python tools/recordings.py compare DIR    # runs again and prints what differs; exit code 1 then
    python tools/recordings.py compare DIR --only builder/census --only errors
    python tools/recordings.py files DIR      # small files of this version, for tests of later ones

DIR holds `digests.json`, name -> sha256, and the answers themselves in `answers/`, each in a file
named by its digest. The sources are those of the working tree that this file belongs to, and they
are reached by public names, the command line and HTTP alone, so that they can be recut freely.
Each part runs in a process of its own, on one thread, since sums depend on the number of threads.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("library", "errors", "commands", "builder")
FIXED = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONWARNINGS": "ignore",  # names that have moved warn, and still answer the same
    "TZ": "UTC",
    "LC_ALL": "C.UTF-8",
    "COLUMNS": "100",
    "NO_COLOR": "1",
}
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?")
SHOWN_LINES, SHOWN_WIDTH = 12, 160


def main() -> int:
    """Record, compare, or write the files of this version."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("action", choices=["record", "compare", "files", "part"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", action="append", help="names that start so; may be repeated")
    parser.add_argument("--lines", type=int, default=SHOWN_LINES, help="of each difference")
    given = parser.parse_args()
    if given.action == "part":  # the folder is "PART/out", from _run below
        return _write_part(given.folder.name, given.folder.parent, given.only or [""])
    if given.action == "files":
        return subprocess.call(_command("part", given.folder / "files"), env=_environment())
    if given.action == "record":
        return _record(given.folder, given.only)
    return _compare(given.folder, given.only or [""], given.lines)


def _environment() -> dict[str, str]:
    path = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, **FIXED, "PYTHONPATH": os.pathsep.join(path)}


def _command(*arguments: object) -> list[str]:
    return [sys.executable, __file__, *map(str, arguments)]


def _record(folder: Path, only: list[str] | None) -> int:
    if only:
        sys.exit("record takes everything; --only goes with compare.")
    (folder / "answers").mkdir(parents=True, exist_ok=True)
    digests: dict[str, str] = {}
    for name, answer in _answers([""]):
        content = answer.encode()
        digests[name] = hashlib.sha256(content).hexdigest()
        (folder / "answers" / digests[name]).write_bytes(content)
    (folder / "digests.json").write_text(json.dumps(digests, indent=0, sort_keys=True))
    _say(f"{len(digests)} answers recorded in {folder}")
    return 0


def _compare(folder: Path, only: list[str], lines: int) -> int:
    digests = json.loads((folder / "digests.json").read_text())
    expected = {name: digest for name, digest in digests.items() if name.startswith(tuple(only))}
    seen: set[str] = set()
    different = 0
    for name, answer in _answers(only):
        seen.add(name)
        digest = hashlib.sha256(answer.encode()).hexdigest()
        if expected.get(name) != digest:
            different += 1
            was = (folder / "answers" / expected[name]).read_text() if name in expected else ""
            _say(_difference(name, was, answer, lines))
    missing = sorted(expected.keys() - seen)
    for name in missing:
        _say(f"== {name}: no longer answered")
    _say(f"{len(seen)} answers, {different} differ, {len(missing)} are missing")
    return int(bool(different or missing))


def _answers(only: list[str]) -> Iterator[tuple[str, str]]:
    """Names and texts of the parts that are asked for, with the time each part takes."""
    for part in PARTS:
        if not any(f"{part}/".startswith(start) or start.startswith(part) for start in only):
            continue
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="recordings-") as place:
            chosen = [word for start in only for word in ("--only", start)]
            command = _command("part", Path(place) / part, *chosen)
            subprocess.run(command, env=_environment(), check=True)
            with (Path(place) / f"{part}.ndjson").open() as file:
                found = [json.loads(line) for line in file]
        yield from ((name, answer) for name, answer in found if name.startswith(tuple(only)))
        _say(f"{part}: {len(found)} answers in {time.monotonic() - started:.0f} s")


def _write_part(part: str, folder: Path, only: list[str]) -> int:
    """In a process with the fixed environment: run one part."""
    recorded = importlib.import_module(f"recorded.{part}")
    if part == "files":
        recorded.write(folder)
        return 0
    names: set[str] = set()
    with (folder / f"{part}.ndjson").open("w") as file:
        for name, answer in recorded.answers(tuple(only)):
            if name in names:
                raise ValueError(f"two answers are named {name}")
            names.add(name)
            file.write(json.dumps([name, answer]) + "\n")
    return 0


def _difference(name: str, was: str, now: str, lines: int) -> str:
    """A short diff; and how far apart numbers are, where nothing else differs."""
    if not was:
        return f"== {name}: not recorded before"
    found = [f"== {name}"]
    if NUMBER.split(was) == NUMBER.split(now):
        pairs = zip(NUMBER.findall(was), NUMBER.findall(now), strict=True)
        apart = [(float(a), float(b)) for a, b in pairs if a != b]
        largest = max(abs(a - b) / max(1.0, abs(a), abs(b)) for a, b in apart)
        found.append(f"   {len(apart)} numbers differ, relatively by at most {largest:.3g}")
    diff = difflib.unified_diff(was.splitlines(), now.splitlines(), lineterm="", n=0)
    changed = [line for line in diff if not line.startswith(("---", "+++", "@@"))]
    found += [f"   {line[:SHOWN_WIDTH]}" for line in changed[:lines]]
    return "\n".join([*found, *(["   …"] if len(changed) > lines else [])])


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
