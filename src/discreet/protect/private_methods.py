"""Differentially private methods: discrete Laplace, Laplace and discrete Gaussian noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from discreet.accounting import rho_for
from discreet.arrays import Real, Whole
from discreet.errors import ParameterError, positive, whole
from discreet.protect.budget import Budget, GaussianShare, LaplaceShare, Unit
from discreet.protect.draws import gaussian_scale_for, scale_for
from discreet.protect.privacy import (
    check_delta,
    gaussian_privacy,
    laplace_privacy,
    largest_delta,
    smallest_cap,
)
from discreet.protect.private_noise import PrivateNoise
from discreet.protect.sentences import may_be_negative, process
from discreet.tables.protected import Claims, Draws
from discreet.tables.statement import PrivacyStatement, Sentence
from discreet.tables.truth import TrueTable

# what an uncapped law leaves out is lost in the rounding of its sum
_LEAST_SEEN = 2**-50


@dataclass(frozen=True)
class DiscreteLaplace(PrivateNoise[LaplaceShare]):
    r"""Whole-number noise with a differential privacy guarantee.

    Every published count gets :math:`u` with :math:`\Pr(u)\propto e^{-\varepsilon|u|/\Delta}`,
    where :math:`\Delta` is the largest row sum of `X` over the perturbed cells (in how many of them
    one record counts) times what one unit can contribute.

    Promise: ε-differential privacy for one unit added or removed, at most 2ε for one replaced,
    zeros included; with a cap `c` (ε, δ) with :math:`\delta = \Delta\Pr(u = c)`. Structural zeros
    stay. Setting negative results to zero costs no privacy but biases small counts upwards. The
    draws come from the operating system through OpenDP and cannot be repeated. Codes must be
    declared.
    Cost: about 10 µs per cell.

    Args:
      epsilon: The budget ε of the whole release, for one unit added or removed.
      cap: Largest noise; draws beyond it are rejected and drawn again.
      nonnegative: Whether negative results are set to zero.
      split: Shares of the budget by margin, such as ``{"region:age": 0.7, "1": 0.3}``.
      known: Margins that are public knowledge and published without noise.
      known_base: Small counts of known margins are rounded to this number or to zero.
      margins: ``"own"`` or ``"summed"``.
      grid: Publish weighted counts, in whole steps of this public weight.
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
        found = laplace_privacy(shares, self.cap, unit)
        largest = largest_delta(self.population, self.accept_delta)
        # where margins are known, a replacement is what is left to hide
        swapped = bool(self.known)
        delta = found.delta_replace if swapped else found.delta
        check_delta(delta, largest, lambda: smallest_cap(shares, largest, is_replaced=swapped))
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


GRID = 2**20
"""Noise is drawn in steps of one part in this many, so that whole-number arithmetic is exact."""


@dataclass(frozen=True)
class Laplace(PrivateNoise[LaplaceShare]):
    r"""Real-valued noise with a differential privacy guarantee, to be fitted afterwards.

    Every published cell gets Laplace noise of scale :math:`b = \Delta/\varepsilon`, density
    :math:`e^{-|x|/b}/2b`, where :math:`\Delta` is the largest row sum of `X` over the perturbed
    cells times what one unit can contribute; for `k` margins that one record counts in once each,
    :math:`b = k/\varepsilon`.

    Promise: ε-differential privacy for one unit added or removed, at most 2ε for one replaced,
    zeros included; mean zero, variance :math:`2b^2`; structural zeros stay. Values are real and may
    be negative. The noise is drawn by OpenDP from the operating system on a grid of
    :math:`2^{-20}`, exact in whole numbers. Codes must be declared.
    Cost: about 10 µs per cell.

    Args:
      epsilon: The budget ε of the whole release, for one unit added or removed.
      split: Shares of the budget by margin, such as ``{"region:age": 0.7, "1": 0.3}``.
      known: Margins that are public knowledge and published without noise.
      known_base: Small counts of known margins are rounded to this number or to zero.
      grid: Publish weighted counts, in steps of this public weight.

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
        return laplace_privacy(shares, None, unit)

    def what_was_done(self) -> list[Sentence]:
        """The sentences of the method itself."""
        return [*super().what_was_done(), may_be_negative()]

    def on_the_grid(self) -> list[Sentence]:
        """What the grid means: values are rounded to it, the noise is not."""
        step = self.publication.step
        if step is None:
            return super().on_the_grid()
        text = (
            f"Weighted counts were rounded to multiples of {step:g} before they got noise. "
            "Numbers of sampled records are not published."
        )
        return [process("weighted", text)]


@dataclass(frozen=True)
class DiscreteGaussian(PrivateNoise[GaussianShare]):
    r"""Whole-number noise with a guarantee of zero-concentrated differential privacy.

    Every published count gets :math:`u` with :math:`\Pr(u)\propto e^{-u^2/2\sigma^2}`,
    :math:`\sigma^2 = \Delta_2^2/2\rho`, where :math:`\Delta_2^2` is the largest row sum of `X` over
    the perturbed cells times the square of what one unit can contribute. For many margins its
    noise is smaller than Laplace noise of the same guarantee.

    Promise: ρ-zCDP for one unit added or removed, at most 2ρ for one replaced, zeros included, and
    the (ε, δ) that this implies by OpenDP's conversion. Structural zeros stay. The draws come from
    the operating system through OpenDP and cannot be repeated. Codes must be declared.
    Cost: about 20 µs per cell.

    Args:
      rho: The budget ρ of the whole release, for one unit added or removed.
      epsilon: The budget as ε instead, together with `delta`: the largest ρ that proves both.
      delta: δ that goes with `epsilon`.
      nonnegative: Whether negative results are set to zero.
      split: Shares of the budget by margin, such as ``{"region:age": 0.7, "1": 0.3}``.
      known: Margins that are public knowledge and published without noise.
      known_base: Small counts of known margins are rounded to this number or to zero.
      margins: ``"own"`` or ``"summed"``.
      grid: Publish weighted counts, in whole steps of this public weight.
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

    rho: float | None = None
    nonnegative: bool = True
    epsilon: float | None = None
    delta: float | None = None

    def __post_init__(self) -> None:
        if (self.rho is None) == (self.epsilon is None):
            raise ParameterError(
                "the budget is rho=, or epsilon= with delta=; got "
                f"rho={self.rho!r} and epsilon={self.epsilon!r}."
            )
        if (self.epsilon is None) != (self.delta is None):
            raise ParameterError(
                f"epsilon= and delta= go together, got epsilon={self.epsilon!r} and "
                f"delta={self.delta!r}."
            )
        if self.delta is not None and self.accept_delta is not None:
            raise ParameterError("delta= is the δ at which ε holds; leave out accept_delta=.")
        super().__post_init__()

    @property
    def budget(self) -> Budget:
        """How the budget is spent, in ρ."""
        return Budget(self.spent_rho, self.split, self.known)

    @property
    def spent_rho(self) -> float:
        """ρ of the whole release, as given or as ε and δ allow."""
        if self.epsilon is not None and self.delta is not None:
            return rho_for(self.epsilon, self.delta)
        return positive("rho", 0.0 if self.rho is None else self.rho)

    def draw(self, share: GaussianShare, draws: Draws) -> Whole:
        """The noise of one share."""
        scale = gaussian_scale_for(share.budget, share.squared_sensitivity)
        return draws.gaussian(len(share.cells), scale)

    def variance(self, share: GaussianShare) -> float:
        """The variance of its noise."""
        return share.variance()

    def privacy(self, shares: Sequence[GaussianShare], unit: Unit) -> PrivacyStatement:
        """The guarantee, at the δ that was chosen."""
        largest = largest_delta(self.population, self.accept_delta)
        delta = largest if self.delta is None else self.delta
        if self.population is not None and delta > largest:
            raise ParameterError(
                f"δ = {delta:.3g} is too large for a population of {self.population:,}: at most "
                f"{largest:.3g}, a tenth of one over its size. Use a smaller delta."
            )
        return gaussian_privacy(shares, delta, unit)
