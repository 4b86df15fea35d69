"""A method of another package: a law in the common frame, and the sentence that goes with it."""

from dataclasses import dataclass
from functools import cached_property

from discreet.protect.keyed_noise import KeyedNoise
from discreet_example.coin_matrix import coin_matrix


@dataclass(frozen=True)
class Coin(KeyedNoise):
    """Counts move up or down by one with probability `p` each."""

    name = "coin"

    p: float = 0.25

    @cached_property
    def law(self):
        """The public law of the noise."""
        return coin_matrix(self.p)

    @property
    def done(self):
        """What was done."""
        return f"Values were moved up or down by one with probability {self.p:g} each."
