"""Sparse designs: chosen inner cells only, summed through index arrays."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Array, Index, Unsigned64, Whole, Whole32
from discreet.design.axis import OUTSIDE, Axis, Level
from discreet.design.base import Design, Restricted
from discreet.design.formula import Margins
from discreet.design.parts import coarsen_axes
from discreet.design.product import ProductDesign, first_of_equal, sum_groups
from discreet.design.structured import StructuredDesign, rank_positions
from discreet.design.support import (
    LARGEST_DENSE,
    CombinationMask,
    Embedding,
    Kind,
    declared_masks,
    is_worth_a_pass,
    n_possible,
    possible_cells,
    product_masks,
    single_leaves,
    spread,
)
from discreet.errors import DesignError

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class SparseDesign(StructuredDesign):
    """Inner cells given by their leaf positions; published cells are those they reach.

    A block is summed from the smallest block that refines it, so only the largest blocks need an
    index array as long as the inner cells. Cost of `aggregate` and `adjoint`: one pass over those
    arrays; memory 4 bytes per entry.

    Args:
      axes: The variables.
      margins: A formula, or a list of tuples of names.
      codes: For each axis the leaf positions of the inner cells, all combinations different.
      occurring: Whether the support was read from confidential records. Such a design must not be
        published; `public` gives the one that may.
    """

    def __init__(
        self,
        axes: Sequence[Axis],
        margins: Margins,
        codes: Sequence[Array],
        *,
        occurring: bool = False,
    ) -> None:
        super().__init__(axes, margins)
        self._number(codes, occurring)
        self._check_codes()

    @classmethod
    def within(
        cls, design: StructuredDesign, codes: Sequence[Array], *, occurring: bool
    ) -> SparseDesign:
        """Some inner cells of another design, given by their leaf positions, all different."""
        new = cls.__new__(cls)
        for name in ("axes", "terms", "blocks", "lattice", "plan"):
            setattr(new, name, getattr(design, name))
        new._number(codes, occurring)
        return new

    def _number(self, codes: Sequence[Array], occurring: bool) -> None:
        """Number the published cells that the inner cells reach."""
        self._occurring = occurring
        pairs = zip(codes, self.axes, strict=True)
        self._codes = [_narrow(np.asarray(given), axis) for given, axis in pairs]
        self.n_inner = len(self._codes[0]) if self._codes else 1
        if any(len(c) != self.n_inner for c in self._codes):
            raise DesignError(
                "every variable needs as many leaf positions as there are inner cells."
            )
        self._cells: list[Whole] = [np.empty(0, np.int64)] * len(self.blocks)
        self._index: list[Whole32] = [np.empty(0, np.int32)] * len(self.blocks)
        for k, source in self.plan:
            self._cells[k], self._index[k] = self._reach_block(k, source)
        self.n_published = int(self.offsets[-1])

    def __repr__(self) -> str:
        sizes = "×".join(f"{axis.name}({len(axis)})" for axis in self.axes)
        return (
            f"SparseDesign({sizes}: {self.n_inner:,} of {math.prod(self.shape):,} inner, "
            f"{self.n_published:,} published cells in {len(self.blocks)} blocks)"
        )

    def _check_codes(self) -> None:
        flat = self.inner_flat
        # Cells in reading order, as designs list them, need no sort to be told apart.
        if flat is None or (flat[1:] > flat[:-1]).all():
            return
        ordered = np.sort(flat)
        if (ordered[1:] == ordered[:-1]).any():
            raise DesignError("an inner cell is listed twice; sum its counts first.")

    @property
    def inner_flat(self) -> Whole | None:
        """Positions of the inner cells in the full crossing; `None` when that has no number."""
        return self.flat_cells() if math.prod(self.shape) < 2**62 else None

    def inner_at(self, flat: Whole) -> Whole:
        """The inner cells at some positions of the full crossing, `n_inner` where there is none."""
        known = self.inner_flat
        if known is None:
            raise DesignError("the crossing of the variables is too large to number.")
        order = np.argsort(known)
        place = np.append(order, self.n_inner)[np.searchsorted(known, flat, sorter=order)]
        return np.where(np.append(known, -1)[place] == flat, place, self.n_inner)

    @property
    def is_complete(self) -> bool:
        """Whether every combination is an inner cell."""
        return self.n_inner == math.prod(self.shape)

    @property
    def support(self) -> Kind:
        """Whether the inner cells were declared, or read from confidential records."""
        return "occurring" if self._occurring else "declared"

    def public(self) -> Embedding[StructuredDesign]:
        """The full crossing when the support is confidential; this design when it was declared."""
        return self.crossing_with_inner() if self._occurring else super().public()

    def with_margins(self, margins: Margins) -> SparseDesign:
        """The same inner cells with other margins published."""
        return SparseDesign(self.axes, margins, self._codes, occurring=self._occurring)

    def over_axes(self, kept: Sequence[int], margins: Margins) -> StructuredDesign:
        """The combinations of some axes that inner cells have."""
        axes = [self.axes[a] for a in kept]
        shape = tuple(map(len, axes))
        if math.prod(shape) >= 2**62:
            raise DesignError("the crossing of the variables is too large to number.")
        codes: Sequence[Array] = ()
        if kept:
            flat = np.ravel_multi_index([self._codes[a].astype(np.int64) for a in kept], shape)
            codes = np.unravel_index(rank_positions(flat, math.prod(shape))[0], shape)
        return SparseDesign(axes, margins, codes, occurring=self._occurring)

    def require_public_size(self) -> None:
        """Refuse a support read from the records when the full crossing cannot be published."""
        cells = ProductDesign(self.axes, self.terms).n_published if self._occurring else 0
        if cells > LARGEST_DENSE:
            raise DesignError(
                "which cells occur is confidential, so all possible ones would be published: "
                f"{cells:,}, more than the {LARGEST_DENSE:,} that are held in memory. Publish "
                "fewer variables in one margin, or recode some to coarser codes."
            )

    def crossing_with_inner(self) -> Embedding[ProductDesign]:
        """The full crossing, and where both published and inner cells lie in it."""
        return replace(self.crossing, inner=self.inner_flat)

    @cached_property
    def crossing(self) -> Embedding[ProductDesign]:
        """The full crossing, and where this design's published cells lie in it."""
        full = ProductDesign(self.axes, self.terms)
        where = [self._cells[k] + full.offsets[k] for k in self._block_range]
        return Embedding(full, np.concatenate(where), None)

    @cached_property
    def masks(self) -> tuple[CombinationMask, ...] | None:
        """Masks whose product are the inner cells; looked for where these were declared."""
        return None if self._occurring else product_masks(self.shape, self._codes)

    def _reach_block(self, k: int, source: int | None) -> tuple[Whole, Whole32]:
        """The cells of a block that those of its source reach, and the rank of each among them."""
        groups: Sequence[Array] = self._codes
        if source is not None:
            groups = np.unravel_index(self._cells[source], self.blocks[source].shape)
        n = self.n_inner if source is None else len(self._cells[source])
        flat, inside = self.locate(k, groups, source)
        flat = flat if flat.ndim else np.broadcast_to(flat, n)
        if not inside.ndim:
            return rank_positions(flat, self.blocks[k].size)
        cells, rank = rank_positions(flat[inside], self.blocks[k].size)
        return cells, spread(rank, inside, n, len(cells))

    def _block_length(self, k: int) -> int:
        return len(self._cells[k])

    def block_cells(self, k: int) -> Whole:
        """Positions of block `k`'s published cells within its full crossing, increasing."""
        return self._cells[k]

    def _aggregate(self, y: Array) -> Array:
        z = np.empty(self.n_published, dtype=y.dtype)
        for k, source in self.plan:
            values = y if source is None else z[self.slice_of(source)]
            z[self.slice_of(k)] = scatter_sum(self._index[k], values, len(self._cells[k]))
        return z

    def _adjoint(self, z: Array) -> Array:
        y = np.zeros(self.n_inner, dtype=z.dtype)
        z = z.copy()
        # Coarsest first: what a block hands to its source goes on from there to the inner cells.
        for k, source in reversed(self.plan):
            target = y if source is None else z[self.slice_of(source)]
            target += np.append(z[self.slice_of(k)], z.dtype.type(0))[self._index[k]]
        return y

    def published_in(self, k: int) -> Whole:
        """The published cell of block `k` that each inner cell counts in, -1 for none."""
        index = self._inner_index(k)
        return np.where(index < len(self._cells[k]), index + self.offsets[k], OUTSIDE)

    def _inner_index(self, k: int) -> Whole32:
        """Position within block `k` of every inner cell; one past the end where it has none."""
        source = dict(self.plan)[k]
        if source is None:
            return self._index[k]
        beyond = np.int32(len(self._cells[k]))
        return np.append(self._index[k], beyond)[self._inner_index(source)]

    def inner_codes(self) -> list[NDArray[np.integer[Any]]]:
        """For each axis the leaf position of every inner cell."""
        return list(self._codes)

    def _inner_position(self, leaves: Sequence[int]) -> int:
        same = np.ones(self.n_inner, dtype=bool)
        for codes, leaf in zip(self._codes, leaves, strict=True):
            same &= codes == leaf
        found = np.flatnonzero(same)
        if len(found) == 0:
            raise DesignError("this combination is not in the support of the design.")
        return int(found[0])

    def duplicates(self) -> Whole:
        """Published cells with the same inner cells, found by 128-bit fingerprints of the sets.

        Each inner cell gets two fixed pseudo-random words; a published cell's fingerprint is
        their sum. Different sets collide with probability below 2⁻¹⁰⁰ at any size held here.
        """
        words = (self.aggregate(_words(self.n_inner, salt)) for salt in (1, 2))
        low, high = (np.unique(word, return_inverse=True)[1].astype(np.int64) for word in words)
        return first_of_equal(low * self.n_published + high)


def scatter_sum(index: Whole32, values: Array, n: int) -> Array:
    """Sum values into `n` cells; entries with index `n` are left out. Exact for whole numbers."""
    if values.dtype.kind == "f":
        return np.bincount(index, weights=values, minlength=n + 1)[:n]
    sums = np.zeros(n + 1, dtype=values.dtype)
    np.add.at(sums, index, values)
    return sums[:n]


def _narrow(codes: Array, axis: Axis) -> NDArray[np.integer[Any]]:
    """Leaf positions in the smallest type that holds them."""
    if codes.size and (codes.min() < 0 or codes.max() >= len(axis)):
        raise DesignError(
            f"leaf positions of variable {axis.name!r} must lie in 0..{len(axis) - 1}, "
            f"found {codes.min()}..{codes.max()}."
        )
    return codes.astype(np.min_scalar_type(max(len(axis) - 1, 1)))


def _words(n: int, salt: int) -> Unsigned64:
    """Fixed pseudo-random words, one per inner cell (the splitmix64 finaliser)."""
    x = np.arange(n, dtype=np.uint64) + np.uint64(salt * 0x9E3779B97F4A7C15 % 2**64)
    x *= np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


class DeclaredDesign(SparseDesign):
    """A crossing whose structural zeros are a product of masks.

    Published cells are found from the masks alone. Inner cells are listed, and summed through index
    arrays as in any sparse design, only where somebody asks for them; passes do not.

    Args:
      axes: The variables.
      margins: A formula, or a list of tuples of names.
      masks: Which combinations are possible; all others are structural zeros.
    """

    def __init__(
        self, axes: Sequence[Axis], margins: Margins, masks: tuple[CombinationMask, ...]
    ) -> None:
        StructuredDesign.__init__(self, axes, margins)
        self._occurring, self.masks = False, masks
        self.n_inner = n_possible(self.shape, masks)
        self.n_published = int(self.offsets[-1])

    @property
    def has_passes(self) -> bool:
        """Whether the masks leave enough of the crossing for passes over all of it."""
        return is_worth_a_pass(self.shape, self.n_inner)

    def with_margins(self, margins: Margins) -> DeclaredDesign:
        """The same inner cells with other margins published."""
        return DeclaredDesign(self.axes, margins, self.masks or ())

    def over_axes(self, kept: Sequence[int], margins: Margins) -> StructuredDesign:
        """The combinations of some axes that the masks leave possible."""
        axes = [self.axes[a] for a in kept]
        left = possible_cells(single_leaves(self.shape), self.masks or (), tuple(kept)) > 0
        if left.all():
            return ProductDesign(axes, margins)
        return DeclaredDesign(axes, margins, (CombinationMask(tuple(range(len(kept))), left),))

    def at_published_levels(self) -> StructuredDesign | None:
        """The possible combinations of the published groups; `None` where leaves are published."""
        joined = coarsen_axes(self)
        if joined is None:
            return None
        firsts = [np.unique(group, return_index=True)[1] for _, group in joined]
        masks = [
            CombinationMask(m.axes, m.possible[np.ix_(*(firsts[a] for a in m.axes))])
            for m in self.masks or ()
        ]
        return DeclaredDesign([axis for axis, _ in joined], self.terms, tuple(masks))

    def require_dense(self) -> None:
        """Refuse an array of all inner cells when it cannot be held in memory."""
        self._full.require_dense()

    @cached_property
    def column_sizes(self) -> Whole:
        """Number of inner cells in each published cell, from the masks."""
        return self._possible[self._possible > 0]

    @cached_property
    def _full(self) -> ProductDesign:
        return ProductDesign(self.axes, self.terms)

    @cached_property
    def _possible(self) -> Whole:
        """How many possible combinations each published cell of the crossing holds."""
        classes = [self._leaf_classes(a) for a in range(len(self.axes))]
        masks = [
            CombinationMask(m.axes, m.possible[np.ix_(*(classes[a].first for a in m.axes))])
            for m in self.masks or ()
        ]
        z = np.empty(self._full.n_published, dtype=np.int64)
        for k in self._full.root_blocks:
            levels = self.blocks[k].levels
            kept = tuple(a for a, level in enumerate(levels) if level is not None)
            counted = possible_cells([c.sizes for c in classes], masks, kept)
            for place, a in enumerate(kept):
                groups = cast("Level", levels[a]).group[classes[a].first]
                counted = sum_groups(counted, groups, place)
            z[self._full.slice_of(k)] = counted.ravel()
        return self._full.complete(z)

    def _leaf_classes(self, a: int) -> _LeafClasses:
        """Leaves of a variable that no mask and no published level tells apart.

        Counting with one of each class keeps the work near the published cells: four variables at
        coarse levels have 10,000 of them and 28 million combinations of leaves.
        """
        levels = {id(lv): lv for block in self.blocks if (lv := block.levels[a]) is not None}
        seen: list[Array] = [np.zeros((len(self.axes[a]), 1))]  # alike where nothing tells
        seen += [level.group[:, None] for level in levels.values()]
        for mask in self.masks or ():
            if a in mask.axes:
                rows = np.moveaxis(mask.possible, mask.axes.index(a), 0)
                seen.append(rows.reshape(len(rows), -1))
        profiles = np.concatenate(seen, axis=1)
        _, first, sizes = np.unique(profiles, axis=0, return_index=True, return_counts=True)
        return _LeafClasses(first, sizes)

    @cached_property
    def _cells(self) -> list[Whole]:  # type: ignore[override]  # found when needed
        parts = map(self._full.slice_of, self._block_range)
        return [np.flatnonzero(self._possible[part]) for part in parts]

    @cached_property
    def _codes(self) -> list[NDArray[np.integer[Any]]]:  # type: ignore[override]  # likewise
        self.require_dense()
        possible = np.ones(self.shape, dtype=bool)
        for mask in self.masks or ():
            possible &= mask.at(np.indices(self.shape, sparse=True))
        return [codes.astype(np.int32) for codes in np.nonzero(possible)]

    @cached_property
    def _index(self) -> list[Whole32]:  # type: ignore[override]  # likewise
        listed = SparseDesign.within(self, self._codes, occurring=False)
        return listed._index


class _LeafClasses(NamedTuple):
    """Leaves that count alike: one of each class, and how many there are."""

    first: Index
    sizes: Whole


def complete_design(
    axes: Sequence[Axis], margins: Margins, structural_zeros: Sequence[Mapping[str, Any]]
) -> StructuredDesign:
    """The full crossing but for structural zeros."""
    masks = declared_masks(axes, structural_zeros)
    return DeclaredDesign(axes, margins, masks) if masks else ProductDesign(axes, margins)


class MatrixDesign(Design):
    """A design given by its 0/1 matrix, inner × published; cells have numbers, not codes."""

    axes = ()
    is_complete = False  # nothing is known about combinations of categories

    def __init__(self, X: Any) -> None:
        from scipy import sparse

        matrix = sparse.csr_array(X)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        if matrix.nnz and not (matrix.data == 1).all():
            odd = matrix.data[matrix.data != 1][0]
            raise DesignError(f"a design matrix holds only 0 and 1, found {odd}.")
        self._X = matrix.astype(np.int64)
        self._XT = self._X.T.tocsr()
        self.n_inner, self.n_published = (int(n) for n in matrix.shape)

    def __repr__(self) -> str:
        return f"MatrixDesign({self.n_inner:,} inner, {self.n_published:,} published cells)"

    @property
    def orders(self) -> Whole:
        """Cells have no variables; all count as those of a table."""
        return np.full(self.n_published, 2)

    def members(self, cells: Array) -> Whole32:
        """The published cells of some inner cells; as many columns as the longest row needs."""
        rows = self._X[cells]
        counts = np.diff(rows.indptr)
        shape = len(cells), int(counts.max(initial=0))
        found = np.full(shape, self.n_published, dtype=np.int32)
        place = np.arange(rows.nnz) - np.repeat(rows.indptr[:-1], counts)
        found[np.repeat(np.arange(len(cells)), counts), place] = rows.indices
        return found

    def restricted(self, cells: Array, *, occurring: bool = False) -> Restricted:
        """The rows of some inner cells, with the columns that they reach."""
        rows = self._X[cells]
        reached = np.unique(rows.indices).astype(np.int64)
        return Restricted(MatrixDesign(rows[:, reached]), reached)

    def _aggregate(self, y: Array) -> Array:
        z: Array = self._XT @ y
        return z

    def _adjoint(self, z: Array) -> Array:
        y: Array = self._X @ z
        return y

    def matrix(self) -> csr_array:
        """The matrix X itself."""
        return self._X.copy()

    def member_blocks(self) -> Iterator[tuple[Array, slice]]:
        """One published cell at a time."""
        for k in range(self.n_published):
            where = np.full(self.n_inner, OUTSIDE, dtype=np.int64)
            where[self._inner_cells(k)] = k
            yield where, slice(k, k + 1)

    def duplicates(self) -> Whole:
        """Published cells with equal columns."""
        first: dict[bytes, int] = {}
        found = np.empty(self.n_published, dtype=np.int64)
        for k in range(self.n_published):
            found[k] = first.setdefault(np.sort(self._inner_cells(k)).tobytes(), k)
        return found

    def _inner_cells(self, k: int) -> Whole32:
        cells: Whole32 = self._XT.indices[self._XT.indptr[k] : self._XT.indptr[k + 1]]
        return cells

    def published_codes(self) -> list[tuple[Whole32, list[str]]]:
        """A matrix has no variables."""
        return []

    def inner_codes(self) -> list[NDArray[np.integer[Any]]]:
        """A matrix has no variables."""
        return []

    def position(self, cell: Mapping[str, object]) -> int:
        """A matrix has no codes to look up."""
        raise DesignError("a design made from a matrix has no codes; use positions.")

    inner_position = position
