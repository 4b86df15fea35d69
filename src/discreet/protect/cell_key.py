"""The cell key method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from discreet.design.keys import Edge, KeyConvention, convention
from discreet.design.release import Release, Statement
from discreet.design.table import Table
from discreet.design.values import Real, Whole
from discreet.errors import DataError, KeysError, ParameterError
from discreet.noise.entropy import perturbation_table
from discreet.noise.matrix import TransitionMatrix
from discreet.protect.adjust import with_adjusted_margins
from discreet.protect.cells import Cells
from discreet.protect.claims import Claims
from discreet.protect.margins import Margins
from discreet.protect.matrix_noise import (
    claims_of,
    matrix_parameters,
    matrix_sentences,
    noise_by_key,
    precision_of,
)
from discreet.protect.publication import Publication
from discreet.protect.statements import statement_of
from discreet.protect.weights import Weighting


@dataclass(frozen=True)
class CellKey:
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
      margins: ``"own"``, ``"summed"`` or ``"adjusted"``.
      weighting: How noise carries over to weighted counts; counts are published when absent.
      mean_weight: The public mean weight; taken from the table when absent.
      folded: Whether keys are folded to a byte first, for tables drawn in advance.

    See Fraser & Wooton (2005), Thompson, Broadfoot & Elazar (2013), Giessing & Höhne (2011).
    """

    name: ClassVar[str] = "cell-key"
    source: ClassVar[str] = "keys"

    matrix: TransitionMatrix
    convention: str | KeyConvention | None = None
    threshold: int | None = None
    margins: Margins = "own"
    weighting: Weighting | None = None
    mean_weight: float | None = None
    folded: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.matrix, TransitionMatrix):
            raise ParameterError(
                f"the cell key method needs a TransitionMatrix, got {type(self.matrix).__name__}. "
                "Make one with `perturbation_table(D=5, V=3, js=2)`."
            )
        _ = self.publication
        if self.convention is not None:
            convention(self.convention)

    @classmethod
    def from_parameters(
        cls,
        D: int | None = None,
        V: float | None = None,
        js: int = 0,
        pstay: float | Sequence[float | None] | None = None,
        mono: bool = True,
        ptable: str | None = None,
        convention: str | None = None,
        threshold: int | None = None,
        margins: Margins = "own",
        weighting: Weighting | None = None,
        mean_weight: float | None = None,
        folded: bool = False,
    ) -> CellKey:
        """The method from plain values: the parameters of a perturbation table, or a file of one.

        Args:
          D: Largest move.
          V: Variance of the noise.
          js: Largest positive count that must not be published.
          pstay: Least probability of no change.
          mono: Whether probabilities fall with the distance from the true count.
          ptable: A file instead of these: the CSV of ptable or of the ONS, or the matrix as JSON.
          convention: As for the method.
          threshold: As for the method.
          margins: As for the method.
          weighting: As for the method.
          mean_weight: As for the method.
          folded: As for the method.
        """
        if ptable is None and D is not None and V is not None:
            matrix = perturbation_table(D, V, js, pstay, mono)
        elif ptable is not None and D is None and V is None:
            matrix = read_matrix(ptable)
        else:
            raise ParameterError(
                "give D and V of a perturbation table (such as D=5, V=3, js=2), or a file with "
                "ptable=, and not both."
            )
        return cls(matrix, convention, threshold, margins, weighting, mean_weight, folded)

    @property
    def publication(self) -> Publication:
        """What is published of the cells."""
        return Publication(self.margins, self.weighting, self.mean_weight, self.threshold)

    @property
    def claims(self) -> Claims:
        """What the method promises for every table."""
        return claims_of(self.matrix, self.publication, consistent=True)

    def __call__(self, table: Table, *, rng: np.random.Generator | None = None) -> Release:
        """Protect a table by its cell keys; a generator is taken and has no effect."""
        if self.margins == "adjusted":
            return with_adjusted_margins(self, table, rng)
        publication = self.publication
        cells = publication.cells(table, touches_zeros=not self.matrix.keeps_zeros)
        values = publication.values(table, cells, self.noise(cells))
        precision = precision_of(self.matrix, values) if publication.is_plain else None
        return publication.release(cells, values, self._statement(table), precision)

    def noise(self, cells: Cells) -> Whole:
        """The deviation of every cell."""
        edge = self._edge(cells.table.convention)
        return noise_by_key(cells, self.matrix, edge, folded=self.folded)

    def cell_law(self, table: Table, position: int) -> tuple[Whole, Real] | None:
        """Deviations of one published cell and their probabilities; `None` where others show."""
        if not self.publication.is_plain or self.threshold is not None:
            return None
        return self.matrix.deviations, self.matrix.probabilities(int(table.z[position]))

    def _edge(self, own: KeyConvention) -> Edge:
        chosen = own if self.convention is None else convention(self.convention)
        if chosen.modulus != own.modulus:
            raise KeysError(
                f"the keys of this table follow the {own.name!r} convention with range "
                f"0..{own.modulus - 1}, but the method was given {chosen.name!r} with range "
                f"0..{chosen.modulus - 1}. Tabulate with that convention, or leave it out."
            )
        return chosen.edge

    def _statement(self, table: Table) -> Statement:
        parameters = {
            **matrix_parameters(self.matrix),
            "convention": table.convention.name,
            "folded": self.folded,
            **self.publication.parameters(),
        }
        sentences = [
            "Counts were perturbed by the cell key method: the noise of a cell depends on the "
            "records in it and nothing else.",
            *matrix_sentences(self.matrix),
            *self.publication.sentences(),
        ]
        return statement_of(self.name, parameters, sentences)


def read_matrix(path: str | Path) -> TransitionMatrix:
    """A matrix from a file: JSON, the CSV of ptable, or the CSV of the ONS."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read the perturbation table {path}: {error}.") from None
    if path.suffix == ".json":
        return TransitionMatrix.from_json(text)
    if "pcv" in text.partition("\n")[0]:
        from pyarrow import csv

        return TransitionMatrix.from_ons(csv.read_csv(path))
    return TransitionMatrix.from_ptable_csv(path)
