r"""Full crossings: when every combination of levels is published, :math:`XX^\top` is a product.

If the blocks of a complete design are all combinations of a set of levels for each variable, then
:math:`XWX^\top = \bigotimes_a K_a` with :math:`K_a = \sum_l w_{a,l} G_{a,l}`, where
:math:`G_{a,l}` has a one for each pair of leaves in the same group of level :math:`l`. Groups may
overlap and be of any size: the eigenvectors of the small matrices :math:`K_a` are enough.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from discreet.design.axis import OUTSIDE, Axis, Level
from discreet.design.base import Vector
from discreet.design.product import ProductDesign
from discreet.solve.least_squares.anova import Spectrum

LONGEST_AXIS = 2_000
_ZERO = 1e-12  # relative size below which an eigenvalue is rounding error

LevelWeights = list[dict[Level | None, float]]


class CrossingBasis:
    """Eigenvectors of every axis, and products of their eigenvalues.

    Cost: two small matrix products per axis and use; memory one table for each function.
    """

    is_exact = True

    def __init__(self, design: ProductDesign, level_weights: LevelWeights) -> None:
        self._shape = design.shape
        pairs = [
            np.linalg.eigh(_same_group(axis, weights))
            for axis, weights in zip(design.axes, level_weights, strict=True)
        ]
        self._vectors = [vectors for _, vectors in pairs]
        self._values = [np.where(v > _ZERO * v[-1], v, 0.0) for v, _ in pairs]

    @property
    def smallest(self) -> float:
        """Smallest eigenvalue; zero when the published cells do not determine the inner ones."""
        return math.prod(float(v.min()) for v in self._values)

    def function(self, f: Spectrum) -> Callable[[Vector], Vector]:
        r"""The operator :math:`f(XWX^\top)`."""
        eigenvalues: NDArray[np.float64] = reduce(np.multiply.outer, self._values, np.ones(()))
        factors = f(eigenvalues)

        def apply(r: Vector) -> Vector:
            x = self._transform(r.reshape(self._shape), inverse=False)
            return self._transform(x * factors, inverse=True).ravel()

        return apply

    def inverse(self) -> Callable[[Vector], Vector]:
        """The inverse, as a product of small ones; in the precision of what it is applied to."""
        pairs = zip(self._values, self._vectors, strict=True)
        matrices = [(vectors / values) @ vectors.T for values, vectors in pairs]
        kept = {t: [m.astype(t) for m in matrices] for t in (np.float32, np.float64)}

        def apply(r: Vector) -> Vector:
            return self._along_axes(r, kept[r.dtype.type]).ravel()

        return apply

    def _transform(self, x: Vector, *, inverse: bool) -> Vector:
        """Every axis multiplied by its eigenvectors, transposed on the way there."""
        return self._along_axes(x, [v if inverse else v.T for v in self._vectors])

    def _along_axes(self, x: Vector, matrices: Sequence[Vector]) -> Vector:
        """Every axis multiplied by its matrix."""
        for a, matrix in enumerate(matrices):
            before = math.prod(self._shape[:a])
            flat = x.reshape(before, self._shape[a], -1)
            x = matrix @ flat if flat.shape[2] > 1 else flat[:, :, 0] @ matrix.T
        return x.reshape(self._shape)


def level_weights_of(
    design: ProductDesign, block_weights: NDArray[np.float64]
) -> LevelWeights | None:
    """Level weights whose products are the blocks' weights, if the blocks are a crossing."""
    if max(design.shape, default=1) > LONGEST_AXIS or not (block_weights > 0).all():
        return None
    used = [
        list(dict.fromkeys(b.levels[a] for b in design.blocks)) for a in range(len(design.axes))
    ]
    of_block = {b.levels: w for b, w in zip(design.blocks, block_weights.tolist(), strict=True)}
    if len(of_block) != math.prod(len(levels) for levels in used):
        return None
    first = tuple(levels[0] for levels in used)
    weights: LevelWeights = [
        {
            level: of_block[first[:a] + (level,) + first[a + 1 :]] / of_block[first]
            for level in levels
        }
        for a, levels in enumerate(used)
    ]
    return _scaled(weights, of_block[first]) if _is_product(weights, of_block, first) else None


def _is_product(
    weights: LevelWeights,
    of_block: dict[tuple[Level | None, ...], float],
    first: tuple[Level | None, ...],
) -> bool:
    for combination in itertools.product(*weights):
        parts = (w[level] for w, level in zip(weights, combination, strict=True))
        if not math.isclose(of_block[combination], math.prod(parts) * of_block[first]):
            return False
    return True


def _scaled(weights: LevelWeights, factor: float) -> LevelWeights:
    if not weights:
        return weights
    return [{level: w * factor for level, w in weights[0].items()}, *weights[1:]]


def _same_group(axis: Axis, weights: dict[Level | None, float]) -> NDArray[np.float64]:
    """The weighted number of levels in use at which two leaves lie in one group."""
    K = np.zeros((len(axis), len(axis)))
    for level, w in weights.items():
        if level is None:
            K += w
        else:
            group = level.group
            K += w * ((group[:, None] == group) & (group != OUTSIDE))
    return K
