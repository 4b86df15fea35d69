r"""Non-negative least squares, ridge and exact margins (Methods B and C of Langsrud 2019b)."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.design.base import Design
from discreet.errors import ParameterError
from discreet.solve.continuous.active_set import RidgePath, typical_curvature
from discreet.solve.continuous.certificate import certify_non_negative
from discreet.solve.continuous.incidence import Restrictor
from discreet.solve.continuous.least_squares import check_options
from discreet.solve.continuous.problem import (
    Exact,
    Prior,
    Problem,
    frozen_margins,
    positions_of,
)
from discreet.solve.continuous.splitting import Splitting
from discreet.solve.continuous.stiff import StiffMargins
from discreet.solve.continuous.structure import Structure, analyse
from discreet.solve.fit import Certificate, Fit, Prepared, Status

Vector = NDArray[np.float64]

_LARGE = 20_000  # inner cells from which splitting beats active sets on a unique fit
_EXACT_SHARE = 0.1  # exact margins are met this much closer than the tolerance
_SHIFT_BELOW = 0.01  # share of the first ridge below which exact margins are shifted
_MOST_SHIFTS = 100
_REFINEMENTS = 3


@dataclass(frozen=True, eq=False)
class NonNegative:
    r"""The least squares fit with no negative cell, of these the one of smallest norm.

    .. math:: \hat y = \arg\min_{y \ge 0} \sum_k w_k (x_k^\top y - z_k)^2
              + \lambda^2 \sum_i \frac{(y_i - s_i)^2}{q_i}
              \quad\text{subject to}\quad x_k^\top y = z_k \text{ for the exact margins}

    By default :math:`\lambda \to 0`: the ridge only chooses among tables that fit equally well.

    Promise: the projected gradient is below `tolerance` times the largest entry of :math:`XWz`,
    exact margins are met to a tenth of `tolerance` times the largest published value, and the
    choice of smallest norm is proven by a vector :math:`\nu` in the notes with
    :math:`y = \max(0, s + qX\nu)`. Weights that differ by orders of magnitude, such as the 1000
    by which exact margins are sometimes approximated, are solved as accurately as equal ones.

    Cost: conjugate gradients on the cells that are positive, a few ten thousand cheap steps for
    half a million inner cells. Where every inner cell is published in a complete design, one or
    two hundred rounds of axis transforms.

    Args:
      ridge: The factor :math:`\lambda`; `None` for the limit zero.
      exact: Margins that must be met: a formula, or a list of margins by name (`[()]` is the grand
        total), or of published positions.
      tolerance: Projected gradient to reach, relative to the largest entry of :math:`XWz`.
      max_steps: Steps after which the fit gives up.
      start: Starting table `s`, one value per inner cell; zeros by default.
      variance: How far each cell may move, `q`; the starting table where there is one, else ones.
        Cells with variance zero keep their starting value.

    See Langsrud (2019b); Hintermüller, Ito & Kunisch (2003); Boyd et al. (2011).
    """

    ridge: float | None = None
    exact: Exact = field(default=())
    tolerance: float = 1e-6
    max_steps: int = 1_000_000
    start: ArrayLike | None = None
    variance: ArrayLike | None = None

    def __post_init__(self) -> None:
        check_options(self.tolerance, self.max_steps)
        if self.ridge is not None and not (np.isfinite(self.ridge) and self.ridge > 0):
            raise ParameterError(f"ridge must be positive, or None for its limit, got {self.ridge}.")
        object.__setattr__(self, "exact", frozen_margins(self.exact))

    @property
    def name(self) -> str:
        """The fitter's name in the registry."""
        return "non-negative"

    def __call__(
        self, design: Design, z: NDArray[Any], *, weights: NDArray[Any] | None = None
    ) -> Fit:
        """Fit the design to the published values."""
        return self.prepare(design)(z, weights=weights)

    def prepare(self, design: Design) -> Prepared:
        """Find the structure of the design once for many right-hand sides."""
        return partial(_fit, _Prepared.of(self, design))


@dataclass(frozen=True, eq=False)
class _Prepared:
    """The options with what depends on the design alone."""

    options: NonNegative
    structure: Structure
    restrict: Restrictor
    prior: Prior
    exact: NDArray[np.int64]

    @classmethod
    def of(cls, options: NonNegative, design: Design) -> _Prepared:
        prior = Prior.of(design, options.start, options.variance)
        exact = positions_of(design, options.exact)
        return cls(options, analyse(design), Restrictor(design), prior, exact)

    @property
    def penalty(self) -> float:
        """The factor of half the squared norm in half the objective."""
        return 0.0 if self.options.ridge is None else self.options.ridge**2


@dataclass(frozen=True, eq=False)
class _Answer:
    """What a solver returns: the cells, multipliers of exact margins, the vector of the norm."""

    y: Vector
    multipliers: Vector
    dual: Vector
    steps: int
    solver: str


def _fit(
    prepared: _Prepared, z: NDArray[Any], *, weights: NDArray[Any] | None = None
) -> Fit:
    began = time.perf_counter()
    design, options = prepared.structure.design, prepared.options
    stiff = StiffMargins(_problem(prepared, z, weights), prepared.exact)
    problem = stiff.problem
    answer = _closed_form(prepared, stiff) or _by_splitting(prepared, stiff)
    if answer is None or not _certify(prepared, problem, answer).holds:
        answer = _by_active_sets(prepared, stiff, answer)
    certificate = _certify(prepared, problem, answer)
    status = _status(prepared, problem, certificate, answer)
    y = problem.complete(answer.y)
    notes = {
        "structure": prepared.structure.kind.value,
        "solver": answer.solver,
        "dual": answer.dual,
        "multipliers": answer.multipliers,
    }
    seconds = time.perf_counter() - began
    return Fit(y, design.aggregate(y), status, certificate, answer.steps, seconds, notes)


def _problem(prepared: _Prepared, z: NDArray[Any], weights: NDArray[Any] | None) -> Problem:
    """The problem; exact margins need values, whatever their weights."""
    design = prepared.structure.design
    w = np.ones(design.n_published) if weights is None else np.array(weights, dtype=float)
    if w.shape == (design.n_published,):
        w[prepared.exact] = np.where(w[prepared.exact] > 0, w[prepared.exact], 1.0)
    return Problem.of(design, z, w, prepared.prior)
