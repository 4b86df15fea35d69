"""Laplace noise on margins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from discreet.design.statement import PrivacyStatement, Sentence
from discreet.design.table import Draws
from discreet.design.values import Real
from discreet.errors import ParameterError
from discreet.noise.checks import positive
from discreet.protect.budget import Budget, LaplaceShare, Unit
from discreet.protect.claims import Claims
from discreet.protect.opendp_source import scale_for
from discreet.protect.privacy import laplace_privacy
from discreet.protect.private_noise import PrivateNoise
from discreet.protect.sentences import may_be_negative, process

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
    letter: ClassVar[str] = "ε"

    epsilon: float

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        if self.margins != "own":
            raise ParameterError("Laplace noise goes on published margins; leave out margins=.")
        super().__post_init__()

    @property
    def budget(self) -> Budget:
        """How the budget is spent."""
        return Budget(self.epsilon, self.split, self.known)

    @property
    def claims(self) -> Claims:
        """What the method promises for every table."""
        return Claims(additive=False, unbiased=self.is_unbiased, keeps_zeros=False)

    def share_kind(self) -> type[LaplaceShare]:
        """The kind of the shares."""
        return LaplaceShare

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

    def parameters(self) -> dict[str, Any]:
        """The method's own parameters as plain public data."""
        return {"epsilon": self.epsilon}

    def what_was_done(self) -> list[Sentence]:
        """The sentences of the method itself."""
        return [
            process(
                "laplace",
                "Every value got Laplace noise from the operating system's source of randomness.",
            ),
            may_be_negative(),
        ]
