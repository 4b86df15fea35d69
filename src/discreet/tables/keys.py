"""Cell keys: sums of record keys, brought back to the range of one record key.

The key of a cell is a function of the records in it and nothing else, so the same cell has the
same key in every table. Every convention in use is a sum modulo something; fractional keys are
whole numbers scaled by a power of ten. The second half refuses keys that are not uniform: with
those, noise could be predicted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from discreet.arrays import Array, Real, Whole
from discreet.errors import KeysError, ParameterError, UnknownNameError

Edge = Literal["right", "left"]


@dataclass(frozen=True)
class KeyConvention:
    """How record keys become a cell key, and how a cell key is looked up.

    Attributes:
      name: The convention's name.
      modulus: Record and cell keys are whole numbers in `0 … modulus − 1`.
      edge: `"right"`: a key belongs to the first interval whose upper end lies above it;
        `"left"`: to the first interval whose upper end is not below it.
    """

    name: str
    modulus: int
    edge: Edge = "right"

    def __post_init__(self) -> None:
        if not 2 <= self.modulus <= 2**32:
            raise ParameterError(
                f"the modulus of a key convention must lie in 2..2³², got {self.modulus}."
            )

    def reduce(self, sums: Array) -> Whole:
        """Sums of record keys brought back to the key range."""
        reduced: Whole = np.asarray(sums, dtype=np.int64) % self.modulus
        return reduced

    def check(self, keys: Array) -> Whole:
        """Keys as int64, or a clear error when they are not keys of this convention."""
        keys = np.asarray(keys)
        if keys.dtype.kind not in "iu":
            raise KeysError(
                f"keys of the {self.name!r} convention are whole numbers, got {keys.dtype}. "
                "Scale fractional keys with `KeyConvention.scale`."
            )
        if keys.size and (keys.min() < 0 or keys.max() >= self.modulus):
            raise KeysError(
                f"keys of the {self.name!r} convention lie in 0..{self.modulus - 1}; "
                "some of those given do not."
            )
        return keys.astype(np.int64)

    def scale(self, fractions: Array) -> Whole:
        """Whole-number keys from fractions in [0, 1), exact when they have few enough digits."""
        fractions = np.asarray(fractions, dtype=np.float64)
        if fractions.size and not (fractions.min() >= 0 and fractions.max() < 1):
            raise KeysError("fractional keys lie in [0, 1); some of those given do not.")
        return self.reduce(np.rint(fractions * self.modulus))


def fractional(digits: int = 8, edge: Edge = "right") -> KeyConvention:
    """Keys in [0, 1) with a fixed number of digits, as whole numbers; sums keep their fraction."""
    if not 1 <= digits <= 9:
        raise ParameterError(f"digits must lie in 1..9, got {digits}.")
    return KeyConvention(f"fractional-{digits}", 10**digits, edge)


CONVENTIONS: Mapping[str, KeyConvention] = {
    c.name: c
    for c in (
        KeyConvention("discreet", 2**32),
        KeyConvention("ptable", 10**8),
        KeyConvention("ssb", 10**8, "left"),
        KeyConvention("mersenne", 2**31 - 1, "left"),
        KeyConvention("prime", 17_312_941),
        KeyConvention("ons-256", 256),
        KeyConvention("ons-4096", 4096),
    )
}


def convention(name: str | KeyConvention) -> KeyConvention:
    """A convention by its name, such as `discreet`, `ptable`, `ssb`, `mersenne` or `ons-256`."""
    if isinstance(name, KeyConvention):
        return name
    if isinstance(name, str) and name.startswith("fractional-") and name[11:].isdigit():
        return fractional(int(name[11:]))
    if not isinstance(name, str) or name not in CONVENTIONS:
        raise UnknownNameError("key convention", name, CONVENTIONS)
    return CONVENTIONS[name]


FEWEST = 200  # fewer keys are too few to tell
FALSE_ALARM = 1e-10  # uniform keys are refused with no larger chance than this
SAMPLED = 8
_BUCKETS = 64
_LARGE_MEAN = 10_000.0  # from here on a chi-square takes the place of a sum over Poisson numbers
# λ of Chernoff's bound: from zero to one, where the moments exist, for counts that are uneven;
# below zero, beyond minus a thousand, for counts that are too even.
_UPPER = tuple(i / 20 for i in range(1, 20))
_LOWER = tuple(-(2.0 ** (i / 2)) for i in range(-6, 22))


@dataclass(frozen=True)
class KeyCounts:
    """What is counted of some keys."""

    high: Whole  # keys in each bucket of their high-order part
    low: Whole  # keys with each remainder of division by the number of buckets
    # How many keys are distinct, of those whose remainder is below `SAMPLED`: counting an eighth of
    # them is quick and tells enough.
    distinct: int
    convention: KeyConvention  # what the keys mean

    @property
    def n(self) -> int:
        """The number of keys."""
        return int(self.high.sum())


def check_keys(keys: Array, rule: str | KeyConvention) -> None:
    """Refuse keys that are out of range, constant, sequential or not uniform.

    Fewer than 200 pass unjudged.
    """
    rule = convention(rule)
    keys = rule.check(keys)
    buckets = buckets_of(rule)
    require_uniform(
        KeyCounts(
            np.bincount(keys * buckets // rule.modulus, minlength=buckets),
            np.bincount(keys % buckets, minlength=buckets),
            len(np.unique(keys[keys % buckets < SAMPLED])),
            rule,
        ),
        "cell keys",
    )


def require_uniform(counts: KeyCounts, what: str) -> None:
    """Refuse keys whose counts uniform keys would almost never have."""
    fault = fault_of(counts)
    if fault is not None:
        raise KeysError(
            f"the {what} are {fault}. Keys of the {counts.convention.name!r} convention are random "
            f"whole numbers, uniform in 0..{counts.convention.modulus - 1}; with others, noise can "
            "be predicted. Make keys with `people.with_keys(secret, id=...)`, or name the "
            "convention the keys were made for (`convention=`)."
        )


def fault_of(counts: KeyCounts) -> str | None:
    """What is wrong with keys, or `None` when nothing is or they are too few to tell."""
    if counts.n < FEWEST:
        return None
    if max(counts.high) == max(counts.low) == counts.n:
        return "constant, or nearly so"
    chances = chances_of(counts)
    fault = min(chances, key=chances.__getitem__)
    return fault if chances[fault] < FALSE_ALARM else None


def chances_of(counts: KeyCounts) -> dict[str, float]:
    """For each fault, a bound on how likely uniform keys look as faulty as these."""
    sizes = _sizes(counts.convention)
    spreads = [
        spread_chances(found, size / counts.convention.modulus)
        for found, size in zip((counts.high, counts.low), sizes, strict=True)
    ]
    sampled, values = (int(part[:SAMPLED].sum()) for part in (counts.low, sizes[1]))
    few, many = distinct_chances(sampled, counts.distinct, values)
    (high_even, high_uneven), (low_even, low_uneven) = spreads
    return {
        "not uniform: some ranges have too many of them": high_uneven,
        "not uniform: some last digits are too frequent": low_uneven,
        "sequential: ranges have too equal numbers of them": high_even,
        "sequential: last digits are too evenly spread": low_even,
        "not random: too many of them are repeated": few,
        "sequential: too few of them are repeated": many,
    }


def spread_chances(counts: Whole, shares: Real) -> tuple[float, float]:
    r"""Bounds on the chance that counts are as even, and as uneven, as these or more so.

    The measure is :math:`t = \sum_b o_b \log(o_b/e_b) - o_b + e_b` for observed and expected
    numbers. A multinomial vector is one of independent Poisson numbers given their sum, which has
    a chance of at least :math:`(2\pi n)^{-1/2} e^{-1/(12n)}`, and Chernoff's bound for those is
    :math:`\min_\lambda e^{-\lambda t} \prod_b \mathbb{E} e^{\lambda t_b}`.
    """
    n, expected = int(counts.sum()), counts.sum() * shares
    t = float(_deviance(counts.astype(np.float64), expected).sum())
    given = 0.5 * math.log(2 * math.pi * n) + 1 / (12 * n)
    means, times = np.unique(expected.round(9), return_counts=True)

    def bound(tilts: tuple[float, ...]) -> float:
        logs = times @ np.array([_log_moments(float(mean), tilts) for mean in means])
        return _chance(float((logs - t * np.array(tilts)).min()) + given)

    return bound(_LOWER), bound(_UPPER)


@cache
def _log_moments(mean: float, tilts: tuple[float, ...]) -> Real:
    r"""Logarithm of :math:`\mathbb{E} e^{\lambda t}` for a Poisson number, for some λ below one.

    For large means it is that of half a chi-square, up to two divided by the mean.
    """
    some = np.array(tilts)
    if mean > _LARGE_MEAN:
        large: Real = 2 / mean - 0.5 * np.log1p(-some)
        return large
    from scipy.special import gammaln, logsumexp

    k = np.arange(math.ceil(mean + 60 * math.sqrt(mean) + 400))
    log_chance = k * math.log(mean) - mean - gammaln(k + 1)
    deviance = _deviance(k.astype(np.float64), np.full(len(k), mean))
    logs: Real = logsumexp(log_chance + some[:, None] * deviance, axis=1)
    return logs


def _deviance(observed: Real, expected: Real) -> Real:
    ratio = np.where(observed > 0, observed, expected) / expected
    return observed * np.log(ratio) - observed + expected


def distinct_chances(n: int, distinct: int, modulus: int) -> tuple[float, float]:
    r"""Bounds on the chance that so few, and so many, of the keys are distinct.

    The :math:`i`-th key repeats an earlier one with a chance of at most :math:`(i-1)/m`, and of
    at least :math:`(i-1-c)/m` while there are no more than :math:`c` repetitions: sums of
    independent draws bound the number of repetitions. The values in use bound it too, because
    occupied values are negatively associated (Dubhashi and Ranjan 1998).
    """
    repeated = n - distinct
    above, below = n * (n - 1) / (2 * modulus), distinct * (distinct - 1) / (2 * modulus)
    is_few, is_many = (repeated - above > 0), (below - repeated > 0)
    few = _chance(-_poisson_rate(repeated, above)) if is_few else 1.0
    many = _chance(-_poisson_rate(repeated, below)) if is_many else 1.0
    occupied = -math.expm1(n * math.log1p(-1 / modulus))
    rate = _chance(-modulus * _binary_divergence(distinct / modulus, occupied))
    is_below = distinct < modulus * occupied
    return min(few, rate if is_below else 1.0), min(many, 1.0 if is_below else rate)


def _poisson_rate(seen: float, mean: float) -> float:
    return mean - seen + (seen * math.log(seen / mean) if seen else 0.0)


def _binary_divergence(seen: float, chance: float) -> float:
    ends = ((seen, chance), (1 - seen, 1 - chance))
    if any(a > 0 and b <= 0 for a, b in ends):
        return math.inf
    return sum(a * math.log(a / b) for a, b in ends if a > 0)


def _chance(log: float) -> float:
    return math.exp(min(log, 0.0))


def buckets_of(rule: KeyConvention) -> int:
    """The number of buckets that keys of a convention are counted in."""
    return min(_BUCKETS, rule.modulus)


def _sizes(rule: KeyConvention) -> tuple[Real, Real]:
    """How many values fall into each bucket of the high-order and of the low-order part."""
    m, buckets = rule.modulus, buckets_of(rule)
    starts = [-(-b * m // buckets) for b in range(buckets + 1)]
    low = [(m - b + buckets - 1) // buckets for b in range(buckets)]
    return np.diff(np.array(starts, dtype=np.float64)), np.array(low, dtype=np.float64)
