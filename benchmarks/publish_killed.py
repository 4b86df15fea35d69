"""A publication that is killed at twenty points of a run, by signal 9: nothing is half-published.

A run of `discreet publish` opens, renames and makes files in the office's folder. Each such event
is a point; twenty of them, spread over the run, are chosen, and in a process of its own the run is
killed at that point. Then the edition must be absent or whole (every digest of its manifest holds),
and the ledger must know what was drawn. The next run must publish the figures that the first one
had stored. A method by key and a private one, whose draws cannot be repeated, are tried. A
withdrawal is killed likewise: the same command must finish it, with one entry in the ledger.

Run: python -m benchmarks.publish_killed --points 20
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks._measure import print_table
from tests.publication.office import KEYS, PRIVATE, found_office

PUBLISH = ["publish", "publication.toml", "--edition", "1"]
WITHDRAW = ["publish", "publication.toml", "--withdraw", "1", "--reason", "Bad records."]
METHODS = {"cell-key": KEYS, "discrete-laplace": PRIVATE}
RUNNER = """
import os, signal, sys
stop, seen = int(sys.argv[1]), 0
def hook(event, given):
    global seen
    if event in ("open", "os.rename", "os.mkdir", "os.remove", "sqlite3.connect"):
        text = os.fsdecode(given[0]) if given and isinstance(given[0], (str, bytes)) else ""
        if event != "open" or os.getcwd() in os.path.abspath(text):
            seen += 1
            if seen == stop:
                os.kill(os.getpid(), signal.SIGKILL)
import discreet.cli.publish, discreet.publication.editions
from discreet.cli import main
sys.addaudithook(hook)
try:
    main(sys.argv[2:])
except SystemExit as end:
    print(seen if end.code == 0 else -1)
"""


def run(folder: Path, stop: int, command: list[str] = PUBLISH) -> tuple[int, str]:
    """One run, killed at an event, or at none for 0; its end, and what it printed last."""
    made = subprocess.run(
        [sys.executable, "-c", RUNNER, str(stop), *command],
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ,
        check=False,
    )
    return made.returncode, (made.stdout.strip().splitlines() or [made.stderr[-300:]])[-1]


def is_whole(edition: Path) -> bool:
    """Whether every file that the manifest names is there as it says."""
    manifest = json.loads((edition / "manifest.json").read_text())
    digests = {n: hashlib.sha256((edition / n).read_bytes()).hexdigest() for n in manifest["files"]}
    return digests == manifest["files"] and (edition / "release.parquet").is_file()


def try_point(method: str, stop: int) -> list[object]:
    """What is there after a kill, and after the run that follows."""
    from discreet.facade import read_release
    from discreet.ledger import Ledger

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found_office(folder, method, METHODS[method])
        code, _ = run(folder, stop)
        edition, staged = folder / "published" / "1", folder / "published" / ".1.part"
        state = "absent"
        if edition.exists():
            state = "whole" if is_whole(edition) else "HALF"
        kept = next((p for p in (edition, staged) if (p / "release.parquet").is_file()), None)
        drawn = None if kept is None else read_release(kept / "release.parquet").z
        origin = folder / "confidential" / ".people-1.origin"
        counts = drawn is not None and (edition.exists() or origin.is_file())
        ledger = folder / "discreet.db"
        entries = len(Ledger(ledger).rows()) if ledger.is_file() else 0
        agrees = drawn is None or entries > 0
        again = 0 if edition.exists() else run(folder, 0)[0]
        final = read_release(edition / "release.parquet").z
        same = not counts or bool((final == drawn).all())
        paid = len(Ledger(ledger).rows())
        fine = code == -signal.SIGKILL and state != "HALF" and agrees and again == 0 and same
        fine = fine and is_whole(edition)
        return [method, stop, state, entries, paid, "kept" if counts else "drawn", fine]


def try_withdrawal(published: Path, stop: int) -> list[object]:
    """What is there after a withdrawal is killed, and after it is asked for again."""
    from discreet.ledger import Ledger

    def entries() -> int:
        rows = Ledger(folder / "discreet.db").rows()
        return sum(row.get("decision") == "withdrawn" for row in rows)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(shutil.copytree(published, Path(name) / "office"))
        code, _ = run(folder, stop, WITHDRAW)
        edition, entered = folder / "published" / "1", entries()
        state = "whole" if is_whole(edition) else "between"
        again = run(folder, 0, WITHDRAW)[0]
        is_told = "Bad records." in (edition / "note.en.md").read_text()
        fine = code == -signal.SIGKILL and again == 0 and is_told and is_whole(edition)
        fine = fine and entries() == 1
        return ["withdrawal", stop, state, entered, entries(), "kept", fine]


def main() -> None:
    """Kill runs at points spread over the whole, and print what was left."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=20)
    given = parser.parse_args()
    rows = []
    for method in METHODS:
        with tempfile.TemporaryDirectory() as name:
            found_office(Path(name), method, METHODS[method])
            code, events = run(Path(name), 0)
            if code != 0 or int(events) < given.points:
                raise SystemExit(f"an undisturbed run failed: {events}")
        n = int(events)
        share = given.points // len(METHODS)
        rows += [try_point(method, 1 + k * (n - 1) // (share - 1)) for k in range(share)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "office"
        folder.mkdir()
        found_office(folder)
        run(folder, 0)
        n, share = _events_of_withdrawal(folder), max(2, given.points // 4)
        rows += [try_withdrawal(folder, 1 + k * (n - 2) // (share - 1)) for k in range(share)]
    head = ["method", "event", "after the kill", "entries", "entries later", "draw", "fine"]
    print_table(head, rows)
    if not all(row[-1] for row in rows):
        raise SystemExit("something was half-published, or the ledger did not agree.")


def _events_of_withdrawal(published: Path) -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(shutil.copytree(published, Path(name) / "office"))
        return int(run(folder, 0, WITHDRAW)[1])


if __name__ == "__main__":
    main()
