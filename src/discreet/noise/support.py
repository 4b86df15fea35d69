"""Where the noise of one true count may land, and in which order its probabilities must rise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


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
