"""Rounding real inner cells down or up to whole numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.design.base import Design
from discreet.design.structured import StructuredDesign
from discreet.errors import DataError
from discreet.solve.integer.domain import Domain, Whole
from discreet.solve.integer.found import Found, describe
from discreet.solve.integer.problem import Problem

Real = NDArray[np.float64]
WHOLE = 1e-7  # values this near to a whole number are taken to be it
_LARGEST_TRANSPORT = 100_000
_LARGEST_CUBE = 2_000_000


def parts(y: NDArray[Any]) -> tuple[Whole, Real]:
    """Whole parts and fractions; values that are whole but for rounding errors are whole."""
    real = np.asarray(y, dtype=np.float64)
    if not np.isfinite(real).all() or (real < -WHOLE).any():
        raise DataError(
            "inner cells must be finite and not negative to be rounded to counts. "
            "Fit them without negative values first (`release.fit(dc.NonNegative())`)."
        )
    base = np.floor(np.maximum(real, 0.0) + WHOLE)
    fraction = np.where(real - base > WHOLE, real - base, 0.0)
    return base.astype(np.int64), fraction


def independent(probability: Real, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Choose each cell with its probability, independently of the others."""
    return rng.random(len(probability)) < probability


def systematic(probability: Real, rng: np.random.Generator) -> NDArray[np.bool_]:
    r"""Choose cells with given probabilities so that their number is fixed, or nearly.

    Cell `i` is chosen when a point :math:`u + k`, :math:`k = 0, 1, \dots`, falls into its piece
    of the cumulated probabilities, with one uniform `u`.

    Promise: each cell is chosen with exactly its probability; the number of chosen cells in any
    run of neighbouring cells differs from its expectation by less than one.
    """
    ends = np.floor(np.cumsum(probability) - rng.random() + 1.0 + 1e-12)
    return np.diff(ends, prepend=0.0) > 0.5


def controlled(
    design: Design, y: NDArray[Any], *, rng: np.random.Generator, proposals: float = 2e7
) -> Found:
    r"""Round every inner cell down or up so that the published cells stay near their sums.

    .. math:: \min_u \sum_k (x_k^\top u - x_k^\top y)^2, \quad
              u_j \in \{\lfloor y_j\rfloor, \lceil y_j\rceil\},\quad
              \lfloor x_k^\top y\rfloor \le x_k^\top u \le \lceil x_k^\top y\rceil.

    Promise: in a two-way table every published cell is its sum rounded down or up; in other
    tables wherever the search finds it possible (`Found.violations` counts the exceptions).
    Cost: a linear program for two-way tables, otherwise a search of `proposals` steps.
    """
    from discreet.solve.integer.search import Search

    base, fraction = parts(y)
    target = design.aggregate(base + fraction)
    whole = np.rint(target)
    near = np.abs(target - whole) < WHOLE * np.maximum(1.0, np.abs(target))
    target = np.where(near, whole, target)
    problem = Problem(
        design,
        target,
        Domain.pair(base, base + (fraction > 0)),
        low=np.floor(target) - target,
        high=np.ceil(target) - target,
        relaxed=base + fraction,
    )
    if is_two_way(design) and len(base) <= _LARGEST_TRANSPORT:
        return describe(problem, _by_transport(design, base, fraction), 0.0)
    start = base + systematic(fraction, rng)
    return Search(proposals=proposals, hot=0.3)(problem, start, rng=rng)


def balanced(design: Design, y: NDArray[Any], *, rng: np.random.Generator, window: int = 200) -> Whole:
    """Round every inner cell down or up at random, without bias and with the sums kept (cube method).

    Promise: the expected value of every cell, inner or published, is its real value. Published
    cells stay within one as long as inner cells can be moved against each other in groups of up
    to `window`; in two-way tables they always do but for very long chains of cells.
    Cost: about the number of fractional cells times the square of the groups needed.

    See Deville & Tillé (2004).
    """
    from discreet.solve.integer.cube_kernels import fly

    base, fraction = parts(y)
    rows = np.flatnonzero(fraction)
    if len(rows) > _LARGEST_CUBE:
        raise DataError(
            f"the cube method holds up to {_LARGEST_CUBE:,} fractional cells, got {len(rows):,}. "
            "Round with method='margins' or 'total'."
        )
    X = design.matrix()[rows]
    columns = X.tocsc()
    sums = design.aggregate(fraction)
    sums -= np.floor(sums + WHOLE)
    part = fraction[rows].copy()
    fly(
        *(a.astype(np.int64) for a in (X.indptr, X.indices, columns.indptr, columns.indices)),
        part,
        np.clip(sums, 0.0, 1.0),
        np.zeros(design.n_published, dtype=bool),
        window,
        rng.integers(2**63, size=1).astype(np.uint64),
    )
    rounded = base.copy()
    rounded[rows] += np.rint(part).astype(np.int64)
    return rounded


def is_two_way(design: Design) -> bool:
    """Whether a design is a complete two-way table without hierarchies."""
    return (
        isinstance(design, StructuredDesign)
        and design.is_complete
        and len(design.axes) == 2
        and all(
            level is None or level.is_identity for block in design.blocks for level in block.levels
        )
    )


def _by_transport(design: Design, base: Whole, fraction: Real) -> Whole:
    """A two-way table rounded so that rows, columns and total are rounded down or up too.

    A further row and column hold what the sums lack to the next whole number, which makes all
    sums whole: the problem becomes one of transport.
    """
    from discreet.solve.transport import round_transport

    shape = tuple(len(axis) for axis in design.axes)
    inner = np.zeros((shape[0] + 1, shape[1] + 1))
    inner[:-1, :-1] = fraction.reshape(shape)
    total = inner.sum()
    inner[:-1, -1] = _lack(inner[:-1].sum(axis=1))
    inner[-1, :-1] = _lack(inner[:-1, :-1].sum(axis=0))
    inner[-1, -1] = total - np.floor(total + WHOLE)
    rows = np.rint(inner.sum(axis=1)).astype(np.int64)
    rounded = round_transport(np.maximum(inner, 0.0), row_sums=rows)
    return base + rounded[:-1, :-1].ravel()


def _lack(sums: Real) -> Real:
    """What sums lack to the next whole number."""
    return np.maximum(np.ceil(sums - WHOLE) - sums, 0.0)
