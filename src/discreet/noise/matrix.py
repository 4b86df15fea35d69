"""The one object of this package: a transition matrix for counts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from discreet.arrays import Real, Whole
from discreet.delimited import read_delimited
from discreet.display import Display, Displayed, Grid, Heading, Mark
from discreet.errors import DataError, DiscreetError, MissingDependencyError, ParameterError
from discreet.frames import Frame
from discreet.noise import checks
from discreet.noise.audit import MatrixAudit, audit
from discreet.noise.lookup import (
    from_ons,
    noise,
    read_ptable,
    shuffle_intervals,
    to_ons,
    write_ptable,
)

if TYPE_CHECKING:
    import altair

    from discreet.tables.keys import Edge

_DEFAULT_ROWS = 40  # what a plot shows legibly
_MOST_MOVES = 15  # to each side, of what a notebook shows


@dataclass(frozen=True, eq=False, repr=False)
class TransitionMatrix(Displayed):
    r"""The law of the published count `j` given the true count `i`, row by row.

    A row is a sequence of intervals that share out the range of the keys: interval `k` of row `r`
    has width `widths[r, k]` (a probability) and adds `moves[r, k]` to the count. A deviation may
    own several intervals. Row `r` serves the counts from `starts[r]` up to the next start; from
    the first of the last `period` rows on these rows take turns for ever, so that with
    `period = 1` the last row serves every larger count. Deviations, not targets, are stored: a row
    that serves many counts moves along with them.

    Promise: rows sum to one, nothing is negative, no count becomes negative, values in
    `1..blocked` are never published; checked when the matrix is made.

    Args:
      name: What the matrix is, for statements.
      starts: First count served by each row; the first is 0.
      moves: Deviations, one row of intervals for each start.
      widths: Probabilities of the same shape; intervals of width 0 are padding.
      period: Number of rows at the end that repeat.
      blocked: The values `1..blocked` may not be published.
      parameters: How the matrix was made, for statements and exchange.
    """

    name: str
    starts: Whole
    moves: Whole
    widths: Real
    period: int = 1
    blocked: int = 0
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for key, kind in (("starts", np.int64), ("moves", np.int64), ("widths", np.float64)):
            array = np.array(getattr(self, key), dtype=kind)
            array.setflags(write=False)
            object.__setattr__(self, key, array)
        checks.check_rows(self.starts, self.period)
        checks.check_widths(self.starts, self.moves, self.widths)
        checks.check_targets(self.starts, self.moves, self.widths)
        if self.blocked:
            checks.check_blocked(self.starts, self.law, self.blocked, self.period)

    @classmethod
    def from_law(
        cls,
        name: str,
        law: npt.ArrayLike,
        *,
        starts: npt.ArrayLike | None = None,
        period: int = 1,
        blocked: int = 0,
        parameters: Mapping[str, Any] | None = None,
    ) -> TransitionMatrix:
        """A matrix from probabilities of the deviations `-K..K`, one row per start (0, 1, …)."""
        p = np.atleast_2d(np.asarray(law, dtype=np.float64))
        reach = p.shape[1] // 2
        if p.shape[1] != 2 * reach + 1:
            raise ParameterError(
                f"a law over -K..K has an odd number of columns, got {p.shape[1]}."
            )
        first = np.arange(len(p)) if starts is None else np.asarray(starts)
        moves = np.broadcast_to(np.arange(-reach, reach + 1), p.shape)
        return cls(name, first, moves, p, period, blocked, dict(parameters or {}))

    @classmethod
    def from_targets(
        cls,
        name: str,
        P: npt.ArrayLike,
        *,
        targets: npt.ArrayLike | None = None,
        blocked: int = 0,
        parameters: Mapping[str, Any] | None = None,
    ) -> TransitionMatrix:
        """A matrix from `P[i, j]`, the probability that count `i` becomes `targets[j]`.

        Targets are 0, 1, … when absent. The last row, moved along, serves every larger count.
        """
        p = np.atleast_2d(np.asarray(P, dtype=np.float64))
        j = np.arange(p.shape[1]) if targets is None else np.asarray(targets, dtype=np.int64)
        i = np.arange(len(p))
        return cls(name, i, j[None, :] - i[:, None], p, 1, blocked, dict(parameters or {}))

    @cached_property
    def max_move(self) -> int:
        """The largest deviation that can happen."""
        return int(np.abs(self.moves[self.widths > 0]).max())

    @cached_property
    def deviations(self) -> Whole:
        """The deviations `-K..K`, with `K` the largest move."""
        return np.arange(-self.max_move, self.max_move + 1)

    @cached_property
    def law(self) -> Real:
        """Probabilities of the `deviations`, one row for each start."""
        law = np.zeros((len(self.starts), 2 * self.max_move + 1))
        row, piece = np.nonzero(self.widths)
        np.add.at(law, (row, self.moves[row, piece] + self.max_move), self.widths[row, piece])
        law.setflags(write=False)
        return law

    @property
    def keeps_zeros(self) -> bool:
        """Whether a true zero is always published as zero."""
        return bool(self.law[0, self.max_move] == self.law[0].sum())

    def row_of(self, counts: npt.ArrayLike) -> Whole:
        """The row that serves each count."""
        n = np.asarray(counts, dtype=np.int64)
        head = len(self.starts) - self.period
        single = np.searchsorted(self.starts, n, side="right") - 1
        turn = head + (n - self.starts[head]) % self.period
        return np.where(n >= self.starts[head], turn, single)

    def probabilities(self, count: int) -> Real:
        """Probabilities of the `deviations` for one true count."""
        return np.asarray(self.law[int(self.row_of(count))])

    def dense(self, n: int) -> Real:
        """`P[i, j]` for `i, j < n`; what leads to `n` or above is left out."""
        P = np.zeros((n, n + 2 * self.max_move))
        rows = self.law[self.row_of(np.arange(n))]
        for i in range(n):
            P[i, i : i + rows.shape[1]] = rows[i]
        return P[:, self.max_move : self.max_move + n].copy()

    def noise(
        self, counts: npt.ArrayLike, keys: npt.ArrayLike, modulus: int, *, edge: Edge = "right"
    ) -> Whole:
        """The deviation of every cell, a pure function of count, key and matrix.

        Key `k` in `[0, modulus)` stands for the point `k / modulus` of the unit interval, which
        the intervals of the count's row share out in their order. A key on the border of two
        intervals belongs to the one on its right (``edge="right"``: the first interval with
        key < upper end, as in cellKey and ptable) or on its left (``edge="left"``: the first with
        key <= upper end, as in SSBcellKey and in Giessing & Höhne 2011). What rounding leaves
        beyond the last border belongs to the last interval.

        Cost: about 10 ns per cell.

        Raises:
          DataError: Counts are negative or not whole numbers.
          KeysError: Keys are missing, not whole numbers, or out of range.
        """
        return noise(self, counts, keys, modulus, edge)

    def modified(self, threshold: float = 0.2, *, seed: int) -> TransitionMatrix:
        """The same law with long intervals cut to `threshold` and all shuffled inside their row.

        Neighbouring keys then no longer give neighbouring noise.
        """
        return shuffle_intervals(self, threshold, seed)

    def audit(self, epsilon: float | None = None) -> MatrixAudit:
        """Moments of every row, (ε, δ) between neighbouring counts, and the promise in words.

        Args:
          epsilon: Where given, δ is taken at this ε; otherwise at the largest log-ratio that
            occurs between neighbours.
        """
        return audit(self, epsilon)

    def plot(self, largest: int | None = None) -> altair.Chart:
        """A heat map of deviations by true count, up to count `largest`."""
        try:
            import altair as alt
        except ImportError:
            raise MissingDependencyError("a plot", "altair", "plot") from None
        last = min(int(self.starts[-1]), _DEFAULT_ROWS) if largest is None else largest
        law = self.law[self.row_of(np.arange(last + 1))]
        names = [f"{i}" for i in range(last + 1)]
        names[-1] += "+" if last >= self.starts[-1] else ""  # this row is that of all larger counts
        cells = [
            {
                "count": i,
                "row": names[i],
                "deviation": v,
                "published": i + v,
                "probability": float(p),
            }
            for i in range(last + 1)
            for v, p in zip(self.deviations.tolist(), law[i], strict=True)
            if p > 0
        ]
        upright = alt.Axis(labelAngle=0)
        shades = alt.Scale(scheme="cividis", type="sqrt", domain=[0, 1], reverse=True)
        chart: altair.Chart = (
            alt.Chart(alt.InlineData(values=cells), title=f"{self.name[:1].upper()}{self.name[1:]}")
            .mark_rect(stroke="white", strokeWidth=0.5)
            .encode(
                x=alt.X("deviation:O", title="published − true count", axis=upright),
                y=alt.Y("row:N", title="true count", sort=names),
                # cividis is readable without colour vision; reversed, what is likely prints dark
                color=alt.Color("probability:Q", scale=shades, legend=alt.Legend(format=".0%")),
                tooltip=["count:Q", "published:Q", alt.Tooltip("probability:Q", format=".6f")],
            )
            .properties(width=alt.Step(20), height=alt.Step(20))
            .configure_axis(labelFontSize=11, titleFontSize=12, titleFontWeight="normal")
            .configure_legend(labelLimit=0, titleFontSize=11, labelFontSize=11)
            .configure_title(anchor="start", fontSize=14)
        )
        return chart

    def to_frame(self) -> Frame:
        """One line per interval: i, j, p, v, lb, ub, type; `i` is the first count of the row."""
        row, piece = np.nonzero(self.widths)
        i, v, p = self.starts[row], self.moves[row, piece], self.widths[row, piece]
        ub = np.cumsum(self.widths, axis=1)[row, piece]
        kind = np.full(len(i), "all")
        return Frame({"i": i, "j": i + v, "p": p, "v": v, "lb": ub - p, "ub": ub, "type": kind})

    def to_json(self) -> str:
        """The matrix as JSON text; `from_json` gives back an equal matrix."""
        content = {key: getattr(self, key) for key in ("name", "period", "blocked")}
        arrays = {key: getattr(self, key).tolist() for key in ("starts", "moves", "widths")}
        return json.dumps({**content, "parameters": dict(self.parameters), **arrays})

    @classmethod
    def from_json(cls, text: str) -> TransitionMatrix:
        """The matrix that `to_json` wrote."""
        try:
            return cls(**json.loads(text))
        except DiscreetError:
            raise
        except (TypeError, ValueError) as error:
            raise ParameterError(f"this JSON does not hold a transition matrix: {error}.") from None

    def to_ptable_csv(self, path: str | Path) -> None:
        """Write the look-up table with the columns of the R packages ptable and cellKey.

        A further column, `about`, holds on its first line what that layout has no place for (name,
        parameters, blocked values), so that `from_ptable_csv` gives back an equal matrix.
        """
        write_ptable(self, Path(path))

    @classmethod
    def from_ptable_csv(cls, path: str | Path) -> TransitionMatrix:
        """Read a look-up table written by the R package ptable or by `to_ptable_csv`.

        Without the column `about`, the values `1..js` that no count leads to are blocked.
        """
        return read_ptable(Path(path), TransitionMatrix)

    def to_ons(self, keys: Literal[256, 4096] = 256) -> Frame:
        """The layout of the ONS: one line per pcv (0 to 750) and ckey with its pvalue.

        Probabilities are rounded to whole keys, so mean and variance hold to about 1/keys only.
        """
        return to_ons(self, keys)

    @classmethod
    def from_ons(cls, frame: Any) -> TransitionMatrix:
        """A matrix from any frame with the columns pcv, ckey, pvalue.

        `noise` with a modulus equal to the number of keys gives back every pvalue; pairs that
        are absent have pvalue 0.
        """
        return from_ons(frame, TransitionMatrix)

    def _display(self) -> Display:
        """Each row's law, the larger a probability the darker; of many rows the first."""
        rows = range(min(len(self.starts), _DEFAULT_ROWS))
        reach = min(self.max_move, _MOST_MOVES)
        middle = slice(self.max_move - reach, self.max_move + reach + 1)
        law = self.law[: len(rows), middle].tolist()
        grid = Grid(
            [Heading(self._counts_of(k)) for k in rows],
            [Heading(f"{v:+d}" if v else "0") for v in self.deviations[middle].tolist()],
            [[Mark(f"{p:.3g}" if p else "", shade=0.75 * p) for p in row] for row in law],
            corner="count \\ change",
            note="" if law == self.law.tolist() else "Not shown here: further rows or changes.",
        )
        facts = {
            "rows": f"{len(self.starts):,}",
            "largest change": f"{self.max_move:g}",
            "never published": f"1 to {self.blocked}" if self.blocked else "",
        }
        return Display(f"Transition matrix: {self.name}", facts=facts, grids=[grid])

    def _counts_of(self, row: int) -> str:
        """The counts that a row serves."""
        first, last = int(self.starts[row]), len(self.starts) - 1
        if row > last - self.period:
            step = f" and every {self.period}th from there" if self.period > 1 else " and above"
            return f"{first}{step}"
        end = int(self.starts[row + 1]) - 1
        return f"{first}" if end == first else f"{first} to {end}"

    def __repr__(self) -> str:
        return f"<{self.name}: {len(self.starts)} rows, moves up to {self.max_move}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TransitionMatrix) and self._content() == other._content()

    def __hash__(self) -> int:
        return hash(self._content())

    def _content(self) -> str:
        """Everything but the padding, as text."""
        rows = [
            [(int(v), float(p)) for v, p in zip(*row, strict=True) if p > 0]
            for row in zip(self.moves, self.widths, strict=True)
        ]
        facts = (self.name, self.period, self.blocked, dict(self.parameters), self.starts.tolist())
        return json.dumps([*facts, rows])


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
        return TransitionMatrix.from_ons(read_delimited(text.splitlines()))
    return TransitionMatrix.from_ptable_csv(path)
