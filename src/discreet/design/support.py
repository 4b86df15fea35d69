"""Which combinations are inner cells, and the way from a confidential choice to a public one.

The support of a design is the full crossing (`"all"`), the crossing without declared structural
zeros (`"declared"`), or the combinations that occur in the records (`"occurring"`). The last one is
confidential: values on it are lifted to the full crossing, with zeros elsewhere, before anything is
published.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DesignError

if TYPE_CHECKING:
    from discreet.design.base import Design

Kind = Literal["all", "declared", "occurring"]
Positions = Any
"""An index array, or the slice of everything where nothing moves."""
Public = TypeVar("Public", bound="Design", covariant=True)


@dataclass(frozen=True, eq=False)
class Lift(Generic[Public]):
    """From a design to the one with public support.

    Attributes:
      design: The public design.
      published: Where the published cells lie in it.
      inner: Where the inner cells lie in it; `None` when it has too many to number.
    """

    design: Public
    published: Positions
    inner: Positions | None

    def publish(self, values: NDArray[Any], outside: float = 0) -> NDArray[Any]:
        """Values of published cells on the public design, `outside` for those it adds."""
        return spread(values, self.published, self.design.n_published, outside)

    def lift(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of inner cells on the public design, zero for those it adds."""
        return spread(values, self.require_inner(), self.design.n_inner)

    def require_inner(self) -> Positions:
        """Where the inner cells lie, or an error when the full crossing is too large."""
        from discreet.design.product import LARGEST_DENSE

        if self.inner is None or self.design.n_inner > LARGEST_DENSE:
            raise DesignError(
                "the full crossing is too large to hold its inner cells: more than "
                f"{LARGEST_DENSE:,}. Tabulate fewer variables."
            )
        return self.inner


def spread(values: NDArray[Any], where: Positions, n: int, outside: float = 0) -> NDArray[Any]:
    """An array of length `n` with values at some places and `outside` at the others."""
    found = np.full(n, outside, dtype=values.dtype)
    found[where] = values
    return found
