"""The cell key method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from discreet.arrays import Whole
from discreet.errors import KeysError, ParameterError
from discreet.noise.matrix import TransitionMatrix
from discreet.protect.cells import Cells
from discreet.protect.frame.fold import folded_noise
from discreet.protect.frame.keyed_noise import KeyedNoise, matrix_parameters, noise_by_key
from discreet.tables.keys import Edge, KeyConvention, convention
from discreet.tables.method import Draws


@dataclass(frozen=True)
class CellKey(KeyedNoise):
    r"""Noise looked up by the count and the key of each cell.

    A cell with true count :math:`i` and key :math:`k` in :math:`0,\dots,m-1` is published as
    :math:`i + v`, where :math:`v` is the deviation whose interval of the matrix's row :math:`i`
    holds :math:`k/m`.

    Promise: a pure function of count, key and matrix, so the same cell has the same value in every
    table; mean, variance, largest move and blocked values as the matrix has them. Empty cells that
    the matrix perturbs take a keyed hash of their definition as key; structural zeros stay.
    Not differential privacy: two cells that differ by one record have unrelated keys.
    Cost: about 10 ns per cell.

    Args:
      matrix: The law of the noise, for instance `perturbation_table(D=5, V=3, js=2)`.
      convention: What the keys mean; the table's own when absent, otherwise one with the same
        range of keys.
      threshold: Published counts below it are hidden (10 in the rule of the ONS).
      folded: Whether keys are folded to a byte first, for tables drawn in advance.
      margins: ``"own"``, ``"summed"`` or ``"adjusted"``.
      grid: Publish weighted counts, in whole steps of this public weight.

    See Fraser & Wooton (2005), Thompson, Broadfoot & Elazar (2013), Giessing & Höhne (2011).
    """

    name: ClassVar[str] = "cell-key"
    done: ClassVar[str] = (
        "Values were changed by the cell key method: the change of a value depends on the records "
        "in its cell and on nothing else."
    )

    matrix: TransitionMatrix
    convention: str | KeyConvention | None = None
    threshold: int | None = None
    folded: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.matrix, TransitionMatrix):
            raise ParameterError(
                f"the cell key method needs a TransitionMatrix, got {type(self.matrix).__name__}. "
                "Make one with `perturbation_table(D=5, V=3, js=2)`."
            )
        super().__post_init__()
        if self.folded and self.grid is not None:
            raise ParameterError(
                "folded keys are for tables drawn in advance, which are about counts; leave out "
                "grid= or folded=."
            )
        if self.convention is not None:
            convention(self.convention)

    @property
    def law(self) -> TransitionMatrix:
        """The public law of the noise."""
        return self.matrix

    def noise(self, cells: Cells, draws: Draws) -> Whole:
        """The deviation of every cell, by its key as it is; on a grid by a keyed hash of it."""
        edge = self._edge(cells.table.convention)
        if self.folded:
            return folded_noise(cells, self.matrix)
        purpose = None if self.grid is None else self.purpose
        return noise_by_key(cells, self.matrix, purpose=purpose, edge=edge)

    def _edge(self, own: KeyConvention) -> Edge:
        chosen = own if self.convention is None else convention(self.convention)
        if chosen.modulus != own.modulus:
            raise KeysError(
                f"the keys of this table follow the {own.name!r} convention with range "
                f"0..{own.modulus - 1}, but the method was given {chosen.name!r} with range "
                f"0..{chosen.modulus - 1}. Tabulate with that convention, or leave it out."
            )
        return chosen.edge

    def parameters(self) -> dict[str, Any]:
        """The method's own parameters as plain public data."""
        return {**matrix_parameters(self.law), "folded": self.folded or None}
