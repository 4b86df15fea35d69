"""How often a visitor may ask: a bucket of tokens that fills at a steady rate."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

_MOST = 50_000


class Buckets:
    """A bucket for each visitor.

    A visitor may ask `burst` times at once and `rate` times a second in the long run.

    Promise: memory is bounded; when there are more visitors than buckets, those who have not asked
    for the longest time start again with a full one.

    Args:
      rate: Requests a second; 0 sets no limit.
      burst: Requests at once.
      clock: Seconds that only go forward.
    """

    def __init__(
        self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.rate, self.burst = rate, max(1.0, burst)
        self._clock = clock
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, visitor: str) -> float:
        """Take one token; the seconds until there is one where the bucket is empty, else 0."""
        if self.rate <= 0:
            return 0.0
        now = self._clock()
        level, then = self._levels.pop(visitor, (self.burst, now))
        level = min(self.burst, level + (now - then) * self.rate)
        is_allowed = level >= 1
        self._levels[visitor] = (level - is_allowed, now)
        if len(self._levels) > _MOST:
            self._levels.popitem(last=False)
        return 0.0 if is_allowed else (1 - level) / self.rate

    def __len__(self) -> int:
        return len(self._levels)
