"""Estimates from few margins by dense algebra, right whatever the weights are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Real

if TYPE_CHECKING:
    from discreet.solve.margins.effects import EffectSpace

# Published cells times effects, and effects: to write down so many takes a fifth of a second.
_MOST_ENTRIES, _MOST_EFFECTS = 200_000, 200
_REFINEMENTS = 2  # the second changes nothing where weights differ by less than ten powers of ten


@dataclass(frozen=True, eq=False)
class DenseMargins:
    """Published cells as a matrix of effects.

    Attributes:
      basis: Effects × as many independent ones: centred effects of length one.
      cells: Published cells × independent effects.
    """

    basis: Real
    cells: Real

    @classmethod
    def of(cls, space: EffectSpace) -> DenseMargins | None:
        """The matrix, or `None` where it were large."""
        m = space.design.n_published
        if space.length > _MOST_EFFECTS or space.length * m > _MOST_ENTRIES:
            return None
        units = np.stack([space.centre(unit) for unit in np.eye(space.length)], axis=1)
        # Centring is a projection: its eigenvalues are zero and one.
        values, vectors = np.linalg.eigh((units + units.T) / 2)
        basis = vectors[:, values > 0.5]
        cells = [space.aggregate(column) for column in basis.T]
        return cls(basis, np.stack(cells, axis=1) if cells else np.zeros((m, 0)))

    def nearest(self, z: Real, w: Real) -> tuple[Real, float]:
        """Effects that minimise the weighted squares, of smallest norm; and the gradient left."""
        root = np.sqrt(w)
        inverse = np.linalg.pinv(root[:, None] * self.cells)
        found = inverse @ (root * z)
        for _ in range(_REFINEMENTS):
            found += inverse @ (root * (z - self.cells @ found))
        first = np.abs(inverse @ (root * z)).max(initial=0.0)
        left = np.abs(inverse @ (root * (z - self.cells @ found))).max(initial=0.0)
        effects: Real = self.basis @ found
        return effects, float(left / first) if first else 0.0

    def variances(self, w: Real) -> Real:
        """Variance of each published cell of the estimate, under noise with these precisions."""
        inverse = np.linalg.pinv(np.sqrt(w)[:, None] * self.cells)
        found: Real = ((self.cells @ inverse) ** 2).sum(axis=1)
        return found


class DenseStep:
    """Effects nearest to published cells and to copies of margins, each cell with its weight."""

    def __init__(
        self,
        space: DenseMargins,
        margins: Sequence[Real],
        z: Real,
        w: Real,
        weights: Mapping[tuple[int, ...], Real],
    ) -> None:
        self.basis = space.basis
        self.roots = np.sqrt(np.concatenate([v.ravel() for v in weights.values()]))
        rows = np.concatenate([np.sqrt(w), self.roots])[:, None] * np.vstack(
            [space.cells, *margins]
        )
        inverse = np.linalg.pinv(rows)
        self.fixed, self.inverse = inverse[:, : len(z)] @ (np.sqrt(w) * z), inverse[:, len(z) :]

    def __call__(self, copies: Mapping[tuple[int, ...], Real], start: Real) -> Real:
        """The effects for these copies; no start is needed."""
        wanted = np.concatenate([v.ravel() for v in copies.values()])
        found: Real = self.basis @ (self.fixed + self.inverse @ (self.roots * wanted))
        return found
