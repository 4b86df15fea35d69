r"""What a transition matrix does and does not promise, in numbers and words.

For neighbouring counts `a`, `b = a ± 1` and any :math:`\varepsilon`,

.. math:: \delta_\varepsilon(a, b) = \sum_j \max\bigl(0, P_{aj} - e^\varepsilon P_{bj}\bigr)

is the least δ of (ε, δ)-indistinguishability in that direction (Dwork & Roth 2014). At the
largest log-ratio on the common support, only the mass on outputs that `b` cannot give is left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from discreet.arrays import Real, Whole
from discreet.display import Display, Displayed, Grid, align_columns
from discreet.errors import DataError, ParameterError
from discreet.frames import Frame
from discreet.noise.lookup import whole_counts

if TYPE_CHECKING:
    from discreet.noise.matrix import TransitionMatrix

# a mean below it is rounding: rows are solved to 1e-11
_ZERO = 1e-9
# what a probability printed with eight decimals may be off
_PRINTED = 1e-8
# far above 1/population, so one cell in ten thousand may give itself away
_LARGE_DELTA = 1e-4


@dataclass(frozen=True)
class NeighbourPair:
    """How well two counts that differ by one can be told apart, from the first to the second."""

    first: int
    second: int
    epsilon: float
    delta: float


@dataclass(frozen=True, eq=False)
class MatrixAudit(Displayed):
    """Moments of every row and the distance between neighbouring counts.

    Attributes:
      counts: First count of every row.
      mean: Mean of the noise.
      variance: Variance of the noise.
      stay: Probability of no change.
      entropy: Entropy of the noise in bits.
      neighbours: Every pair of neighbouring counts that differs from the others, both ways.
      epsilon: The ε at which `delta` is taken.
      delta: The largest δ between neighbours at that ε.
    """

    matrix: TransitionMatrix
    counts: Whole
    mean: Real
    variance: Real
    stay: Real
    entropy: Real
    neighbours: tuple[NeighbourPair, ...]
    epsilon: float
    delta: float

    @property
    def worst(self) -> NeighbourPair:
        """The pair with the largest δ, and among those the largest ε."""
        return max(self.neighbours, key=lambda pair: (pair.delta, pair.epsilon))

    def to_frame(self) -> Frame:
        """One line per row: count, mean, variance, stay, entropy."""
        names = ("mean", "variance", "stay", "entropy")
        return Frame({"count": self.counts, **{name: getattr(self, name) for name in names}})

    def guaranteed(self) -> list[str]:
        """What holds for every cell, one sentence each."""
        matrix, largest, above = self.matrix, float(np.abs(self.mean).max()), self.variance[1:]
        said = [f"No published count differs from its true count by more than {matrix.max_move}."]
        if largest < _ZERO:
            said.append("The noise is unbiased: its mean is zero at every count.")
        elif largest <= _rounding(matrix):
            said.append(
                "The noise is unbiased up to the rounding of its probabilities: its mean is at "
                f"most {largest:.1e} away from zero."
            )
        if np.ptp(above) < 1e-6:
            said.append(f"Its variance is {above[0]:.4g} at every count above zero.")
        else:
            said.append(
                f"Its variance lies between {above.min():.4g} and {above.max():.4g} above zero."
            )
        stay = matrix.law[0, matrix.max_move]
        said.append(
            "A true zero is always published as zero."
            if matrix.keeps_zeros
            else f"A true zero is published as zero with probability {stay:.4g} only."
        )
        if matrix.blocked:
            values = "1" if matrix.blocked == 1 else f"1 to {matrix.blocked}"
            said.append(f"Values of {values} are never published.")
        return [
            *said,
            f"For one cell, counts that differ by one are indistinguishable up to "
            f"ε = {self.epsilon:.4g} and δ = {self.delta:.3g}; δ is largest from count "
            f"{self.worst.first} to {self.worst.second}.",
        ]

    def not_guaranteed(self) -> list[str]:
        """What does not follow, one sentence each."""
        said, worst = [], int(np.argmax(np.abs(self.mean)))
        if abs(self.mean[worst]) > max(_ZERO, _rounding(self.matrix)):
            said.append(
                f"The noise is biased: its mean reaches {self.mean[worst]:+.4g} "
                f"at count {self.counts[worst]}."
            )
        if self.matrix.keeps_zeros:
            said.append(
                "Zeros are not hidden: a positive published count proves that somebody is in the "
                "cell."
            )
        if self.delta > _LARGE_DELTA:
            said.append(
                f"δ = {self.delta:.3g} is too large to speak of differential privacy: it bounds "
                "the probability of a published count that gives the neighbouring true count away."
            )
        return [*said, *_GENERAL_LIMITS]

    def _display(self) -> Display:
        rows = Grid.of(_rows(self), right=range(5))
        said = (("Guaranteed", self.guaranteed()), ("Not guaranteed", self.not_guaranteed()))
        return Display(f"Audit of: {self.matrix.name}", grids=[rows], lines=said)

    def __str__(self) -> str:
        """The audit as text: rows, then promises, then limits."""
        rows = align_columns(_rows(self), right=range(5))
        lines = [f"Audit of: {self.matrix.name}", "", *rows, "", "Guaranteed:"]
        lines += [f"  - {sentence}" for sentence in self.guaranteed()]
        lines += ["Not guaranteed:"]
        lines += [f"  - {sentence}" for sentence in self.not_guaranteed()]
        return "\n".join(lines)


def audit(matrix: TransitionMatrix, epsilon: float | None = None) -> MatrixAudit:
    """See `TransitionMatrix.audit`."""
    if epsilon is not None and not (math.isfinite(epsilon) and epsilon >= 0):
        raise ParameterError(f"epsilon must be a number of at least 0, got {epsilon!r}.")
    law, v = matrix.law, matrix.deviations
    mean = law @ v
    # both directions of every pair at which the rows, or their place in the turn, change: between
    # the other pairs the same two laws meet again
    starts = set(matrix.starts.tolist())
    lower = sorted(starts | {s - 1 for s in starts if s > 0})
    both_ways = [pair for i in lower for pair in ((i, i + 1), (i + 1, i))]
    pairs = tuple(_compare(matrix, a, b, epsilon) for a, b in both_ways)
    return MatrixAudit(
        matrix=matrix,
        counts=matrix.starts,
        mean=mean,
        variance=law @ v**2 - mean**2,
        stay=law[:, matrix.max_move],
        entropy=-np.sum(law * np.log2(np.where(law > 0, law, 1.0)), axis=1),
        neighbours=pairs,
        epsilon=max(p.epsilon for p in pairs) if epsilon is None else epsilon,
        delta=max(p.delta for p in pairs),
    )


def _compare(matrix: TransitionMatrix, a: int, b: int, epsilon: float | None) -> NeighbourPair:
    """The law of `a` against that of `b`, on common targets."""
    # deviations of the two counts are one apart: padding puts the same targets in the same places
    p = np.pad(matrix.probabilities(a), (max(a - b, 0), max(b - a, 0)))
    q = np.pad(matrix.probabilities(b), (max(b - a, 0), max(a - b, 0)))
    common = (p > 0) & (q > 0)
    ratio = float((np.log(p[common]) - np.log(q[common])).max(initial=0.0))
    if epsilon is None:
        return NeighbourPair(a, b, ratio, float(p[q == 0].sum()))
    excess = np.maximum(0.0, p - math.exp(epsilon) * q)
    return NeighbourPair(a, b, epsilon, float(excess.sum()))


def _rows(audit: MatrixAudit) -> list[tuple[str, ...]]:
    """A header and the figures of each row; of many rows the first and the last."""
    columns = zip(audit.counts, audit.mean, audit.variance, audit.stay, audit.entropy, strict=True)
    rows = [
        (str(count), *(f"{round(x, 4) + 0.0:.4f}" for x in row))  # plus zero: −0.0 becomes 0.0
        for count, *row in columns
    ]
    if len(rows) > 30:
        rows = [*rows[:15], ("…", f"({len(rows) - 30} rows)", "", "", ""), *rows[-15:]]
    return [("count", "mean", "variance", "stay", "entropy"), *rows]


def _rounding(matrix: TransitionMatrix) -> float:
    """The bias that printed probabilities may have though they were made without any."""
    return _PRINTED * float(np.abs(matrix.deviations).sum())


_GENERAL_LIMITS = (
    "The figures hold for one cell and a uniform, secret key. A person who counts in several "
    "published cells, or in tables that can be subtracted, is protected less than one cell is.",
    "Noise that comes from keys is fixed: the same cell always moves alike, which stops averaging "
    "over repeats, but two cells that differ by one record can be compared.",
    "Sums of perturbed cells do not match perturbed totals until the table is fitted.",
)


def realised_bias(matrix: TransitionMatrix, counts: npt.ArrayLike, noise: npt.ArrayLike) -> Frame:
    r"""Mean deviation of the cells of each true count, beside what the design lets expect.

    Zero-mean noise is balanced over all keys, not in the table at hand: with `n` cells at a count
    the realised mean has standard deviation :math:`\sqrt{V/n}`.

    Confidential: the result is a function of true counts.

    Returns:
      Columns count, cells, bias (realised mean deviation), mean and sd (of that mean, by design).

    See Giessing & Höhne (2011), section 4.
    """
    n, u = whole_counts(counts).ravel(), whole_counts(noise).ravel()
    if n.shape != u.shape:
        raise DataError(f"there are {n.size} counts but {u.size} deviations.")
    levels, place, cells = np.unique(n, return_inverse=True, return_counts=True)
    law, v = matrix.law[matrix.row_of(levels)], matrix.deviations
    mean = law @ v
    return Frame(
        {
            "count": levels,
            "cells": cells,
            "bias": np.bincount(place, weights=u, minlength=len(levels)) / cells,
            "mean": mean,
            "sd": np.sqrt((law @ v**2 - mean**2) / cells),
        }
    )
