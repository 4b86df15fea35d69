"""Cell keys for magnitudes: sums of a value, and means, changed by their largest contributions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import brentq

from discreet.arrays import Real, Whole
from discreet.digests import digest
from discreet.errors import DataError, KeysError, ParameterError, positive, whole
from discreet.protect.cells import on_public_support
from discreet.protect.options import GRIDS
from discreet.protect.sentences import claim_sentences, limit, process, statement_of
from discreet.tables.magnitude import NOBODY, Contributions
from discreet.tables.protected import (
    COUNT,
    VALUE,
    CellStatus,
    Claims,
    Draws,
    Method,
    Protected,
    mean_unit,
)
from discreet.tables.statement import Sentence, Statement
from discreet.tables.truth import TrueTable

_KEYS = 2**32  # keyed hashes lie below this
_CONTRIBUTOR, _EDITION = "\0contributor", "\0edition"  # no variable has such names
_SCALES = (0.01, 0.02, 0.03, 0.05)


@dataclass(frozen=True)
class MagnitudeKey:
    r"""Noise in proportion to the largest contributions, looked up by cell key and contributor.

    A cell with sum `S` and largest contributions :math:`x_1 \ge x_2 \ge …` is published as

    .. math:: S + d \Bigl\{ s\,x_1 \mu + \sum_{k \le K} \frac{s}{k}\, x_k (w_k + u_k) \Bigr\},

    rounded to multiples of `base`. The direction `d` and the parts :math:`w_k` are keyed hashes of
    the contributors and the same in all their cells, so that they do not average out. The parts
    :math:`u_k` are keyed hashes of the cell key, which belongs to the records of the cell. Both are
    sizes under the law of maximum entropy on :math:`-D, …, D` in steps with variance `V`, made
    continuous within a step.

    Promise: the same records have the same value in every table; no sum of contributions that are
    not negative becomes negative; every sum moves by at least :math:`s\mu x_1`, up to rounding.
    Sums of zero stay zero. Cost: two hashes for each of the `top` contributors of a cell.

    Args:
      scale: Share `s` of the largest contribution that one unit of noise stands for.
      least: The least move :math:`\mu` of the largest contributor, in such units.
      D: Largest value of either part.
      V: Variance of the law behind both parts.
      steps: Steps of that law in a unit.
      top: Number `K` of the contributors that noise depends on.
      base: Published sums are multiples of it; decimals would tell the largest contribution.
      counts: A method by cell keys for numbers of records. With it means are published, changed
        sums over changed counts; a mean whose count was changed to zero is not shown.

    See Thompson, Broadfoot & Elazar (2013), Giessing & Tent (2019).
    """

    scale: float = 0.05
    least: float = 2.0
    D: int = 5
    V: float = 2.0
    steps: int = 4
    top: int = 2
    base: float = 1.0
    counts: Method | None = None

    name: ClassVar[str] = "magnitude-key"
    source: ClassVar[str] = "keys"
    units: ClassVar[tuple[str, ...]] = (VALUE,)

    def __post_init__(self) -> None:
        for option in ("scale", "least", "V", "base"):
            positive(option, getattr(self, option))
        for option in ("D", "steps", "top"):
            whole(option, getattr(self, option), 1)
        if self.V >= self.D**2 / 3:
            raise ParameterError(
                f"V={self.V:g} is too large for D={self.D}: a law that falls from the middle to "
                f"both sides has a variance below D²/3 = {self.D**2 / 3:.4g}."
            )
        if self.largest_share > 1:
            raise ParameterError(
                f"scale={self.scale:g} could move a sum by {self.largest_share:.0%} of its largest "
                "contributions, and below zero. Lower scale, D, least or top until it is 100 % at "
                "most."
            )
        made = self.counts
        if made is not None and (
            getattr(made, "source", None) != "keys" or COUNT not in getattr(made, "units", (COUNT,))
        ):
            raise ParameterError(
                f"counts= takes a method by cell keys for counts, such as CellKey, got {made!r}."
            )

    @property
    def largest_share(self) -> float:
        """What noise is at most, as a share of the largest contributions."""
        harmonic = sum(1 / k for k in range(1, self.top + 1))
        return self.scale * (self.least + 2 * self.D * harmonic)

    @property
    def option_lists(self) -> dict[str, tuple[Any, ...]]:
        """Options that come from a short list where nobody counts releases.

        Laws draw anew, and would give sums away by subtraction if they did not; so there are as
        few as there are scales. The base rounds the same noise.
        """
        usual = ("least", "D", "V", "steps", "top")
        fixed = {name: (getattr(MagnitudeKey, name),) for name in usual}
        return {"scale": _SCALES, **fixed, "base": GRIDS}

    @property
    def claims(self) -> Claims:
        """What the method promises for every table."""
        return Claims(
            additive=False, unbiased=False, keeps_zeros=self.counts is None, consistent=True
        )

    @cached_property
    def law(self) -> Real:
        """Probabilities of the sizes 0, 1, …, D in steps: maximum entropy with variance V."""
        return entropy_sizes(self.D * self.steps, self.V * self.steps**2)

    def check_for(self, table: TrueTable) -> None:
        """Refuse tables whose contributors are not known well enough."""
        given = table.require_contributions()
        if given.largest.shape[1] < self.top:
            raise ParameterError(
                f"noise depends on the {self.top} largest contributions, but this table holds "
                f"{given.largest.shape[1]}. Tabulate with largest={self.top}."
            )
        places = given.owner[:, : self.top]
        if ((given.largest[:, : self.top] > 0) & (places == NOBODY)).any():
            raise DataError(
                "contributors of this table are not named, and noise must follow a contributor "
                "through all cells. Tabulate from records, with contributor=."
            )

    def __call__(self, table: TrueTable, *, draws: Draws) -> Protected:
        """Change the sums of a table by the keys of its cells and contributors."""
        self.check_for(table)
        table = on_public_support(table)
        given = table.require_contributions()
        z = np.rint((given.sum + self.noise(table)) / self.base) * self.base
        unit, status = given.value, None
        if self.counts is not None:
            z, status, unit = self._means(self.counts, table, z, draws)
        return Protected.of(table.design, z, self.statement(given), unit=unit, status=status)

    def noise(self, table: TrueTable) -> Real:
        """The change of every published cell, before rounding."""
        given, secret = table.require_contributions(), table.secret
        if secret is None:
            raise KeysError(
                "the noise of magnitudes is a keyed hash, so the table needs the custodian's "
                "secret: open the records with secret='keys.secret', or `table.with_secret(...)`."
            )
        cell, purpose = table.cell_keys, self.purpose
        mode = table.data_set.mode
        edition = {_EDITION: table.data_set.edition} if mode.is_by_edition else {}
        named = [{_CONTRIBUTOR: owner, **edition} for owner in given.owners]
        own = secret.zero_key(named, table.convention) if named else np.zeros(0, np.int64)
        total = np.zeros(len(given.sum))
        for k in range(self.top):
            size, owner = given.largest[:, k], given.owner[:, k]
            key = np.where(owner == NOBODY, 0, own[owner] if len(own) else 0)
            shared = self._sizes(secret.mix_keys(key, f"{purpose} contributor"))
            alone = self._sizes(secret.mix_keys(cell, f"{purpose} cell {k}"))
            total += size * self.scale / (k + 1) * (shared + alone)
            if k == 0:
                total += size * self.scale * self.least
                up = secret.mix_keys(key, f"{purpose} direction") % 2 == 1
        return np.asarray(np.where(up, total, -total))

    @property
    def purpose(self) -> str:
        """What keyed hashes are for: every law has its own, so that two cannot be subtracted."""
        parts = (self.scale, self.least, self.D, self.V, self.steps, self.top)
        return f"{self.name} {digest(*map(float, parts)).hex()}"

    def _sizes(self, keys: Whole) -> Real:
        """Sizes of noise under the law, continuous within a step."""
        ends = np.cumsum(self.law)
        point = (keys + 0.5) / _KEYS
        size = np.minimum(np.searchsorted(ends, point, side="right"), len(ends) - 1)
        # How far a point lies within its interval is uniform; with steps alone two cells would
        # often have the same noise, and their difference would be the true one.
        within = np.clip((ends[size] - point) / self.law[size], 0.0, 1.0)
        return np.asarray(np.maximum(size - within, 0.0) / self.steps)

    def _means(
        self, method: Method, table: TrueTable, z: Real, draws: Draws
    ) -> tuple[Real, np.ndarray[Any, Any] | None, str]:
        given = table.require_contributions()
        counted = replace(table, unit=COUNT, contributions=None)
        changed = method(counted, draws=draws)
        absent = (changed.z <= 0) | changed.hidden
        means = np.where(absent, 0.0, z / np.where(absent, 1, changed.z))
        status = np.where(absent, CellStatus.below_threshold, CellStatus.published)
        return means, status.astype(np.int8), mean_unit(given.value)

    def parameters(self) -> dict[str, Any]:
        """The parameters as plain public data."""
        names = ("scale", "least", "D", "V", "steps", "top", "base")
        found: dict[str, Any] = {name: getattr(self, name) for name in names}
        if self.counts is not None:
            own: dict[str, Any] = getattr(self.counts, "parameters", dict)()
            found["counts"] = {"method": self.counts.name, **own}
        return found

    def statement(self, given: Contributions) -> Statement:
        """What is said of the release."""
        what = f"Means of {given.value}" if self.counts is not None else f"Sums of {given.value}"
        share, most = self.scale * self.least, self.largest_share
        said = [
            process(
                self.name,
                f"{what} were changed in proportion to the largest contributions to them, by keyed "
                "hashes of the records in a cell and of these contributors, and rounded to "
                f"multiples of {self.base:g}. Up and down are equally likely.",
                "Each figure was changed by a random amount that is larger where one contributor "
                "stands out.",
            )
        ]
        if self.counts is None:
            said.append(
                Sentence(
                    "moves-with-largest",
                    f"Every sum was moved by at least {share:.3g} and at most {most:.3g} times its "
                    f"largest contributions, up to rounding to multiples of {self.base:g}.",
                    holds=partial(moves_with_largest, share, most, self.base),
                )
            )
        else:
            said.append(
                process(
                    "means",
                    "Means are changed sums over numbers of records that were changed by method "
                    f"{self.counts.name!r}; a mean whose number was changed to zero is not shown.",
                )
            )
        said += claim_sentences(self.claims, given.value)
        said.append(
            limit(
                "own-noise",
                "Whoever knows its own contribution, and that it is the only one in a cell, learns "
                "the direction of the change in all cells in which it is the largest. What others "
                "contribute there is then hidden by the part that each cell has of its own.",
            )
        )
        return statement_of(self.name, self.parameters(), said)


def entropy_sizes(reach: int, variance: float) -> Real:
    """Sizes 0 … `reach` of the symmetric law of maximum entropy with a variance."""
    squares = np.arange(reach + 1.0) ** 2
    twice = np.where(squares > 0, 2.0, 1.0)

    def law(slope: float) -> Real:
        weights = twice * np.exp(-slope * squares)
        return np.asarray(weights / weights.sum())

    def excess(slope: float) -> float:
        return float(law(slope) @ squares) - variance

    # A slope of zero is the uniform law; one over the variance is more than a normal law has.
    return law(float(brentq(excess, 0.0, 2.0 / min(variance, 1.0) + 1.0 / variance, xtol=1e-14)))


def moves_with_largest(share: float, most: float, base: float, evidence: Any) -> bool:
    """Whether sums moved as far as is said; evidence has `largest`, the largest contributions."""
    for final in evidence.finals:
        move = np.abs(final.z - evidence.truth)
        slack = base / 2 + 1e-9 * np.abs(evidence.truth)
        some = evidence.largest > 0
        if (move < share * evidence.largest - slack)[some].any():
            return False
        if (move > most * evidence.largest + slack).any() or move[~some].any():
            return False
    return True
