"""Discrete Laplace noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from discreet.arrays import Real, Whole
from discreet.parameters import whole
from discreet.protect.budget import LaplaceShare, Unit
from discreet.protect.draws import scale_for
from discreet.protect.privacy import check_delta, laplace_privacy, largest_delta, smallest_cap
from discreet.protect.private_noise import PrivateNoise
from discreet.tables.protected import Claims, Draws
from discreet.tables.statement import PrivacyStatement
from discreet.tables.truth import TrueTable

# what an uncapped law leaves out is lost in the rounding of its sum
_LEAST_SEEN = 2**-50


@dataclass(frozen=True)
class DiscreteLaplace(PrivateNoise[LaplaceShare]):
    r"""Whole-number noise with a differential privacy guarantee.

    Every published count gets :math:`u` with :math:`\Pr(u)\propto e^{-\varepsilon|u|/\Delta}`,
    where :math:`\Delta` is the largest row sum of `X` over the perturbed cells (in how many of them
    one record counts) times what one unit can contribute.

    Promise: ε-differential privacy for one unit added or removed, 2ε for one replaced, zeros
    included; with a cap `c` (ε, δ) with :math:`\delta = \Delta\Pr(u = c)`. Structural zeros stay.
    Setting negative results to zero costs no privacy but biases small counts upwards. The draws
    come from the operating system through OpenDP and cannot be repeated. Codes must be declared.
    Cost: about 10 µs per cell.

    Args:
      epsilon: The budget ε of the whole release, for one unit added or removed.
      cap: Largest noise; draws beyond it are rejected and drawn again.
      nonnegative: Whether negative results are set to zero.
      split: Shares of the budget by margin, such as ``{"region:age": 0.7, "1": 0.3}``.
      known: Margins that are public knowledge and published without noise.
      known_base: Small counts of known margins are rounded to this number or to zero.
      margins: ``"own"`` or ``"summed"``.
      population: Size of the population, a public figure, which bounds δ.
      accept_delta: The largest δ that is accepted instead.

    See Dwork & Roth (2014), Ghosh, Roughgarden & Sundararajan (2012), Rinott et al. (2018),
    Shlomo, Krenzke & Li (2019).
    """

    name: ClassVar[str] = "discrete-laplace"
    share_kind: ClassVar[type[LaplaceShare]] = LaplaceShare
    done: ClassVar[str] = (
        "Every value got discrete Laplace noise from the operating system's source of randomness."
    )

    epsilon: float
    cap: int | None = None
    nonnegative: bool = True

    def __post_init__(self) -> None:
        if self.cap is not None:
            whole("cap", self.cap, 1)
        super().__post_init__()

    @property
    def claims(self) -> Claims:
        """What the method promises for every table."""
        capped = self.cap is not None and self.publication.is_plain and self.known_base is None
        reach = float(self.cap) if capped and self.cap is not None else math.inf
        return replace(super().claims, max_move=reach)

    def draw(self, share: LaplaceShare, draws: Draws) -> Whole:
        """The noise of one share."""
        scale = scale_for(share.budget, share.sensitivity)
        return draws.laplace(len(share.cells), scale, self.cap)

    def variance(self, share: LaplaceShare) -> float:
        """The variance of its noise."""
        return share.variance(self.cap)

    def privacy(self, shares: Sequence[LaplaceShare], unit: Unit) -> PrivacyStatement:
        """The guarantee, or an error where the cap leaves none."""
        found = laplace_privacy(shares, self.cap, unit.name)
        largest = largest_delta(self.population, self.accept_delta)
        # where margins are known, a replacement is what is left to hide
        times = 1 + math.exp(min(found.epsilon, 700.0)) if self.known else 1.0
        check_delta(times * found.delta, largest, lambda: smallest_cap(shares, largest / times))
        return found

    def cell_law(self, table: TrueTable, position: int) -> tuple[Whole, Real] | None:
        """Noise of one published cell and its probabilities; `None` where it is a sum."""
        if not self.publication.is_plain:
            return None
        cells, shares, _ = self.spent(table)
        first = int(cells.representative[position])
        share = next((s for s in shares if first in s.cells), None)
        if share is None and self.known_base is not None:
            return None
        if share is None:
            return np.zeros(1, dtype=np.int64), np.ones(1)
        cap = self.cap or max(1, math.ceil(-share.scale * math.log(_LEAST_SEEN)))
        noise, law, count = np.arange(-cap, cap + 1), share.law(cap), int(cells.count[position])
        if not self.nonnegative or count >= cap:
            return noise, law
        # negative results were set to zero: their probability falls on the largest fall
        kept = noise >= -count
        cut = law[kept].copy()
        cut[0] += law[~kept].sum()
        return noise[kept], cut
