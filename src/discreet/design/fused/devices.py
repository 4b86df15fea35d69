"""Where passes compute: processor cores, or a graphics processor through CuPy."""

from __future__ import annotations

import functools
from typing import Any

import numba

from discreet.errors import DiscreetError, MissingDependencyError, ParameterError

DEVICES = ("auto", "cpu", "gpu")


def check_device(device: str) -> None:
    """Refuse a device that no machine has."""
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
        require_gpu()
    except DiscreetError:
        return False
    return True


def require_gpu() -> None:
    """Refuse a graphics processor that is not there."""
    module = cupy()
    try:
        count = int(module.cuda.runtime.getDeviceCount())
        why = "it finds none"
    except Exception as error:  # no driver, or one that is too old: CuPy has errors of its own
        count, why = 0, str(error)
    if count == 0:
        raise ParameterError(
            f"device='gpu' needs an NVIDIA card that CuPy can use, but {why}. "
            "Use device='cpu', or device='auto' for a card where there is one."
        )


def on_processor(device: str, why: str) -> str:
    """The note of a fit that the processor computed; where a card was asked for it says why."""
    return f"cpu, because {why}" if device == "gpu" else "cpu"


def processors() -> int:
    """Processors that this process may use, or as many as `NUMBA_NUM_THREADS` says."""
    return int(numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]  # set on import
