"""The frame of differentially private methods: a budget, its shares, and noise from the system."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic

import numpy as np

from discreet.arrays import Real, Whole
from discreet.design.formula import Margin, single_margins
from discreet.errors import ParameterError
from discreet.noise.checks import positive, whole
from discreet.protect.cells import Cells
from discreet.protect.frame.budget import (
    AnyShare,
    Budget,
    Unit,
    noise_of,
    precision_by_share,
)
from discreet.protect.frame.known import change_of_known
from discreet.protect.frame.margins import Margins
from discreet.protect.frame.noise import Noise
from discreet.protect.frame.privacy import given_known, guarantee, require_declared, spent, unit_of
from discreet.protect.frame.publication import Publication
from discreet.protect.sentences import claimed, known_rounded, process
from discreet.protect.statements import statement_of
from discreet.tables.method import Claims, Draws
from discreet.tables.protected import COUNT, WEIGHT, Protected
from discreet.tables.statement import PrivacyStatement, Sentence, Statement
from discreet.tables.truth import TrueTable

_LETTERS = {"epsilon": "ε", "rho": "ρ"}


@dataclass(frozen=True, kw_only=True)
class PrivateNoise(Noise, Generic[AnyShare]):
    """What differentially private methods share.

    A method gives the name of its budget (`spends`), the kind of its shares, their noise and
    variance, the guarantee, and the sentence `done`. Where it has a field `nonnegative`, negative
    results are set to zero. Bounds of weights and of records for each person come with the data.

    Attributes:
      split: Shares of the budget by margin, such as ``{"region:age": 0.7, "1": 0.3}``.
      known: Margins that are public knowledge and published without noise, such as ``["region",
        "1"]``; ``"1"`` is the total. The guarantee then holds for replacing a unit by another that
        leaves them as they are.
      known_base: Small counts of known margins are rounded to this number or to zero before they
        are published and held. The rounding follows from the known margins and the secret alone, so
        the guarantee stays.
      margins: ``"own"`` or ``"summed"``; inner cells alone have sensitivity 1.
      population: Size of the population, a public figure; δ must not exceed 1/(10 · population).
      accept_delta: The largest δ that is accepted instead.
    """

    split: Mapping[Margin, float] | None = None
    known: Margin | Sequence[Margin] = ()
    known_base: int | None = None
    margins: Margins = "own"
    population: int | None = None
    accept_delta: float | None = None

    plain: ClassVar[str] = ""
    spends: ClassVar[str] = "epsilon"
    share_kind: ClassVar[Any]
    source: ClassVar[str] = "system"
    units: ClassVar[tuple[str, ...]] = (COUNT, WEIGHT)

    def __post_init__(self) -> None:
        positive(self.spends, self.budget.total)
        if self.margins == "adjusted":
            raise ParameterError(
                "margins='adjusted' keeps true zeros, as Adjust does, and that would undo the "
                "guarantee. Use margins='own' and a fitter (`release.fit(...)`)."
            )
        if self.known_base is not None:
            whole("known_base", self.known_base, 2)
            if not self.known:
                raise ParameterError("known_base is for known margins: name them with known=.")
        _ = self.publication

    @property
    def budget(self) -> Budget:
        """How the budget is spent."""
        return Budget(getattr(self, self.spends), self.split, self.known)

    @property
    def publication(self) -> Publication:
        """What is published of the cells."""
        return Publication(self.margins)

    @property
    def claims(self) -> Claims:
        """What the method promises for every table."""
        return Claims(
            additive=self.margins == "summed", unbiased=self.is_unbiased, keeps_zeros=False
        )

    def __call__(self, table: TrueTable, *, draws: Draws) -> Protected:
        """Protect a table."""
        cells, shares, unit = self.spent(table)
        privacy = self.privacy(shares, unit)
        if self.known:
            privacy = given_known(privacy)
        noise = self.cut(cells, noise_of(cells, shares, lambda share: self.draw(share, draws)))
        if self.known_base is not None:
            known = single_margins(self.known)
            noise = noise + change_of_known(cells, known, self.known_base, draws)
        precision = None
        if not (cells.are_inner and self.is_cut):  # sums of cells that were cut are biased
            precision = precision_by_share(cells, shares, [self.variance(s) for s in shares])
        statement = self._statement(table, shares, privacy, unit)
        return self.publication.protected(cells, noise, statement, precision)

    def spent(self, table: TrueTable) -> tuple[Cells, list[AnyShare], Unit]:
        """The cells that get noise, their shares of the budget, and what one unit can change."""
        require_declared(table)
        unit = unit_of(table)
        cells = self.publication.cells(table, touches_zeros=True)
        return cells, self.budget.shares(cells, unit, self.share_kind), unit

    @abstractmethod
    def draw(self, share: AnyShare, draws: Draws) -> Any:
        """The noise of one share."""

    @abstractmethod
    def variance(self, share: AnyShare) -> float:
        """The variance of its noise."""

    @abstractmethod
    def privacy(self, shares: Sequence[AnyShare], unit: Unit) -> PrivacyStatement:
        """The guarantee, or an error where it would mean nothing."""

    def cut(self, cells: Cells, noise: Whole | Real) -> Whole | Real:
        """What is left of the noise when negative results are set to zero."""
        return np.maximum(noise, -cells.count) if self.is_cut else noise

    @property
    def is_unbiased(self) -> bool:
        """Whether expected values are the true ones."""
        return not self.is_cut and self.known_base is None

    @property
    def is_cut(self) -> bool:
        """Whether negative results are set to zero."""
        return getattr(self, "nonnegative", False)

    def what_was_done(self) -> list[Sentence]:
        """The sentences of the method itself, and what setting negative results to zero does."""
        clipped = process(
            "clipped",
            "Negative results were set to zero, which lifts small values on average.",
            "Very small figures are a little too high on average.",
        )
        return [*super().what_was_done(), *([clipped] if self.is_cut else [])]

    def _statement(
        self, table: TrueTable, shares: Sequence[AnyShare], privacy: PrivacyStatement, unit: Unit
    ) -> Statement:
        claims = self.claims
        if table.unit == WEIGHT:  # weighted counts are rounded before they get noise
            claims = replace(claims, unbiased=False, max_move=math.inf)
        said = [
            *self.what_was_done(),
            *guarantee(privacy, self.budget, unit),
            *([] if self.known_base is None else [known_rounded(self.known_base)]),
            *spent(shares, _LETTERS[self.spends]),
            *self.publication.sentences(),
            *claimed(claims, table.unit or COUNT),
        ]
        chosen = {
            **self.parameters(),
            "population": self.population,
            "known_base": self.known_base,
        }
        parameters = {**chosen, **self.budget.parameters(), **self.publication.parameters()}
        return statement_of(self.name, parameters, said, privacy)
