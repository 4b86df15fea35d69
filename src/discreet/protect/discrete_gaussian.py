"""Discrete Gaussian noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from discreet.arrays import Whole
from discreet.protect.budget import GaussianShare, Unit
from discreet.protect.draws import gaussian_scale_for
from discreet.protect.privacy import gaussian_privacy, largest_delta
from discreet.protect.private_noise import PrivateNoise
from discreet.tables.protected import Draws
from discreet.tables.statement import PrivacyStatement


@dataclass(frozen=True)
class DiscreteGaussian(PrivateNoise[GaussianShare]):
    r"""Whole-number noise with a guarantee of zero-concentrated differential privacy.

    Every published count gets :math:`u` with :math:`\Pr(u)\propto e^{-u^2/2\sigma^2}`,
    :math:`\sigma^2 = \Delta_2^2/2\rho`, where :math:`\Delta_2^2` is the largest row sum of `X` over
    the perturbed cells times the square of what one unit can contribute. For many margins its
    noise is smaller than Laplace noise of the same guarantee.

    Promise: ρ-zCDP for one unit added or removed, 2ρ for one replaced, zeros included, and the
    (ε, δ) that this implies by OpenDP's conversion. Structural zeros stay. The draws come from the
    operating system through OpenDP and cannot be repeated. Codes must be declared.
    Cost: about 20 µs per cell.

    Args:
      rho: The budget ρ of the whole release, for one unit added or removed.
      nonnegative: Whether negative results are set to zero.
      split: Shares of the budget by margin, such as ``{"region:age": 0.7, "1": 0.3}``.
      known: Margins that are public knowledge and published without noise.
      known_base: Small counts of known margins are rounded to this number or to zero.
      margins: ``"own"`` or ``"summed"``.
      population: Size of the population, a public figure; ε is stated at δ = 1/(10 · population).
      accept_delta: The δ at which ε is stated instead.

    See Canonne, Kamath & Steinke (2020), Bun & Steinke (2016).
    """

    name: ClassVar[str] = "discrete-gaussian"
    spends: ClassVar[str] = "rho"
    share_kind: ClassVar[type[GaussianShare]] = GaussianShare
    done: ClassVar[str] = (
        "Every value got discrete Gaussian noise from the operating system's source of randomness."
    )

    rho: float
    nonnegative: bool = True

    def draw(self, share: GaussianShare, draws: Draws) -> Whole:
        """The noise of one share."""
        scale = gaussian_scale_for(share.budget, share.squared_sensitivity)
        return draws.gaussian(len(share.cells), scale)

    def variance(self, share: GaussianShare) -> float:
        """The variance of its noise."""
        return share.variance()

    def privacy(self, shares: Sequence[GaussianShare], unit: Unit) -> PrivacyStatement:
        """The guarantee."""
        delta = largest_delta(self.population, self.accept_delta)
        return gaussian_privacy(shares, delta, unit.name)
