"""Least absolute deviation, non-negative: maximum likelihood under Laplace noise."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from discreet.design.base import Design
from discreet.design.incidence import Incidence
from discreet.solve.absolute.certificate import certify
from discreet.solve.absolute.exact import is_small, solve_exactly
from discreet.solve.absolute.search import search
from discreet.solve.fit import Fit, FitterBase, Prepared, Status
from discreet.solve.inputs import check_options, checked_values, checked_weights
from discreet.solve.least_squares.problem import Accuracy


@dataclass(frozen=True, eq=False)
class LeastAbsolute(FitterBase):
    r"""Maximum likelihood under Laplace noise.

    .. math:: \min_{y \ge 0} \sum_k w_k\,|x_k^\top y - z_k|

    with :math:`w_k` one over the scale of the noise, the square root of the precision that is
    given as weight. The minimum is rarely unique. Of all inner tables that attain it the fit takes
    the one with the smallest :math:`\|y\|^2`: it minimises the loss plus
    :math:`\tfrac{\rho}{2}\|y\|^2`, and for every `\rho` that is small enough the solution of that
    problem *is* the minimiser of smallest norm (Mangasarian & Meyer 1979). `\rho` is lowered until
    the loss is at its minimum within the tolerance.

    Promise: the relative duality gap, the difference between the loss and the value of a dual
    vector `u` with :math:`|u_k| \le w_k` and :math:`Xu \le 0`, divided by the loss, is at most
    `tolerance`; so is the gap of the problem with the ridge. Both are in the certificate, `u` in
    the notes. A loss below 1e-4 of :math:`\sum_k w_k|z_k|` is measured against that. The gap is a
    sum over cells, and none has more than a tenth of a count of it for itself, or 1e-5 of its
    residual, however large the others are.

    Cost: small tables take a linear program and some Newton steps. Others take one compiled pass
    over the inner cells that are positive or nearly so in each of a few thousand steps. These take
    forty bytes, and eight more for each margin; where most of a full crossing takes part, as in the
    first steps, an inner cell takes thirty, whatever the number of margins.

    Args:
      tolerance: Relative duality gap to reach.
      max_steps: Steps after which the fit gives up.
      count: What one count is in the units of the data.

    See Langsrud (2019b) on the noise; `solve_exactly` and `search` for the ways there.
    """

    tolerance: float = 1e-4
    max_steps: int = 100_000
    count: float = 1.0

    def __post_init__(self) -> None:
        check_options(self.tolerance, self.max_steps, self.count)

    @property
    def name(self) -> str:
        """The fitter's name in the registry."""
        return "least-absolute"

    def prepare(self, design: Design) -> Prepared:
        """Index the inner cells once for many right-hand sides, when they are needed first."""
        return partial(_fit, self, design, cache(partial(Incidence.of, design)))


def _fit(
    options: LeastAbsolute,
    design: Design,
    members: Callable[[], Incidence],
    z: NDArray[np.generic],
    *,
    weights: NDArray[np.generic] | None = None,
) -> Fit:
    began = time.perf_counter()
    w = np.sqrt(checked_weights(design, weights))
    target = checked_values(design, z, w > 0)
    accuracy = Accuracy(options.tolerance, options.count)
    answer = solve_exactly(design, target, w, options.max_steps) if is_small(design) else None
    solver = "linear program"
    certificate = None if answer is None else certify(design, target, w, answer, accuracy)
    if answer is None or certificate is None or not certificate.holds:
        answer = search(members(), target, w, accuracy, options.max_steps)
        solver = "primal-dual steps"
        certificate = certify(design, target, w, answer, accuracy)
    status = Status.converged if certificate.holds else answer.status
    notes = {"solver": solver, "dual": answer.dual, "ridge": answer.ridge}
    notes["ridge_dual"] = answer.ridge_dual
    y, seconds = answer.y, time.perf_counter() - began
    return Fit(y, design.aggregate(y), status, certificate, answer.steps, seconds, notes, design)
