"""What a contributor runs before each commit, in a minute: `make check`.

Style, types and some tests of every room (`tests/fast.py`), side by side.
"""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests import fast  # noqa: E402


def main(arguments: list[str]) -> int:
    """Run all steps at the same time; further arguments go to pytest."""
    began = time.perf_counter()
    quick = ["-q", "-m", "not slow", "-n", "2", "--dist", "loadfile"]
    steps = {
        "style": ["ruff", "check", "--quiet", "."],
        "layout": ["ruff", "format", "--check", "--quiet", "."],
        "types": ["mypy"],
        "tests": ["pytest", *quick, *arguments, *fast.tests()],
    }
    with ThreadPoolExecutor(len(steps)) as pool:
        codes = dict(zip(steps, pool.map(_run, steps, steps.values()), strict=True))
    failed = ", ".join(name for name, code in codes.items() if code)
    seconds = time.perf_counter() - began
    _say(f"==> {f'failed: {failed}' if failed else 'all is well'} ({seconds:.0f} s)")
    return 1 if failed else 0


def _run(name: str, command: list[str]) -> int:
    """Run a step, and show what it had to say when it is done."""
    began = time.perf_counter()
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", *command],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    _say(f"==> {name} ({time.perf_counter() - began:.0f} s)\n{done.stdout}".rstrip())
    return done.returncode


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
