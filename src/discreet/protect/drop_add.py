"""Drop/add-up-to-q."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from discreet.design.release import Release, Statement
from discreet.design.table import Table
from discreet.design.values import Real, Whole
from discreet.errors import ParameterError
from discreet.noise.drop_add import drop_add
from discreet.noise.matrix import TransitionMatrix
from discreet.protect.adjust import with_adjusted_margins
from discreet.protect.cells import Cells
from discreet.protect.claims import Claims
from discreet.protect.margins import Margins
from discreet.protect.matrix_noise import claims_of, noise_by_draw, noise_by_key, precision_of
from discreet.protect.publication import Publication
from discreet.protect.statements import statement_of
from discreet.protect.weights import Weighting


@dataclass(frozen=True)
class DropAdd:
    r"""Uniform noise of at most a share of the count.

    With :math:`q(i) = \min(c, \lceil s\,i\rceil)` a count :math:`i` becomes each of
    :math:`i-q,\dots,i+q` with probability :math:`1/(2q+1)`.

    Promise: mean zero, variance :math:`q(q+1)/3`, largest move `cap`, zeros stay. By keys (the
    default, as in the papers) the same cell has the same value in every table. Not differential
    privacy: a share :math:`1/(2q+1)` of the outcomes rules out a neighbouring count.
    Cost: about 10 ns per cell.

    Args:
      share: The share `s` of the count, in (0, 1].
      cap: The largest move `c`.
      source: ``"keys"`` or ``"seed"``.
      margins: ``"own"``, ``"summed"`` or ``"adjusted"``.
      weighting: How noise carries over to weighted counts; counts are published when absent.
      mean_weight: The public mean weight; taken from the table when absent.

    See Li & Krenzke (2016), Shlomo, Krenzke & Li (2019).
    """

    name: ClassVar[str] = "drop-add"

    share: float = 0.01
    cap: int = 7
    source: Literal["keys", "seed"] = "keys"
    margins: Margins = "own"
    weighting: Weighting | None = None
    mean_weight: float | None = None

    def __post_init__(self) -> None:
        if self.source not in ("keys", "seed"):
            raise ParameterError(f"source must be 'keys' or 'seed', got {self.source!r}.")
        _ = self.publication, self.matrix

    @cached_property
    def matrix(self) -> TransitionMatrix:
        """The law of the noise."""
        return drop_add(self.share, self.cap)

    @property
    def publication(self) -> Publication:
        """What is published of the cells."""
        return Publication(self.margins, self.weighting, self.mean_weight)

    @property
    def claims(self) -> Claims:
        """What the method promises for every table."""
        return claims_of(self.matrix, self.publication, consistent=self.source == "keys")

    def __call__(self, table: Table, *, rng: np.random.Generator | None = None) -> Release:
        """Protect a table by its cell keys, or with draws from the generator."""
        if self.margins == "adjusted":
            return with_adjusted_margins(self, table, rng)
        publication = self.publication
        cells = publication.cells(table, touches_zeros=False)
        values = publication.values(table, cells, self._noise(cells, rng))
        precision = precision_of(self.matrix, values) if publication.is_plain else None
        return publication.release(cells, values, self._statement(), precision)

    def cell_law(self, table: Table, position: int) -> tuple[Whole, Real] | None:
        """Deviations of one published cell and their probabilities; `None` where they are sums."""
        if not self.publication.is_plain:
            return None
        return self.matrix.deviations, self.matrix.probabilities(int(table.z[position]))

    def _noise(self, cells: Cells, rng: np.random.Generator | None) -> Whole:
        if self.source == "keys":
            return noise_by_key(cells, self.matrix, cells.table.convention.edge)
        if rng is None:
            raise ParameterError("drop/add with source='seed' draws at random: give it a seed.")
        return noise_by_draw(cells, self.matrix, rng)

    def _statement(self) -> Statement:
        chosen = {"share": self.share, "cap": self.cap, "source": self.source}
        sentences = [
            f"Counts were moved up or down by up to {100 * self.share:g} % of their size, rounded "
            f"up, and by no more than {self.cap}; every such move is equally likely. Zeros stay "
            "zero.",
            *self.publication.sentences(),
        ]
        return statement_of(self.name, {**chosen, **self.publication.parameters()}, sentences)
