r"""How many cells truly have each count, from published counts and the matrix that changed them.

With :math:`t_i` cells of true count `i` and :math:`t^*_j` of published count `j`,
:math:`\mathrm{E}\,t^* = tM`, so :math:`\hat t = t^* M^{-1}` is unbiased. Here `M` has more columns
than rows, because published counts reach further than true ones, and its pseudo-inverse takes the
place of the inverse. With :math:`B = M^+` the covariance follows from that of multinomial draws,

.. math:: \mathrm{Cov}(t^*) = \mathrm{diag}(tM) - M^\top\mathrm{diag}(t)M,\qquad
          \widehat{\mathrm{Cov}}(\hat t) = B^\top\mathrm{diag}(t^*)B - \mathrm{diag}(\hat t),

which is unbiased too. Tables with large counts are cut far above the counts that are asked for, and
what comes down over the cut is estimated by the published counts there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import nnls

from discreet.arrays import Mask, Real, Whole
from discreet.design.formula import Margins
from discreet.errors import DesignError, ParameterError, whole
from discreet.frames import Frame
from discreet.noise.matrix import TransitionMatrix
from discreet.release.inference.law import TableCells, check_single_draws, matrix_of, step_size
from discreet.tables.protected import Protected
from discreet.tables.show import Frames

_BUFFER = 10  # how many times the largest move lies between the counts asked for and the cut
_SINGULAR = 1e-7  # singular values below this share of the largest count as zero
_NEARLY = 30.0  # condition number from which on the remark warns
_SAME = 1e-6  # how near to itself a combination of counts comes back when it can be estimated


@dataclass(frozen=True, eq=False)
class CountFrequencies(Frames):
    """Estimated numbers of cells with each true count.

    Attributes:
      counts: The true counts 0, 1, …
      observed: Number of cells published with each of them.
      estimate: Unbiased estimate of the number of cells that truly have them, where identified.
      covariance: Its covariance; that of the estimate before projection where it was projected.
      resolution: What the estimate is a mean of: the identity where every count is identified.
      condition: Condition number of the matrix; infinite when it is singular.
      cells: Number of cells of the table.
    """

    counts: Whole
    observed: Whole
    estimate: Real
    covariance: Real
    resolution: Real
    condition: float
    cells: int

    @property
    def identified(self) -> Mask:
        """Which counts have an unbiased estimate."""
        return np.array([self._is_identified(row) for row in np.eye(len(self.counts))])

    @property
    def standard_error(self) -> Real:
        """Standard error of each estimate; infinite where a count is not identified."""
        variance = np.maximum(np.diag(self.covariance), 0.0)
        return np.where(self.identified, np.sqrt(variance), np.inf)

    def between(self, low: int, high: int) -> tuple[float, float]:
        """Estimated number of cells with a true count from `low` to `high`, and standard error.

        Sums are known better than their parts, because errors of neighbouring counts cancel.
        """
        if not 0 <= low <= high <= self.counts[-1]:
            raise ParameterError(
                f"counts were estimated from 0 to {self.counts[-1]}, got {low} to {high}."
            )
        chosen = ((self.counts >= low) & (self.counts <= high)).astype(np.float64)
        variance = max(float(chosen @ self.covariance @ chosen), 0.0)
        error = variance**0.5 if self._is_identified(chosen) else np.inf
        return float(self.estimate @ chosen), error

    @property
    def remark(self) -> str:
        """What the matrix allows to be said."""
        lost = self.counts[~self.identified]
        if len(lost):
            return (
                f"The matrix is singular: the counts {', '.join(map(str, lost))} cannot be told "
                "apart by what is published of them."
            )
        if self.condition > _NEARLY:
            return (
                f"The matrix is nearly singular (condition number {self.condition:.2g}): look at "
                "the standard errors, and take sums of neighbouring counts."
            )
        return "The matrix can be inverted."

    def to_frame(self) -> Frame:
        """A row for each count."""
        names = ("counts", "observed", "estimate", "standard_error")
        return Frame({name.removesuffix("s"): getattr(self, name) for name in names})

    def _is_identified(self, chosen: Real) -> bool:
        n = len(chosen)
        image = self.resolution[:, :n] @ chosen
        image[:n] -= chosen
        return bool(np.abs(image).max(initial=0.0) < _SAME)


def count_frequencies(
    protected: Protected,
    table: Margins,
    matrix: TransitionMatrix | None = None,
    *,
    largest: int = 10,
    nonnegative: bool = False,
) -> CountFrequencies:
    """How many cells of a published table truly have the counts 0, 1, …, `largest`.

    Weighted counts are taken in steps of the noise.

    Args:
      protected: The release; its values carry noise of their own and were not changed since.
      table: A published table: `"region*sex"`.
      matrix: The law of the noise; from the statement when absent.
      largest: Largest count that is asked for.
      nonnegative: Whether the estimate is the nearest one without negative numbers. It is then no
        longer unbiased, but much nearer to the truth where the matrix is nearly singular.

    See Shlomo, Krenzke & Li (2019), section 2.2.
    """
    whole("largest", largest, 0)
    cells = TableCells.of(protected, table)
    check_single_draws(cells)
    used = matrix_of(protected) if matrix is None else matrix
    values = _in_steps(cells)
    equations = _Equations.of(used, values, largest)
    solved = equations.nonnegative_estimate() if nonnegative else equations.estimate
    asked = slice(0, largest + 1)
    return CountFrequencies(
        counts=np.arange(largest + 1),
        observed=np.bincount(values[values <= largest], minlength=largest + 1),
        estimate=solved[asked],
        covariance=equations.covariance()[asked, asked],
        resolution=equations.resolution,
        condition=equations.condition,
        cells=len(values),
    )


@dataclass(frozen=True, eq=False)
class _Equations:
    """The equations between true and published counts, up to a cut.

    Attributes:
      observed: Cells with each published count, a largest move further than the true counts go.
      M: Probabilities from the true counts to the published ones that are used.
      down: Probabilities from the counts above the cut to the same; without rows where nothing
        lies above it.
    """

    observed: Whole
    M: Real
    down: Real

    @classmethod
    def of(cls, matrix: TransitionMatrix, values: Whole, largest: int) -> _Equations:
        reach, highest = matrix.max_move, int(values.max(initial=0))
        top = max(largest, min(highest + reach, largest + _BUFFER * reach))
        n = top + 1 + reach
        P = matrix.dense(n)
        observed = np.bincount(values[values < n], minlength=n)
        if highest + reach <= top:
            return cls(observed, P[: top + 1], np.zeros((0, n)))
        return cls(observed, P[: top + 1, : top + 1], P[top + 1 :, : top + 1])

    @cached_property
    def inverse(self) -> Real:
        """The pseudo-inverse of `M`."""
        return np.asarray(np.linalg.pinv(self.M, rcond=_SINGULAR), dtype=np.float64)

    @cached_property
    def weights(self) -> Real:
        """The estimate is the observed numbers times these."""
        inverse = self.inverse
        return np.vstack([inverse, -self.down @ inverse])

    @property
    def estimate(self) -> Real:
        return np.asarray(self.observed @ self.weights)

    @property
    def resolution(self) -> Real:
        return np.asarray(self.M @ self.inverse)

    @property
    def condition(self) -> float:
        values = np.linalg.svd(self.M, compute_uv=False)
        smallest = values[-1]
        return float(values[0] / smallest) if smallest > _SINGULAR * values[0] else float("inf")

    def covariance(self) -> Real:
        B, R = self.weights, self.resolution
        return np.asarray((B.T * self.observed) @ B - (R.T * self.estimate) @ R)

    def nonnegative_estimate(self) -> Real:
        """The non-negative numbers of cells whose expectation is nearest to what was published."""
        used = self.M.shape[1]
        target = self.observed[:used] - self.observed[used:] @ self.down
        return np.asarray(nnls(self.M.T, target)[0])


def _in_steps(cells: TableCells) -> Whole:
    """Published values as whole numbers of steps of the noise."""
    steps = np.asarray(cells.values, dtype=np.float64) / step_size(cells.protected)
    counts = np.rint(steps).astype(np.int64)
    if (np.abs(steps - counts) > _SAME).any() or (counts < 0).any():
        raise DesignError(
            "frequencies of counts need whole numbers of at least 0, but this table has others. "
            "Protect with a method for counts, without negative results."
        )
    return counts
