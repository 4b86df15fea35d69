"""Blocks: the published cells of one margin at one level of each of its variables."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.arrays import Whole32
from discreet.design.axis import OUTSIDE, Axis, Level
from discreet.design.formula import Term, unknown_name
from discreet.errors import ParameterError


@dataclass(frozen=True, eq=False)
class Block:
    """One level for each axis, `None` where the axis is summed over."""

    levels: tuple[Level | None, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Groups along every axis; 1 where the axis is summed over."""
        return tuple(1 if level is None else len(level) for level in self.levels)

    @property
    def size(self) -> int:
        """Cells of the full crossing."""
        return math.prod(self.shape)

    @property
    def name(self) -> str:
        """The names of its levels, crossed."""
        return "×".join(level.name for level in self.levels if level is not None) or "total"

    @property
    def order(self) -> int:
        """Number of variables that are not summed over."""
        return sum(level is not None for level in self.levels)


def resolve(axes: Sequence[Axis], terms: Sequence[Term]) -> list[Block]:
    """The blocks of the terms: a variable stands for each of its levels in turn."""
    blocks: dict[tuple[Level | None, ...], None] = {}
    for term in terms:
        choices: list[Sequence[Level | None]] = [(None,)] * len(axes)
        for name in term:
            a, levels = _lookup(axes, name)
            if choices[a] != (None,):
                raise ParameterError(f"margin {term} names variable {axes[a].name!r} twice.")
            choices[a] = levels
        blocks.update(dict.fromkeys(itertools.product(*choices)))
    return [Block(levels) for levels in blocks]


def _lookup(axes: Sequence[Axis], name: str) -> tuple[int, tuple[Level, ...]]:
    """The axis a name belongs to, and the levels it stands for."""
    for a, axis in enumerate(axes):
        if name == axis.name:
            return a, axis.levels
    for a, axis in enumerate(axes):
        if name.startswith(f"{axis.name}[") and name.endswith("]"):
            return a, (axis.level(name[len(axis.name) + 1 : -1]),)
    owners = [
        (a, level)
        for a, axis in enumerate(axes)
        for level in axis.levels
        if axis.short_name(level) == name
    ]
    if len(owners) == 1:
        a, level = owners[0]
        return a, (level,)
    if owners:
        both = " or ".join(f"'{axes[a].name}[{name}]'" for a, _ in owners)
        raise ParameterError(f"{name!r} is a level of several variables; write {both}.")
    known = [axis.name for axis in axes]
    known += [axis.short_name(level) for axis in axes for level in axis.levels]
    raise unknown_name(name, dict.fromkeys(known))


def coarsening(fine: Level, coarse: Level) -> Whole32 | None:
    """The group of `coarse` that each group of `fine` lies in (-1: none), if there is one."""
    if fine is coarse:
        return np.arange(len(fine), dtype=np.int32)
    if bool(((coarse.group != OUTSIDE) & (fine.group == OUTSIDE)).any()):
        return None
    inside = fine.group != OUTSIDE
    up = np.full(len(fine), OUTSIDE, dtype=np.int32)
    up[fine.group[inside]] = coarse.group[inside]
    return up if bool((up[fine.group[inside]] == coarse.group[inside]).all()) else None


class Lattice:
    """Which block can be summed from which, axis by axis; maps are found once per pair."""

    def __init__(self) -> None:
        self._maps: dict[tuple[Level, Level], Whole32 | None] = {}

    def step(self, fine: Level, coarse: Level) -> Whole32 | None:
        """`coarsening`, remembered."""
        pair = (fine, coarse)
        if pair not in self._maps:
            self._maps[pair] = coarsening(fine, coarse)
        return self._maps[pair]

    def refines(self, source: Block, target: Block) -> bool:
        """Whether `target` is a sum over cells of `source`."""
        for fine, coarse in zip(source.levels, target.levels, strict=True):
            if coarse is None:
                if fine is not None and not fine.covers_all:
                    return False
            elif fine is None or self.step(fine, coarse) is None:
                return False
        return True

    def sources(self, blocks: Sequence[Block], sizes: Sequence[int]) -> list[int | None]:
        """For each block the cheapest other block it can be summed from; `None`: inner cells.

        Sources form a forest: a block is summed only from a larger one, or from an equally large
        one that comes before it.
        """
        by_size = sorted(range(len(blocks)), key=lambda k: (sizes[k], -k))
        chosen: list[int | None] = [None] * len(blocks)
        for place, k in enumerate(by_size):
            for j in by_size[place + 1 :]:
                if self.refines(blocks[j], blocks[k]):
                    chosen[k] = j
                    break
        return chosen
