"""Quality of single cells that may be published: a coarse class of their deviation, perturbed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from discreet.arrays import Real, Whole
from discreet.errors import DesignError, KeysError, ParameterError, is_number, whole
from discreet.protect.cells import NoiseCells, keys_of, keys_with_zeros, on_public_support
from discreet.protect.draws import MIXED_KEYS
from discreet.protect.options import SHARES, OptionLists
from discreet.protect.publication import WrappingMethod
from discreet.protect.sentences import limit, process
from discreet.tables.protected import COUNT, Claims, Draws, Method, Protected
from discreet.tables.show import NO_QUALITY
from discreet.tables.statement import Step, step_of
from discreet.tables.truth import TrueTable


@dataclass(frozen=True)
class Quality(WrappingMethod):
    r"""A method whose releases also say, roughly, how far single cells may be from the truth.

    The size :math:`|d|` of a cell's deviation falls into one of `K` classes. The class shown is
    its own with probability `keep`, and otherwise any of the `K` with equal probability.

    Promise: values and source are those of the method. Whatever the table, a class is shown at
    most :math:`1 + K\,\mathrm{keep}/(1 - \mathrm{keep})` times as often for one deviation as for
    another; that is what the quality costs. The expected share of cells shown in class `c` is
    :math:`\mathrm{keep}\,f_c + (1 - \mathrm{keep})/K`, from which the true share :math:`f_c` is
    estimated without bias (`shares`). Cells that are the same have the same quality; cells
    published as zero have none, since it would tell empty cells from small ones. By keys the
    quality of a cell is the same in every table.
    Cost: half a microsecond per cell.

    Args:
      method: The method that protects; not a differentially private one.
      edges: Largest deviation of every class but the last, increasing; one or two of them.
      keep: Probability that a cell's own class is kept, in (0, 1).

    See Giessing & Höhne (2011), section 7; Shlomo & Young (2008).
    """

    name: ClassVar[str] = "quality"
    units: ClassVar[tuple[str, ...]] = (COUNT,)
    wraps: ClassVar[str] = "a protecting method such as Safe()"
    private_method: ClassVar[str] = (
        ": a quality that depends on true counts would undo that. Its public noise law already "
        "says how good cells are."
    )
    private_release: ClassVar[str] = (
        "a quality that depends on true counts would undo that. Publish it without one."
    )
    counts_only: ClassVar[str] = "quality is about whole counts"
    option_lists: ClassVar[OptionLists] = {"keep": SHARES}

    method: Method
    edges: Sequence[int] = (1, 4)
    keep: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_number(self.keep) or not 0 < self.keep < 1:
            raise ParameterError(f"keep must lie strictly between 0 and 1, got {self.keep!r}.")
        if not isinstance(self.edges, Sequence):
            raise ParameterError(f"edges are one or two increasing numbers, got {self.edges!r}.")
        object.__setattr__(self, "edges", tuple(whole("edges", e, 0) for e in self.edges))
        if len(self.edges) not in (1, 2) or list(self.edges) != sorted(set(self.edges)):
            raise ParameterError(f"edges are one or two increasing numbers, got {self.edges}.")

    @property
    def source(self) -> str:
        """Where the noise comes from: what the protecting method declares."""
        return self.method.source

    @property
    def claims(self) -> Claims:
        """What the protecting method promises."""
        return self.method.claims

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.edges) + 1

    @property
    def odds(self) -> float:
        """How many times as often a class is shown for one deviation as for another, at most."""
        return 1 + self.n_classes * self.keep / (1 - self.keep)

    def __call__(self, table: TrueTable, *, draws: Draws) -> Protected:
        """Protect the table and say how good its cells are."""
        protected = self.protect_first(table, draws)
        cells = NoiseCells(on_public_support(table))
        if cells.table.design.n_published != len(protected.z):
            raise DesignError(
                "this release shows fewer cells than the table has, because the full crossing is "
                "too large; their quality cannot be given. Tabulate fewer variables."
            )
        own = np.searchsorted(self.edges, np.abs(protected.z - cells.count))
        shown = self._perturb(own, self._uniform(cells, table, draws))
        # cells published as zero have none: it would tell empty cells from small ones
        graded = (protected.z > 0) & ~protected.hidden
        statement = protected.statement.then(self._step(), changes_values=False)
        quality = np.where(graded, shown, NO_QUALITY)
        return replace(protected, quality=quality, statement=statement)

    def shares(self, release: Protected) -> Real:
        """Estimated shares of the classes among the cells that have a quality, without bias."""
        quality = np.asarray(release.quality)
        seen = np.bincount(quality[quality != NO_QUALITY], minlength=self.n_classes)
        observed = seen / max(seen.sum(), 1)
        return np.asarray((observed - (1 - self.keep) / self.n_classes) / self.keep)

    def _uniform(self, cells: NoiseCells, table: TrueTable, draws: Draws) -> Real:
        """A number in [0, 1) for every cell, the same for the same records."""
        if self.source != "keys":
            rng = draws.generator(self, table)
            return np.asarray(cells.spread(rng.random(len(cells.distinct))))
        if table.secret is None:
            raise KeysError(
                "the quality of cells is drawn from a secret, and this table has none: "
                "`table.with_secret(secret)`."
            )
        keys = keys_of(cells) if self.claims.keeps_zeros else keys_with_zeros(cells)
        return table.secret.mix_keys(keys, self.name) / MIXED_KEYS

    def _perturb(self, own: Whole, u: Real) -> Whole:
        """The class that is shown: the own one, or any.

        One number decides both, so a cell needs one hash: above `keep` it is uniform again.
        """
        other = np.floor((u - self.keep) / (1 - self.keep) * self.n_classes).astype(np.int64)
        return np.where(u < self.keep, own, np.minimum(other, self.n_classes - 1))

    def _step(self) -> Step:
        first, last = self.edges[0], self.edges[-1]
        middle = f"1 for {first + 1} to {last}, " if len(self.edges) == 2 else ""
        meaning = (
            f"Quality is a class of a cell's deviation from its true count: 0 stands for at most "
            f"{first}, {middle}{self.n_classes - 1} for more than {last}. The class was itself "
            f"changed at random: it is the true one with probability "
            f"{self.keep + (1 - self.keep) / self.n_classes:.3g}."
        )
        cost = (
            f"A class is shown at most {self.odds:.4g} times as often for one deviation as for "
            "another; whoever knows much about a cell learns that much more."
        )
        parameters = {"edges": list(self.edges), "keep": self.keep}
        said = [process("quality", meaning), limit("quality-cost", cost)]
        return step_of(f"protect:{self.name}", parameters, said)
