"""Numbered draws of a method, to be judged and thrown away. Confidential."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.facade.release import Trial
from discreet.facade.table import Table
from discreet.protect.publish import simulate
from discreet.tables.protected import Method


@dataclass(frozen=True, eq=False)
class Sampler:
    """Numbered draws of a method, each a function of the seed, the method's name and the number.

    All methods that use cell keys see the same new keys in draw `i`, and all settings of another
    method the same random numbers, so that differences between settings are not drowned in noise.

    Attributes:
      table: The true table.
      method: The method.
      seed: Root of the streams.
    """

    table: Table
    method: Method
    seed: int

    def __call__(self, i: int) -> Trial:
        """Draw number `i`."""
        drawn = simulate(
            self.table,
            self.method,
            {},
            seed=self.seed,
            unit=self.table.unit,
            name=f"compare:{i}",
        )
        return Trial.wrap(drawn)
