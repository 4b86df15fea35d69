"""What synthetic records have in common with the original: equal, close, different."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from discreet.arrays import Real
from discreet.display import Display, Displayed, Grid, align_columns
from discreet.errors import DataError
from discreet.frames import Frame, read_frame
from discreet.synthesis.formula import parse
from discreet.synthesis.model import ModelMatrices, Rows, numbers_of, read_columns
from discreet.synthesis.result import Synthesized, read_records
from discreet.synthesis.safety import merged_model
from discreet.tables import show

Verdict = Literal["equal", "close", "different"]
EQUAL, CLOSE = 1e-9, 0.1
"""Largest differences that are called equal and close, in standard deviations or correlations."""
_QUANTILES = ("minimum", "lower quartile", "median", "upper quartile", "maximum")
_HEADER = ("figure", "of", "original", "synthetic", "difference", "verdict")


@dataclass(frozen=True)
class ComparedFigure:
    """One figure of the original and of the synthetic records."""

    kind: str  # a mean, a correlation, a coefficient, …
    about: str  # the columns it is about
    original: float
    synthetic: float
    # In standard deviations, correlations, or relative to the original where the figure is itself
    # a spread.
    difference: float

    @property
    def verdict(self) -> Verdict:
        """Whether the two are equal up to rounding, close, or different."""
        if self.difference <= EQUAL:
            return "equal"
        return "close" if self.difference <= CLOSE else "different"


@dataclass(frozen=True, eq=False, repr=False)
class Preserved(Displayed, show.Frames):
    """**Confidential.** Figures of original and synthetic records side by side.

    Made by `Preserved.of`. Drawn by `discreet.assessment.plots.suppressed`.

    Attributes:
      names: The confidential columns.
      original: Their original values.
      synthetic: Their synthetic values.
      figures: The comparison.
    """

    names: tuple[str, ...]
    original: Real
    synthetic: Real
    figures: tuple[ComparedFigure, ...]

    @classmethod
    def of(cls, data: Any, result: Synthesized) -> Preserved:
        """Compare synthetic records with the original ones.

        Args:
          data: The original records, in the order in which they were synthesized.
          result: What `discreet.synthesis` made of them.
        """
        formula = parse(result.model)
        records = read_records(data)
        used = result.statement.steps[-1].parameters
        rows = Rows(*read_columns(records, formula, used["missing"]))
        model = merged_model(formula, rows, used.get("merge"))
        after = read_frame(result.frame)
        if len(after) != len(rows.Y):
            raise DataError(
                f"there are {len(rows.Y):,} original and {len(after):,} synthetic records; give "
                "the records that were synthesized."
            )
        synthetic = np.column_stack(
            [numbers_of(c, after.column(c), "synthetic") for c in formula.confidential]
        )
        return cls(formula.confidential, rows.Y, synthetic, tuple(_figures(model, synthetic)))

    def with_verdict(self, verdict: Verdict) -> tuple[ComparedFigure, ...]:
        """The figures that are equal, close, or different."""
        return tuple(figure for figure in self.figures if figure.verdict == verdict)

    @property
    def unchanged(self) -> float:
        """Share of records whose confidential values are all as they were."""
        same = np.abs(self.synthetic - self.original) <= EQUAL * self.original.std(axis=0)
        return float(same.all(axis=1).mean())

    def to_frame(self) -> Frame:
        """The comparison as a frame."""
        columns = ("kind", "about", "original", "synthetic", "difference", "verdict")
        return Frame({c: [getattr(figure, c) for figure in self.figures] for c in columns})

    def __repr__(self) -> str:
        lines = align_columns(self._rows(), right=range(2, len(_HEADER)))
        return "\n".join([self.summary, *lines])

    def _display(self) -> Display:
        title, _, said = self.summary.partition(" (confidential): ")
        grid = Grid.of(self._rows(), said, right=range(2, len(_HEADER) - 1))
        return Display(title, "confidential", grids=[grid])

    def _rows(self) -> list[Sequence[str]]:
        rows: list[Sequence[str]] = [_HEADER]
        for f in self.figures:
            numbers = f"{f.original:.6g}", f"{f.synthetic:.6g}", f"{f.difference:.2g}"
            rows.append((f.kind, f.about, *numbers, f.verdict))
        return rows

    @property
    def summary(self) -> str:
        """How many figures are equal, close and different, in one line."""
        counts = {v: len(self.with_verdict(v)) for v in ("equal", "close", "different")}
        said = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        return f"Preserved (confidential): {said}; {self.unchanged:.1%} of records unchanged"


def _figures(model: ModelMatrices, synthetic: Real) -> Iterator[ComparedFigure]:
    """Everything that is compared, what the model promises first."""
    names = model.formula.confidential
    Y, w = model.Y, np.ones(len(model.Y)) if model.weights is None else model.weights
    both, spread = (Y, synthetic), Y.std(axis=0)
    for j, name in enumerate(names):
        yield _figure("mean", name, [np.average(A[:, j], weights=w) for A in both], spread[j])
    for j, name in enumerate(names):
        sizes = [np.sqrt(np.cov(A[:, j], aweights=w, ddof=0)) for A in both]
        yield _figure("standard deviation", name, sizes, sizes[0])
    yield from _correlations(model, both, w)
    yield from _coefficients(model, synthetic, w)
    for quarter, kind in enumerate(_QUANTILES):
        for j, name in enumerate(names):
            values = [np.quantile(A[:, j], quarter / 4) for A in both]
            yield _figure(kind, name, values, spread[j])
    for j, name in enumerate(names):
        scores = ((y - y.mean()) / (y.std() or 1.0) for y in (A[:, j] for A in both))
        yield _figure("skewness", name, [(z**3).mean() for z in scores], 1.0)


def _correlations(
    model: ModelMatrices, both: tuple[Real, Real], w: Real
) -> Iterator[ComparedFigure]:
    k = len(model.formula.confidential)
    numbers = {n: c for n, c in model.columns.items() if isinstance(c, np.ndarray) and c.std() > 0}
    names = [*model.formula.confidential, *numbers]
    before, after = (_correlation_matrix(np.column_stack([A, *numbers.values()]), w) for A in both)
    for i, j in zip(*np.triu_indices(len(names), 1), strict=True):
        if i < k:
            about = f"{names[i]}, {names[j]}"
            yield _figure("correlation", about, [before[i, j], after[i, j]], 1.0)


def _coefficients(model: ModelMatrices, synthetic: Real, w: Real) -> Iterator[ComparedFigure]:
    X = model.all_columns
    # Compared for columns of spread one, so that a coefficient of a column in millions counts like
    # one in units; the constant has no spread and is scaled by its size.
    size = np.where((moves := X.std(axis=0)) > 0, moves, np.abs(X).max(axis=0, initial=1.0))
    root, spread = np.sqrt(w)[:, None], model.Y.std(axis=0)
    before, after = (
        np.linalg.lstsq(X / size * root, A * root, rcond=None)[0] for A in (model.Y, synthetic)
    )
    for j, name in enumerate(model.formula.confidential):
        for i, column in enumerate(model.names):
            about = f"{name} on {column}"
            difference = abs(after[i, j] - before[i, j]) / (spread[j] or 1.0)
            values = [float(B[i, j] / size[i]) for B in (before, after)]
            yield ComparedFigure("coefficient", about, values[0], values[1], float(difference))


def _figure(kind: str, about: str, values: Sequence[Any], scale: Any) -> ComparedFigure:
    before, after = map(float, values)
    return ComparedFigure(kind, about, before, after, abs(after - before) / (float(scale) or 1.0))


def _correlation_matrix(A: Real, w: Real) -> Real:
    covariance = np.atleast_2d(np.cov(A.T, aweights=w))
    size = np.sqrt(np.diag(covariance))
    found: Real = covariance / np.outer(size, size)
    return found
