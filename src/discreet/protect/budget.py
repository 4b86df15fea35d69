r"""How a privacy budget is spent: which cells share which part of it, and with what sensitivity.

A record that counts in :math:`\Delta_g` of the cells of part :math:`g` moves their counts by
:math:`\Delta_g` in all. Noise of scale :math:`\Delta_g/\varepsilon_g` on each of them is
:math:`\varepsilon_g`-differentially private, and the parts add up:
:math:`\varepsilon = \sum_g \varepsilon_g`. :math:`\Delta_g` is the largest row sum of `X` over
those columns; columns that are the same are drawn, and counted, once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.accounting import part_of
from discreet.arrays import Mask, Real, Whole
from discreet.design.formula import (
    Block,
    Margin,
    coarsening,
    margin_name,
    resolve,
    single_margins,
    term_of,
)
from discreet.errors import ParameterError, positive
from discreet.noise.pram import laplace_law
from discreet.protect.cells import NoiseCells

Number = TypeVar("Number", bound=np.generic)
AnyShare = TypeVar("AnyShare", bound="Share")


@dataclass(frozen=True)
class Unit:
    """What one unit of protection can change."""

    change: int = 1  # by how many steps one record changes one cell at most
    records: int = 1  # records of one unit that are counted at most
    name: str = "record"  # what is added, removed or replaced, in words
    weight: float | None = None  # largest weight of a record, where weighted counts are published

    @property
    def has_one_size(self) -> bool:
        """Whether every unit counts the same, so that a replacement leaves totals as they are."""
        return self.records == 1 and self.weight is None


@dataclass(frozen=True, eq=False)
class Share:
    """Cells that spend one part of the budget."""

    cells: Whole  # positions of the cells, all different in content
    budget: float  # the part of the budget: ε of Laplace noise, ρ of Gaussian noise
    times: int  # in how many of the cells one record counts at most
    unit: Unit = Unit()  # what one unit can change
    # In how many of the cells one record counts at most that hold some records only. The others
    # hold all of them, or are sums of known margins.
    moved: int | None = None
    rest_is_known: bool = False  # whether those others are known

    @property
    def replaced_cells(self) -> int:
        """How many cells a replaced unit changes, each by at most `most`.

        It leaves a cell of each kind and enters another. A total stays where every unit counts the
        same; otherwise it changes by the difference, so that two large units, or a large one and
        none, are the worst. Sums of weights are rounded, and may all move at once.
        """
        moved = self.times if self.moved is None else self.moved
        if self.rest_is_known or self.unit.has_one_size:
            return 2 * moved
        if self.unit.weight is None:
            return max(2 * moved, self.times)
        return 2 * moved + (self.times - moved)

    @property
    def replaced_budget(self) -> float:
        """The part of the budget for one unit replaced: both ε and ρ grow with the cells."""
        return part_of(self.budget, self.replaced_cells, self.times)

    @property
    def most(self) -> int:
        """By how much one unit changes one cell at most."""
        return self.unit.change * self.unit.records

    @property
    def sensitivity(self) -> int:
        """By how much one unit changes all the cells together."""
        return self.times * self.most

    @property
    def squared_sensitivity(self) -> int:
        """The same as a sum of squares."""
        return self.times * self.most**2


class LaplaceShare(Share):
    """Cells with discrete Laplace noise."""

    @property
    def scale(self) -> float:
        """Scale of the noise."""
        return self.sensitivity / self.budget

    def law(self, cap: int) -> Real:
        """Probabilities of the noise `-cap..cap`."""
        return laplace_law(self.budget, cap, self.sensitivity)

    def delta(self, cap: int | None) -> float:
        """Probability of an outcome that rules out a neighbour, over all the cells of a unit."""
        if cap is None:
            return 0.0
        if self.most > 2 * cap:
            return 1.0
        return min(1.0, self.times * float(self.law(cap)[: self.most].sum()))

    def replaced_delta(self, cap: int | None) -> float:
        """The same where a unit is replaced and changes other cells."""
        return min(1.0, self.delta(cap) * self.replaced_cells / self.times)

    def variance(self, cap: int | None) -> float:
        """Variance of the noise."""
        if cap is not None:
            return float(self.law(cap) @ np.arange(-cap, cap + 1.0) ** 2)
        stays = -math.expm1(-1 / self.scale)  # 1 - e^(-1/b), exact for large scales too
        return 2 * (1 - stays) / stays**2


class GaussianShare(Share):
    """Cells with discrete Gaussian noise."""

    @property
    def scale(self) -> float:
        """Standard deviation of the continuous law that is made discrete."""
        return math.sqrt(self.squared_sensitivity / (2 * self.budget))

    def variance(self, cap: int | None = None) -> float:
        """Variance of the noise, that of the continuous law where the scale is not tiny."""
        if self.scale > 4:  # the discrete law's variance is the same to the last digit there
            return self.scale**2
        u = np.arange(-60, 61)
        law = np.exp(-(u**2) / (2 * self.scale**2))
        return float((law @ u**2) / law.sum())


@dataclass(frozen=True)
class Budget:
    """The whole budget and how it is to be spent."""

    total: float  # ε or ρ of the whole release
    # Shares of the budget by margin, such as ``{"region:age": 0.5, "region": 0.3, "1": 0.2}``;
    # ``"1"`` is the total. All margins share the budget evenly when absent.
    split: Mapping[Margin, float] | None = None
    # Margins that are public knowledge and published without noise: a list, or one.
    known: Margin | Sequence[Margin] = field(default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "known", single_margins(self.known))
        if self.split is None:
            return
        if not isinstance(self.split, Mapping):
            raise ParameterError(
                'split gives margins their shares, such as {"region": 0.7, "1": 0.3}, '
                f"got {self.split!r}."
            )
        for share in self.split.values():
            positive("a share of the budget", share)
        if abs(sum(self.split.values()) - 1) > 1e-9:
            raise ParameterError(
                f"the shares of the budget must sum to one, got {sum(self.split.values()):g}."
            )

    def parameters(self) -> dict[str, Any]:
        """Split and known margins as plain public data."""
        split = self.split and {margin_name(term_of(m)): p for m, p in self.split.items()}
        return {"split": split, "known": list(map(margin_name, single_margins(self.known))) or None}

    def shares(self, cells: NoiseCells, unit: Unit, kind: type[AnyShare]) -> list[AnyShare]:
        """The parts of the budget for the cells that get noise."""
        if not cells.are_inner and self.split is not None:
            return self._split_shares(cells, unit, kind)
        if cells.are_inner and (self.split is not None or self.known):
            raise ParameterError(
                "split and known name published margins, but with margins='summed' the inner "
                "cells get the noise. Use margins='own', or leave them out."
            )
        chosen = cells.distinct if cells.are_inner else self._noisy_cells(cells)
        if cells.are_inner:
            return [kind(chosen, self.total, 1, unit)]
        return [self._share(cells, chosen, self.total, unit, kind)]

    def _split_shares(self, cells: NoiseCells, unit: Unit, kind: type[AnyShare]) -> list[AnyShare]:
        chosen, split = self._noisy_cells(cells), self.split or {}
        owner = np.full(len(cells.count), -1)
        for k, margin in enumerate(split):
            where = cells_of_margin(cells, margin)
            if (owner[where] >= 0).any():
                raise ParameterError(f"split names the cells of margin {margin!r} twice.")
            owner[where] = k
        if (owner[chosen] < 0).any():
            raise ParameterError(
                "split leaves out some of the published margins. Name every one; '1' is the total."
            )
        parts = [(chosen[owner[chosen] == k], part) for k, part in enumerate(split.values())]
        return [
            self._share(cells, where, part * self.total, unit, kind)
            for where, part in parts
            if len(where)
        ]

    def _share(
        self, cells: NoiseCells, where: Whole, budget: float, unit: Unit, kind: type[AnyShare]
    ) -> AnyShare:
        stays = self._staying(cells)[where]
        moved = _times(cells, where[~stays]) if not stays.all() else 0
        return kind(where, budget, _times(cells, where), unit, moved, bool(self.known))

    def _staying(self, cells: NoiseCells) -> Mask:
        """Cells that no replacement moves: they hold all records, or are sums of known margins."""
        design = cells.table.design
        known = single_margins(self.known)
        if not known or design.over_variables is None:
            return np.asarray(design.column_sizes == design.n_inner)
        blocks = resolve(design.axes, [term_of(margin) for margin in known])
        implied = [any(_is_sum_of(b, k) for k in blocks) for b in design.over_variables.blocks]
        return np.asarray(implied)[design.over_variables.block_of_cell()]

    def _noisy_cells(self, cells: NoiseCells) -> Whole:
        """Distinct cells without those that are public knowledge."""
        # by representatives: a cell with the same inner cells as a known one is known too
        is_known = np.zeros(len(cells.count), dtype=bool)
        for margin in single_margins(self.known):
            is_known[cells.representative[cells_of_margin(cells, margin)]] = True
        chosen = cells.distinct[~is_known[cells.distinct]]
        if not len(chosen):
            raise ParameterError("known names every published margin; nothing is left to perturb.")
        return chosen


def _is_sum_of(block: Block, known: Block) -> bool:
    """Whether every cell of a block is a sum of cells of another one."""
    pairs = zip(block.levels, known.levels, strict=True)
    return all(
        # an axis that is summed over needs all of its categories
        (its is None or its.covers_all)
        if mine is None
        else its is not None and coarsening(its, mine) is not None
        for mine, its in pairs
    )


def cells_of_margin(cells: NoiseCells, margin: Margin) -> Whole:
    """Positions of the published cells of a margin, at all levels of its variables."""
    design = cells.table.design.over_variables
    if design is None:
        raise ParameterError(
            "a design made from a matrix has no margins to name; leave out split and known."
        )
    wanted = {block.levels for block in resolve(design.axes, [term_of(margin)])}
    found = [k for k, block in enumerate(design.blocks) if block.levels in wanted]
    if not found:
        raise ParameterError(
            f"margin {margin_name(term_of(margin))!r} is not among the published ones."
        )
    return np.concatenate([np.arange(*design.slice_of(k).indices(2**62)) for k in found])


def noise_of(
    cells: NoiseCells, shares: Sequence[AnyShare], draw: Callable[[AnyShare], NDArray[Number]]
) -> NDArray[Number]:
    """Noise drawn share by share; cells that are the same have the same noise."""
    drawn = [draw(share) for share in shares]
    noise = np.zeros(len(cells.count), dtype=drawn[0].dtype)
    for share, values in zip(shares, drawn, strict=True):
        noise[share.cells] = values
    return cells.spread(noise[cells.distinct])


def precision_by_share(
    cells: NoiseCells, shares: Sequence[Share], variances: Sequence[float]
) -> Real:
    """One over the variance of every published cell; infinite where a cell has no noise."""
    precision = np.full(len(cells.count), np.inf)
    for share, value in zip(shares, variances, strict=True):
        precision[share.cells] = 1 / value
    if cells.are_inner:  # all of them have the same noise, and published cells sum it up
        return np.asarray(precision.min() / cells.table.design.column_sizes)
    return precision[cells.representative]


def _times(cells: NoiseCells, chosen: Whole) -> int:
    """In how many of the chosen cells one record counts at most."""
    everything = len(chosen) == len(cells.count)
    return cells.table.design.sensitivity(None if everything else chosen)
