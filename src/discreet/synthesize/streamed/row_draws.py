"""Standard normal draws that belong to row numbers, made again whenever they are needed."""

from __future__ import annotations

import numpy as np

from discreet.arrays import Real
from discreet.synthesize.tolerances import DRAWN_ROWS


class RowDraws:
    """An n×k matrix of standard normal draws of which nothing is held but a key.

    Rows come from a counter-based generator (Philox, 128 bits of key): those of one unit of rows
    have a counter of their own, so that any rows can be drawn in any order, and again.
    """

    def __init__(self, rng: np.random.Generator, columns: int) -> None:
        self.columns = columns
        self._key = rng.integers(0, 2**64, size=2, dtype=np.uint64)
        self._last: tuple[int, Real] | None = None

    def rows(self, start: int, stop: int) -> Real:
        """The draws of the rows from `start` up to, and without, `stop`."""
        out = np.empty((stop - start, self.columns))
        for unit in range(start // DRAWN_ROWS, -(-stop // DRAWN_ROWS)):
            first = unit * DRAWN_ROWS
            low, high = max(start, first), min(stop, first + DRAWN_ROWS)
            out[low - start : high - start] = self._unit(unit)[low - first : high - first]
        return out

    def _unit(self, unit: int) -> Real:
        if self._last is None or self._last[0] != unit:
            bits = np.random.Philox(key=self._key, counter=[0, 0, 0, unit])
            drawn = np.random.Generator(bits).standard_normal((DRAWN_ROWS, self.columns))
            self._last = unit, drawn
        return self._last[1]
