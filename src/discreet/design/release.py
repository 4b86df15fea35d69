"""The public side: a design with protected values and the statement that goes with them."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from discreet import registry
from discreet.design import show, storage
from discreet.design.base import Design
from discreet.errors import ConfidentialError, DesignError, ParameterError
from discreet.randomness import stream

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    import polars as pl
    import pyarrow as pa


QUALITY_STEP = "protect:quality"
"""The step that gives cells a quality; whoever changes their values takes it back."""


class CellStatus(enum.IntEnum):
    """Why a published cell shows what it shows."""

    published = 0
    suppressed = 1
    structural_zero = 2
    below_threshold = 3


_OUTSIDE = {
    "weighted": 0,
    "status": CellStatus.published,
    "quality": show.NO_QUALITY,
    "precision": 0,
}
"""What cells get that a release has and its table, read from the records, had not."""


@dataclass(frozen=True)
class PrivacyStatement:
    """What a differentially private release guarantees, in numbers and words."""

    epsilon: float
    delta: float
    sensitivity: float
    unit: str
    text: str


@dataclass(frozen=True)
class Step:
    """One step between the records and the release: a method with its public parameters."""

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Statement:
    """What was done, with which parameters and version, and what it promises, in plain words.

    It travels with the release and is public: it never holds a true value or a secret.
    """

    steps: tuple[Step, ...]
    text: str
    privacy: PrivacyStatement | None = None
    version: str = ""

    def then(self, step: Step, text: str) -> Statement:
        """The statement after one more step."""
        return replace(self, steps=(*self.steps, step), text=f"{self.text}\n{text}".strip())

    def without(self, name: str) -> Statement:
        """The statement without a step that was added, and without the line that came with it."""
        steps = list(enumerate(self.steps, -len(self.steps)))  # the text before has any length
        lines = self.text.split("\n")
        dropped = {k for k, step in steps if step.name == name}
        kept = (line for k, line in enumerate(lines, -len(lines)) if k not in dropped)
        left = tuple(step for k, step in steps if k not in dropped)
        return replace(self, steps=left, text="\n".join(kept))


class Fitter(Protocol):
    """What recovers inner cells from published ones."""

    @property
    def name(self) -> str:
        """The fitter's name in the registry."""

    def __call__(
        self, design: Design, z: NDArray[Any], *, weights: NDArray[Any] | None = None
    ) -> Any:
        """Fit the design to `z`; the result has `y`, `z` and `status`."""


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """**Public.** A design with protected values; never the truth, never keys.

    Attributes:
      design: The public design.
      z: Protected values of the published cells.
      statement: What was done and what it promises.
      y: Protected inner cells, where they are part of the release.
      weighted: Protected weighted counts of the published cells.
      status: A `CellStatus` for each published cell; all published when absent.
      quality: Perturbed size of each published cell's deviation; −1 where none is given.
      precision: Relative precision of each published value, from public facts only.
      fit_result: The fit that made `y`, with its certificate.
    """

    design: Design
    z: NDArray[Any]
    statement: Statement
    y: NDArray[Any] | None = None
    weighted: NDArray[np.float64] | None = None
    status: NDArray[np.int8] | None = None
    quality: NDArray[Any] | None = None
    precision: NDArray[np.float64] | None = None
    fit_result: Any = None

    def __post_init__(self) -> None:
        if getattr(self.design, "occurring", False):
            raise ConfidentialError(
                "a release needs a design with public support, but this one was read from the "
                "records. Build the release with `Release.of`, which lifts it to the full crossing."
            )
        if len(self.z) != self.design.n_published:
            raise DesignError(
                f"the design has {self.design.n_published:,} published cells, "
                f"but {len(self.z):,} values were given."
            )

    @classmethod
    def of(cls, design: Design, z: NDArray[Any], statement: Statement, **parts: Any) -> Release:
        """A release on the design's public support; cells outside the given one are zero."""
        if not getattr(design, "occurring", False):
            return cls(design, z, statement, **parts)
        public, where, inner_where = design.public()  # type: ignore[attr-defined]
        lifted = {
            name: _lift(values, where, public.n_published, _OUTSIDE[name])
            for name, values in parts.items()
            if name in _OUTSIDE and values is not None
        }
        if parts.get("y") is not None:
            if inner_where is None or public.n_inner > 200_000_000:
                raise DesignError("the full crossing is too large to hold its inner cells.")
            lifted["y"] = _lift(parts["y"], inner_where, public.n_inner)
        return cls(public, _lift(z, where, public.n_published), statement, **lifted)

    def fit(self, fitter: Fitter | str = "auto") -> Release:
        """Recover inner cells from the released ones; the result adds up.

        Cells that are not published have weight zero; the others weigh by their public precision.

        Args:
          fitter: A fitter, or the name of a registered one with its defaults.
        """
        if isinstance(fitter, str):
            fitter = cast("Fitter", registry.build("fitter", fitter))
        if not callable(fitter):
            raise ParameterError(f"a fitter or its name was expected, got {fitter!r}.")
        fit = fitter(self.design, self.z, weights=self._fit_weights())
        text = f"Inner cells fitted by {fitter.name}: {fit.status.value}"
        statement = self.statement.without(QUALITY_STEP).then(Step(f"fit:{fitter.name}"), text)
        return replace(
            self,
            z=fit.z,
            y=fit.y,
            weighted=None if self.weighted is None else fit.z,
            status=None,
            quality=None,
            fit_result=fit,
            statement=statement,
        )

    def round(self, method: str = "margins", *, seed: int) -> Release:
        """Round the inner cells down or up to whole numbers; published cells are their sums.

        Args:
          method: ``"margins"`` (published cells within one wherever possible), ``"unbiased"``,
            ``"total"`` (unbiased, the total kept) or ``"cube"`` (unbiased, sums kept as far as
            possible).
          seed: Seed of the random choices.
        """
        from discreet.release.rounding import round_release

        return round_release(self, method, rng=stream(seed, f"round:{method}"))

    def to_microdata(self) -> pa.Table:
        """Released inner cells as records: a row for each person, with a code for each variable."""
        from discreet.release.microdata import to_microdata

        return to_microdata(self)

    def _fit_weights(self) -> NDArray[np.float64] | None:
        if self.status is None:
            return self.precision
        precision = np.ones(len(self.z)) if self.precision is None else self.precision
        return np.where(self._hidden(), 0.0, precision)

    def to_arrow(self) -> pa.Table:
        """Published cells as an Arrow table: code columns and protected values.

        Cells that are not shown are null; their status says why.
        """
        quality = show.graded(self.quality)
        columns = {"count": self.z, "weighted": self.weighted, "quality": quality}
        given = {name: values for name, values in columns.items() if values is not None}
        if self.status is None:
            return show.frame_of(self.design, given)
        hidden = self._hidden()
        shown = {
            name: np.ma.array(v, mask=hidden | np.ma.getmaskarray(v)) for name, v in given.items()
        }
        names = np.array([s.name.replace("_", " ") for s in CellStatus])
        return show.frame_of(self.design, {**shown, "status": names[self.status]})

    def _hidden(self) -> NDArray[np.bool_]:
        """Published cells whose value is not shown."""
        hidden = (CellStatus.suppressed, CellStatus.below_threshold)
        return np.isin(np.zeros(len(self.z)) if self.status is None else self.status, hidden)

    def inner_to_arrow(self) -> pa.Table:
        """Protected inner cells that are not zero, as an Arrow table."""
        if self.y is None:
            raise DesignError("inner cells are not part of this release; fit them first.")
        return show.inner_frame_of(self.design, {"count": self.y}, np.flatnonzero(self.y))

    def to_pandas(self) -> pd.DataFrame:
        """Published cells as a pandas frame."""
        return show.to_pandas(self.to_arrow())

    def to_polars(self) -> pl.DataFrame:
        """Published cells as a polars frame."""
        return show.to_polars(self.to_arrow())

    def save(self, path: str | Path) -> Path:
        """Write the release to a Parquet file, marked public."""
        return storage.save_release(self, path)

    def __repr__(self) -> str:
        return show.text(self.design, self._visible(), title="Release") + f"\n{self.statement.text}"

    def _repr_html_(self) -> str:
        return show.html(self.design, self._visible(), title="Release", note=self.statement.text)

    def _visible(self) -> NDArray[Any]:
        """Published values with NaN where a cell is not shown."""
        hidden = self._hidden()
        return np.where(hidden, np.nan, self.z) if hidden.any() else self.z


def _lift(values: NDArray[Any], where: NDArray[Any], n: int, outside: float = 0) -> NDArray[Any]:
    lifted = np.full(n, outside, dtype=values.dtype)
    lifted[where] = values
    return lifted
