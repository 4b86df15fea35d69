"""Fits in whole numbers: the loss of a fit, searched over whole inner cells from the fit itself."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np

from discreet import registry
from discreet.arrays import Array, Whole
from discreet.design.base import Design
from discreet.errors import ParameterError
from discreet.randomness import stream
from discreet.solve.absolute.least_absolute import LeastAbsolute
from discreet.solve.auto import Auto
from discreet.solve.fit import Certificate, Fit, Fitter, FitterBase, Prepared, Status
from discreet.solve.inputs import check_whole
from discreet.solve.integer.lattice import Lattice
from discreet.solve.integer.rounding import controlled
from discreet.solve.non_negative.non_negative import NonNegative


@dataclass(frozen=True, eq=False)
class WholeNumber(FitterBase):
    r"""The fit in whole numbers, as a restriction of the fit and not of its result.

    .. math:: \min_y \sum_k w_k\,|x_k^\top y - z_k|^p \quad\text{over}\quad y_i \in \{0, 1, \dots\},
              \quad \#\{i : y_i > 0\} \le m

    with the loss of a fitter: squares, or absolute deviations with `LeastAbsolute`, and the
    fitter's ridge where it has one. Tables that fit equally well are told apart by their distance
    from the fit in real numbers, which is the fitter's own choice among them.

    Promise: inner cells are whole and not negative; no more than `max_nonzero` of them are filled;
    exact margins are met, or the status is `stalled`; without a cap the loss is not larger than
    that of `release.fit(fitter).round("margins", seed=seed)`. The notes hold the `loss`, the
    `bound`, which is the loss of the fit in real numbers and which no whole table goes below, and
    `rounded`, the loss of rounding afterwards. `certificate.gap` is the part of the loss above the
    bound: how much is due to whole numbers, and how much to the search, it does not say.

    Cost: that of the fit, of rounding it, and some seconds; ten times the last under a cap.

    Args:
      fitter: `NonNegative`, `LeastAbsolute`, a `Chain` that begins with one of them, `Auto`, or
        the name of one.
      max_nonzero: How many inner cells may be filled; all when absent.
      seed: Seed of the search, which works on public values.
      proposals: Effort of the search.

    See Langsrud (2019b), section 5.
    """

    fitter: Fitter | str = "non-negative"
    max_nonzero: int | None = None
    seed: int = 0
    proposals: float = 2e7

    def __post_init__(self) -> None:
        if isinstance(self.fitter, str):
            object.__setattr__(self, "fitter", registry.build("fitter", self.fitter))
        if not isinstance(self.first, NonNegative | LeastAbsolute | Auto):
            raise ParameterError(
                "whole numbers need a fitter with a loss of published cells: non-negative, "
                f"least-absolute, a chain that begins with one of them, or auto; got {self.fitter}."
            )
        if self.max_nonzero is not None:
            check_whole("max_nonzero", self.max_nonzero, 0)
        check_whole("seed", self.seed, 0)
        check_whole("proposals", int(self.proposals), 1)

    @property
    def name(self) -> str:
        """The fitter's name in the registry."""
        return "whole-number"

    @property
    def fitters(self) -> Sequence[Fitter]:
        """The fitters within."""
        within = cast("Fitter", self.fitter)
        return getattr(within, "fitters", (within,))

    @property
    def first(self) -> Any:
        """The fitter whose loss it is."""
        return self.fitters[0]

    def prepare(self, design: Design) -> Prepared:
        """Prepare the fit in real numbers."""
        return partial(_fit, self, design, cast("Fitter", self.fitter).prepare(design))


def _fit(
    options: WholeNumber,
    design: Design,
    prepared: Prepared,
    z: Array,
    *,
    weights: Array | None = None,
) -> Fit:
    began = time.perf_counter()
    fit = prepared(z, weights=weights)
    if not fit.is_converged:
        return fit
    lattice = Lattice.of(options.first, design, z, weights, fit.y)
    rounded = controlled(design, fit.y, rng=stream(options.seed, "round:margins")).y
    search, most = stream(options.seed, "whole-number"), options.max_nonzero
    found = lattice.searched(rounded, options.proposals, search)
    if most is not None and np.count_nonzero(found) > most:
        y = lattice.filled(found, most, options.proposals, search)
    else:
        y = lattice.best([rounded, found])
    return _described(lattice, y, rounded, time.perf_counter() - began)


def _described(lattice: Lattice, y: Whole, rounded: Whole, seconds: float) -> Fit:
    """The whole table as a fit, with losses beside those of the fit and of rounding it."""
    loss, after, bound = map(lattice.loss, (y, rounded, lattice.fitted))
    bound, missed = min(bound, loss), lattice.missed(y)
    certificate = Certificate(
        feasibility=missed, gap=(loss - bound) / loss if loss > bound else 0.0, tolerance=1.0
    )
    return Fit(
        cast(Any, y),
        cast(Any, lattice.plain.aggregate(y)),
        Status.stalled if missed else Status.converged,
        certificate,
        seconds=seconds,
        notes={"loss": loss, "bound": bound, "rounded": after},
        design=lattice.plain,
    )
