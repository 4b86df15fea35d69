"""How zeros are treated: which combinations are inner cells, and which of them are public.

| a design's `support` | its inner cells | asked for by |
|---|---|---|
| `"all"` | the full crossing | `support="all"` |
| `"declared"` | the crossing without structural zeros | the same, with `structural_zeros` |
| `"occurring"` | the combinations that occur in the records | `support="occurring"` |
| `"occurring"` | these, and zeros given beside them | `support="listed"`, for frames of counts |

A support that was read from the records is confidential: values on it are embedded in the full
crossing, with zeros elsewhere, before anything is published.

Declared zeros are as a rule products: masks over a few variables each ("children are not married").
Such masks are all that passes over the table need, however large it is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, get_args

import numpy as np

from discreet.arrays import Array, Index, Mask, Real, Whole
from discreet.design.codes import canonical
from discreet.errors import DesignError, ParameterError, check_known

if TYPE_CHECKING:
    from discreet.design.axis import Axis
    from discreet.design.base import Design

Kind = Literal["all", "declared", "occurring"]
"""What the support of a design is."""
Support = Literal["all", "occurring", "listed"]
"""What may be asked for when a table is made."""
LARGEST_DENSE = 200_000_000
"""Inner cells that an array of all of them may have."""
Positions = Any
"""An index array, or the slice of everything where nothing moves."""
Public = TypeVar("Public", bound="Design", covariant=True)


def check_support(support: str, known: Sequence[str] = get_args(Support)) -> None:
    """Refuse a word for a support that is not known."""
    if support not in known:
        *others, last = map(repr, known)
        raise ParameterError(f"support must be {', '.join(others)} or {last}, got {support!r}.")


@dataclass(frozen=True, eq=False)
class Embedding(Generic[Public]):
    """Where the cells of a design lie in a wider one, such as that with public support."""

    design: Public  # the public design
    published: Positions  # where the published cells lie in it
    # Where the inner cells lie in it; `None` when it has too many to number.
    inner: Positions | None

    def to_public_cells(self, values: Array, outside: float = 0) -> Array:
        """Values of published cells on the public design, `outside` for those it adds."""
        return spread(values, self.published, self.design.n_published, outside)

    def as_public_cells(self, values: Array) -> Array:
        """The same to be read only: the given array itself where nothing moves."""
        return values if isinstance(self.published, slice) else self.to_public_cells(values)

    def from_public_cells(self, values: Array) -> Array:
        """Values on the public design for the published cells of the other one."""
        return values[self.published]

    def on_gpu(self, cupy: Any) -> Embedding[Public]:
        """The same for vectors that lie on a graphics processor."""
        moves = not isinstance(self.published, slice)
        return replace(self, published=cupy.asarray(self.published)) if moves else self

    def to_public_support(self, values: Array) -> Array:
        """Values of inner cells on the public design, zero for those it adds."""
        return spread(values, self.require_inner(), self.design.n_inner)

    def require_inner(self) -> Positions:
        """Where the inner cells lie, or an error when the full crossing is too large."""
        if self.inner is None or self.design.n_inner > LARGEST_DENSE:
            raise DesignError(
                "the full crossing is too large to hold its inner cells: more than "
                f"{LARGEST_DENSE:,}. Tabulate fewer variables."
            )
        return self.inner


def spread(values: Array, where: Positions, n: int, outside: float = 0) -> Array:
    """An array of length `n` with values at some places and `outside` at the others."""
    found = np.full_like(values, outside, shape=n)
    found[where] = values
    return found


def declared_masks(
    axes: Sequence[Axis], rules: Sequence[Mapping[str, Any]]
) -> tuple[CombinationMask, ...]:
    """What rules leave possible; codes of any level may be named.

    A rule on a variable that is not among the axes says nothing about them.
    """
    by_name = {axis.name: a for a, axis in enumerate(axes)}
    masks: dict[tuple[int, ...], Mask] = {}
    for rule in rules:
        if by_name.keys() >= rule.keys():
            named = sorted((by_name[name], codes) for name, codes in rule.items())
            over = tuple(a for a, _ in named)
            mask = masks.setdefault(over, np.ones([len(axes[a]) for a in over], dtype=bool))
            mask[np.ix_(*(_leaves_of(axes[a], codes) for a, codes in named))] = False
    return tuple(CombinationMask(over, mask) for over, mask in masks.items())


def _leaves_of(axis: Axis, codes: Any) -> Index:
    several = [codes] if isinstance(codes, str) or not isinstance(codes, Iterable) else codes
    found = []
    for code in map(canonical, several):
        check_known(f"code of variable {axis.name!r}", [code], axis.code_leaves)
        found.append(axis.code_leaves[code])
    return np.unique(np.concatenate(found))


@dataclass(frozen=True, eq=False)
class CombinationMask:
    """Which combinations of a few variables are possible."""

    axes: tuple[int, ...]  # the variables, by their places among the axes of a design
    possible: Mask  # an array over them

    def at(self, index: Mapping[int, Any] | Sequence[Any]) -> Mask:
        """Whether cells with these leaf positions, given for all axes of the design, may occur."""
        return np.asarray(self.possible[tuple(index[a] for a in self.axes)])


_LARGEST_MASK = 3  # variables of a mask that is looked for
_SMALL_MASK = 10_000  # cells that a mask may have however few inner cells there are
_MOST_IMPOSSIBLE = 8  # combinations for each possible one that a pass may still walk through


def product_masks(
    shape: tuple[int, ...], codes: Sequence[Array]
) -> tuple[CombinationMask, ...] | None:
    """Masks over a few variables each whose product are some cells; `None` where there are none.

    Nor are there any where most combinations are impossible: lists of cells are shorter then.

    Args:
      shape: Categories of the axes.
      codes: For each axis the leaf positions of the cells.
    """
    n = len(codes[0]) if codes else 1
    if not is_worth_a_pass(shape, n):
        return None
    masks: list[CombinationMask] = []
    for order in range(_LARGEST_MASK + 1):
        for axes in itertools.combinations(range(len(shape)), order):
            if math.prod(shape[a] for a in axes) <= max(n, _SMALL_MASK):
                masks += _mask_around(shape, codes, axes, masks)
        if n_possible(shape, masks) == n:
            return tuple(masks)
    return None


def _mask_around(
    shape: tuple[int, ...],
    codes: Sequence[Array],
    axes: tuple[int, ...],
    known: Sequence[CombinationMask],
) -> list[CombinationMask]:
    """The mask of the combinations that cells have, if it says more than those that are known."""
    sizes = tuple(shape[a] for a in axes)
    reached, expected = np.zeros(sizes, dtype=bool), np.ones(sizes, dtype=bool)
    reached[tuple(codes[a] for a in axes)] = True
    index = dict(zip(axes, np.indices(sizes, sparse=True), strict=True))
    for mask in known:
        if index.keys() >= set(mask.axes):
            expected &= mask.at(index)
    return [] if np.array_equal(reached, expected) else [CombinationMask(axes, reached)]


def n_possible(shape: tuple[int, ...], masks: Sequence[CombinationMask]) -> int:
    """How many combinations a product of masks leaves possible, without going through them."""
    return int(possible_cells(single_leaves(shape), masks, ())[()])


def single_leaves(shape: tuple[int, ...]) -> list[Whole]:
    """Sizes of categories that stand for one leaf each."""
    return [np.ones(n, dtype=np.int64) for n in shape]


def possible_cells(
    sizes: Sequence[Whole], masks: Sequence[CombinationMask], kept: tuple[int, ...]
) -> Whole:
    """How many possible combinations there are for each combination of some variables.

    Args:
      sizes: For each variable how many leaves each of its categories stands for.
      masks: Which combinations of categories are possible.
      kept: The variables whose categories are told apart.
    """
    masked = sorted({a for mask in masks for a in mask.axes})
    # Variables of no mask only multiply. In one sum with the others they are carried through each
    # of its steps: all pairs of nine variables took 45 s, one of 401 categories among the free.
    order = [a for a in kept if a in masked]
    counts: Real = np.ones(())
    if masks:
        factors: list[Any] = [part for a in masked for part in (sizes[a].astype(float), (a,))]
        factors += [part for m in masks for part in (m.possible.astype(float), m.axes)]
        counts = np.einsum(*factors, tuple(order), optimize="greedy")
    for a in (a for a in range(len(sizes)) if a not in masked):
        free = sizes[a].astype(float)
        counts = np.multiply.outer(counts, free if a in kept else free.sum())
        order += [a] if a in kept else []
    counts = np.transpose(counts, [order.index(a) for a in kept])
    return np.rint(counts).astype(np.int64)


def is_worth_a_pass(shape: tuple[int, ...], n_inner: int) -> bool:
    """Whether so many of all combinations are possible that passes over all of them pay."""
    return math.prod(shape) <= _MOST_IMPOSSIBLE * n_inner
