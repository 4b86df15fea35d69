"""Where random choices come from: the secret and the system for publication, a seed otherwise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from discreet.accounting import load_opendp
from discreet.arrays import Whole
from discreet.design.base import Cell
from discreet.digests import digest
from discreet.errors import KeysError
from discreet.progress import report
from discreet.randomness import stream
from discreet.tables.canonical import margin_codes, table_digest
from discreet.tables.keys import KeyConvention, convention
from discreet.tables.truth import TrueTable

MIXED_KEYS = 2**32
"""Keyed hashes of cell keys lie below this."""


class SecretDraws:
    """Draws for publication.

    A table-wise generator is made from a keyed hash of data set, edition, method and table: the
    same table has the same release whenever it is made, and no other table shares its noise.
    """

    def generator(self, method: Any, table: TrueTable) -> np.random.Generator:
        """The generator of this method on this table."""
        if table.secret is None:
            raise KeysError(
                f"method {method.name!r} draws at random, and publication draws from a secret. "
                "Name one, secret='keys.secret', or give it to the table: "
                "`table.with_secret(dc.Secret.from_file('keys.secret'))`. For an experiment use "
                "`table.simulate(method, seed=1)`."
            )
        return table.secret.generator(release_digest(method, table))

    def laplace(self, n: int, scale: float, cap: int | None = None) -> Whole:
        """Discrete Laplace noise from the operating system."""
        return laplace_noise(n, scale, cap)

    def gaussian(self, n: int, scale: float) -> Whole:
        """Discrete Gaussian noise from the operating system."""
        return gaussian_noise(n, scale)


class SeededDraws:
    """Draws of an experiment, a function of the seed and the experiment's name only.

    Args:
      seed: Root of the streams.
      name: What tells this draw from others under the same seed.
    """

    def __init__(self, seed: int, name: str = "simulate") -> None:
        self.seed, self.name = seed, name
        self._noise = stream(seed, f"{name}:noise")

    def generator(self, method: Any, table: TrueTable) -> np.random.Generator:
        """The stream of this method, the same for all its settings."""
        return stream(self.seed, f"{self.name}:{method.name}")

    def laplace(self, n: int, scale: float, cap: int | None = None) -> Whole:
        """Discrete Laplace noise from a stream."""
        return seeded_laplace(self._noise, n, scale, cap)

    def gaussian(self, n: int, scale: float) -> Whole:
        """Discrete Gaussian noise from a stream."""
        return seeded_gaussian(self._noise, n, scale)

    def table(self, table: TrueTable) -> TrueTable:
        """The table as if its records had other keys and its custodian another secret."""
        fresh = table.rekeyed(stream(self.seed, f"{self.name}:keys"))
        return fresh.with_secret(SeededSecret(self.seed, self.name))


@dataclass(frozen=True)
class SeededSecret:
    """A stand-in for the custodian's secret in experiments; anybody with the seed can repeat it."""

    seed: int
    name: str = "simulate"
    is_public: bool = True
    mark: str = "experiment"

    def zero_key(self, cells: Sequence[Cell], rule: str | KeyConvention) -> Whole:
        """Random keys of empty cells, the same one for the same definition."""
        words = [int.from_bytes(digest(self._salt, cell)[:4], "big") for cell in cells]
        return np.array(words, dtype=np.int64) % convention(rule).modulus

    def cell_marks(self, cells: Sequence[Cell]) -> Whole:
        """A hash of each cell's definition with the seed."""
        words = [int.from_bytes(digest(self._salt, cell)[:7], "big") for cell in cells]
        return np.array(words, dtype=np.int64)

    def mix_keys(self, keys: Whole, purpose: str) -> Whole:
        """A fast mix of each key with seed and purpose (a 64-bit finaliser)."""
        salt = int.from_bytes(digest(self._salt, purpose)[:8], "big")
        x = keys.astype(np.uint64) ^ np.uint64(salt)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
        return ((x ^ (x >> np.uint64(31))) & np.uint64(MIXED_KEYS - 1)).astype(np.int64)

    def generator(self, message: bytes) -> np.random.Generator:
        """A stream that depends on seed and message."""
        return stream(self.seed, f"{self.name}:{message.hex()}")

    @property
    def _salt(self) -> str:
        return f"{self.seed}:{self.name}"


def release_digest(method: Any, table: TrueTable) -> bytes:
    """What tells a table-wise release from others: data set, edition, method and counts.

    The table is in canonical order, and so are its margins: the way it was asked for does not
    matter.
    """
    identity = (table.data_set.name, table.data_set.edition, table.unit, method.name)
    return digest(identity, method, margin_codes(table.design), table_digest(table))


# a fifth of a second: progress is reported in between
_CHUNK = 20_000
_TASK = "drawing differentially private noise"


@lru_cache(maxsize=64)
def scale_for(epsilon: float, sensitivity: int) -> float:
    """The smallest scale for which OpenDP proves ε at this sensitivity."""
    scale = sensitivity / epsilon
    while _laplace(scale).map(sensitivity) > epsilon:  # rounding may lose the last bit of ε
        scale = math.nextafter(scale, math.inf)
    return scale


@lru_cache(maxsize=64)
def gaussian_scale_for(rho: float, squared_sensitivity: int) -> float:
    r"""The smallest scale for which OpenDP proves ρ-zCDP, about :math:`\Delta/\sqrt{2\rho}`.

    The squared sensitivity is the sum over all cells of the squared change that one unit can make.
    """
    distance = _root_rounded_up(squared_sensitivity)
    scale = distance / math.sqrt(2 * rho)
    # the quotient may be rounded up: begin a few floats below
    for _ in range(4):
        scale = math.nextafter(scale, 0.0)
    while _gaussian(scale).map(distance) > rho:
        scale = math.nextafter(scale, math.inf)
    return scale


def _root_rounded_up(square: int) -> float:
    # rounded down, the distance would prove more than holds
    root = math.sqrt(square)
    return root if Fraction(root) ** 2 >= square else math.nextafter(root, math.inf)


def laplace_noise(n: int, scale: float, cap: int | None = None) -> Whole:
    r"""Independent draws with :math:`\Pr(u) \propto e^{-|u|/b}`, for scale `b`.

    Draws beyond the cap are rejected and drawn again.
    Cost: about 10 µs per draw.
    """
    return _draw(_laplace(scale), n, cap)


def gaussian_noise(n: int, scale: float) -> Whole:
    r"""Independent draws with :math:`\Pr(u) \propto e^{-u^2/2\sigma^2}`, for scale :math:`\sigma`.

    Cost: about 15 µs per draw.
    """
    return _draw(_gaussian(scale), n, None)


def _draw(measurement: Any, n: int, cap: int | None) -> Whole:
    noise, waiting = np.zeros(n, dtype=np.int64), np.arange(n)
    while len(waiting):
        report(_TASK, 1 - len(waiting) / n)
        now = waiting[:_CHUNK]
        noise[now] = measurement([0] * len(now))
        again = now[:0] if cap is None else now[np.abs(noise[now]) > cap]
        waiting = np.concatenate([again, waiting[_CHUNK:]])
    report(_TASK, 1.0)
    return noise


@lru_cache(maxsize=64)
def _laplace(scale: float) -> Any:
    dp = load_opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    return dp.m.make_laplace(*space, scale=scale)


@lru_cache(maxsize=64)
def _gaussian(scale: float) -> Any:
    dp = load_opendp()
    # changes of whole numbers have irrational L2 norms, so the distance is a real number
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    return dp.m.make_gaussian(*space, scale=scale)


def seeded_laplace(rng: np.random.Generator, n: int, scale: float, cap: int | None = None) -> Whole:
    r"""Draws with :math:`\Pr(u) \propto e^{-|u|/b}`: the difference of two geometric numbers."""
    stop = -math.expm1(-1 / scale)
    noise = rng.geometric(stop, n) - rng.geometric(stop, n)
    while cap is not None and (beyond := np.flatnonzero(np.abs(noise) > cap)).size:
        noise[beyond] = rng.geometric(stop, beyond.size) - rng.geometric(stop, beyond.size)
    return noise


def seeded_gaussian(rng: np.random.Generator, n: int, scale: float) -> Whole:
    r"""Draws with :math:`\Pr(u) \propto e^{-u^2/2\sigma^2}`, by rejection from discrete Laplace.

    See Canonne, Kamath & Steinke (2020).
    """
    # with this scale more than half of the proposals are accepted
    t = math.floor(scale) + 1
    noise, waiting = np.zeros(n, dtype=np.int64), np.arange(n)
    while len(waiting):
        drawn = seeded_laplace(rng, len(waiting), t)
        exponent = (np.abs(drawn) - scale**2 / t) ** 2 / (2 * scale**2)
        accepted = rng.random(len(waiting)) < np.exp(-exponent)
        noise[waiting[accepted]] = drawn[accepted]
        waiting = waiting[~accepted]
    return noise
