"""Many categorical draws at once, each from the distribution its context asks for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.arrays import Real, Unsigned32, Whole


@dataclass(frozen=True)
class Conditional:
    r"""Conditional distributions :math:`P(j \mid c_1, \dots, c_m)` as alias tables.

    A 32-bit draw :math:`u` times the number of outcomes :math:`k` splits into a column
    (high half) and a remainder (low half); the column keeps the draw when the remainder lies
    below its threshold and hands it to its alias otherwise (Walker 1977).

    Promise: outcomes of weight zero are never drawn; probabilities are exact to
    :math:`2^{-32}`; draws are made on integers alone.
    Cost: constant for each draw, whatever the number of outcomes.

    Args:
      shape: Sizes of the conditioning variables, then the number of outcomes.
      threshold: For each context and column, the remainder below which the column is kept.
      alias: For each context and column, the outcome otherwise.
    """

    shape: tuple[int, ...]
    threshold: Unsigned32
    alias: Whole

    @classmethod
    def of(cls, weights: Real) -> Conditional:
        """From non-negative weights; the last axis holds the outcomes, the others the context."""
        outcomes = weights.shape[-1]
        rows = weights.reshape(-1, outcomes)
        threshold, alias = _alias_tables(rows / rows.sum(axis=1, keepdims=True))
        return cls(weights.shape, threshold.ravel(), alias.ravel())

    def draw(self, rng: np.random.Generator, *given: Whole) -> Whole:
        """One outcome for each element of the conditioning arrays."""
        outcomes = self.shape[-1]
        spread = rng.integers(0, 2**32, size=len(given[0]), dtype=np.uint32).astype(np.uint64)
        spread *= np.uint64(outcomes)
        remainder = spread.astype(np.uint32)
        column = (spread >> np.uint64(32)).view(np.int64)
        slot = self._context(given)
        slot *= outcomes
        slot += column
        return np.where(remainder < self.threshold.take(slot), column, self.alias.take(slot))

    def _context(self, given: tuple[Whole, ...]) -> Whole:
        """Number of the context of each element."""
        number = given[0].astype(np.int64)
        for size, values in zip(self.shape[1:-1], given[1:], strict=True):
            number *= size
            number += values
        return number


def _alias_tables(p: Real) -> tuple[Unsigned32, Whole]:
    """Thresholds and aliases of each row: the poorest open column is topped up by the richest."""
    rows, k = p.shape
    open_mass = p * k
    alias = np.tile(np.arange(k), (rows, 1))
    threshold = np.ones_like(p)
    row = np.arange(rows)
    for _ in range(k - 1):
        poor = open_mass.argmin(axis=1)
        rich = np.where(np.isinf(open_mass), -np.inf, open_mass).argmax(axis=1)
        threshold[row, poor] = open_mass[row, poor]
        alias[row, poor] = rich
        open_mass[row, rich] -= 1 - open_mass[row, poor]
        open_mass[row, poor] = np.inf
    return np.clip(np.rint(threshold * 2**32), 0, 2**32 - 1).astype(np.uint32), alias
