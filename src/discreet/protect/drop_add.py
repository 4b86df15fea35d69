"""Drop/add-up-to-q."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from discreet.noise.matrix import TransitionMatrix
from discreet.noise.pram import drop_add
from discreet.protect.keyed_noise import KeyedNoise
from discreet.protect.options import REACHES, SHARES, OptionLists


@dataclass(frozen=True)
class DropAdd(KeyedNoise):
    r"""Uniform noise of at most a share of the count.

    With :math:`q(i) = \min(c, \lceil s\,i\rceil)` a count :math:`i` becomes each of
    :math:`i-q,\dots,i+q` with probability :math:`1/(2q+1)`.

    Promise: mean zero, variance :math:`q(q+1)/3`, largest move `cap`, zeros stay. Noise is looked
    up by a keyed hash of the cell key, so the same cell has the same value in every table. Not
    differential privacy: a share :math:`1/(2q+1)` of the outcomes rules out a neighbouring count.
    Cost: half a microsecond per cell, for the hash.

    Args:
      share: The share `s` of the count, in (0, 1].
      cap: The largest move `c`.
      margins: ``"own"``, ``"summed"`` or ``"adjusted"``.
      grid: Publish weighted counts, in whole steps of this public weight.

    See Li & Krenzke (2016), Shlomo, Krenzke & Li (2019).
    """

    name: ClassVar[str] = "drop-add"
    option_lists: ClassVar[OptionLists] = {
        **KeyedNoise.option_lists,
        "share": SHARES,
        "cap": REACHES,
    }

    share: float = 0.01
    cap: int = 7

    @cached_property
    def law(self) -> TransitionMatrix:
        """The public law of the noise."""
        return drop_add(self.share, self.cap)

    @property
    def done(self) -> str:
        """What was done."""
        return (
            f"Values were moved up or down by up to {100 * self.share:g} % of their size, rounded "
            f"up, and by no more than {self.cap} steps; every such move is equally likely."
        )
