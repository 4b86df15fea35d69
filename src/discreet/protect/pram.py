"""Post-randomisation of counts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from discreet.design.release import Release, Statement
from discreet.design.table import Table
from discreet.design.values import Real, Whole
from discreet.errors import ParameterError
from discreet.noise.allocate import allocate, controlled_flows
from discreet.noise.checks import FloatArray, positive, whole, within
from discreet.noise.invariant import invariant_matrix, two_stage
from discreet.noise.matrix import TransitionMatrix
from discreet.noise.pram import invariant_pram, large_table, pram, small_table
from discreet.protect.adjust import with_adjusted_margins
from discreet.protect.cells import Cells
from discreet.protect.claims import Claims
from discreet.protect.margins import Margins
from discreet.protect.matrix_noise import claims_of, matrix_parameters, noise_by_draw
from discreet.protect.publication import Publication
from discreet.protect.statements import statement_of
from discreet.protect.weights import Weighting


@dataclass(frozen=True)
class Pram:
    r"""Counts exchanged by a transition matrix that keeps their frequencies.

    Small counts (below `cap`) change by one matrix, larger ones by another on their residue modulo
    :math:`2c+1`; both are the discrete Laplace law folded to a square. With frequencies `t` of the
    table at hand the invariant form :math:`R^* = \alpha PQ + (1-\alpha)I` has :math:`tR^* = t`.

    Promise: zeros stay; no count moves by more than `cap`, or twice that when invariant; when
    invariant, the expected number of cells at each small count and at each residue is kept, with
    `realised` the number itself. Single counts are biased near the ends of the tables. The
    invariant matrix depends on the table, so the same cell may change otherwise in another.
    Cost: about 20 ns per cell; `realised` adds a sort and a small transport problem.

    Args:
      invariant: Whether the matrix is made invariant for the table at hand.
      alpha: Strength of the invariant form, in (0, 1].
      epsilon: Parameter of the folded law.
      cap: Largest move of the folded law.
      matrix: A designed matrix to use instead of the folded law.
      realised: Whether frequencies are kept in the table itself, not only in expectation.
      margins: ``"own"``, ``"summed"`` or ``"adjusted"``.
      weighting: How noise carries over to weighted counts; counts are published when absent.
      mean_weight: The public mean weight; taken from the table when absent.

    See Shlomo & Young (2008), Shlomo, Krenzke & Li (2019), Giessing & Höhne (2011).
    """

    name: ClassVar[str] = "pram"
    source: ClassVar[str] = "seed"

    invariant: bool = True
    alpha: float = 0.8
    epsilon: float = 2.0
    cap: int = 7
    matrix: TransitionMatrix | None = None
    realised: bool = False
    margins: Margins = "own"
    weighting: Weighting | None = None
    mean_weight: float | None = None

    def __post_init__(self) -> None:
        within("alpha", self.alpha, 1)
        if self.realised and not self.invariant:
            raise ParameterError("realised=True keeps frequencies, so it needs invariant=True.")
        positive("epsilon", self.epsilon)
        whole("cap", self.cap, 3)
        _ = self.publication

    @property
    def publication(self) -> Publication:
        """What is published of the cells."""
        return Publication(self.margins, self.weighting, self.mean_weight)

    @property
    def claims(self) -> Claims:
        """What the method promises for every table."""
        claims = claims_of(self.base, self.publication, consistent=False)
        if not self.invariant:
            return claims
        return replace(
            claims, unbiased=False, max_move=2 * claims.max_move, blocked=(), variance=None
        )

    def __call__(self, table: Table, *, rng: np.random.Generator | None = None) -> Release:
        """Protect a table with draws from the generator."""
        if rng is None:
            raise ParameterError("post-randomisation draws at random: give it rng= or a seed.")
        if self.margins == "adjusted":
            return with_adjusted_margins(self, table, rng)
        cells = self.publication.cells(table, touches_zeros=not self.base.keeps_zeros)
        change = self._allocated(cells, rng) if self.realised else self._drawn(cells, rng)
        values = self.publication.values(table, cells, change)
        return self.publication.release(cells, values, self._statement())

    def matrix_for(self, counts: Whole) -> TransitionMatrix:
        """The matrix used for a table with these counts. Confidential when invariant."""
        if not self.invariant:
            return self.base
        if self.matrix is not None:
            return invariant_matrix(self.matrix, counts, self.alpha)
        return invariant_pram(counts, self.epsilon, self.cap, self.alpha)

    def cell_law(self, table: Table, position: int) -> tuple[Whole, Real] | None:
        """Deviations of one published cell and their probabilities; `None` where not fixed."""
        if self.realised or not self.publication.is_plain:
            return None
        cells = self.publication.cells(table, touches_zeros=True)
        matrix = self.matrix_for(cells.count[cells.distinct])
        return matrix.deviations, matrix.probabilities(int(table.z[position]))

    @cached_property
    def base(self) -> TransitionMatrix:
        """The public matrix that everything starts from."""
        return pram(self.epsilon, self.cap) if self.matrix is None else self.matrix

    def _drawn(self, cells: Cells, rng: np.random.Generator) -> Whole:
        return noise_by_draw(cells, self.matrix_for(cells.count[cells.distinct]), rng)

    def _allocated(self, cells: Cells, rng: np.random.Generator) -> Whole:
        def draw(chosen: Whole) -> Whole:
            counts = cells.count[chosen]
            if self.matrix is not None:
                R = self.matrix_for(counts).dense(int(counts.max(initial=0)) + 1)
                return _exchanged(counts, R, rng) - counts
            return self._exchanged_in_parts(counts, rng) - counts

        return cells.once(draw)

    def _exchanged_in_parts(self, counts: Whole, rng: np.random.Generator) -> Whole:
        """Small positive counts among themselves, larger ones by their residue; zeros stay."""
        new, small, large = counts.copy(), (counts > 0) & (counts < self.cap), counts >= self.cap
        P = small_table(self.epsilon, self.cap)
        new[small] = _exchanged(counts[small], _invariant(P, counts[small], self.alpha), rng)
        residue = counts[large] % (2 * self.cap + 1)
        P = large_table(self.epsilon, self.cap)
        new[large] += _exchanged(residue, _invariant(P, residue, self.alpha), rng) - residue
        return new

    def _statement(self) -> Statement:
        parameters = {
            **matrix_parameters(self.base),
            "invariant": self.invariant,
            "alpha": self.alpha if self.invariant else None,
            "realised": self.realised,
            **self.publication.parameters(),
        }
        return statement_of(self.name, parameters, self._sentences())

    def _sentences(self) -> list[str]:
        claims = self.claims
        lines = ["Counts were exchanged at random by post-randomisation."]
        if math.isfinite(claims.max_move):
            lines.append(f"No count moves by more than {claims.max_move:g}.")
        if claims.keeps_zeros:
            lines.append("Zeros stay zero.")
        if self.invariant:
            how = "is kept" if self.realised else "is kept on average"
            lines.append(
                f"How often each value occurs {how}; the same cell may change otherwise in "
                "another table."
            )
        return [*lines, *self.publication.sentences()]


def _invariant(P: FloatArray, states: Whole, alpha: float) -> FloatArray:
    return two_stage(P, np.bincount(states, minlength=len(P)), alpha)


def _exchanged(states: Whole, R: FloatArray, rng: np.random.Generator) -> Whole:
    """New states in which every frequency is what `R` leads to, rounded down or up."""
    flows = controlled_flows(R, np.bincount(states, minlength=len(R)))
    return allocate(states, flows, rng=rng)
