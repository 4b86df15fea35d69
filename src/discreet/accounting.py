r"""What private releases cost, and what their costs come to together.

A cost is :math:`(\varepsilon, \delta)` or, for noise by the discrete Gaussian law, the
:math:`\rho` of zero-concentrated differential privacy (zCDP), and it holds for a *relation*: which
data sets are neighbours. Costs of one kind and one relation add up. Costs of other relations are
converted first, where a theorem allows it:

| from | to | cost |
|---|---|---|
| one unit added or removed | one replaced | what the method proves, or :math:`2\varepsilon`, |
| | | :math:`(1 + e^\varepsilon)\delta`, :math:`4\rho`: a replacement is a removal and an addition |
| one replaced | one replaced within known margins | the same: fewer data sets are neighbours |
| within some known margins | within more of them | the same |

Nothing else is converted. What is published exactly has no finite cost for a unit that is added or
removed, and what protects a record does not protect a person with any number of them.

Costs are added as the decimal numbers people write, so ten times 0.1 is 1. Sums are exact and
rounded upwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any, Literal, Self, get_args

from discreet.errors import LedgerError, MissingDependencyError, ParameterError, is_number

Change = Literal["add-remove", "replace", "known"]
"""How neighbours differ: a unit more, another unit, or another that leaves known margins alone."""

_WORDS = {
    "add-remove": "added or removed",
    "replace": "replaced by another",
    "known": "replaced by another that leaves the known margins as they are",
}


@dataclass(frozen=True)
class Relation:
    """Which data sets are neighbours, so that their releases are hard to tell apart.

    Attributes:
      change: `"add-remove"`: one unit more or less. `"replace"`: one unit is another one.
        `"known"`: the same, and the known margins are equal.
      unit: What is added, removed or replaced: `"record"`, or `"person (column)"`.
      max_records: Records of one unit that are counted at most.
      weight: Largest weight of a record; `None` where records are counted.
      known: The margins that are equal in both.
    """

    change: Change = "add-remove"
    unit: str = "record"
    max_records: int = 1
    weight: float | None = None
    known: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.change not in get_args(Change):
            raise ParameterError(
                "a relation is 'add-remove', 'replace' or 'known' (replaced within known margins), "
                f"got {self.change!r}."
            )
        object.__setattr__(self, "known", tuple(sorted(set(self.known))))
        if self.known and self.change != "known":
            raise ParameterError(f"only change='known' has known margins, got {self.change!r}.")

    def __str__(self) -> str:
        known = f" ({', '.join(self.known)})" if self.known else ""
        return f"one {self.unit} {_WORDS[self.change]}{known}"

    def to_json(self) -> dict[str, Any]:
        """The relation as plain data; defaults are left out."""
        plain = Relation()
        given = {k: v for k, v in asdict(self).items() if v != getattr(plain, k)}
        if self.known:
            given["known"] = list(self.known)
        return {**given, "change": self.change, "unit": self.unit}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """The inverse of `to_json`."""
        return cls(**{**given, "known": tuple(given.get("known", ()))})

    def join(self, other: Relation) -> Relation:
        """The weaker of two relations: neighbours under it are neighbours under both.

        Raises:
          LedgerError: The units differ, and no theorem leads from one to the other.
        """
        if self.unit != other.unit:
            raise LedgerError(
                f"costs for one {self.unit} and for one {other.unit} do not add up: what hides "
                "one record does not hide a person who has many. Bound the records of a person in "
                "all releases (`people.with_roles(person=..., max_records=...)`), or count them "
                "under two names."
            )
        order = get_args(Change)
        weights = [w for w in (self.weight, other.weight) if w is not None]
        return Relation(
            max(self.change, other.change, key=order.index),
            self.unit,
            min(self.max_records, other.max_records),
            min(weights, default=None),
            self.known + other.known,
        )


@dataclass(frozen=True)
class Cost:
    """The cost of one release: `epsilon` with its `delta`, or `rho`, under a relation.

    Attributes:
      epsilon: ε of differential privacy.
      delta: δ beside ε.
      rho: ρ of zero-concentrated differential privacy.
      relation: Which data sets are neighbours.
      replaced: The cost for one unit replaced, where the method proves less than the theorem
        gives; only for costs of a unit that is added or removed.
    """

    epsilon: float | None = None
    delta: float = 0.0
    rho: float | None = None
    relation: Relation = field(default_factory=Relation)
    replaced: Cost | None = None

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
        if self.replaced is not None and self.relation.change != "add-remove":
            raise ParameterError(f"replaced= goes with 'add-remove', not {self.relation.change!r}.")

    def __str__(self) -> str:
        if self.epsilon is None:
            return f"ρ = {self.rho:g}"
        return f"ε = {self.epsilon:g}" + (f", δ = {self.delta:g}" if self.delta else "")

    def under(self, relation: Relation) -> Cost:
        """The cost under another relation, where a theorem leads to it.

        Raises:
          LedgerError: None does; the error says what to do.
        """
        if self.relation.join(relation).change != relation.change:
            said = f"{self} holds for {self.relation}, and there is no finite ε for {relation}"
            remedy = "Publish without known=, or count in a ledger opened with relation='known'"
            if self.relation.change == "replace":
                remedy = "Count in a ledger opened with relation='replace'"
            raise LedgerError(f"{said}. {remedy}.")
        missing = [m for m in self.relation.known if not _is_implied(m, relation.known)]
        if missing:
            raise LedgerError(
                f"{self} holds where {', '.join(missing)} is known as well. Name all known margins."
            )
        if self.relation.change != "add-remove" or relation.change == "add-remove":
            return replace(self, relation=relation)
        if self.replaced is not None:
            return replace(self.replaced, relation=relation)
        if self.rho is not None:
            return Cost(rho=_round_up(4 * _exact(self.rho)), relation=relation)
        epsilon = _exact(self.epsilon)
        delta = (1 + math.exp(min(float(epsilon), 700.0))) * self.delta * (1 + 2**-50)  # upwards
        return Cost(_round_up(2 * epsilon), min(delta, 1 - 2**-53), relation=relation)


def _is_implied(margin: str, known: tuple[str, ...]) -> bool:
    """Whether a margin is a sum of a known one: its variables are among that one's."""
    parts = [] if margin == "1" else margin.split(":")
    return any(
        all(part in k.split(":") or part.split("[")[0] in k.split(":") for part in parts)
        for k in known
    )


@dataclass(frozen=True)
class Total:
    r"""Costs that were spent together, each with the number of times it was.

    :math:`\varepsilon` at :math:`\delta` is the smaller of two bounds, where
    :math:`\delta' = \delta - \sum_i \delta_i` and :math:`\varepsilon(\rho, \delta')` is OpenDP's
    conversion: :math:`\sum_i \varepsilon_i + \varepsilon(\sum_j \rho_j, \delta')`, and
    :math:`\varepsilon(\sum_j \rho_j + \sum_i \varepsilon_i^2/2, \delta')`. The second holds since
    :math:`\varepsilon`-differential privacy is :math:`\varepsilon^2/2`-zCDP, and
    :math:`(\varepsilon, \delta)` is that with probability :math:`1 - \delta`.

    Sums hold for `relation`, the strongest one under which every cost is finite; costs of other
    relations are converted first. `under` asks for another one.

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
    def relation(self) -> Relation:
        """The strongest relation under which all costs are finite.

        Raises:
          LedgerError: The units differ.
        """
        if not self.costs:
            return Relation()
        found = self.costs[0][0].relation
        for cost, _ in self.costs[1:]:
            found = found.join(cost.relation)
        return found

    @property
    def by_relation(self) -> dict[Relation, Total]:
        """The costs apart, as they were entered: one total for each relation."""
        found: dict[Relation, Total] = {}
        for cost, number in self.costs:
            before = found.get(cost.relation, Total())
            found[cost.relation] = Total((*before.costs, (cost, number)))
        return found

    def under(self, change: Change) -> Total:
        """The same costs, each for one change of a unit.

        Raises:
          LedgerError: Some cost has none, or the units differ.
        """
        joined = self.relation
        wanted = replace(joined, change=change, known=joined.known if change == "known" else ())
        return Total(tuple((cost.under(wanted), number) for cost, number in self.costs))

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
        """Whether everything together is proved to stay within ε and δ of a budget.

        Raises:
          LedgerError: Some cost is not finite under the budget's relation.
        """
        spent = self.under(budget.relation.change)
        return budget.epsilon is not None and spent.epsilon_at(budget.delta) <= budget.epsilon

    def _delta(self) -> Fraction:
        return self._sum(lambda cost: _exact(cost.delta))

    def _sum(self, amount: Callable[[Cost], Fraction]) -> Fraction:
        """A sum over the costs, all of them under one relation."""
        relation = self.relation
        alike = ((cost.under(relation), number) for cost, number in self.costs)
        return sum((number * amount(cost) for cost, number in alike), Fraction(0))


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
    dp = load_opendp()
    concentrated, approximate = _gaussians()
    distance = math.sqrt(2 * rho)
    while concentrated.map(distance) < rho:
        distance = math.nextafter(distance, math.inf)
    try:
        return float(approximate.map(distance).epsilon(float(delta)))
    except dp.OpenDPException:
        return math.inf


@lru_cache(maxsize=256)
def rho_for(epsilon: float, delta: float) -> float:
    """The largest ρ, to twelve digits, for which OpenDP proves (ε, δ)-differential privacy."""
    if not is_number(epsilon) or not 0 < epsilon < math.inf:
        raise ParameterError(f"epsilon must be a finite number above zero, got {epsilon!r}.")
    if not is_number(delta) or not 0 < delta < 1:
        raise ParameterError(f"delta must lie between zero and one, got {delta!r}.")
    low, high = 0.0, float(epsilon)
    while rho_to_epsilon(high, delta) <= epsilon:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if rho_to_epsilon(middle, delta) <= epsilon else (low, middle)
    if not low:
        raise ParameterError(f"no ρ proves ε = {epsilon:g} at δ = {delta:g}; ask for more of them.")
    return low


@cache
def _gaussians() -> tuple[Any, Any]:
    """Gaussian noise of scale one by ρ and by (ε, δ): at distance d it has ρ = d²/2."""
    dp = load_opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    noise = dp.m.make_gaussian(*space, scale=1.0)
    return noise, dp.c.make_zCDP_to_approxDP(noise)


@cache
def load_opendp() -> Any:
    """OpenDP, from which private noise and the proofs of its cost come.

    Raises:
      MissingDependencyError: It is not installed.
    """
    try:
        import opendp.prelude as dp
    except ImportError as error:
        purpose = "differential privacy (noise with a proven ε or ρ)"
        raise MissingDependencyError(purpose, "OpenDP", "private") from error
    dp.enable_features("contrib")
    return dp


def part_of(amount: float, share: int, of: int) -> float:
    """An amount times a fraction, as the decimal number it is written as, rounded up."""
    return _round_up(_exact(amount) * share / of)


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
