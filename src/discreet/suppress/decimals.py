r"""Decimal numbers in place of suppressed cells (Langsrud 2019a, section 7).

With the equations of the published cells, :math:`B^\top y = b` on the inner cells that they leave
open, a suppressed table becomes

.. math:: y^* = \hat y + e^*, \qquad \hat y = y - P y, \qquad B^\top e^* = 0,

where `P` projects on what no published cell shows. The fitted values :math:`\hat y` follow from the
published cells alone; the residual :math:`e^*` is random, so a sum of cells is a whole number
exactly when it follows from published cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np

from discreet.arrays import Array, Mask, Real
from discreet.design.base import Design
from discreet.errors import DataError, InfeasibleError, ParameterError, check_known, positive
from discreet.protect.options import SCALES, OptionLists
from discreet.protect.sentences import limit, process
from discreet.solve.linear.elimination import find_spanned, rank
from discreet.solve.linear.unknowns import Unknowns, combination, free_part, unknowns
from discreet.suppress.pattern import Pattern
from discreet.tables.statement import Sentence

Residual = Literal["rmse", "variance", "scaled", "none"]
_DEPENDENT = 1e-7  # the share of a column below which what others leave of it is rounding
_TRIES = 100  # directions that are tried until one leaves room for the true sums of squares
# Amounts are recorded in whole units, and few points of such a grid lie at a given distance: of
# whole amounts up to 100, 6 candidates were left with two open numbers, 97 with three.
_FEWEST = 4
_FEW = (
    "the published cells leave {dimensions} numbers open. So few tables have a residual of the "
    "true length that it gives cells away; with one number it is the true residual or its mirror "
    "image. Use residual='rmse'."
)
_COUNTS = (
    "decimals of counts with residual={residual!r} tell how far the true counts are from the fit, "
    "and few whole numbers lie at that distance: often the true ones alone. Use residual='rmse'."
)


class Replaced(NamedTuple):
    """Values with decimals in place of suppressed ones.

    Attributes:
      y: Inner cells; a column for each value where there are several.
      z: Published cells; those that are shown have their true values.
      is_decimal: Which published cells hold a decimal number.
    """

    y: Real
    z: Real
    is_decimal: Mask


@dataclass(frozen=True)
class Decimals:
    r"""Decimal numbers in place of suppressed cells, which add up to the published ones.

    The residual is a normal vector projected on what no published cell shows, brought to a length:

    - `"rmse"`: :math:`\sqrt{d}` times `rmse`, where `d` is the number of dimensions that published
      cells leave open. The decimals are then made of published cells and random numbers alone.
    - `"variance"`: the sums of squares (and products of several values) of the true cells. It tells
      the public how far the truth is from the fit.
    - `"scaled"`: `scale` times the length of the true residual.
    - `"none"`: no residual. Decimals can be whole numbers by accident.

    Promise: published cells keep their values and everything adds up. Cost: a few hundred products
    with the equations of the unknown cells for each value.

    Args:
      residual: How long the residual is.
      rmse: Root mean square of the residual over the open dimensions.
      scale: Factor on the true residual's length.
      modulo: Only what remains of each inner cell after division by this number is replaced, which
        brings decimals near to the truth; the multiples become public. With `"variance"` the random
        residual is rescaled, so that sums of squares are still the true ones.
      force: Whether `"variance"` and `"scaled"` are allowed where they give cells away: for counts,
        and where fewer than four numbers are open. For studies, never for a publication.

    See Langsrud (2019a).
    """

    option_lists: ClassVar[OptionLists] = {
        "rmse": SCALES,
        "scale": SCALES,
        "modulo": (None, 5.0, 10.0, 100.0, 1000.0),
    }

    residual: Residual = "rmse"
    rmse: float = 1.0
    scale: float = 0.1
    modulo: float | None = None
    force: bool = False

    def __post_init__(self) -> None:
        check_known("residual", [self.residual], get_args(Residual))
        positive("rmse", self.rmse)
        positive("scale", self.scale)
        if self.modulo is not None:
            positive("modulo", self.modulo)

    def __call__(self, pattern: Pattern, *, rng: np.random.Generator) -> Replaced:
        """Replace the suppressed cells of a pattern; its inner cells need not be known.

        Args:
          pattern: The pattern.
          rng: Generator of the residual.
        """
        if self.follows_truth and pattern.z.dtype.kind in "iu" and not self.force:
            raise ParameterError(_COUNTS.format(residual=self.residual))
        given = pattern.design, pattern.suppressed, pattern.z, pattern.y
        found = self.replace(*given, known=pattern.known, normal=rng.standard_normal)
        # A sum that published cells give is replaced by its true value, which must be no secret.
        failed = np.flatnonzero(pattern.primary & ~found.is_decimal)
        if len(failed) and not self.force:
            raise DataError(
                f"{len(failed)} sensitive cells follow from published ones, the first at position "
                f"{failed[0]}, and cannot be replaced by decimals. Audit the pattern first."
            )
        return found

    def replace(
        self,
        design: Design,
        suppressed: Mask,
        z: Array,
        y: Array | None = None,
        *,
        known: Mask | None = None,
        deduct: Array | None = None,
        normal: Any,
    ) -> Replaced:
        """Replace suppressed cells of one value, or of several as columns with a draw for each.

        Args:
          design: Which inner cells make up which published cells.
          suppressed: Which published cells are not shown.
          z: Values of the published cells; those of suppressed ones are not looked at.
          y: True values of the inner cells. Without them the decimals are made from published cells
            alone, which `"variance"`, `"scaled"`, `modulo` and `deduct` cannot be.
          known: Inner cells that everybody knows; needs `y`.
          deduct: What is taken off the inner cells before and added again after, in place of the
            multiples of `modulo`; it becomes public.
          normal: Makes standard normal numbers of a shape.
        """
        X = design.matrix().tocsc()
        shown = np.flatnonzero(~suppressed)
        columns = _columns(z[shown].astype(np.float64))
        inner = None if y is None else _columns(y.astype(np.float64))
        self._check_given(has_truth=inner is not None, has_deduct=deduct is not None)
        # Which cells are unknown depends on the pattern alone: all values have the same equations.
        systems = [
            unknowns(X[:, shown], values, known=known, y=None if inner is None else inner[:, k])
            for k, values in enumerate(columns.T)
        ]
        system, whole = systems[0], np.stack([each.known for each in systems], axis=1)
        if inner is None:
            # Any cells with the given sums have the same fit; the smallest are the fit itself.
            across = system.equations.T.tocsc()
            truth = np.stack([combination(across, each.right) for each in systems], axis=1)
        else:
            truth = inner[system.cells]
        apart = np.zeros_like(truth)
        if deduct is not None:
            apart[:] = _columns(np.asarray(deduct, dtype=np.float64))[system.cells]
        elif self.modulo is not None:
            apart[:] = self.modulo * (truth // self.modulo)
        whole[system.cells] = self._decimals(system, truth, apart, normal)
        is_decimal = suppressed.copy()
        is_decimal[suppressed] = ~find_spanned(system.equations, system.restrict(X[:, suppressed]))
        published = _columns(z.astype(np.float64))
        # Sums that published cells give have no rounding errors where these are whole numbers.
        sums = (X.T @ whole)[suppressed]
        is_given = ~is_decimal[suppressed][:, None] & (columns == np.rint(columns)).all(axis=0)
        published[suppressed] = np.where(is_given, np.rint(sums), sums)
        # An inner cell that is published has one value, not two that differ by a rounding error.
        place = design.inner_in_published()
        whole[place >= 0] = published[place[place >= 0]]
        shape = slice(None) if z.ndim == 2 else 0
        return Replaced(whole[:, shape], published[:, shape], is_decimal)

    def _check_given(self, *, has_truth: bool, has_deduct: bool) -> None:
        """Refuse what needs inner cells that are not known, and two things that are taken off."""
        needs_truth = self.follows_truth or self.modulo is not None or has_deduct
        if not has_truth and needs_truth:
            raise DataError(
                "the inner cells are not known, so neither the variance of the residual nor a "
                "modulo can be taken. Use residual='rmse' without modulo."
            )
        if self.modulo is not None and has_deduct:
            raise ParameterError("modulo= and deduct= both say what is taken off; give one.")

    def _decimals(self, system: Unknowns, truth: Real, apart: Real, normal: Any) -> Real:
        """Decimals of the unknown cells, a column for each value; `apart` is kept of them."""
        true_residual = free_part(system.equations, truth - apart)
        fitted = truth - true_residual
        if self.residual == "none" or not len(system.cells):
            return fitted
        # As many numbers as published cells leave open; a length is spread over so many.
        dimensions = len(system.cells) - rank(system.equations)
        if dimensions < _FEWEST and self.follows_truth and not self.force:
            raise ParameterError(_FEW.format(dimensions=dimensions))
        if self.residual == "rmse":
            # A value is a row of the draw, so that its numbers do not depend on how many there are.
            random = free_part(system.equations, normal(truth.shape[::-1]).T)
            lengths = np.linalg.norm(random, axis=0)
            unit = random / np.where(lengths > 0, lengths, 1.0)
            return fitted + unit * self.rmse * math.sqrt(dimensions)
        # Orthonormal random columns with the loadings of the true residual have its covariances.
        loadings = _loadings(true_residual)
        if self.residual == "scaled":
            return fitted + self.scale * (_scores(system, len(loadings), normal) @ loadings)
        if not apart.any():
            return fitted + _scores(system, len(loadings), normal) @ loadings
        return _rescale_residual(system, fitted, truth, normal)

    @property
    def follows_truth(self) -> bool:
        """Whether the length of the residual is that of the true one, or a multiple."""
        return self.residual in ("variance", "scaled")

    def sentences(self) -> list[Sentence]:
        """What the statement says of the decimals."""
        said = [
            process(
                "decimals",
                "Decimal numbers stand in place of suppressed cells. They add up to the published "
                "cells. A sum of cells is true where cells with true values give it; of counts, "
                "such a sum is a whole number.",
                "Figures with decimals stand in place of figures that are not published. They are "
                "not the true figures, but add up to the totals.",
            )
        ]
        if self.modulo is not None:
            said.append(
                limit(
                    "decimals-modulo",
                    f"Multiples of {self.modulo:g} in suppressed inner cells are kept: decimals "
                    "tell more about suppressed cells than published cells do.",
                )
            )
        if self.follows_truth:
            said.append(
                limit(
                    "decimals-variance",
                    "The spread of the decimals follows that of the true values, which tells how "
                    "far suppressed cells are from what published cells suggest.",
                )
            )
        return said


def _columns(values: Array) -> Real:
    return values[:, None] if values.ndim == 1 else values


def _scores(system: Unknowns, count: int, normal: Any) -> Real:
    """Random orthonormal columns on what no published cell shows."""
    random = free_part(system.equations, normal((count, len(system.cells))).T)
    # QR leaves the signs open, and libraries differ in them: the diagonal is made positive.
    q, r = np.linalg.qr(random)
    return np.asarray(q * np.sign(np.diag(r)))


def _rescale_residual(system: Unknowns, fitted: Real, truth: Real, normal: Any) -> Real:
    r"""Fits with what is kept, and a residual of such a length that squares are the true ones.

    What is kept has a part `F` that no published cell shows, so a residual of the usual length
    would miss the sums of squares. With random orthonormal `T` and :math:`K = T^\top F`, the
    residual `TC` has them where :math:`(C + K)^\top (C + K) = E^\top E - F^\top F + K^\top K`,
    `E` being the part of the true cells; for one value this is a factor on the residual.
    """
    kept, true = (free_part(system.equations, part) for part in (fitted, truth))
    for _ in range(_TRIES):
        T = _scores(system, truth.shape[1], normal)
        K = T.T @ kept
        values, vectors = np.linalg.eigh(true.T @ true - kept.T @ kept + K.T @ K)
        if values[0] >= -_DEPENDENT * abs(values[-1]):
            root = vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
            return np.asarray(fitted + T @ (root - K))
    raise InfeasibleError(
        "what is kept of the cells varies more than the cells themselves, and no residual brings "
        "their sums of squares back. Use another modulo, or residual='rmse'."
    )


def _loadings(residual: Real) -> Real:
    r"""`W` of :math:`E = TW` with orthonormal `T`; dependent columns add no row."""
    # By hand, since QR gives dependent columns a row of rounding errors.
    scores: list[Real] = []
    for column in residual.T:
        rest = column - sum((t * (t @ column) for t in scores), np.zeros(len(column)))
        length = float(np.linalg.norm(rest))
        if length > _DEPENDENT * float(np.linalg.norm(column)):
            scores.append(rest / length)
    found: Real = np.array(scores).reshape(len(scores), len(residual)) @ residual
    return found
