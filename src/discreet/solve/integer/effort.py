"""How long a search goes on: a number of proposals, or seconds."""

from __future__ import annotations

import time

from discreet.progress import report

FEWEST_SWEEPS = 10
MOST_SWEEPS = 4000
SMALL = 1_000_000  # proposals up to which small problems may be swept more often


class Stage:
    """A share of the effort. Its end depends on proposals made, or on the clock when asked for.

    Counted in proposals the same seed gives the same result everywhere; counted in seconds it
    depends on the machine. `span` is the part of the whole search that the stage stands for.
    """

    def __init__(
        self,
        cells: int,
        proposals: float,
        seconds: float | None,
        span: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        self.cells = max(cells, 1)
        most = max(MOST_SWEEPS, SMALL // self.cells)
        self.sweeps = int(min(max(proposals // self.cells, FEWEST_SWEEPS), most))
        self.seconds = seconds
        self.span = span
        self.begin = time.monotonic()
        self.done = 0

    def spend(self, proposals: int) -> None:
        """Note proposals that were made, and tell whoever listens how far the search is."""
        self.done += proposals
        low, high = self.span
        report("search", low + (high - low) * self.fraction)

    @property
    def fraction(self) -> float:
        """The part of the stage that is over, from 0 to 1."""
        if self.seconds is not None:
            return min((time.monotonic() - self.begin) / max(self.seconds, 1e-9), 1.0)
        return min(self.done / (self.sweeps * self.cells), 1.0)

    @property
    def is_overdue(self) -> bool:
        """Whether a stage that is timed has taken a tenth more than its time."""
        return self.seconds is not None and time.monotonic() - self.begin > 1.1 * self.seconds

    def chunk(self, most: int = 2_000_000) -> int:
        """How many sweeps to make before looking up again."""
        fitting = max(most // self.cells, 1)
        if self.seconds is not None:
            return fitting
        left = self.sweeps - self.done // self.cells
        return max(min(fitting, left, self.sweeps // 20), 1)
