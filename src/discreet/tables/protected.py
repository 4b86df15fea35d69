"""Protected values: what a method makes of a table."""

from __future__ import annotations

import enum
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Array, Mask, Real
from discreet.design.base import Design
from discreet.errors import ConfidentialError, DesignError
from discreet.tables.show import NO_QUALITY
from discreet.tables.statement import Statement

COUNT, WEIGHT, VALUE = "count", "weight", "value"
"""What methods can publish: numbers of records, sums of their weights, sums of a value.

The unit of sums of a value is the value's name.
"""


class CellStatus(enum.IntEnum):
    """Why a published cell shows what it shows."""

    published = 0
    suppressed = 1
    structural_zero = 2
    below_threshold = 3
    decimal = 4


HIDDEN = (CellStatus.suppressed, CellStatus.below_threshold)
_OUTSIDE = {"status": CellStatus.published, "quality": NO_QUALITY, "precision": 0.0}
"""What cells get that a release has and its table, read from the records, had not."""


@dataclass(frozen=True, eq=False, repr=False)
class Protected:
    """A design with protected values and the statement that goes with them.

    Methods return it; `Table.protect` makes a `Release` of it, `Table.simulate` a `Trial`. It can
    be measured and attacked, but neither shown nor written.

    Attributes:
      design: The public design.
      z: Protected values of the published cells.
      statement: What was done and what it promises.
      unit: What the values are: `"count"`, `"weight"`, or the name of a value.
      y: Protected inner cells, where they are part of the release.
      status: A `CellStatus` for each published cell; all published when absent.
      precision: One over the variance of each published value's noise, infinite where there is
        none; a function of design and method alone. `None` where it is not known.
      quality: Perturbed class of each published cell's deviation; −1 where none is given.
      fit_result: The fit that made `y`, with its certificate.
    """

    design: Design
    z: Array
    statement: Statement
    unit: str = COUNT
    y: Array | None = None
    status: NDArray[np.int8] | None = None
    precision: Real | None = None
    quality: Array | None = None
    fit_result: Any = None

    def __post_init__(self) -> None:
        if self.design.is_confidential:
            raise ConfidentialError(
                "protected values need a design with public support, but this one was read from "
                "the records. Use `Protected.of`, which puts them on the full crossing."
            )
        if len(self.z) != self.design.n_published:
            raise DesignError(
                f"the design has {self.design.n_published:,} published cells, "
                f"but {len(self.z):,} values were given."
            )

    @classmethod
    def of(cls, design: Design, z: Array, statement: Statement, **parts: Any) -> Self:
        """Values on the design's public support; cells outside the given one are zero."""
        lift = design.public()
        if lift.design is design:
            return cls(design, z, statement, **parts)
        for name, outside in _OUTSIDE.items():
            if parts.get(name) is not None:
                parts[name] = lift.publish(parts[name], outside)
        if parts.get("y") is not None:
            parts["y"] = lift.lift(parts["y"])
        return cls(lift.design, lift.publish(z), statement, **parts)

    @classmethod
    def wrap(cls, protected: Protected) -> Self:
        """An object of this class with the same contents."""
        return cls(**{f.name: getattr(protected, f.name) for f in fields(Protected)})

    @property
    def hidden(self) -> Mask:
        """Which published cells are not shown."""
        if self.status is None:
            return np.zeros(len(self.z), dtype=bool)
        return np.isin(self.status, HIDDEN)

    @property
    def replaced(self) -> Mask:
        """Which published cells hold decimal numbers in place of suppressed values."""
        if self.status is None:
            return np.zeros(len(self.z), dtype=bool)
        return np.asarray(self.status == CellStatus.decimal)

    def fit_weights(self) -> Real | None:
        """Weights of the published cells in a fit, from what is public."""
        precision = self.precision
        if precision is None:
            return None if self.status is None else np.where(self.hidden, 0.0, 1.0)
        finite = np.isfinite(precision)
        most = float(precision[finite].max(initial=0.0)) or 1.0
        weights = np.where(finite, precision / most, _EXACT)
        return np.where(self.hidden, 0.0, weights)

    def with_parts(self, **parts: Any) -> Self:
        """The same with other contents; what was said of single cells before is gone."""
        return replace(self, **{"status": None, "quality": None, **parts})


_EXACT = 1e6  # weight of values without noise beside the most precise noisy ones
