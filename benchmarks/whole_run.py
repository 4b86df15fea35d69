"""Everything of docs/whole_run.md, typed as it is printed in an empty folder, with what it says.

Run: python -m benchmarks.whole_run [--environment PLACE] [--out FOLDER] [--write]
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.walks import ROOT, clean_environment, steps, walks

WHOLE = ROOT / "docs" / "whole_run.md"
MARK = "<!-- made by benchmarks/whole_run.py -->"
_LONGEST = 3  # lines of an answer on the page


def run_all(folder: Path, environment: Path) -> Iterator[tuple[str, str, float, str]]:
    """For each command its part of the page, itself, its processor seconds and what it said.

    Raises:
      RuntimeError: A command failed.
    """
    path = f"{(environment / 'bin').absolute()}{os.pathsep}{os.environ['PATH']}"
    for part, typed in walks(WHOLE).items():
        for step in steps(typed):
            if isinstance(step, tuple):
                (folder / step[0]).write_text(step[1], encoding="utf-8")
                continue
            before = _processors()
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", step],
                cwd=folder,
                env={**os.environ, "PATH": path},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            if done.returncode:
                raise RuntimeError(f"{step}\n{done.stdout}")
            yield part, step, _processors() - before, done.stdout.replace(f"{folder}/", "")


def _processors() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def write_page(rows: list[tuple[str, str, float, str]]) -> None:
    """What each command said, between the marks of the page."""
    head, _, tail = WHOLE.read_text(encoding="utf-8").split(MARK)
    total = sum(seconds for _, _, seconds, _ in rows)
    lines = [
        f"The {len(rows)} commands take {total:.0f} processor seconds in all, and say:",
        "",
        "```text",
    ]
    for _, step, seconds, said in rows:
        lines += [f"$ {step}    ({seconds:.1f} s)"]
        told = said.rstrip().splitlines()
        lines += told[:_LONGEST] + (["…"] if len(told) > _LONGEST else [])
    text = "\n".join([*lines, "```"])
    WHOLE.write_text(f"{head}{MARK}\n{text}\n{MARK}{tail}", encoding="utf-8")


def main() -> None:
    """Run, print, and write the page if that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environment", type=Path, help="a clean one; made if absent")
    parser.add_argument("--out", type=Path, help="an empty folder; a temporary one if absent")
    parser.add_argument("--write", action="store_true", help="put what is said into the page")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        place = options.environment or clean_environment(Path(temporary))
        folder = options.out or Path(temporary) / "empty"
        folder.mkdir(parents=True)
        rows = []
        for row in run_all(folder, place):
            rows.append(row)
            print(f"$ {row[1]}    ({row[2]:.1f} s)\n{row[3]}", flush=True)
    if options.write:
        write_page(rows)


if __name__ == "__main__":
    sys.exit(main())
