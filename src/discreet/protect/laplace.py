"""Laplace noise on margins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from discreet.design.release import Release, Statement
from discreet.design.table import Table
from discreet.design.values import Real
from discreet.errors import ParameterError
from discreet.protect.budget import Budget, Margin, Share, noise_of, precision_by_share
from discreet.protect.cells import Cells
from discreet.protect.claims import Claims
from discreet.protect.opendp_source import laplace_noise, scale_for
from discreet.protect.privacy import privacy_statement
from discreet.protect.publication import Publication
from discreet.protect.record_weight import RecordWeight
from discreet.protect.statements import statement_of

GRID = 2**20
"""Noise is drawn in steps of one part in this many, so that whole-number arithmetic is exact."""


@dataclass(frozen=True)
class Laplace:
    r"""Real-valued noise with a differential privacy guarantee, to be fitted afterwards.

    Every published cell gets Laplace noise of scale :math:`b = \Delta/\varepsilon`, density
    :math:`e^{-|x|/b}/2b`, where :math:`\Delta` is the largest row sum of `X` over the perturbed
    cells; for `k` margins that one record counts in once each, :math:`b = k/\varepsilon`.

    Promise: ε-differential privacy for one record, zeros included; mean zero, variance
    :math:`2b^2`; structural zeros stay. Values are real and may be negative. The noise is drawn
    by OpenDP from the operating system on a grid of :math:`2^{-20}`, exact in whole numbers.
    Cost: about 10 µs per cell.

    Args:
      epsilon: The budget ε of the whole release.
      sensitivity: By how much one person changes all perturbed counts together; ``"auto"`` finds
        it from the design for a person with one record.
      split: Shares of the budget by margin, such as ``{"region:age": 0.7, "1": 0.3}``.
      known: Margins that are public knowledge and published without noise.
      weighting: ``"scale"`` for noise on weighted counts.
      mean_weight: The public mean weight; taken from the table when absent.
      weight_bound: The largest weight a record can have; the mean is used when absent, if
        weights vary little.

    See Dwork & Roth (2014), Langsrud (2019b).
    """

    name: ClassVar[str] = "laplace"
    source: ClassVar[str] = "system"

    epsilon: float
    sensitivity: int | Literal["auto"] = "auto"
    split: Mapping[Margin, float] | None = None
    known: Sequence[Margin] = ()
    weighting: Literal["scale"] | None = None
    mean_weight: float | None = None
    weight_bound: float | None = None

    def __post_init__(self) -> None:
        if self.weighting not in (None, "scale"):
            raise ParameterError(f"weighting must be 'scale' or None, got {self.weighting!r}.")
        _ = self.budget, self.publication, self.record_weight

    @property
    def budget(self) -> Budget:
        """How the budget is spent."""
        return Budget(self.epsilon, self.sensitivity, self.split, self.known)

    @property
    def publication(self) -> Publication:
        """What is published of the cells."""
        return Publication("own", self.weighting, self.mean_weight)

    @property
    def record_weight(self) -> RecordWeight:
        """By how much one record changes one cell."""
        return RecordWeight(self.weighting, self.mean_weight, self.weight_bound)

    @property
    def claims(self) -> Claims:
        """What the method promises for every table."""
        fixed = self.sensitivity != "auto" and self.weighting is None and not self.known
        scale = self.sensitivity / self.epsilon if self.sensitivity != "auto" else 0.0
        return Claims(
            additive=False,
            unbiased=self.weighting is None,
            keeps_zeros=False,
            variance=2 * scale**2 if fixed else None,
        )

    def __call__(self, table: Table, *, rng: np.random.Generator | None = None) -> Release:
        """Protect a table; a generator is taken and has no effect."""
        cells, shares = self._spent(table)
        statement = self._statement(shares)
        values = cells.count + noise_of(cells, shares, _from_system)
        precision = precision_by_share(cells, shares, None)
        return self.publication.release(cells, values, statement, precision)

    def simulate(self, table: Table, rng: np.random.Generator) -> Real:
        """Published values as a release would hold them, from a seeded generator. Confidential.

        For comparisons and studies: what a seeded generator draws can be drawn again, so it must
        not be released.
        """
        cells, shares = self._spent(table)

        def draw(share: Share) -> Real:
            return rng.laplace(0.0, share.scale, len(share.cells))

        return cells.count + noise_of(cells, shares, draw)

    def _spent(self, table: Table) -> tuple[Cells, list[Share]]:
        cells = self.publication.cells(table, touches_zeros=True)
        return cells, self.budget.shares(cells, self.record_weight.change(table))

    def _statement(self, shares: Sequence[Share]) -> Statement:
        parameters = {
            "epsilon": self.epsilon,
            "sensitivity": self.sensitivity,
            "weight_bound": self.weight_bound,
            **self.budget.parameters(),
            **self.publication.parameters(),
        }
        privacy = privacy_statement(shares, None, self.record_weight.caveat())
        lines = [
            "Every cell got Laplace noise from the operating system's source of randomness.",
            privacy.text,
            "Values are not whole numbers and may be negative.",
            *self.budget.sentences(),
            *self.publication.sentences(),
        ]
        return statement_of(self.name, parameters, lines, privacy)


def _from_system(share: Share) -> Real:
    """Whole steps of the grid, exact as floating-point numbers."""
    scale = scale_for(share.epsilon, share.sensitivity * GRID)
    return laplace_noise(len(share.cells), scale) / GRID
