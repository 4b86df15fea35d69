"""Discrete Laplace noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from discreet.design.release import Release, Statement
from discreet.design.table import Table
from discreet.design.values import Real, Whole
from discreet.errors import ParameterError
from discreet.noise.checks import whole
from discreet.protect.budget import Budget, Margin, Share, noise_of, precision_by_share
from discreet.protect.cells import Cells
from discreet.protect.claims import Claims
from discreet.protect.margins import Margins
from discreet.protect.opendp_source import laplace_noise, scale_for
from discreet.protect.privacy import privacy_statement
from discreet.protect.publication import Publication
from discreet.protect.record_weight import RecordWeight
from discreet.protect.seeded_noise import cap_for, law_by_key, seeded_laplace
from discreet.protect.statements import statement_of
from discreet.protect.weights import Weighting
from discreet.protect.zeros import keys_with_zeros


@dataclass(frozen=True)
class DiscreteLaplace:
    r"""Whole-number noise with a differential privacy guarantee.

    Every published count gets :math:`u` with :math:`\Pr(u)\propto e^{-\varepsilon|u|/\Delta}`,
    where :math:`\Delta` is the largest row sum of `X` over the perturbed cells: in how many of
    them one record counts.

    Promise: ε-differential privacy for one record, zeros included; with a cap `c`
    (ε, δ) with :math:`\delta = \Delta\Pr(u = c)`. Structural zeros stay. Setting negative results
    to zero costs no privacy but biases small counts upwards. The draws come from the operating
    system through OpenDP and cannot be repeated.
    Cost: about 10 µs per cell.

    Args:
      epsilon: The budget ε of the whole release.
      cap: Largest noise; draws beyond it are rejected and drawn again.
      sensitivity: By how much one person changes all perturbed counts together; ``"auto"`` finds
        it from the design for a person with one record.
      keyed: Whether the noise is looked up by cell key instead. The same cell then has the same
        value wherever ε and sensitivity are the same, but this is not differential privacy.
      split: Shares of the budget by margin, such as ``{"region:age": 0.7, "1": 0.3}``.
      known: Margins that are public knowledge and published without noise.
      nonnegative: Whether negative results are set to zero.
      margins: ``"own"`` or ``"summed"``; inner cells alone have sensitivity 1.
      weighting: ``"mean"`` or ``"scale"`` for weighted counts.
      mean_weight: The public mean weight; taken from the table when absent.
      weight_bound: The largest weight a record can have, for ``weighting="scale"``; the mean is
        used when absent, if weights vary little.

    See Dwork & Roth (2014), Ghosh, Roughgarden & Sundararajan (2012), Rinott et al. (2018),
    Shlomo, Krenzke & Li (2019).
    """

    name: ClassVar[str] = "discrete-laplace"

    epsilon: float
    cap: int | None = None
    sensitivity: int | Literal["auto"] = "auto"
    keyed: bool = False
    split: Mapping[Margin, float] | None = None
    known: Sequence[Margin] = ()
    nonnegative: bool = True
    margins: Margins = "own"
    weighting: Weighting | None = None
    mean_weight: float | None = None
    weight_bound: float | None = None

    def __post_init__(self) -> None:
        if self.cap is not None:
            whole("cap", self.cap, 1)
        if self.margins == "adjusted":
            raise ParameterError(
                "margins='adjusted' keeps true zeros, as Adjust does, and that would undo the "
                "guarantee. Use margins='own' and a fitter (`release.fit(...)`)."
            )
        _ = self.budget, self.publication, self.record_weight

    @property
    def source(self) -> str:
        """``"keys"`` when keyed, ``"system"`` otherwise."""
        return "keys" if self.keyed else "system"

    @property
    def budget(self) -> Budget:
        """How the budget is spent."""
        return Budget(self.epsilon, self.sensitivity, self.split, self.known)

    @property
    def publication(self) -> Publication:
        """What is published of the cells."""
        return Publication(self.margins, self.weighting, self.mean_weight)

    @property
    def record_weight(self) -> RecordWeight:
        """By how much one record changes one cell."""
        return RecordWeight(self.weighting, self.mean_weight, self.weight_bound)

    @property
    def claims(self) -> Claims:
        """What the method promises for every table."""
        plain = self.publication.is_plain
        return Claims(
            additive=self.margins == "summed",
            unbiased=not self.nonnegative and self.weighting is None,
            keeps_zeros=False,
            max_move=self.cap if plain and self.cap is not None else math.inf,
            consistent=self.keyed and self.margins == "own" and self.sensitivity != "auto",
        )

    def __call__(self, table: Table, *, rng: np.random.Generator | None = None) -> Release:
        """Protect a table; a generator is taken and has no effect."""
        cells, shares = self._spent(table)
        statement = self._statement(table, shares)
        draw = self._by_key(cells) if self.keyed else self._from_system
        values = self._values(table, cells, noise_of(cells, shares, draw))
        return self.publication.release(cells, values, statement, self._precision(cells, shares))

    def simulate(self, table: Table, rng: np.random.Generator) -> NDArray[Any]:
        """Published values as a release would hold them, from a seeded generator. Confidential.

        For comparisons and studies: what a seeded generator draws can be drawn again, so it must
        not be released.
        """
        cells, shares = self._spent(table)

        def draw(share: Share) -> Whole:
            return seeded_laplace(rng, len(share.cells), share.scale, self.cap)

        return cells.published(self._values(table, cells, noise_of(cells, shares, draw)))

    def cell_law(self, table: Table, position: int) -> tuple[Whole, Real] | None:
        """Noise of one published cell and its probabilities; `None` where it is a sum."""
        if not self.publication.is_plain:
            return None
        cells, shares = self._spent(table)
        first = int(cells.representative[position])
        share = next((s for s in shares if first in s.cells), None)
        if share is None:
            return np.zeros(1, dtype=np.int64), np.ones(1)
        cap = cap_for(share.scale, 2**50) if self.cap is None else self.cap
        return self._cut(np.arange(-cap, cap + 1), share.law(cap), int(cells.count[position]))

    def _spent(self, table: Table) -> tuple[Cells, list[Share]]:
        cells = self.publication.cells(table, touches_zeros=True)
        return cells, self.budget.shares(cells, self.record_weight.change(table))

    def _from_system(self, share: Share) -> Whole:
        scale = scale_for(share.epsilon, share.sensitivity)
        return laplace_noise(len(share.cells), scale, self.cap)

    def _by_key(self, cells: Cells) -> Callable[[Share], Whole]:
        keys, rule = keys_with_zeros(cells), cells.table.convention

        def draw(share: Share) -> Whole:
            cap = cap_for(share.scale, rule.modulus) if self.cap is None else self.cap
            return law_by_key(share.law(cap), keys[share.cells], rule)

        return draw

    def _values(self, table: Table, cells: Cells, noise: Whole) -> NDArray[Any]:
        change = np.maximum(noise, -cells.count) if self.nonnegative else noise
        return self.publication.values(table, cells, change)

    def _cut(self, noise: Whole, law: Real, count: int) -> tuple[Whole, Real]:
        """The law after negative results were set to zero."""
        if not self.nonnegative or count >= -noise[0]:
            return noise, law
        kept = noise >= -count
        cut = law[kept].copy()
        cut[0] += law[~kept].sum()
        return noise[kept], cut

    def _precision(self, cells: Cells, shares: Sequence[Share]) -> Real | None:
        return None if cells.are_inner else precision_by_share(cells, shares, self.cap)

    def _statement(self, table: Table, shares: Sequence[Share]) -> Statement:
        names = ("epsilon", "cap", "sensitivity", "keyed", "nonnegative", "weight_bound")
        parameters = {
            **{name: getattr(self, name) for name in names},
            **self.budget.parameters(),
            **self.publication.parameters(),
        }
        lines = [_CLIPPED] if self.nonnegative else []
        lines += [*self.budget.sentences(), *self.publication.sentences()]
        if self.keyed:
            return statement_of(self.name, parameters, [_keyed_sentence(shares), *lines])
        privacy = privacy_statement(shares, self.cap, self.record_weight.caveat())
        return statement_of(self.name, parameters, [_NOISE, privacy.text, *lines], privacy)


_NOISE = "Counts got discrete Laplace noise from the operating system's source of randomness."
_CLIPPED = "Negative results were set to zero, which lifts small counts on average."


def _keyed_sentence(shares: Sequence[Share]) -> str:
    largest = max(share.scale for share in shares)
    return (
        f"Counts got noise with the law of discrete Laplace noise of scale {largest:.6g}, looked "
        "up by cell key: the same cell shows the same value each time. This is not differential "
        "privacy of the release. The noise is fixed by the records, so whoever can compare tables "
        "that differ by one record sees where the record is; the law of a single cell alone is "
        "that of the differentially private method."
    )
