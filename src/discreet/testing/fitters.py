"""One battery for every fitter: what a fit says of itself is checked from its result alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from discreet.arrays import Array
from discreet.design.base import Design
from discreet.randomness import stream
from discreet.solve.fit import Fitter
from discreet.testing.laws import BrokenPromiseError

_CLOSE = 1e-4  # relative accuracy expected of two roads to one fit
Check = Callable[[Fitter, Design, Array], str | None]


def check_fitter(fitter: Fitter, design: Design, *, seed: int = 1) -> None:
    """Hold a fitter to what every fit promises, on random tables of one design.

    A fit's published cells are the sums of its inner cells, its certificate holds when it says that
    it converged, preparing changes nothing, a table that adds up is met, and fitting what was
    fitted changes nothing.

    Args:
      fitter: The fitter.
      design: A design to try it on.
      seed: Seed of the tables.

    Raises:
      BrokenPromiseError: Naming each promise that is broken, and how.
    """
    table = stream(seed, "check-fitter").poisson(3.0, design.n_inner)
    z = design.aggregate(table).astype(np.float64)
    size = _has_the_right_size(fitter, design, z)
    if size is not None:
        raise BrokenPromiseError(fitter.name, {"has_the_right_size": size})
    found = {c.__name__.removeprefix("_"): c(fitter, design, z) for c in _CHECKS}
    broken = {promise: why for promise, why in found.items() if why is not None}
    if broken:
        raise BrokenPromiseError(fitter.name, broken)


def _adds_up(fitter: Fitter, design: Design, z: Array) -> str | None:
    fit = fitter(design, z)
    return _differ("published cells", fit.z, design.aggregate(fit.y), "the sums of its inner cells")


def _has_the_right_size(fitter: Fitter, design: Design, z: Array) -> str | None:
    y = fitter(design, z).y
    if y.shape != (design.n_inner,) or not np.isfinite(y).all():
        return f"inner cells of shape {y.shape}, finite: {bool(np.isfinite(y).all())}"
    return None


def _is_certified(fitter: Fitter, design: Design, z: Array) -> str | None:
    fit = fitter(design, z)
    if fit.is_converged and not fit.certificate.holds:
        return f"says it converged, but its certificate is {fit.certificate}"
    return None


def _meets_a_table_that_adds_up(fitter: Fitter, design: Design, z: Array) -> str | None:
    return _differ("published cells", fitter(design, z).require().z, z, "those of a table")


def _is_a_fixed_point(fitter: Fitter, design: Design, z: Array) -> str | None:
    once = fitter(design, z).require()
    again = fitter(design, once.z).require()
    return _differ("a second fit's inner cells", again.y, once.y, "the first's")


def _is_prepared_alike(fitter: Fitter, design: Design, z: Array) -> str | None:
    prepared = fitter.prepare(design)
    prepared(z + 1.0)
    return _differ("a prepared fit", prepared(z).y, fitter(design, z).y, "the plain one")


_CHECKS: tuple[Check, ...] = (
    _adds_up,
    _is_certified,
    _meets_a_table_that_adds_up,
    _is_a_fixed_point,
    _is_prepared_alike,
)


def _differ(what: str, seen: Array, expected: Array, of: str) -> str | None:
    off = float(np.abs(seen - expected).max(initial=0.0))
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    return None if off <= _CLOSE * scale else f"{what} differ from {of} by {off:.3g}"
