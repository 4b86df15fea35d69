"""Draws of a method that are judged and thrown away. Confidential.

The mean of many draws is the truth or near it, and what a seed draws can be drawn again; so a
draw made for a comparison must never be published, whatever the method promises for one release.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from discreet.design.base import Cell
from discreet.design.release import Release
from discreet.design.table import Method, Table
from discreet.design.values import Whole
from discreet.errors import ConfidentialError, ParameterError
from discreet.randomness import stream


class Trial(Release):
    """**Confidential.** A draw that looks like a release to measures and cannot be released."""

    @classmethod
    def copy_of(cls, release: Release) -> Trial:
        """A trial with the values of a release."""
        return cls(**{field.name: getattr(release, field.name) for field in fields(Release)})

    def save(self, path: Any) -> NoReturn:
        """Refused."""
        self._refuse()

    def to_arrow(self) -> NoReturn:
        """Refused."""
        self._refuse()

    def inner_to_arrow(self) -> NoReturn:
        """Refused."""
        self._refuse()

    def __repr__(self) -> str:
        return f"Trial (confidential): {self.design.n_published:,} published cells"

    def _repr_html_(self) -> str:
        return f"<p>{self!r}</p>"

    def _refuse(self) -> NoReturn:
        raise ConfidentialError(
            "this is one of many draws made for a comparison; together they give the truth away. "
            "Make a release with `table.protect(method)`."
        )


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
        source = self.method.source
        if source == "keys":
            return Trial.copy_of(self.method(self._rekeyed(i)))
        rng = stream(self.seed, f"compare:{self.method.name}:{i}")
        if source == "seed":
            return Trial.copy_of(self.method(self.table, rng=rng))
        return self._simulated(rng)

    def _rekeyed(self, i: int) -> Table:
        fresh = self.table.rekeyed(stream(self.seed, f"compare:keys:{i}"))
        zeros = stream(self.seed, f"compare:zero keys:{i}")
        return fresh.with_zero_key(random_zero_keys(zeros, fresh.convention.modulus))

    def _simulated(self, rng: np.random.Generator) -> Trial:
        z = self._simulate(self.table, rng)
        weighted = None if self._pattern.weighted is None else z.astype(np.float64)
        return replace(self._pattern, z=z, y=None, weighted=weighted)

    @property
    def _simulate(self) -> Callable[[Table, np.random.Generator], Any]:
        simulate = getattr(self.method, "simulate", None)
        if simulate is None:
            raise ParameterError(
                f"method {self.method.name!r} draws from the operating system and cannot be "
                "repeated; for a comparison it needs `simulate(table, rng)`."
            )
        found: Callable[[Table, np.random.Generator], Any] = simulate
        return found

    @cached_property
    def _pattern(self) -> Trial:
        """Everything about a release but its values: design, precision, statement."""
        return Trial.copy_of(self.method(self.table))


def random_zero_keys(rng: np.random.Generator, modulus: int) -> Callable[[Sequence[Cell]], Whole]:
    """A rule that gives empty cells random keys, the same one to the same definition."""

    def rule(cells: Sequence[Cell]) -> Whole:
        numbers: dict[tuple[tuple[str, str], ...], int] = {}
        place = [numbers.setdefault(tuple(sorted(c.items())), len(numbers)) for c in cells]
        drawn: Whole = rng.integers(modulus, size=len(numbers))[place]
        return drawn

    return rule
