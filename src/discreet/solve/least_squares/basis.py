r"""Bases in which the sums of a complete design are diagonal.

With :math:`G_{a,l}`, which has a one for each pair of categories of axis `a` in the same group of
level `l`, the sums of squares of a complete design are

.. math:: XWX^\top = \sum_b w_b \bigotimes_a G_{a,b_a}.

A product of orthonormal vectors of each axis makes this diagonal in two cases. Where the levels of
each axis are nested and have groups of equal size, as those of flat variables do, every :math:`G`
is made of means (`Effects`, the analysis of variance). Where every combination of levels is
published and weights are products, :math:`XWX^\top = \bigotimes_a K_a` with
:math:`K_a = \sum_l w_{a,l} G_{a,l}`, whatever the groups, and the eigenvectors of the small
matrices :math:`K_a` are enough (`crossing_basis`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from discreet.arrays import Real
from discreet.design.axis import OUTSIDE, Axis, Level
from discreet.design.base import Design
from discreet.design.product import ProductDesign

# Flat variables of which an analysis of variance is made at most: twelve have 4,096 effects.
_MOST_VARIABLES = 12
# Categories of an axis whose eigenvectors are computed, in some seconds at most.
_LONGEST_AXIS = 2_000
# Share of the largest eigenvalue below which another is a rounding error.
_ZERO = 1e-12
# Relative difference below which weights are the same.
_SAME = 1e-9
# Inner cells up to which variances are computed by dense algebra, in a second.
MOST_DENSE = 1_000
# Share of the largest singular value of a design below which another is a rounding error.
_RANK = 1e-9

Operator = Callable[[Real], Real]
Levels = list[Level | None]


def pseudo_inverse(eigenvalues: Real) -> Real:
    """One over what is not zero."""
    return np.divide(1.0, eigenvalues, out=np.zeros_like(eigenvalues), where=eigenvalues > 0)


@dataclass(frozen=True, eq=False)
class Basis:
    r"""Vectors of each axis, and the eigenvalues of their products.

    Attributes:
      shape: Categories of the axes.
      vectors: For each axis its vectors as columns; `None` for the mean and what is left of it.
      eigenvalues: An array over the axes, with two entries, for the mean and for all others, where
        there are no vectors.
      is_exact: Whether :math:`XWX^\top` is diagonal, or nearly so.
      of_axes: Eigenvalues of each axis, where those of the table are products of them.
    """

    shape: tuple[int, ...]
    vectors: tuple[Real | None, ...]
    eigenvalues: Real
    is_exact: bool
    of_axes: tuple[Real, ...] = ()

    @property
    def smallest(self) -> float:
        """Smallest eigenvalue; zero when the published cells do not determine the inner ones."""
        return float(self.eigenvalues.min())

    def function(self, f: Callable[[Real], Real]) -> Operator:
        r"""The operator :math:`f(XWX^\top)`, in the precision of what it is applied to.

        Cost: two passes along each axis and use; memory one table.
        """
        pairs = zip(self.shape, self.eigenvalues.shape, strict=True)
        kinds = [np.minimum(np.arange(length), n - 1) for length, n in pairs]
        factors = f(self.eigenvalues)[np.ix_(*kinds)]

        def apply(r: Real) -> Real:
            x = self._rotate(r.reshape(self.shape), back=False)
            x = np.multiply(x, factors, dtype=r.dtype, casting="same_kind")
            return self._rotate(x, back=True).ravel()

        return apply

    def inverse(self) -> Operator:
        """The inverse, where there is one; for products with one matrix instead of two."""
        if not self.of_axes:
            return self.function(pseudo_inverse)
        pairs = zip(self.vectors, self.of_axes, strict=True)
        matrices = [(v / values) @ v.T for v, values in pairs if v is not None]

        def apply(r: Real) -> Real:
            x = r.reshape(self.shape)
            for a, matrix in enumerate(matrices):
                x = _multiply_axis(x, a, matrix)
            return x.ravel()

        return apply

    def _rotate(self, x: Real, *, back: bool) -> Real:
        """Every axis multiplied by its vectors, transposed on the way there."""
        for a, vectors in enumerate(self.vectors):
            if vectors is None:
                x = _reflect(x, a)
            else:
                x = _multiply_axis(x, a, vectors if back else vectors.T)
        return x


def _reflect(x: Real, a: int) -> Real:
    """Reflect an axis so that the mean becomes its first vector; the same there and back."""
    # A Householder reflection needs one sum along the axis; any matrix of contrasts would need a
    # product with it, and take memory for long axes.
    root, first = math.sqrt(x.shape[a]), (slice(None),) * a + (slice(0, 1),)
    mean = x.sum(axis=a, keepdims=True) / root
    x = x - (mean - x[first]) / (root - 1.0)
    x[first] = mean
    return x


def _multiply_axis(x: Real, a: int, matrix: Real) -> Real:
    """An axis multiplied by a matrix, in the precision of the table."""
    flat = x.reshape(math.prod(x.shape[:a]), x.shape[a], -1)
    matrix = matrix.astype(x.dtype, copy=False)
    # For the last axis the batch of products with one column each would be slow; one matrix is not.
    product = matrix @ flat if flat.shape[2] > 1 else flat[:, :, 0] @ matrix.T
    return product.reshape(x.shape)


@dataclass(frozen=True, eq=False)
class Effects:
    r"""The analysis of variance of a complete design whose levels have groups of equal size.

    An axis with nested levels of equal groups is a product of flat variables, one for each level.
    A block keeps some of all these variables and sums over the others. An effect is a set of them
    too: what differs between their categories, and is the mean of the others. On it the sums of a
    block have the eigenvalue :math:`\prod r`, over the categories `r` of the variables that it sums
    over, or zero when the effect has one of these.
    """

    sizes: tuple[int, ...]  # categories of the flat variables
    kept: tuple[tuple[bool, ...], ...]  # for each block which of them it keeps

    @classmethod
    def of(cls, design: ProductDesign) -> Effects | None:
        """The effects of a design; `None` where groups are unequal or levels are not nested."""
        sizes: list[int] = []
        kept: list[list[bool]] = [[] for _ in design.blocks]
        for a, levels in enumerate(levels_in_use(design)):
            lengths = _nested_lengths(design.axes[a], levels)
            if lengths is None:
                return None
            for coarse, fine in itertools.pairwise(lengths):
                sizes.append(fine // coarse)
                for of_block, block in zip(kept, design.blocks, strict=True):
                    of_block.append(_length(block.levels[a]) >= fine)
        if len(sizes) > _MOST_VARIABLES:
            return None
        return cls(tuple(sizes), tuple(map(tuple, kept)))

    @cached_property
    def ranks(self) -> Real:
        """The dimension of each effect, an array with two entries for each variable."""
        return _outer([(1.0, r - 1.0) for r in self.sizes])

    @cached_property
    def gains(self) -> Real:
        """Eigenvalues of each block's sums, blocks × effects."""
        shape = (len(self.kept), self.ranks.size)
        return np.array([self._gain(kept).ravel() for kept in self.kept]).reshape(shape)

    def basis(self, block_weights: Real) -> Basis:
        """The effects as a basis, when blocks have these weights."""
        eigenvalues = np.zeros_like(self.ranks)
        for kept, w in zip(self.kept, block_weights, strict=True):
            eigenvalues += w * self._gain(kept)
        return Basis(self.sizes, (None,) * len(self.sizes), eigenvalues, is_exact=True)

    def _gain(self, kept: tuple[bool, ...]) -> Real:
        pairs = zip(self.sizes, kept, strict=True)
        return _outer([(1.0, 1.0) if is_kept else (r, 0.0) for r, is_kept in pairs])


def is_crossing(design: ProductDesign) -> bool:
    """Whether all combinations of levels are published, and axes are short enough for a basis."""
    combinations = math.prod(len(levels) for levels in levels_in_use(design))
    is_short = max(design.shape, default=1) <= _LONGEST_AXIS
    return is_short and len(design.blocks) == combinations


def crossing_basis(design: ProductDesign, block_weights: Real) -> Basis | None:
    r"""The eigenvectors of every :math:`K_a`; `None` where blocks have no weight.

    Weights that are no products are replaced by the nearest that are, and the basis is not exact.
    """
    if not (block_weights > 0).all():
        return None
    used, n = levels_in_use(design), range(len(design.axes))
    place = [[used[a].index(block.levels[a]) for block in design.blocks] for a in n]
    logarithms = np.empty([len(levels) for levels in used])
    logarithms[tuple(place)] = np.log(block_weights)
    mean = logarithms.mean()
    means = [logarithms.mean(axis=tuple(b for b in n if b != a)) - mean for a in n]
    nearest = reduce(np.add.outer, means, mean)
    is_exact = np.allclose(nearest, logarithms, rtol=0.0, atol=_SAME)
    vectors, values = [], []
    for axis, levels, of_level in zip(design.axes, used, means, strict=True):
        found, columns = np.linalg.eigh(_same_group(axis, levels, np.exp(of_level)))
        values.append(np.where(found > _ZERO * found[-1], found, 0.0))
        vectors.append(columns)
    values[0] *= np.exp(mean)  # the factor that all axes share
    return Basis(design.shape, tuple(vectors), _outer(values), is_exact, tuple(values))


def levels_in_use(design: ProductDesign) -> list[Levels]:
    """For each axis the levels that some block has."""
    axes = range(len(design.axes))
    return [list(dict.fromkeys(block.levels[a] for block in design.blocks)) for a in axes]


def _length(level: Level | None) -> int:
    return 1 if level is None else len(level)


def _nested_lengths(axis: Axis, levels: Levels) -> list[int] | None:
    """Numbers of groups, coarse to fine, from the total to the leaves; `None` if not nested.

    Groups of equal size that follow each other are nested when their numbers divide each other.
    """
    n = len(axis)
    lengths = sorted({1, n, *map(_length, levels)})
    if any(fine % coarse for coarse, fine in itertools.pairwise(lengths)):
        return None
    even = (lv is None or np.array_equal(lv.group, np.arange(n) * len(lv) // n) for lv in levels)
    return lengths if all(even) else None


def _same_group(axis: Axis, levels: Levels, weights: Real) -> Real:
    """The weighted number of levels at which two leaves lie in one group."""
    K = np.zeros((len(axis), len(axis)))
    for level, w in zip(levels, weights, strict=True):
        group = np.zeros(len(axis)) if level is None else level.group
        K += w * ((group[:, None] == group) & (group != OUTSIDE))
    return K


def _outer(factors: Iterable[Sequence[float] | Real]) -> Real:
    product: Real = reduce(np.multiply.outer, factors, np.ones(()))
    return product


def fitted_variances(design: Design, weights: Real, variances: Real) -> Real | None:
    r"""Variances of the published cells of a least squares fit.

    The fit is :math:`\hat z = X^\top M^+ X W z` with :math:`M = X W X^\top`. Noise `u` of variance
    :math:`v_g` on each distinct cell `g`, shared by the cells :math:`k \sim g` with the same inner
    cells, gives

    .. math:: \operatorname{Cov}(\hat z) = X^\top M^+ B \operatorname{diag}(v) B^\top M^+ X, \qquad
              b_g = \sum_{k \sim g} w_k x_k .

    On a complete design whose levels have groups of equal size, all margins share eigenvectors.
    With :math:`g_{bS}` the eigenvalue of block `b` on effect `S` (of rank :math:`r_S`), a cell of
    block `t`, one of :math:`n_t`, has variance

    .. math:: \frac{1}{n_t} \sum_S r_S\, g_{tS}\,
              \frac{\sum_b w_b^2 v_b\, g_{bS}}{(\sum_b w_b\, g_{bS})^2} .

    Weights are positive, and `variances` those of the noise in what was fitted. `None` where there
    is no closed form and the design is too large for dense algebra.
    """
    found = _variances_by_blocks(design, weights, variances)
    if found is None and design.n_inner <= MOST_DENSE:
        found = _dense_variances(design, weights, variances)
    return found


def _variances_by_blocks(design: Design, weights: Real, variances: Real) -> Real | None:
    """The closed form; `None` where margins have no common eigenvectors."""
    product = design.product_form
    if product is None or not product.axes:
        return None
    effects = Effects.of(product)
    if effects is None or (product.duplicates() != np.arange(product.n_published)).any():
        return None
    w, v = _block_values(product, weights), _block_values(product, variances)
    if w is None or v is None:
        return None
    gains, ranks = effects.gains, effects.ranks.ravel()
    strength = w @ gains
    seen = strength > 0
    error = np.where(seen, (w**2 * v) @ gains, 0.0) / np.where(seen, strength, 1.0) ** 2
    of_block = (gains * ranks) @ error / np.diff(product.offsets)
    return np.asarray(of_block[product.block_of_cell()])


def _block_values(design: ProductDesign, values: Real) -> Real | None:
    """Values by block, if they are the same in all cells of each."""
    first = values[design.offsets[:-1]]
    same = np.allclose(values, first[design.block_of_cell()], rtol=_SAME, atol=0.0)
    return first if same else None


def _dense_variances(design: Design, weights: Real, variances: Real) -> Real:
    X = np.asarray(design.matrix().toarray(), dtype=np.float64)
    left, size, _ = np.linalg.svd(X, full_matrices=False)
    Q = left[:, size > _RANK * size.max(initial=0.0)]
    # Within the range of the design M can be inverted; margins determine nothing beyond it.
    X = Q.T @ X
    M = (X * weights) @ X.T
    same = np.zeros((len(X), design.n_published))
    np.add.at(same.T, design.duplicates(), (X * weights).T)
    moved = X.T @ np.linalg.solve(M, same)
    return np.asarray((moved**2) @ variances)
