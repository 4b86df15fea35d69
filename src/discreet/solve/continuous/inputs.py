"""Published values and weights as fitters take them: checked, in double precision."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.design.base import Design
from discreet.errors import DataError, DesignError, ParameterError

Vector = NDArray[np.float64]


def checked_weights(design: Design, weights: ArrayLike | None) -> Vector:
    """Precisions of the published cells, ones by default; zero leaves a cell out."""
    if weights is None:
        return np.ones(design.n_published)
    w = _vector(design, weights, "weights")
    if not (np.isfinite(w).all() and (w >= 0).all()):
        raise ParameterError(
            "weights are precisions: they must be finite and not negative (zero leaves a cell out)."
        )
    return w


def checked_values(design: Design, z: ArrayLike, used: NDArray[np.bool_]) -> Vector:
    """Published values; those that are not used, suppressed ones for example, become zero."""
    values = _vector(design, z, "published values")
    missing = np.flatnonzero(used & ~np.isfinite(values))
    if len(missing):
        raise DataError(
            f"published cell {name_of(design, int(missing[0]))} has no value. "
            "Give cells without a value the weight zero."
        )
    return np.where(used, values, 0.0)


def non_negative(design: Design, z: Vector, tolerance: float, fitter: str) -> Vector:
    """Published values with negative rounding errors set to zero; other negatives are refused."""
    if len(z) and z.min() < -tolerance:
        worst = int(z.argmin())
        raise DataError(
            f"a {fitter} fit needs published values that are not negative, but cell "
            f"{name_of(design, worst)} is {z[worst]:g}. Fit with `NonNegative` or "
            "`LeastAbsolute` first."
        )
    return np.maximum(z, 0.0)


def checked_start(design: Design, start: ArrayLike | None) -> Vector:
    """A starting table, ones by default; zeros mark structural zeros."""
    if start is None:
        return np.ones(design.n_inner)
    table = np.asarray(start, dtype=float)
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


def _vector(design: Design, values: ArrayLike, kind: str) -> Vector:
    vector = np.asarray(values, dtype=float)
    if vector.shape != (design.n_published,):
        raise DesignError(
            f"the design has {design.n_published:,} published cells, but the {kind} have shape "
            f"{vector.shape}."
        )
    return vector
