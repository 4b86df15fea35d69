"""Published values and weights as fitters take them: checked, in double precision."""

from __future__ import annotations

import math
import numbers

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Mask, Real
from discreet.design.base import Design
from discreet.errors import DataError, DesignError, ParameterError

_LARGEST = 1e50  # products of two weights and two values stay far from overflow


def check_tolerance(tolerance: float, below: float = 1.0) -> None:
    """Refuse a tolerance that makes no sense."""
    if not (isinstance(tolerance, numbers.Real) and 0 < tolerance < below):
        limits = "be positive and finite" if math.isinf(below) else f"lie in (0, {below:g})"
        raise ParameterError(f"tolerance must {limits}, got {tolerance!r}.")


def check_whole(name: str, value: int, least: int) -> None:
    """Refuse an option that is not a whole number, or too small a one."""
    if not (isinstance(value, numbers.Integral) and value >= least):
        raise ParameterError(f"{name} must be a whole number, {least} or more, got {value!r}.")


def check_options(tolerance: float, max_steps: int, count: float) -> None:
    """Refuse a tolerance, a number of steps or a unit that makes no sense."""
    check_tolerance(tolerance)
    if not (isinstance(count, numbers.Real) and 0 < count < math.inf):
        raise ParameterError(f"count, the size of one count, must be positive, got {count!r}.")
    check_whole("max_steps", max_steps, 1)


def checked_weights(design: Design, weights: ArrayLike | None) -> Real:
    """Precisions of the published cells, ones by default; zero leaves a cell out."""
    if weights is None:
        return np.ones(design.n_published)
    w = _vector(design, weights, "weights")
    if not (np.isfinite(w).all() and (w >= 0).all()):
        raise ParameterError(
            "weights are precisions: they must be finite and not negative (zero leaves a cell out)."
        )
    if ((w > 0) & ((w < 1 / _LARGEST) | (w > _LARGEST))).any():
        raise ParameterError(
            f"weights must lie between {1 / _LARGEST:g} and {_LARGEST:g} or be zero, got "
            f"{w[w > 0].min():g} to {w.max():g}. Multiply them all by one factor; a fit depends on "
            "their ratios only."
        )
    return w


def checked_values(design: Design, z: ArrayLike, used: Mask) -> Real:
    """Published values; those that are not used, suppressed ones for example, become zero."""
    values = _vector(design, z, "published values")
    missing = np.flatnonzero(used & ~np.isfinite(values))
    if len(missing):
        raise DataError(
            f"published cell {name_of(design, int(missing[0]))} has no value. "
            "Give cells without a value the weight zero."
        )
    values = np.where(used, values, 0.0)
    if np.abs(values).max(initial=0.0) > _LARGEST:
        largest = int(np.abs(values).argmax())
        raise DataError(
            f"published cell {name_of(design, largest)} is {values[largest]:g}, but values beyond "
            f"{_LARGEST:g} cannot be fitted. Give the values in larger units."
        )
    return values


def checked_counts(design: Design, z: Real, tolerance: float, fitter: str) -> Real:
    """Published values with negative rounding errors set to zero; other negatives are refused."""
    if len(z) and z.min() < -tolerance:
        worst = int(z.argmin())
        raise DataError(
            f"a {fitter} fit needs published values that are not negative, but cell "
            f"{name_of(design, worst)} is {z[worst]:g}. Fit with `NonNegative` or "
            "`LeastAbsolute` first."
        )
    return np.maximum(z, 0.0)


def checked_start(design: Design, start: ArrayLike | None) -> Real:
    """A starting table, ones by default; zeros mark structural zeros."""
    if start is None:
        return np.ones(design.n_inner)
    table = _numbers(start, "starting table")
    if table.shape != (design.n_inner,):
        raise ParameterError(
            f"the starting table needs {design.n_inner:,} values, one per inner cell, "
            f"but has shape {table.shape}."
        )
    if not (np.isfinite(table).all() and (table >= 0).all()):
        raise ParameterError("the starting table holds negative or missing values.")
    return table


def name_of(design: Design, position: int) -> str:
    """A published cell by its codes, or by its position where there are none."""
    return str(design.cell(position)) if design.axes else f"number {position}"


def _vector(design: Design, values: ArrayLike, kind: str) -> Real:
    vector = _numbers(values, kind)
    if vector.shape != (design.n_published,):
        raise DesignError(
            f"the design has {design.n_published:,} published cells, but the {kind} have shape "
            f"{vector.shape}."
        )
    return vector


def _numbers(values: ArrayLike, kind: str) -> Real:
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"the {kind} must be numbers in one vector: {error}.") from error
