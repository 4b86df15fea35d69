r"""The most likely whole table under the published law of the noise, with a proof of how likely."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.sparse import block_array, csr_array, eye_array

from discreet.arrays import Array, Real, Whole
from discreet.design.base import Design
from discreet.errors import ParameterError, whole
from discreet.solve.fit import Certificate, Fit, Prepared, Status, check_tolerance
from discreet.solve.linear.program import MixedSolution, solve_mixed
from discreet.solve.non_negative.non_negative import NonNegative

# Columns of a program: HiGHS needs minutes for more of them.
_LARGEST_PROGRAM = 20_000
# Slopes of a row that differ by less are one straight piece: logarithms have rounding errors.
_STRAIGHT = 1e-9
# A whole number of records, up to the tolerance of HiGHS.
_NEARLY_WHOLE = 1e-5
# By how much a second program, which chooses among the most likely tables, may exceed the cost.
_SAME_COST = 1e-7


@dataclass(frozen=True, eq=False)
class CellLikelihoods:
    r"""What each published value says of the count behind it, as plain data.

    Published cell `k` is described by the entries `starts[k]` to `starts[k + 1]`: the counts it may
    have had, ascending, and the logarithm of the probability of what was published, given each. A
    row without entries says nothing.

    Attributes:
      starts: Where each cell's entries begin, and where the last ones end.
      counts: Counts, or whole steps of weighted counts.
      log_probability: Logarithms of probabilities, finite.
      step: What one count stands for.
      rounded: Whether sums were rounded to whole steps before they got noise, so that counts of
        cells need not add up.
      is_straight: Whether logarithms are linear between the counts of a row that are listed; else
        counts that are not listed are impossible.
    """

    starts: Whole
    counts: Real
    log_probability: Real
    step: float = 1.0
    rounded: bool = False
    is_straight: bool = False

    @classmethod
    def of(cls, rows: Iterable[tuple[Array, Array]], **options: Any) -> Self:
        """From the counts and log-probabilities of each cell; impossible counts are left out."""
        kept = []
        for counts, log_probability in rows:
            possible = np.isfinite(log_probability)
            kept.append((np.asarray(counts)[possible], np.asarray(log_probability)[possible]))
        starts = np.concatenate([[0], np.cumsum([len(counts) for counts, _ in kept])])
        counts, logarithms = (
            np.concatenate([row[part] for row in kept]).astype(float) for part in (0, 1)
        )
        return cls(starts.astype(np.int64), counts, logarithms, **options)

    def __len__(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def rows(self) -> list[tuple[Real, Real]]:
        """Counts and costs (negative logarithms) of each cell."""
        pairs = zip(self.starts[:-1], self.starts[1:], strict=True)
        return [(self.counts[a:b], -self.log_probability[a:b]) for a, b in pairs]

    def log_likelihood(self, sums: Array) -> float:
        """Logarithm of the probability of everything published; minus infinity if impossible.

        A sum on the border of two steps may have been rounded either way, and counts as the
        likelier of the two.
        """
        slack = 0.5 + _NEARLY_WHOLE if self.rounded else 0.0
        total = 0.0
        for (points, cost), value in zip(self.rows, sums, strict=True):
            if len(points):
                near = np.arange(np.ceil(value - slack), np.floor(value + slack) + 1)
                total -= min((self._cost(points, cost, i) for i in near), default=np.inf)
        return total

    def _cost(self, points: Real, cost: Real, count: float) -> float:
        if self.is_straight and points[0] <= count <= points[-1]:
            return float(np.interp(count, points, cost))
        at = int(np.searchsorted(points, count))
        return float(cost[at]) if at < len(points) and points[at] == count else np.inf

    def is_convex(self, points: Real, cost: Real) -> bool:
        """Whether mixing counts of a row never costs less than the count that they mix to."""
        if not self.is_straight and (np.diff(points) > 1).any():
            return False
        return bool((np.diff(np.diff(cost) / np.diff(points)) >= -_STRAIGHT).all())


@dataclass(frozen=True, eq=False)
class NoiseLikelihood:
    r"""The whole table under which the published values are most likely.

    .. math:: \max_{y \in \{0, 1, 2, \dots\}^n} \sum_k \log P\bigl(\tilde z_k \mid x_k^\top y\bigr)

    :math:`P` is the law that the statement publishes: a row of the transition matrix, or private
    noise with its cap and its cut at zero; a hidden value has the probability that it is hidden.
    Where sums of weights were rounded to steps first, :math:`y` is real and the law is that of the
    rounded sums. Of several most likely tables the one nearest to the non-negative least squares
    fit is taken, in absolute differences of inner cells.

    Certificate: for multipliers :math:`\nu` with :math:`X\nu \ge 0` no table, whole or not, has a
    cost (negative log-likelihood) below :math:`\sum_k \min_i\,(c_k(i) - \nu_k i)`. They are in the
    notes, so that the bound can be computed again. The gap is the difference between the cost and
    the bound, relative to the cost or to one. Where every :math:`c_k` is convex (Laplace and
    Gaussian noise are) and margins are nested or two-way the bound is reached. Elsewhere a gap may
    remain, and a search (branch and bound) proves the rest; the notes say which proof it is, and a
    search that ends early leaves its own bound and gap.

    Cost: a linear program in the inner cells and the corners of all :math:`c_k`, then two mixed
    programs of the same size; at most 20,000 columns.

    Args:
      likelihoods: What each published value says; a release gives them from its statement.
      tolerance: Relative gap to reach.
      max_steps: Nodes of the search at most; no clock, so that a fit can be repeated.

    See Langsrud & Lupp (2021) on fits as expected frequencies; HiGHS solves the programs.
    """

    name = "noise-likelihood"
    likelihoods: CellLikelihoods | None = None
    tolerance: float = 1e-6
    max_steps: int = 100

    def __post_init__(self) -> None:
        check_tolerance(self.tolerance)
        whole("max_steps", self.max_steps, 1)

    def __call__(self, design: Design, z: Array, *, weights: Array | None = None) -> Fit:
        """Fit the design to the published values.

        Weights only guide the choice among equally likely tables: the law says how far each value
        may be off.
        """
        if self.likelihoods is None:
            raise ParameterError(
                "the law of the noise is needed to say how likely a table is: fit a release that "
                "publishes it, `release.fit('noise-likelihood')`, or give likelihoods=."
            )
        if len(self.likelihoods) != design.n_published:
            raise ParameterError(
                f"likelihoods are for {len(self.likelihoods):,} published cells, and the design "
                f"has {design.n_published:,}."
            )
        began = time.perf_counter()
        step = self.likelihoods.step
        near = NonNegative()(design, np.asarray(z, dtype=float) / step, weights=weights)
        fit = _Program(design, self.likelihoods, near.y).solve(self.tolerance, self.max_steps)
        y = np.asarray(fit.y if step == 1.0 else fit.y * step)
        seconds = time.perf_counter() - began
        return replace(fit, cells=y, z=design.aggregate(y), seconds=seconds, design=design)

    def prepare(self, design: Design) -> Prepared:
        """Nothing depends on the design alone."""

        def fit(z: Array, *, weights: Array | None = None) -> Fit:
            return self(design, z, weights=weights)

        return fit


class _Program:
    """The program of one fit: inner cells, then a share for each listed count of each cell.

    Shares of a row sum to one, and the counts that they mix are the sums of the inner cells. With
    whole shares a row takes one of its counts; where it is convex, real shares cost the same.
    """

    def __init__(self, design: Design, given: CellLikelihoods, near: Real) -> None:
        self.design, self.given, self.near = design, given, near
        self.used = np.diff(given.starts) > 0
        convex = [given.is_convex(*row) for row in given.rows]
        rows = [
            _corners(*row) if is_convex else row
            for row, is_convex in zip(given.rows, convex, strict=True)
        ]
        rows = [row for row, used in zip(rows, self.used, strict=True) if used]
        self.sizes = np.array([len(counts) for counts, _ in rows], dtype=np.int64)
        self.counts = np.concatenate([counts for counts, _ in rows] or [np.zeros(0)])
        self.costs = np.concatenate([cost for _, cost in rows] or [np.zeros(0)])
        is_whole = ~np.array([c for c, used in zip(convex, self.used, strict=True) if used], bool)
        self.whole_shares = np.repeat(is_whole, self.sizes)
        if design.n_inner + len(self.counts) > _LARGEST_PROGRAM:
            raise ParameterError(
                f"the most likely table needs a program of {design.n_inner + len(self.counts):,} "
                f"columns, and at most {_LARGEST_PROGRAM:,} are tried. Fit with 'non-negative' or "
                "'least-squares', or fit fewer margins."
            )

    @cached_property
    def rows(self) -> csr_array:
        """Which row each share belongs to."""
        n, m = len(self.counts), len(self.sizes)
        return csr_array((np.ones(n), (np.repeat(np.arange(m), self.sizes), np.arange(n))), (m, n))

    @cached_property
    def margins(self) -> csr_array:
        """The used published cells of the inner cells, a row for each."""
        return csr_array(self.design.matrix().T)[np.flatnonzero(self.used)].astype(float)

    @cached_property
    def equations(self) -> tuple[Any, Real, Real]:
        """The matrix of inner cells and shares, with lower and upper bounds of its rows."""
        m, n = self.rows.shape
        mixed = csr_array(self.rows * self.counts[None, :]) if n else self.rows
        matrix = block_array([[self.margins, -mixed], [csr_array((m, self._inner)), self.rows]])
        slack = 0.5 if self.given.rounded else 0.0
        low = np.concatenate([np.full(m, -slack), np.ones(m)])
        return csr_array(matrix), low, np.concatenate([np.full(m, slack), np.ones(m)])

    @property
    def _inner(self) -> int:
        return self.design.n_inner

    def solve(self, tolerance: float, nodes: int) -> Fit:
        """The relaxed program for its multipliers, then the search where a gap remains."""
        multipliers, relaxed = self._relax()
        bound = self.bound(multipliers)
        y, proof, visited = self._as_table(relaxed[: self._inner]), "multipliers", 0
        if self._gap(y, bound) > tolerance:
            matrix, low, high = self.equations
            cost = np.concatenate([np.zeros(self._inner), self.costs])
            found = self._run(cost, matrix, (low, high), nodes, 0.0)
            if found.x is not None:
                candidate = self._as_table(found.x[: self._inner])
                y = candidate if self.cost(candidate) <= self.cost(y) else y
            visited = found.nodes
            # bounds of the search are proven by its whole tree, which nobody can check afterwards
            if bound < found.bound < np.inf:
                bound, proof = found.bound, "search"
        if not np.isfinite(self.cost(y)):
            y, nothing = self._as_table(self.near), Certificate(np.inf, np.inf, tolerance=tolerance)
            return Fit(y, self.design.aggregate(y), Status.infeasible, nothing, visited)
        y = self._nearest(y, nodes)
        gap, of_all = max(0.0, self._gap(y, bound)), np.zeros(self.design.n_published)
        of_all[self.used] = multipliers
        notes = {"multipliers": of_all, "bound": -bound, "proof": proof}
        notes["log_likelihood"] = -self.cost(y)
        status = Status.converged if gap <= tolerance else Status.max_steps
        certificate = Certificate(gap=gap, tolerance=tolerance)
        return Fit(y, self.design.aggregate(y), status, certificate, visited, notes=notes)

    def cost(self, y: Array) -> float:
        """The negative log-likelihood of a table."""
        return -self.given.log_likelihood(np.asarray(self.design.aggregate(np.asarray(y)), float))

    def bound(self, multipliers: Real) -> float:
        r"""A cost that no table is below, :math:`\sum_k\min_i(c_k(i) - \nu_k i)`."""
        slack = np.abs(multipliers).sum() / 2 if self.given.rounded else 0.0
        least = self.costs - np.repeat(multipliers, self.sizes) * self.counts
        at = np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.int64)
        return float(np.minimum.reduceat(least, at).sum() - slack) if len(at) else 0.0

    def _relax(self) -> tuple[Real, Real]:
        """Multipliers that are feasible, and the solution, of the program with real shares."""
        from scipy.optimize import linprog  # start-up time: every command loads the registry's fits

        solve: Any = linprog  # its types know no sparse matrices
        matrix, low, high = self.equations
        cost = np.concatenate([np.zeros(self._inner), self.costs])
        m = len(self.sizes)
        if self.given.rounded:
            sums, shares = matrix[:m], matrix[m:]
            both = csr_array(block_array([[sums], [-sums]]))
            limits = np.concatenate([high[:m], -low[:m]])
            found = solve(cost, both, limits, shares, np.ones(m), method="highs")
        else:
            found = solve(cost, A_eq=matrix, b_eq=low, method="highs")
        if found.x is None:
            return np.zeros(m), np.full(matrix.shape[1], 0.0)
        if self.given.rounded:
            dual = found.ineqlin.marginals[:m] - found.ineqlin.marginals[m:]
        else:
            dual = found.eqlin.marginals[:m]
        multipliers = -np.asarray(dual)
        # HiGHS keeps Xν ≥ 0 up to a tolerance; raised by what is missing, they keep it exactly
        short = -float((self.margins.T @ multipliers).min(initial=0.0))
        return multipliers + short, np.asarray(found.x)

    def _nearest(self, y: Array, nodes: int) -> Array:
        """Of the tables that are as likely as this one, the nearest to the least squares fit."""
        matrix, low, high = self.equations
        n, shares, allowed = self._inner, len(self.costs), self.cost(y)
        most = allowed + _SAME_COST * max(1.0, allowed)
        ones, none = eye_array(n), csr_array((n, shares))
        likely = np.concatenate([np.zeros(n), self.costs, np.zeros(n)])[None, :]
        # distances are the last columns: no less than the difference in either direction
        rows = [
            [block_array([[matrix, csr_array((matrix.shape[0], n))]])],
            [csr_array(likely)],
            [block_array([[ones, none, -ones]])],
            [block_array([[-ones, none, -ones]])],
        ]
        lows = np.concatenate([low, np.full(1 + 2 * n, -np.inf)])
        highs = np.concatenate([high, [most], self.near, -self.near])
        cost = np.concatenate([np.zeros(n + shares), np.ones(n)])
        found = self._run(cost, block_array(rows), (lows, highs), nodes)
        if found.x is None:
            return y
        chosen = self._as_table(found.x[:n])
        is_as_likely = self.cost(chosen) <= most + _SAME_COST * max(1.0, allowed)
        is_nearer = np.abs(chosen - self.near).sum() <= np.abs(y - self.near).sum()
        return chosen if is_as_likely and is_nearer else y

    def _run(
        self, cost: Real, matrix: Any, limits: tuple[Real, Real], nodes: int, gap: float = 1e-4
    ) -> MixedSolution:
        """A mixed program whose first columns are inner cells and shares.

        Inner cells are whole. Where sums were rounded the counts that shares mix to are, in further
        columns: then inner cells need not be.
        """
        n, shares, m = self._inner, len(self.costs), len(self.sizes)
        is_whole = np.zeros(len(cost), dtype=np.bool_)
        is_whole[n : n + shares] = self.whole_shares
        low, high = limits
        if not self.given.rounded:
            is_whole[:n] = True
        else:
            mixed = csr_array(self.rows * self.counts[None, :])
            rest = csr_array((m, len(cost) - n - shares))
            steps = block_array([[csr_array((m, n)), mixed, rest, -eye_array(m)]])
            wide = block_array([[matrix, csr_array((matrix.shape[0], m))]])
            matrix, cost = block_array([[wide], [steps]]), np.append(cost, np.zeros(m))
            low, high = np.append(low, np.zeros(m)), np.append(high, np.zeros(m))
            is_whole = np.append(is_whole, np.ones(m, dtype=np.bool_))
        return solve_mixed(cost, csr_array(matrix), (low, high), is_whole, nodes, gap)

    def _as_table(self, y: Real) -> Array:
        """Inner cells as they are published: whole counts, or steps that were not rounded."""
        kept = np.maximum(y, 0.0)
        return kept if self.given.rounded else np.rint(kept).astype(np.int64)

    def _gap(self, y: Array, bound: float) -> float:
        cost = self.cost(y)
        return (cost - bound) / max(1.0, abs(cost)) if np.isfinite(cost) else np.inf


def _corners(counts: Real, cost: Real) -> tuple[Real, Real]:
    """The counts at which a convex cost bends, and its ends."""
    if len(counts) < 3:
        return counts, cost
    slopes = np.diff(cost) / np.diff(counts)
    kept = np.concatenate([[True], np.abs(np.diff(slopes)) > _STRAIGHT, [True]])
    return counts[kept], cost[kept]
