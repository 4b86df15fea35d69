"""The command line as a program: where it starts is read from `pyproject.toml`."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import NamedTuple, NoReturn

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 120
HEAVY = ("numpy", "scipy.sparse", "pandas", "pyarrow.parquet", "ibis", "duckdb", "sqlalchemy")


def _start() -> tuple[str, str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    module, _, function = project["scripts"]["discreet"].partition(":")
    return module, function


def discreet(*arguments: object) -> list[str]:
    """The command `discreet` with the sources of this working tree, whatever is installed."""
    module, function = _start()
    start = f"import sys; sys.argv[0] = 'discreet'; from {module} import {function}; {function}()"
    return [sys.executable, "-c", start, *map(str, arguments)]


class Done(NamedTuple):
    """How a command ended, and what it printed."""

    code: int
    stdout: str
    stderr: str


def run_forked(arguments: list[str], folder: Path) -> Done:
    """The same in a fork of this process, which has loaded other people's packages already."""
    for name in HEAVY:
        importlib.import_module(name)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if not child:
            _become(arguments, folder, out.fileno(), err.fileno())
        _, status = os.waitpid(child, 0)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode())
    return Done(os.waitstatus_to_exitcode(status), *texts)


def _become(arguments: list[str], folder: Path, out: int, err: int) -> NoReturn:
    signal.alarm(SECONDS)
    code = 1
    try:
        os.chdir(folder)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        sys.argv = ["discreet", *arguments]
        module, function = _start()
        getattr(importlib.import_module(module), function)()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
