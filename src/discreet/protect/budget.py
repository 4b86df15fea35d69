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
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.design.blocks import resolve
from discreet.design.formula import Term
from discreet.design.structured import StructuredDesign
from discreet.design.values import Real, Whole
from discreet.errors import ParameterError
from discreet.noise.checks import positive, whole
from discreet.noise.laplace import laplace_law
from discreet.protect.cells import Cells

Margin = str | Sequence[str]
Number = TypeVar("Number", bound=np.generic)
_EXACT = 1e-6


@dataclass(frozen=True, eq=False)
class Share:
    """Cells that spend one part of the budget.

    Attributes:
      cells: Positions of the cells, all different in content.
      epsilon: The part of the budget.
      records: In how many of the cells one record counts at most.
      change: By how much it changes each of them at most.
    """

    cells: Whole
    epsilon: float
    records: int
    change: int = 1

    @property
    def sensitivity(self) -> int:
        """By how much one record changes all the cells together."""
        return self.records * self.change

    @property
    def scale(self) -> float:
        """Scale of the noise."""
        return self.sensitivity / self.epsilon

    def law(self, cap: int) -> Real:
        """Probabilities of the noise `-cap..cap`."""
        return laplace_law(self.epsilon, cap, self.sensitivity)

    def delta(self, cap: int | None) -> float:
        """Probability of an outcome that rules out a neighbour, over all the cells of a record."""
        return 0.0 if cap is None else self.records * float(self.law(cap)[: self.change].sum())

    def variance(self, cap: int | None) -> float:
        """Variance of the noise."""
        if cap is not None:
            return float(self.law(cap) @ np.arange(-cap, cap + 1.0) ** 2)
        stays = -math.expm1(-1 / self.scale)
        return 2 * (1 - stays) / stays**2


@dataclass(frozen=True)
class Budget:
    """The whole budget and how it is to be spent.

    Attributes:
      epsilon: ε of the whole release.
      sensitivity: By how much one person changes all perturbed counts together; ``"auto"`` is
        what the design says of one record, and nothing smaller is accepted.
      split: Shares of the budget by margin, such as ``{"region:age": 0.5, "region": 0.3,
        "1": 0.2}``; ``"1"`` is the total. All margins share the budget evenly when absent.
      known: Margins that are public knowledge and published without noise.
    """

    epsilon: float
    sensitivity: int | Literal["auto"] = "auto"
    split: Mapping[Margin, float] | None = None
    known: Sequence[Margin] = field(default=())

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        if self.sensitivity != "auto":
            whole("sensitivity", self.sensitivity, 1)
            if self.split is not None:
                raise ParameterError("give sensitivity or split; with split it is found for each.")
        if self.split is not None:
            _check_split(self.split)

    def parameters(self) -> dict[str, Any]:
        """Split and known margins as plain public data."""
        split = None if self.split is None else {_shown(m): p for m, p in self.split.items()}
        return {"split": split, "known": [_shown(m) for m in self.known] or None}

    def sentences(self) -> list[str]:
        """What readers must know about margins that have no noise."""
        if not self.known:
            return []
        named = ", ".join(_shown(margin) for margin in self.known)
        return [f"Public knowledge, and published without noise: {named} (1 is the total)."]

    def shares(self, cells: Cells, change: int = 1) -> list[Share]:
        """The parts of the budget for the cells of a table.

        Args:
          cells: The cells that get noise.
          change: By how much one record changes a cell.
        """
        if cells.are_inner:
            return [self._inner_share(cells, change)]
        if self.split is None:
            return [self._one_share(cells, change)]
        return self._split_shares(cells, change)

    def _inner_share(self, cells: Cells, change: int) -> Share:
        if self.split is not None or self.known:
            raise ParameterError(
                "split and known name published margins, but with margins='summed' the inner "
                "cells get the noise. Use margins='own', or leave them out."
            )
        return self._given(Share(cells.distinct, self.epsilon, 1, change))

    def _one_share(self, cells: Cells, change: int) -> Share:
        chosen = self._perturbed(cells)
        return self._given(Share(chosen, self.epsilon, _records(cells, chosen), change))

    def _given(self, share: Share) -> Share:
        """The share with the sensitivity that was given, if it was."""
        if self.sensitivity == "auto":
            return share
        if self.sensitivity < share.records:
            raise ParameterError(
                f"one record counts in up to {share.records} perturbed cells; with a sensitivity "
                f"of {self.sensitivity} the guarantee would not hold. Publish fewer margins, name "
                "those that are public already in known=, or use sensitivity='auto'."
            )
        return Share(share.cells, share.epsilon, 1, self.sensitivity * share.change)

    def _split_shares(self, cells: Cells, change: int) -> list[Share]:
        chosen, split = self._perturbed(cells), self.split or {}
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
            Share(where, part * self.epsilon, _records(cells, where), change)
            for where, part in parts
            if len(where)
        ]

    def _perturbed(self, cells: Cells) -> Whole:
        """Distinct cells without those that are public knowledge."""
        is_known = np.zeros(len(cells.count), dtype=bool)
        for margin in self.known:
            is_known[cells.representative[cells_of_margin(cells, margin)]] = True
        chosen = cells.distinct[~is_known[cells.distinct]]
        if not len(chosen):
            raise ParameterError("known names every published margin; nothing is left to perturb.")
        return chosen


def _check_split(split: Mapping[Margin, float]) -> None:
    if not isinstance(split, Mapping):
        raise ParameterError(
            f'split gives margins their shares, such as {{"region": 0.7, "1": 0.3}}, got {split!r}.'
        )
    for share in split.values():
        positive("a share of the budget", share)
    if abs(sum(split.values()) - 1) > 1e-9:
        raise ParameterError(
            f"the shares of the budget must sum to one, got {sum(split.values()):g}."
        )


def cells_of_margin(cells: Cells, margin: Margin) -> Whole:
    """Positions of the published cells of a margin, at all levels of its variables."""
    design = cells.table.design
    if not isinstance(design, StructuredDesign):
        raise ParameterError(
            "a design made from a matrix has no margins to name; leave out split and known."
        )
    wanted = {block.levels for block in resolve(design.axes, [_term(margin)])}
    found = [k for k, block in enumerate(design.blocks) if block.levels in wanted]
    if not found:
        raise ParameterError(f"margin {margin!r} is not among the published ones.")
    return np.concatenate([np.arange(*design.slice_of(k).indices(2**62)) for k in found])


def noise_of(
    cells: Cells, shares: Sequence[Share], draw: Callable[[Share], NDArray[Number]]
) -> NDArray[Number]:
    """Noise drawn share by share; cells that are the same have the same noise."""
    drawn = [draw(share) for share in shares]
    noise = np.zeros(len(cells.count), dtype=drawn[0].dtype)
    for share, values in zip(shares, drawn, strict=True):
        noise[share.cells] = values
    return cells.shared(noise[cells.distinct])


def precision_by_share(cells: Cells, shares: Sequence[Share], cap: int | None) -> Real | None:
    """Relative precision of the cells where the shares differ; known cells are as good as exact."""
    variances = [share.variance(cap) for share in shares]
    variance = np.full(len(cells.count), _EXACT * min(variances))
    for share, value in zip(shares, variances, strict=True):
        variance[share.cells] = value
    spread = variance[cells.representative]
    return None if np.ptp(spread) == 0 else min(variances) / spread


def _records(cells: Cells, chosen: Whole) -> int:
    """In how many of the chosen cells one record counts at most."""
    everything = len(chosen) == len(cells.count)
    return cells.table.design.sensitivity(None if everything else chosen)


def _shown(margin: Margin) -> str:
    return margin if isinstance(margin, str) else ":".join(margin) or "1"


def _term(margin: Margin) -> Term:
    if not isinstance(margin, str):
        return tuple(margin)
    return () if margin.strip() == "1" else tuple(name.strip() for name in margin.split(":"))
