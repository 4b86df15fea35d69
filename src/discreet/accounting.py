r"""What private releases cost, and what their costs come to together.

A cost is :math:`(\varepsilon, \delta)` or, for noise by the discrete Gaussian law, the
:math:`\rho` of zero-concentrated differential privacy (zCDP). Costs of one kind add up. What all
of them prove together is an :math:`\varepsilon` at a chosen :math:`\delta`, through OpenDP's
conversion.

Costs are added as the decimal numbers people write, so ten times 0.1 is 1. Sums are exact and
rounded upwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any

from discreet.errors import ParameterError, is_number


@dataclass(frozen=True)
class Cost:
    """The cost of one release: `epsilon` with its `delta`, or `rho`.

    Attributes:
      epsilon: ε of differential privacy.
      delta: δ beside ε.
      rho: ρ of zero-concentrated differential privacy.
    """

    epsilon: float | None = None
    delta: float = 0.0
    rho: float | None = None

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.rho is None):
            raise ParameterError(
                f"a cost is given as epsilon (and delta) or as rho, got epsilon={self.epsilon!r} "
                f"and rho={self.rho!r}."
            )
        amount = "rho" if self.epsilon is None else "epsilon"
        _check(amount, getattr(self, amount), math.inf)
        _check("delta", self.delta, 1.0)
        if self.rho is not None and self.delta:
            raise ParameterError(f"rho has no delta of its own, got delta={self.delta!r}.")

    def __str__(self) -> str:
        if self.epsilon is None:
            return f"ρ = {self.rho:g}"
        return f"ε = {self.epsilon:g}" + (f", δ = {self.delta:g}" if self.delta else "")


@dataclass(frozen=True)
class Total:
    r"""Costs that were spent together, each with the number of times it was.

    :math:`\varepsilon` at :math:`\delta` is the smaller of two bounds, where
    :math:`\delta' = \delta - \sum_i \delta_i` and :math:`\varepsilon(\rho, \delta')` is OpenDP's
    conversion: :math:`\sum_i \varepsilon_i + \varepsilon(\sum_j \rho_j, \delta')`, and
    :math:`\varepsilon(\sum_j \rho_j + \sum_i \varepsilon_i^2/2, \delta')`. The second holds since
    :math:`\varepsilon`-differential privacy is :math:`\varepsilon^2/2`-zCDP, and
    :math:`(\varepsilon, \delta)` is that with probability :math:`1 - \delta`.

    Promise: the bound holds for any releases with these costs, also for releases designed after
    earlier ones were seen, as long as the costs themselves do not depend on earlier results.

    Attributes:
      costs: Pairs of cost and number.
    """

    costs: tuple[tuple[Cost, int], ...] = ()

    def plus(self, cost: Cost) -> Total:
        """The total with one more cost."""
        return Total((*self.costs, (cost, 1)))

    @property
    def entries(self) -> int:
        """How many costs there are."""
        return sum(number for _, number in self.costs)

    @property
    def epsilon(self) -> float:
        """Sum of ε over the costs that are stated in ε."""
        return _round_up(self._sum(lambda cost: _exact(cost.epsilon)))

    @property
    def delta(self) -> float:
        """Sum of δ."""
        return _round_up(self._delta())

    @property
    def rho(self) -> float:
        """Sum of ρ over the costs that are stated in ρ."""
        return _round_up(self._sum(lambda cost: _exact(cost.rho)))

    def epsilon_at(self, delta: float) -> float:
        """The smallest ε that is proved for everything together at this δ; may be infinite."""
        left = _exact(delta) - self._delta()
        if left < 0:
            return math.inf
        rest = float(left)
        if _exact(rest) > left:  # a larger δ would prove a smaller ε than there is
            rest = math.nextafter(rest, -math.inf)
        converted = rho_to_epsilon(self.rho, rest)
        if math.isinf(converted):
            return converted
        added = _exact(converted) + self._sum(lambda cost: _exact(cost.epsilon))
        rho = self._sum(lambda cost: _exact(cost.rho) + _exact(cost.epsilon) ** 2 / 2)
        return min(_round_up(added), rho_to_epsilon(_round_up(rho), rest))

    def is_within(self, budget: Cost) -> bool:
        """Whether everything together is proved to stay within ε and δ of a budget."""
        return budget.epsilon is not None and self.epsilon_at(budget.delta) <= budget.epsilon

    def _delta(self) -> Fraction:
        return self._sum(lambda cost: _exact(cost.delta))

    def _sum(self, amount: Callable[[Cost], Fraction]) -> Fraction:
        return sum((number * amount(cost) for cost, number in self.costs), Fraction(0))


@lru_cache(maxsize=256)
def rho_to_epsilon(rho: float, delta: float) -> float:
    """The smallest ε for which OpenDP proves that ρ-zCDP is (ε, δ)-differentially private.

    The result is infinite when δ is zero, and when ρ is so large that OpenDP gives up.
    """
    _check("rho", rho, math.inf)
    _check("delta", delta, 1.0)
    if rho == 0:
        return 0.0
    if delta == 0:
        return math.inf
    from opendp.mod import OpenDPException

    concentrated, approximate = _gaussians()
    distance = math.sqrt(2 * rho)
    while concentrated.map(distance) < rho:
        distance = math.nextafter(distance, math.inf)
    try:
        return float(approximate.map(distance).epsilon(float(delta)))
    except OpenDPException:
        return math.inf


@cache
def _gaussians() -> tuple[Any, Any]:
    """Gaussian noise of scale one by ρ and by (ε, δ): at distance d it has ρ = d²/2."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    noise = dp.m.make_gaussian(*space, scale=1.0)
    return noise, dp.c.make_zCDP_to_approxDP(noise)


def _check(name: str, value: object, above: float) -> None:
    if not is_number(value) or not 0 <= value < above:  # type: ignore[operator]
        least = "zero or more" if math.isinf(above) else f"zero or more and below {above:g}"
        raise ParameterError(f"{name} must be a finite number, {least}; got {value!r}.")


def _exact(value: float | None) -> Fraction:
    """The decimal number that a float is written as."""
    return Fraction(0 if value is None else repr(float(value)))


def _round_up(value: Fraction) -> float:
    nearest = float(value)
    return nearest if _exact(nearest) >= value else math.nextafter(nearest, math.inf)
