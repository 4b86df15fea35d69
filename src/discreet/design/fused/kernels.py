"""Passes compiled from their source, once for each text, and kept on disk."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from discreet import __version__
from discreet.design.fused.source import PassSource

Run = Callable[..., tuple[float, float, int]]
_HEAD = '''"""Written by discreet {version}; safe to delete."""
import numba


@numba.njit(cache=True, nogil=True, boundscheck=False, fastmath={fast})
'''
_FAST = '{"reassoc", "contract", "nsz", "nnan"}'
"""Sums may be taken in another order, the same one every time; zeros have no sign."""


def folder() -> Path:
    """Where compiled passes are kept: `$DISCREET_CACHE`, or the user's cache folder."""
    home = os.environ.get("DISCREET_CACHE") or Path(
        os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "discreet"
    )
    return Path(home) / "passes"


@functools.cache
def compiled(source: PassSource) -> Run:
    """The pass as machine code; its text lies in `folder()` for whoever wants to read it."""
    text = _HEAD.format(version=__version__, fast=_FAST) + source.text + "\n"
    name = "pass_" + hashlib.sha256(text.encode()).hexdigest()[:16]
    try:
        path = _written(folder(), name, text)
    except OSError:  # no folder that can be written: compile without keeping
        return _compiled_here(text)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        return _compiled_here(text)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # compiled code on disk asks for its module by name
    spec.loader.exec_module(module)
    run: Run = module.run
    return run


def _written(home: Path, name: str, text: str) -> Path:
    home.mkdir(parents=True, exist_ok=True)
    path = home / f"{name}.py"
    if not path.exists() or path.read_text() != text:
        part = path.with_suffix(f".{os.getpid()}.part")
        part.write_text(text)
        part.replace(path)
    return path


def _compiled_here(text: str) -> Run:
    space: dict[str, Any] = {}
    exec(text.replace("cache=True, ", ""), space)
    run: Run = space["run"]
    return run
