"""Where passes compute: processor cores, or a graphics processor through CuPy."""

from __future__ import annotations

import functools
from typing import Any

from discreet.errors import MissingDependencyError, ParameterError

DEVICES = ("auto", "cpu", "gpu")


def check_device(device: str) -> None:
    """Refuse a device that does not exist."""
    if device not in DEVICES:
        listed = ", ".join(map(repr, DEVICES))
        raise ParameterError(f"device must be one of {listed}, got {device!r}.")


def cupy() -> Any:
    """The module CuPy, or an error that says what to do."""
    try:
        import cupy as module
    except ImportError:
        raise MissingDependencyError("device='gpu'", "CuPy and an NVIDIA card", "gpu") from None
    return module


@functools.cache
def has_gpu() -> bool:
    """Whether CuPy is installed and finds a card."""
    try:
        return bool(cupy().cuda.runtime.getDeviceCount() > 0)
    except Exception:  # no CuPy, no driver or no card: CuPy has an error of its own for each
        return False
