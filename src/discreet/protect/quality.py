"""Quality of single cells that may be published: the size of their deviation, itself perturbed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet.design.release import QUALITY_STEP, CellStatus, Release, Step
from discreet.design.show import NO_QUALITY
from discreet.design.table import Table
from discreet.design.values import Whole
from discreet.errors import ConfidentialError, DesignError, ParameterError
from discreet.noise.allocate import blurred_deviations
from discreet.noise.checks import whole, within
from discreet.protect.adjust import Perturbing
from discreet.protect.cells import Cells, on_public_support
from discreet.protect.claims import Claims

_NOT_GIVEN = "Quality of cells is not given: too few deviate for single ones to be hidden."


@dataclass(frozen=True)
class Quality:
    r"""A method whose releases also say how far single cells may be from the truth.

    The deviations :math:`d` of the released counts go through a transition matrix on the
    deviations that occur, made invariant for their frequencies :math:`t`:

    .. math:: d^*_k \sim R_{d_k\,\cdot},\qquad t R = t,\qquad \text{published: } |d^*_k|.

    Promise: values, source and statement are those of the method. How often each deviation occurs
    is kept exactly, so table-level figures made from the quality are the true ones; the deviation
    of a single cell is not shown. Cells that are the same have the same quality. Cells released as
    zero have none, since it would tell empty cells from small ones. With keys the quality of a cell
    is decided by its key, so repeating a table, or publishing the cell in another, gives no second
    draw to average with.
    Cost: a sort of the cells and a small linear program.

    Args:
      method: The method that protects; not a differentially private one.
      step: Probability of a move to each neighbour in the starting matrix, at most 1/2.
      strength: How much of the invariant matrix is used, in (0, 1]; the rest leaves deviations
        as they are.
      min_cells: The largest size shown has at least so many cells; sizes beyond it are shown as
        that one. A table in which fewer cells deviate gets no quality, and says so.

    See Giessing & Höhne (2011), section 7; Shlomo & Young (2008).
    """

    name: ClassVar[str] = "quality"

    method: Perturbing
    step: float = 1 / 3
    strength: float = 1.0
    min_cells: int = 10

    def __post_init__(self) -> None:
        if not callable(self.method) or not hasattr(self.method, "claims"):
            raise ParameterError(
                f"Quality wraps a protecting method such as Safe(), got {self.method!r}."
            )
        if self.method.source == "system":
            raise ParameterError(
                f"method {self.method.name!r} is differentially private: a quality that depends on "
                "true counts would undo that. Its public noise law already says how good cells are."
            )
        within("step", self.step, 0.5)
        within("strength", self.strength, 1)
        whole("min_cells", self.min_cells, 2)

    @classmethod
    def from_parameters(
        cls,
        method: str = "cell-key",
        parameters: Mapping[str, Any] | None = None,
        step: float = 1 / 3,
        strength: float = 1.0,
        min_cells: int = 10,
    ) -> Quality:
        """The method from plain values.

        Args:
          method: Registered name of the method that protects.
          parameters: Its parameters.
          step: As for the method.
          strength: As for the method.
          min_cells: As for the method.
        """
        from discreet import registry

        return cls(registry.build("method", method, parameters or {}), step, strength, min_cells)

    @property
    def source(self) -> str:
        """Where the noise comes from: what the protecting method declares."""
        return self.method.source

    @property
    def claims(self) -> Claims:
        """What the protecting method promises."""
        return self.method.claims

    def __call__(self, table: Table, *, rng: np.random.Generator | None = None) -> Release:
        """Protect the table and say how good its cells are."""
        release = self.method(table) if rng is None else self.method(table, rng=rng)
        _check_release(release)
        cells = Cells(on_public_support(table))
        if cells.table.design.n_published != len(release.z):
            raise DesignError(
                "this release shows fewer cells than the table has, because the full crossing is "
                "too large; their quality cannot be given. Tabulate fewer variables."
            )
        graded = _graded(cells, release)
        true = self._top_coded(release.z[graded] - cells.count[graded])
        if len(np.unique(true)) < 2:
            return replace(release, statement=release.statement.then(self._step(), _NOT_GIVEN))
        sizes = np.abs(self._blurred(true, cells, graded, rng))
        kept = float((sizes == np.abs(true)).mean())
        return replace(
            release,
            quality=_placed(sizes, graded, cells, release),
            statement=release.statement.then(self._step(), _text(int(sizes.max()), kept)),
        )

    def _top_coded(self, deviations: Whole) -> Whole:
        """Deviations without sizes that few cells have; all zero where cells are few."""
        if len(deviations) < self.min_cells:
            return np.zeros_like(deviations)
        reach = int(np.partition(np.abs(deviations), -self.min_cells)[-self.min_cells])
        return np.clip(deviations, -reach, reach)

    def _blurred(
        self, true: Whole, cells: Cells, graded: Whole, rng: np.random.Generator | None
    ) -> Whole:
        if self.source != "keys":
            return blurred_deviations(true, q=self.step, alpha=self.strength, rng=rng)
        order = _mixed(cells.table.cell_keys[graded])
        return blurred_deviations(true, q=self.step, alpha=self.strength, keys=order)

    def _step(self) -> Step:
        names = ("step", "strength", "min_cells")
        return Step(QUALITY_STEP, {name: getattr(self, name) for name in names})


def _check_release(release: Release) -> None:
    if release.statement.privacy is not None:
        raise ConfidentialError(
            "this release is differentially private, and a quality that depends on true counts "
            "would undo that. Publish it without one."
        )
    if release.weighted is not None or release.z.dtype.kind == "f":
        raise DesignError(
            "quality is about whole counts, but this release has weighted counts or real numbers. "
            "Leave out weighting=."
        )


def _graded(cells: Cells, release: Release) -> Whole:
    """Positions of the cells that get a quality: shown, positive, and each set of records once."""
    shown = release.z > 0
    if release.status is not None:
        shown &= release.status == CellStatus.published
    return cells.distinct[shown[cells.distinct]]


def _placed(sizes: Whole, graded: Whole, cells: Cells, release: Release) -> Whole:
    """The quality of every published cell."""
    quality = np.full(len(release.z), NO_QUALITY, dtype=np.int64)
    quality[graded] = sizes
    shared: Whole = cells.shared(quality[cells.distinct])
    return np.where(release.z > 0, shared, NO_QUALITY)


def _mixed(keys: Whole) -> NDArray[np.int64]:
    """Numbers in an order that has nothing to do with that of the keys (a 64-bit finaliser).

    Within a state keys lie in intervals that belong to true counts, so their own order would
    tie the quality to the count.
    """
    x = keys.astype(np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return (x ^ (x >> np.uint64(31))).view(np.int64)


def _text(largest: int, kept: float) -> str:
    return (
        "Quality is the size of a cell's deviation from its true count, itself perturbed: sizes "
        f"are as frequent as they truly are, and {kept:.0%} of the cells show their own. "
        f"{largest} stands for {largest} or more. Cells published as zero have no quality."
    )
