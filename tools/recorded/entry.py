"""The command line as a program: where it starts is read from `pyproject.toml`."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def discreet(*arguments: object) -> list[str]:
    """The command `discreet` with the sources of this working tree, whatever is installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    module, _, function = project["scripts"]["discreet"].partition(":")
    start = f"import sys; sys.argv[0] = 'discreet'; from {module} import {function}; {function}()"
    return [sys.executable, "-c", start, *map(str, arguments)]
