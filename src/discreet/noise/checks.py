"""What parameters and transition matrices must satisfy, and which deviations a count may have.

Parameters first, then the conditions of a matrix, each with its own message; then the supports of
rows and the orders that their probabilities can be held to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from discreet.arrays import Mask, Real, Whole
from discreet.errors import ParameterError, whole

# How far the sum of a row may lie from one: tables of other programs are printed with eight or more
# decimals, and what is further off was copied wrongly.
SUM_TOLERANCE = 1e-8


_LARGEST_MOVE = (
    1_000  # rows are solved one by one: 0.3 s for D = 50, 22 s for 500, minutes for 1,000
)


def check_move(D: int) -> int:
    """The largest move of a perturbation table."""
    if whole("D", D, 1) > _LARGEST_MOVE:
        raise ParameterError(
            f"D must be at most {_LARGEST_MOVE:,}, got {D:,}: D is the largest change of a count, "
            "and a table has a row for each count up to it. Most offices use 2 to 10."
        )
    return int(D)


def check_rows(starts: Whole, period: int) -> None:
    """Rows for zero and above, in order, the last `period` of them one count apart."""
    if len(starts) < 2:
        raise ParameterError(
            f"a transition matrix needs a row for zero and at least one for positive counts, "
            f"got {len(starts)} rows in all."
        )
    if starts[0] != 0 or np.any(np.diff(starts) < 1):
        raise ParameterError(
            f"rows must begin at count 0 and rise, got first counts {starts[:8].tolist()}."
        )
    if not 1 <= period < len(starts):
        raise ParameterError(f"period must lie in 1..{len(starts) - 1}, got {period}.")
    if np.any(np.diff(starts[-period:]) != 1):
        raise ParameterError(f"the last {period} rows repeat, so they must be one count apart.")


def check_widths(starts: Whole, moves: Whole, widths: Real) -> None:
    """Finite, non-negative, rows sum to one."""
    if moves.shape != widths.shape or moves.ndim != 2 or len(moves) != len(starts):
        raise ParameterError(
            f"{len(starts)} rows were named but moves have shape {moves.shape} and "
            f"probabilities {widths.shape}."
        )
    if (bad := _first(~np.isfinite(widths))) is not None:
        raise ParameterError(f"the row of count {starts[bad]} holds a value that is not finite.")
    if (bad := _first(widths < 0)) is not None:
        raise ParameterError(
            f"the row of count {starts[bad]} holds a negative probability, {widths[bad].min():g}."
        )
    sums = widths.sum(axis=1)
    if (bad := _first(np.abs(sums - 1) > SUM_TOLERANCE)) is not None:
        raise ParameterError(
            f"the row of count {starts[bad]} sums to {sums[bad]:.10g}, not to one. "
            "Divide it by its sum if it was copied from a rounded print."
        )


def check_targets(starts: Whole, moves: Whole, widths: Real) -> None:
    """No row leads below zero."""
    targets = np.where(widths > 0, starts[:, None] + moves, 0)
    if (bad := _first(targets < 0)) is not None:
        raise ParameterError(
            f"the row of count {starts[bad]} leads to the negative count {targets[bad].min()}. "
            "Move that probability to a count of zero or more."
        )


def check_blocked(starts: Whole, law: Real, blocked: int, period: int) -> None:
    """The blocked values are reached from no row, nor from the last rows moved upwards."""
    deviations = np.arange(law.shape[1]) - law.shape[1] // 2
    beyond = int(starts[-1]) + len(deviations) + blocked  # from here on nothing leads so low
    ends = [*starts[1:].tolist(), beyond]
    for row, (start, end) in enumerate(zip(starts.tolist(), ends, strict=True)):
        repeats = row >= len(starts) - period
        for count in range(start, beyond, period) if repeats else range(start, min(end, beyond)):
            target = count + deviations[law[row] > 0]
            if not np.any((target >= 1) & (target <= blocked)):
                continue
            if count == start:
                raise ParameterError(f"the row of count {count} leads to a value in 1..{blocked}.")
            raise ParameterError(
                f"too few rows: the row of count {start} also serves count {count}, from where it "
                f"leads to a value in 1..{blocked}. Add a row of its own for count {count}."
            )


def _first(bad: Mask) -> int | None:
    """The first row with a fault, or None."""
    rows = np.flatnonzero(bad.any(axis=1) if bad.ndim == 2 else bad)
    return int(rows[0]) if len(rows) else None


@dataclass(frozen=True)
class Support:
    """The admissible deviations `v = j - i` of one true count `i`, in rising order."""

    count: int
    deviations: tuple[int, ...]

    @property
    def centre(self) -> int | None:
        """Position of `v = 0`, or None when the count itself may not be published."""
        return self.deviations.index(0) if 0 in self.deviations else None

    @property
    def below(self) -> int:
        """Number of admissible moves downwards."""
        return sum(v < 0 for v in self.deviations)

    @property
    def above(self) -> int:
        """Number of admissible moves upwards."""
        return sum(v > 0 for v in self.deviations)


@dataclass(frozen=True)
class Tails:
    """Chains along which probabilities may not fall on the way from the outside to the centre.

    The first `left` and the last `right` places of a support of `size` places form the two
    chains; `centre`, when given, stands above the inner end of both.
    """

    size: int
    left: int = 0
    right: int = 0
    centre: int | None = None

    def chains(self) -> tuple[range, range]:
        """The two chains, each from the outside in."""
        last = self.size - 1
        return range(self.left), range(last, last - self.right, -1)

    def steps(self) -> Iterator[tuple[int, int]]:
        """Pairs (outer, inner) with the condition p[outer] <= p[inner]."""
        for chain in self.chains():
            places = list(chain)
            if places and self.centre is not None:
                places.append(self.centre)
            yield from zip(places, places[1:], strict=False)


def admissible(count: int, D: int, js: int) -> Support:
    """Targets within `D` of the count that are neither negative nor in 1..js."""
    low = -min(count, D)
    return Support(count, tuple(v for v in range(low, D + 1) if not 1 <= count + v <= js))


def table_rows(D: int, js: int) -> range:
    """The true counts above zero that need a row of their own; the last serves all larger."""
    return range(1, (D if js == 0 else D + js + 1) + 1)


def free(support: Support) -> Tails:
    """No order at all."""
    return Tails(len(support.deviations))


def rising_left(support: Support) -> Tails:
    """Left tail and centre only; no order where the count itself is not admissible."""
    if support.centre is None:
        return free(support)
    return Tails(len(support.deviations), left=support.below, centre=support.centre)


def rising_both(support: Support) -> Tails:
    """Both tails up to the centre; without a centre each tail on its own."""
    return Tails(len(support.deviations), support.below, support.above, support.centre)


def rising_tails(support: Support) -> Tails:
    """Each tail on its own, the centre left out of the comparison."""
    return Tails(len(support.deviations), support.below, support.above)
