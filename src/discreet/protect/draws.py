"""Where random choices come from: the secret and the system for publication, a seed otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Whole
from discreet.design.base import Cell
from discreet.digests import digest
from discreet.errors import KeysError
from discreet.protect.opendp_source import gaussian_noise, laplace_noise
from discreet.protect.seeded_noise import seeded_gaussian, seeded_laplace
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
                "Open the records with secret='keys.secret', or give the table one: "
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

    def mixed(self, keys: Whole, purpose: str) -> Whole:
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
