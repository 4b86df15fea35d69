r"""Margins by dense factors where there are few effects, right whatever the weights are.

With a factor of the weighted cells, :math:`W^{1/2}X = QR`, margins without negative cells,
:math:`Mc \ge 0`, are those of :math:`Rc = q + R^{-\top}M^\top f` for the forces :math:`f \ge 0` on
their cells that make it smallest, with :math:`q = Q^\top W^{1/2} z` (Lawson & Hanson 1974).
"""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import null_space, svd
from scipy.optimize import nnls

from discreet.arrays import Real
from discreet.solve.least_squares.dense import MOST_ENTRIES, RANK, RowScaledFactor

if TYPE_CHECKING:
    from discreet.solve.margins.effects import EffectSpace

# Effects up to which factors take a second or two.
_MOST_EFFECTS = 1_000
_CORRECTIONS = 3  # the second changes nothing where weights differ by less than ten powers of ten
# Sides of cells that nothing moves, relative to the largest; pulls that may be rounding errors, all
# lengths being one; and the entries that take them off.
_LEAST_SIDE, _NO_PULLS, _LAST_ROW = 1e-12, (1e-14, 1e-13, 1e-12, 1e-11), 1e-7
# Weight of cells that are not in use, beside the lightest that are, and rounds that move them.
_LIGHT, _ROUNDS = 1e-4, 5


def few_effects(space: EffectSpace) -> tuple[Real, Real] | None:
    """Orthonormal directions of published cells and the effects with them; `None` where many."""
    if space.length > _MOST_EFFECTS or space.length * space.design.n_published > MOST_ENTRIES:
        return None
    units = (space.aggregate(space.centre(unit)) for unit in np.eye(space.length))
    return _range_of(np.stack(list(units), axis=1))


def _range_of(cells: Real) -> tuple[Real, Real]:
    """An orthonormal basis of what a matrix can give, and the smallest vectors that give it."""
    left, size, right = svd(cells, full_matrices=False, check_finite=False)
    rank = int(np.count_nonzero(size > RANK * size.max(initial=0.0)))
    return left[:, :rank], right[:rank].T / size[:rank]


class DenseMargins:
    """Published cells with precisions as a matrix of few effects.

    Args:
      cells: Published cells × directions.
      effects: Effects × directions.
      w: Precisions; zero leaves a cell out, and infinite ones are those of cells that are zero.
    """

    def __init__(self, cells: Real, effects: Real, w: Real) -> None:
        self.given, is_zero = w, np.isinf(w)
        if is_zero.any():
            free = null_space(cells[is_zero], rcond=RANK)
            cells, effects, w = cells @ free, effects @ free, np.where(is_zero, 0.0, w)
        self.cells, self.effects, self.w, self.used = cells, effects, w, w > 0
        # Directions that no cell in use shows have the effect zero.
        whole = (cells, np.eye(cells.shape[1]))
        self._seen, self._answers = whole if self.used.all() else _range_of(cells[self.used])
        self._root = np.sqrt(w[self.used])

    @cached_property
    def _factor(self) -> RowScaledFactor:
        return RowScaledFactor(self._seen, self._root)

    def nearest(self, z: Real) -> Real:
        """Effects that minimise the weighted squares."""
        return np.asarray(self.effects @ self._nearest(z))

    def _nearest(self, z: Real) -> Real:
        found = np.zeros(self._seen.shape[1])
        for _ in range(_CORRECTIONS):
            found += self._factor.solve(self._root * (z[self.used] - self._seen @ found))
        return np.asarray(self._answers @ found)

    def variances(self) -> Real:
        """Variance of each published cell of the estimate, under noise with these precisions."""
        return _variances(self._factor, self.cells @ self._answers)

    def distance(self, gradient: Real) -> float:
        """How far effects with this gradient are off, in the norm of the weighted squares."""
        row = (self._answers.T @ (self.effects.T @ gradient))[None]
        return float(np.sqrt(_variances(self._factor, row)[0]))

    def non_negative(self, z: Real, margins: Real) -> tuple[Real, Real] | None:
        """Effects that minimise the weighted squares with no negative cell of some margins.

        The other result are the forces on these cells. `margins` are their rows of effects.
        """
        rows, w, rounds = margins @ self.effects, self.w, 1
        if self.used.all():
            factor = self._factor
        else:
            # Cells that are not in use stay where they are, nearly for free, and then where they
            # went: that pulls on the others less and less.
            lightest = w[self.used].min() if self.used.any() else 1.0
            w, rounds = np.where(self.used, w, _LIGHT * lightest), _ROUNDS
            z = np.where(self.used, z, self.cells @ self._nearest(z))
            factor = RowScaledFactor(self.cells, np.sqrt(w))
        answer: tuple[Real, Real] | None = None
        for _ in range(rounds):
            found = factor.solve(np.sqrt(w) * z)
            forces = _forces(factor.whiten(rows), -factor.image(found))
            if forces is None:
                return None
            pull = rows.T @ forces
            for _ in range(_CORRECTIONS):
                left = w * (z - self.cells @ found)
                found = found + factor.solve_normal(pull + self.cells.T @ left)
            z = np.where(self.used, z, self.cells @ found)
            answer = self.effects @ found, forces
        return answer


def _forces(sides: Real, target: Real) -> Real | None:
    """Non-negative forces whose sum of sides is nearest to a target; `None` where none are found.

    Sides and target are of length one, and a last row takes off what rounding errors pull: SciPy's
    solver ends anywhere where it follows them.
    """
    size, length = np.sqrt((sides**2).sum(axis=0)), float(np.sqrt(target @ target)) or 1.0
    size[size <= _LEAST_SIDE * size.max(initial=0.0)] = np.inf
    sides = np.vstack([sides / size, np.full((1, sides.shape[1]), _LAST_ROW)])
    for none in _NO_PULLS:
        lifted = np.append(target / length, -none / _LAST_ROW)
        with suppress(RuntimeError):  # too many steps
            found = nnls(sides, lifted, maxiter=30 * sides.shape[1])[0]
            left = sides.T @ (lifted - sides @ found)
            if np.where(found > 0, np.abs(left), left).max(initial=0.0) <= none:
                return np.asarray(found * length / size)
    return None


def _variances(factor: RowScaledFactor, rows: Real) -> Real:
    return np.asarray((factor.whiten(rows) ** 2).sum(axis=0))
