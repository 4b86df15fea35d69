r"""A slow, obvious reference for privacy: every tiny data set, every neighbour, exact laws.

A private method adds independent noise to cells. What it would publish of a tiny table is asked
from the method itself, by noise that is prescribed instead of drawn: twice the same, then one step
more for one share of the budget at a time. That gives every cell its true value, its step and the
law of its noise. The privacy loss of an outcome :math:`o` for two neighbours is
:math:`\log P(o)/P'(o)`, and losses of cells and of releases add up. Nothing here uses sensitivities
or statements, so it can refute them.

What is done to noisy values afterwards (negative ones set to zero) is left out: it never adds to a
loss.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, reduce
from typing import Any

import numpy as np

from discreet.accounting import Change
from discreet.arrays import Real, Whole
from discreet.design.base import Design
from discreet.errors import ParameterError
from discreet.facade.table import Table
from discreet.protect.budget import cells_of_margin
from discreet.protect.cells import NoiseCells
from discreet.protect.draws import SeededDraws
from discreet.protect.privacy import LossLaw
from discreet.protect.publish import in_unit
from discreet.tables.truth import Bounds, CellValues, DataSet

_PROBE = 2**20
"""Prescribed noise that no cut at zero reaches."""
_TAIL = 46.0  # e^-46 of a law is left out
_SAME = 12  # decimals by which losses are told apart
_NOTHING = 1e-30  # probabilities that are left out of sums
_MANY, _COARSE = 1_000, 2e-3
"""Sums of Gaussian losses with more values than this are rounded down to multiples of that."""


@dataclass(frozen=True)
class CellLaw:
    """What is published of one cell: its true value in steps, and the law of its noise."""

    centre: float  # the true value, in steps
    kind: str = ""  # `"laplace"` or `"gaussian"`; empty where a cell has no noise
    scale: float = 1.0  # scale of the law, in steps
    cap: int | None = None  # largest noise, in steps
    stride: int = 1  # steps between the outcomes that are looked at; losses at these are exact

    def loss_against(self, shift: float) -> LossLaw:
        """Losses of the outcomes of this cell, if its true value were so many steps away."""
        if not self.kind:
            return np.array([math.inf if shift else 0.0]), np.ones(1)
        reach = self.cap if self.cap is not None else math.ceil(self._reach / self.stride)
        noise = np.arange(-reach, reach + 1, dtype=np.float64) * self.stride
        here, there = self._log(noise), self._log(noise - shift)
        p = np.exp(here)
        return here - there, p / p.sum()

    @property
    def _reach(self) -> float:
        return self.scale * (_TAIL if self.kind == "laplace" else math.sqrt(2 * _TAIL)) + 1

    def _log(self, noise: Real) -> Real:
        if self.kind == "gaussian":
            return np.asarray(-(noise**2) / (2 * self.scale**2))
        log = -np.abs(noise) / self.scale
        return log if self.cap is None else np.where(np.abs(noise) <= self.cap, log, -np.inf)


class PrescribedNoise:
    """Draws that are prescribed: the same noise everywhere, one step more in one share."""

    def __init__(self, noise: int, one_more: int = -1) -> None:
        self.noise, self.one_more = noise, one_more
        self.asked: list[tuple[str, float, int | None]] = []

    def laplace(self, n: int, scale: float, cap: int | None = None) -> Whole:
        """What stands for discrete Laplace noise."""
        return self._give("laplace", n, scale, cap)

    def gaussian(self, n: int, scale: float) -> Whole:
        """What stands for discrete Gaussian noise."""
        return self._give("gaussian", n, scale, None)

    def generator(self, method: Any, table: Any) -> np.random.Generator:
        """Randomness of known margins that are rounded; it follows from the secret."""
        return SeededDraws(1).generator(method, table)

    def _give(self, kind: str, n: int, scale: float, cap: int | None) -> Whole:
        self.asked.append((kind, scale, cap))
        return np.full(n, self.noise + (len(self.asked) - 1 == self.one_more), dtype=np.int64)


def exact_laws(method: Any, table: Table) -> list[CellLaw]:
    """The laws of all cells that a private method publishes of a table.

    Raises:
      ParameterError: Published cells share noise, as sums of inner cells that are not shown do.
    """
    shown = in_unit(table, method, table.unit)

    def values(draws: PrescribedNoise) -> Real:
        made = method(shown, draws=draws)
        if made.y is None and method.margins == "summed":
            raise ParameterError(
                "published cells share the noise of inner cells that are not shown, so their laws "
                "are not independent. Publish the inner cells too, or use margins='own'."
            )
        return np.asarray(made.z if made.y is None else made.y, dtype=np.float64)

    first = PrescribedNoise(_PROBE)
    base = values(first)
    if len(base) == table.design.n_published:
        once = table.design.duplicates() == np.arange(len(base))
    else:
        once = np.ones(len(base), dtype=bool)
    laws: list[CellLaw | None] = [None] * len(base)
    for share, (kind, scale, cap) in enumerate(first.asked):
        steps = values(PrescribedNoise(_PROBE, share)) - base
        for k in np.flatnonzero(steps > 0).tolist():
            centre = round(base[k] / steps[k]) - _PROBE
            stride = max(1, round(1 / steps[k]))
            laws[k] = CellLaw(float(centre), kind, scale, cap, stride)
    return [
        CellLaw(float(base[k])) if law is None else law for k, law in enumerate(laws) if once[k]
    ]


Unit = tuple[tuple[int, float], ...]
"""The records of one unit: inner cell and weight of each."""


@dataclass(frozen=True, eq=False)
class TinyWorld:
    """All data sets of a few units, each of which is one of a short list.

    Attributes:
      design: The design of the table.
      units: Every unit that there can be.
      bounds: What one unit can contribute, as it is declared.
      size: Units of the largest data set.
      weighted: Whether weighted counts are published.
    """

    design: Design
    units: Sequence[Unit]
    bounds: Bounds = field(default_factory=Bounds)
    size: int = 2
    weighted: bool = False

    @classmethod
    def of_records(cls, design: Design, size: int = 2) -> TinyWorld:
        """Data sets in which every unit is one record, in any inner cell."""
        return cls(design, [((i, 1.0),) for i in range(design.n_inner)], size=size)

    @classmethod
    def of_persons(cls, design: Design, max_records: int, size: int = 2) -> TinyWorld:
        """Data sets of persons with some records each."""
        cells = range(design.n_inner)
        several = [
            tuple((i, 1.0) for i in chosen)
            for n in range(max_records + 1)
            for chosen in itertools.combinations_with_replacement(cells, n)
        ]
        return cls(design, several, Bounds(person="pid", max_records=max_records), size)

    @classmethod
    def of_weights(cls, design: Design, weights: Sequence[float], size: int = 2) -> TinyWorld:
        """Data sets of records with one of some weights; the largest is the declared bound."""
        units = [((i, w),) for i in range(design.n_inner) for w in weights]
        return cls(design, units, Bounds(weight=max(weights)), size, weighted=True)

    def table(self, data: Sequence[int]) -> Table:
        """The table of a data set, which is a list of units by their numbers."""
        count = np.zeros(self.design.n_inner, dtype=np.int64)
        weight = np.zeros(self.design.n_inner)
        for i, w in (record for unit in data for record in self.units[unit]):
            count[i] += 1
            weight[i] += w
        values = CellValues(count, weight if self.weighted else None)
        table = Table.from_inner(self.design, values)
        named = DataSet("tiny", bounds=self.bounds)
        return replace(table, data_set=named, unit="weight" if self.weighted else None)

    def data_sets(self) -> Iterator[tuple[int, ...]]:
        """Every data set, the empty one first."""
        for n in range(self.size + 1):
            yield from itertools.combinations_with_replacement(range(len(self.units)), n)

    def neighbours(
        self, change: Change, known: Sequence[str] = ()
    ) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Every pair of neighbours, in both orders."""
        everything = range(len(self.units))
        held = {data: self._known_values(data, known) for data in self.data_sets()} if known else {}
        for data in self.data_sets():
            for k in range(len(data)):
                rest = data[:k] + data[k + 1 :]
                others = [rest] if change == "add-remove" else [(*rest, u) for u in everything]
                for other in (tuple(sorted(other)) for other in others):
                    if other == data or (known and held[other] != held[data]):
                        continue
                    yield data, other
                    if change == "add-remove":  # a replacement comes round the other way by itself
                        yield other, data

    def _known_values(self, data: tuple[int, ...], known: Sequence[str]) -> tuple[float, ...]:
        """The true values of known margins."""
        table = self.table(data)
        values = table.published.weight if self.weighted else table.published.count
        where = [cells_of_margin(NoiseCells(table), margin) for margin in known]
        return tuple(np.asarray(values)[np.concatenate(where)].tolist())


class ExactPrivacy:
    """Exact losses of releases of all data sets of a world.

    Args:
      world: The data sets.
      methods: Private methods, each of which releases the table once; their losses add up.
    """

    def __init__(self, world: TinyWorld, *methods: Any) -> None:
        self.world, self.methods = world, methods
        self._laws: dict[tuple[int, ...], list[list[CellLaw]]] = {}

    def laws(self, data: tuple[int, ...]) -> list[list[CellLaw]]:
        """The laws of everything that is published of a data set, method by method."""
        if data not in self._laws:
            table = self.world.table(data)
            self._laws[data] = [exact_laws(method, table) for method in self.methods]
        return self._laws[data]

    def beside(self, other: ExactPrivacy) -> ExactPrivacy:
        """Both releases of the same data set together."""
        both = ExactPrivacy(self.world, *self.methods, *other.methods)
        for data in self.world.data_sets():
            both._laws[data] = [*self.laws(data), *other.laws(data)]
        return both

    def losses(self, change: Change, known: Sequence[str] = ()) -> Iterator[LossLaw]:
        """The law of the loss of every pair of neighbours whose releases differ."""
        seen: set[tuple[Moved, ...]] = set()
        for here, there in self.world.neighbours(change, known):
            pairs = zip(self.laws(here), self.laws(there), strict=True)
            moved = tuple(_differing_laws(one, two) for one, two in pairs)
            if moved not in seen:
                seen.add(moved)
                yield reduce(_add, map(_loss_of, moved))

    def worst(self, change: Change, known: Sequence[str] = ()) -> float:
        """The largest loss of any outcome for any pair of neighbours: the exact ε."""
        return max((float(loss.max()) for loss, _ in self.losses(change, known)), default=0.0)


Moved = tuple[tuple[CellLaw, float], ...]
"""Laws around zero, and how far the cells moved that have them."""


def _differing_laws(one: Sequence[CellLaw], two: Sequence[CellLaw]) -> Moved:
    """What tells two neighbours apart; laws are symmetric, so directions do not matter."""
    found = []
    for a, b in zip(one, two, strict=True):
        if replace(a, centre=b.centre) != b:
            raise ParameterError("two neighbours got other laws of noise, which tells them apart.")
        if a != b:
            found.append((replace(a, centre=0.0), abs(a.centre - b.centre)))
    return tuple(sorted(found, key=str))


@lru_cache(maxsize=4096)
def _loss_of(moved: Moved) -> LossLaw:
    """The law of the loss of one release."""
    apart = (law.loss_against(shift) for law, shift in moved)
    return reduce(_add, apart, (np.zeros(1), np.ones(1)))


def _add(one: LossLaw, two: LossLaw) -> LossLaw:
    """The law of the sum of two independent losses."""
    loss = np.add.outer(one[0], two[0]).ravel()
    p = np.multiply.outer(one[1], two[1]).ravel()
    loss, p = loss[p > _NOTHING], p[p > _NOTHING]
    values, place = np.unique(np.round(loss, _SAME), return_inverse=True)
    if len(values) > _MANY:  # rounded down, so that what is refuted is refuted
        values, place = np.unique(np.floor(loss / _COARSE) * _COARSE, return_inverse=True)
    return np.asarray(values, dtype=np.float64), np.bincount(place, weights=p).astype(np.float64)
