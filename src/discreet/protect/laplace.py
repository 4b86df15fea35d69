"""Laplace noise on margins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from discreet.arrays import Real
from discreet.errors import ParameterError
from discreet.protect.budget import LaplaceShare, Unit
from discreet.protect.draws import scale_for
from discreet.protect.privacy import laplace_privacy
from discreet.protect.private_noise import PrivateNoise
from discreet.protect.sentences import may_be_negative
from discreet.tables.protected import Draws
from discreet.tables.statement import PrivacyStatement, Sentence

GRID = 2**20
"""Noise is drawn in steps of one part in this many, so that whole-number arithmetic is exact."""


@dataclass(frozen=True)
class Laplace(PrivateNoise[LaplaceShare]):
    r"""Real-valued noise with a differential privacy guarantee, to be fitted afterwards.

    Every published cell gets Laplace noise of scale :math:`b = \Delta/\varepsilon`, density
    :math:`e^{-|x|/b}/2b`, where :math:`\Delta` is the largest row sum of `X` over the perturbed
    cells times what one unit can contribute; for `k` margins that one record counts in once each,
    :math:`b = k/\varepsilon`.

    Promise: ε-differential privacy for one unit added or removed, 2ε for one replaced, zeros
    included; mean zero, variance :math:`2b^2`; structural zeros stay. Values are real and may be
    negative. The noise is drawn by OpenDP from the operating system on a grid of :math:`2^{-20}`,
    exact in whole numbers. Codes must be declared.
    Cost: about 10 µs per cell.

    Args:
      epsilon: The budget ε of the whole release, for one unit added or removed.
      split: Shares of the budget by margin, such as ``{"region:age": 0.7, "1": 0.3}``.
      known: Margins that are public knowledge and published without noise.
      known_base: Small counts of known margins are rounded to this number or to zero.

    See Dwork & Roth (2014), Langsrud (2019b).
    """

    name: ClassVar[str] = "laplace"
    share_kind: ClassVar[type[LaplaceShare]] = LaplaceShare
    done: ClassVar[str] = (
        "Every value got Laplace noise from the operating system's source of randomness."
    )

    epsilon: float

    def __post_init__(self) -> None:
        if self.margins != "own":
            raise ParameterError("Laplace noise goes on published margins; leave out margins=.")
        super().__post_init__()

    def draw(self, share: LaplaceShare, draws: Draws) -> Real:
        """Whole steps of the grid, exact as floating-point numbers."""
        scale = scale_for(share.budget, share.sensitivity * GRID)
        return draws.laplace(len(share.cells), scale) / GRID

    def variance(self, share: LaplaceShare) -> float:
        """The variance of its noise."""
        return 2 * share.scale**2

    def privacy(self, shares: Sequence[LaplaceShare], unit: Unit) -> PrivacyStatement:
        """The guarantee."""
        return laplace_privacy(shares, None, unit.name)

    def what_was_done(self) -> list[Sentence]:
        """The sentences of the method itself."""
        return [*super().what_was_done(), may_be_negative()]
