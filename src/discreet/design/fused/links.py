"""Links: how a cell follows from the sum over its faces; devices: where passes compute."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np

from discreet.arrays import Real
from discreet.errors import DiscreetError, MissingDependencyError, ParameterError


class Stored(NamedTuple):
    """Which tables a pass reads beside the faces."""

    start: bool = False
    variance: bool = False


@dataclass(frozen=True)
class CellLink:
    r"""How a cell of the table follows from the sum over its faces, :math:`y = \varphi(s + qt)`.

    Faces that hold factors have a starting table of factors, :math:`y = s\,e^t`. Formulas are
    written for :math:`y = \varphi(t)`; `CellFormula` says what a variance makes of them.
    """

    name: str  # the link
    joins: str  # `"+"`, or `"*"` where faces hold the factors of a product
    nothing: str  # what joins no more than this is zero, whatever else joins it
    value: str  # :math:`y` from the sum `at`
    change: str  # how `y` changes when the sum changes by `by`
    potential: str  # the integral of the link, from `y`
    # The size of the projected gradient from the gradient `by`, its sign turned: zero where that
    # would only move the cell beyond a bound of the link.
    gradient: str

    def of(self, at: Real, start: Real | None = None, variance: Real | None = None) -> Real:
        """The link of sums that are stored."""
        scaled = at if variance is None else variance * at
        if self.joins == "*":
            return np.exp(scaled) if start is None else start * np.exp(scaled)
        moved = scaled if start is None else start + scaled
        return np.maximum(moved, 0.0) if self.name == "positive" else np.asarray(moved)


POSITIVE = CellLink(
    "positive",
    "+",
    "-1e200",
    value="at if at > 0.0 else 0.0",
    change="by if at > 0.0 else 0.0",
    potential="0.5 * y * y",
    gradient="by if by > 0.0 else (-by if at > 0.0 else 0.0)",
)
EXPONENTIAL = CellLink(
    "exponential",
    "*",
    "0.0",
    value="at",
    change="at * by",
    potential="y",
    gradient="(by if by > 0.0 else -by) if at > 0.0 else 0.0",
)
LINEAR = CellLink(
    "linear",
    "+",
    "-1e200",
    value="at if at > -1e200 else 0.0",  # but for structural zeros
    change="by if at > -1e200 else 0.0",
    potential="0.5 * y * y",
    gradient="(by if by > 0.0 else -by) if at > -1e200 else 0.0",
)
LINKS = {link.name: link for link in (POSITIVE, EXPONENTIAL, LINEAR)}


def checked_link(link: str, start: Real | None, variance: Real | None) -> CellLink:
    """A link by its name; tables that it has no use for are refused."""
    if link not in LINKS:
        raise ParameterError(f"link must be one of {', '.join(LINKS)}, got {link!r}.")
    if variance is None:
        return LINKS[link]
    if LINKS[link].joins == "*":
        raise ParameterError(f"a table with link {link!r} has no variance, only a start.")
    if start is not None and start is not variance and bool(start[variance == 0].any()):
        raise ParameterError(
            "cells of variance zero cannot move. Take their starting values out of the targets, "
            "and give them the start zero."
        )
    return LINKS[link]


@dataclass(frozen=True)
class CellFormula:
    r"""What a pass computes in each cell, as an expression of Python.

    What a variance :math:`q` makes of a link follows from :math:`dy/dt = q\varphi'`. A cell of
    variance zero stays at zero, and nothing moves it.
    """

    link: CellLink  # the link
    # The `"table"`, its `"slope"` (the derivative of the link), its `"change"` along a direction,
    # or the projected `"gradient"`.
    kind: str
    stored: Stored = Stored()  # tables that are read

    @property
    def is_summed(self) -> bool:
        """Whether margins are asked for; of a gradient only the largest entry is."""
        return self.kind != "gradient"

    @property
    def reads_direction(self) -> bool:
        """Whether a direction `by` is read beside the point."""
        return self.kind in ("change", "gradient")

    @property
    def argument(self) -> str:
        """What the link is taken of, from the sum `at`."""
        if self.stored.start and self.link.joins == "*":
            return "start * at if start > 0.0 else 0.0"
        scaled = "variance * at" if self.stored.variance else "at"
        return f"start + {scaled}" if self.stored.start else scaled

    @property
    def value(self) -> str:
        """The value, from the argument `at` and from `by`."""
        change, gradient = self.link.change, self.link.gradient
        if self.stored.variance:
            change, gradient = f"variance * ({change})", f"({gradient}) if variance > 0.0 else 0.0"
        slope = change.replace("by", "1.0")
        values = {"table": self.link.value, "slope": slope, "change": change, "gradient": gradient}
        return values[self.kind]

    @property
    def potential(self) -> str:
        """The potential, from `y`."""
        if self.stored.variance:
            return f"{self.link.potential} / variance if variance > 0.0 else 0.0"
        return self.link.potential


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
