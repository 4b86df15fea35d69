"""Tests of hypotheses on published tables that allow for the noise in them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from discreet.arrays import Real
from discreet.design.codes import canonical
from discreet.design.formula import Margins
from discreet.errors import CodeError, DesignError, ParameterError
from discreet.noise.checks import positive
from discreet.noise.matrix import TransitionMatrix
from discreet.release.inference.cells import Cells
from discreet.release.inference.chi_square import (
    ChiSquareTest,
    chi_square_test,
    goodness_of_fit_test,
)
from discreet.release.inference.law import mechanism_of, step_size
from discreet.tables.protected import Protected

_ROUNDING = 1e-6


def chi_square(
    protected: Protected,
    table: Margins,
    matrix: TransitionMatrix | None = None,
    *,
    design_effect: float = 1.0,
) -> ChiSquareTest:
    """Test whether two variables are independent, from a published table and the law of its noise.

    Weighted counts are tested on the scale of the sample: they are divided by the step of the noise
    (the `grid` of the method, an average weight) and by the design effect. Without a matrix the law
    comes from the statement, or from the precision that private releases publish.

    Args:
      protected: The release.
      table: The two-way table: `"region*sex"`.
      matrix: The law of the noise, where the statement does not tell it.
      design_effect: Variance of the survey's estimates over that of a simple random sample.

    See Shlomo, Krenzke & Li (2019), Rinott et al. (2018).
    """
    cells = Cells.of(protected, table)
    if len(cells.levels) != 2:
        raise DesignError(
            f"a test of independence needs two variables, but the table has {len(cells.levels)}."
        )
    counts, weight = _on_the_scale_of_records(cells, design_effect)
    return chi_square_test(counts, mechanism_of(cells, matrix), weight)


def goodness_of_fit(
    protected: Protected,
    table: Margins,
    proportions: Mapping[object, float] | npt.ArrayLike,
    matrix: TransitionMatrix | None = None,
    *,
    design_effect: float = 1.0,
) -> ChiSquareTest:
    """Test whether the cells of a table have given proportions, allowing for their noise.

    Args:
      protected: The release.
      table: The table: `"region"`, or a crossing.
      proportions: Proportions that sum to one: by code for one variable, or an array with an axis
        for each variable in the order of the design.
      matrix: The law of the noise, where the statement does not tell it.
      design_effect: As for `chi_square`.

    See Rinott et al. (2018).
    """
    cells = Cells.of(protected, table)
    counts, weight = _on_the_scale_of_records(cells, design_effect)
    given = _proportions(cells, proportions)
    return goodness_of_fit_test(counts, given, mechanism_of(cells, matrix), weight)


def _on_the_scale_of_records(cells: Cells, design_effect: float) -> tuple[Real, float]:
    """Values as effective numbers of records, and what one unit of noise adds to them."""
    effect = positive("design_effect", design_effect)
    size = step_size(cells.protected)
    return np.asarray(cells.crossing() / (size * effect), dtype=np.float64), 1 / effect


def _proportions(cells: Cells, given: Mapping[object, float] | npt.ArrayLike) -> Real:
    shape = tuple(len(level) for level in cells.levels)
    values = _by_code(cells, given) if isinstance(given, Mapping) else given
    found = np.asarray(values, dtype=np.float64)
    if found.shape != shape:
        raise ParameterError(f"the table has shape {shape}, but proportions have {found.shape}.")
    if not (found > 0).all() or abs(found.sum() - 1) > _ROUNDING:
        raise ParameterError(
            f"proportions must be above 0 and sum to 1; the least is {found.min():g} and they sum "
            f"to {found.sum():g}."
        )
    return found


def _by_code(cells: Cells, given: Mapping[object, float]) -> list[float]:
    if len(cells.levels) != 1:
        raise ParameterError(
            "proportions of a crossing are given as an array, with an axis for each variable."
        )
    named, codes = {canonical(code): p for code, p in given.items()}, cells.levels[0].codes
    if set(named) != set(codes):
        raise CodeError(f"proportions are needed for {list(codes)}, got {list(named)}.")
    return [named[code] for code in codes]
