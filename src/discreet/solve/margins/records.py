r"""Records whose margins come close to published ones, by local search.

The loss is :math:`\tfrac12 \sum_k w_k (X^\top x - z)_k^2` over whole numbers of records with each
combination of codes. Records are realisable, so unlike margins that are consistent pair by pair
they belong to a table. One code of one record moves at a time, to the best category or, at a
temperature :math:`\tau` above zero, to one drawn with probability proportional to
:math:`\pi_b \exp(-\Delta_b/\tau)`. At :math:`\tau = 1`, with weights that are precisions, this is a
Gibbs sampler of the records given Gaussian noise; low temperatures average over part of the noise
instead of following all of it.

Codes in margins that are held exactly are exchanged between two records that agree on the other
variables of these margins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from discreet.arrays import Array, Mask, Real, Whole, Whole32
from discreet.design.axis import OUTSIDE
from discreet.design.product import ProductDesign
from discreet.progress import report
from discreet.solve.margins.effects import axes_of
from discreet.solve.margins.pairs import PairMatrix, choose, count_pairs, move_by_rows

TASK = "records from margins"
SETTLING = 50  # sweeps without chance at most
# Records between two reports: a sweep over a million of thirty variables takes a quarter minute.
_AT_ONCE = 20_000


class Lookup(NamedTuple):
    """Where records lie in the published cells, for compiled loops.

    A record's cell in a block is the block's first position plus a step for each of its axes;
    `steps` holds them by category, `OUTSIDE` where a level leaves the category out.
    """

    starts: Whole  # first published position of each block
    axes: Whole32  # blocks × most variables: the axes of each block, -1 where it has fewer
    tables: Whole32  # the same: where the steps of that axis begin
    steps: Whole32  # steps by category
    holders: Whole32  # for each axis the blocks that have it, one axis after the other
    first: Whole32  # where the blocks of each axis begin in `holders`
    sizes: Whole32  # categories of each axis

    @classmethod
    def of(cls, design: ProductDesign) -> Lookup:
        """The lookup of a design's blocks."""
        used = [axes_of(block) for block in design.blocks]
        width = max([len(axes) for axes in used] + [1])
        axes = np.full((len(used), width), -1, dtype=np.int32)
        tables = np.zeros((len(used), width), dtype=np.int32)
        steps: list[Array] = []
        length = 0
        for k, block in enumerate(design.blocks):
            stride = 1
            for slot in reversed(range(len(used[k]))):
                level = block.levels[used[k][slot]]
                assert level is not None
                axes[k, slot], tables[k, slot] = used[k][slot], length
                steps.append(np.where(level.group == OUTSIDE, OUTSIDE, level.group * stride))
                length += len(level.group)
                stride *= len(level)
        holders = [[k for k, own in enumerate(used) if a in own] for a in range(len(design.axes))]
        flat = np.array([k for own in holders for k in own], dtype=np.int32)
        first = np.cumsum([0, *map(len, holders)]).astype(np.int32)
        every = np.concatenate([*steps, np.zeros(1)]).astype(np.int32)
        sizes = np.array(design.shape, dtype=np.int32)
        return cls(design.offsets[:-1].astype(np.int64), axes, tables, every, flat, first, sizes)


@njit(cache=True)
def _cell(
    x: Any, r: int, k: int, skipped: int, starts: Any, axes: Any, tables: Any, steps: Any
) -> Any:
    """A record's cell in a block without the step of one axis; -1 where it has none."""
    at = starts[k]
    for slot in range(axes.shape[1]):
        a = axes[k, slot]
        if a < 0 or a == skipped:
            continue
        step = steps[tables[k, slot] + x[r, a]]
        if step < 0:
            return -1
        at += step
    return at


@njit(cache=True)
def _own_table(k: int, a: int, axes: Any, tables: Any) -> Any:
    """Where the steps of an axis begin for a block."""
    for slot in range(axes.shape[1]):
        if axes[k, slot] == a:
            return tables[k, slot]
    return -1


@njit(cache=True)
def _add(x: Any, error: Any, starts: Any, axes: Any, tables: Any, steps: Any) -> None:
    """Add all records to the errors of the published cells."""
    for r in range(x.shape[0]):
        for k in range(len(starts)):
            at = _cell(x, r, k, -2, starts, axes, tables, steps)
            if at >= 0:
                error[at] += 1.0


@njit(cache=True)
def _places(axes: Any, tables: Any, holders: Any, first: Any) -> Any:
    """For each axis and block: where its steps begin, the other axis of two, and where its do."""
    own, beside = np.empty(len(holders), dtype=np.int64), np.empty(len(holders), dtype=np.int64)
    other = np.full(len(holders), -1)
    for a in range(len(first) - 1):
        for h in range(first[a], first[a + 1]):
            k = holders[h]
            own[h] = _own_table(k, a, axes, tables)
            if axes.shape[1] == 2 and axes[k, 1] >= 0:
                slot = 1 if axes[k, 0] == a else 0
                other[h], beside[h] = axes[k, slot], tables[k, slot]
    return own, other, beside


@njit(cache=True)
def _move(
    x: Any, error: Any, w: Any, order: Any, uniform: Any, free: Any, log_prior: Any, prior_at: Any,
    temperature: float, starts: Any, axes: Any, tables: Any, steps: Any, holders: Any, first: Any,
    sizes: Any,
) -> int:  # fmt: skip
    """One sweep: every free code of every record moves to the best category, or is drawn."""
    n_axes = len(sizes)
    costs = np.empty(sizes.max())
    base = np.empty(len(holders), dtype=np.int64)
    own, other, beside = _places(axes, tables, holders, first)
    moved = 0
    for q in range(len(order)):
        r = order[q]
        turn = int(uniform[q, n_axes] * n_axes)
        for c in range(n_axes):
            a = (c + turn) % n_axes
            if not free[a]:
                continue
            now, cost = x[r, a], costs[: sizes[a]]
            cost[:] = 0.0
            # The record is taken out first, so that staying and moving have costs of one form.
            for h in range(first[a], first[a + 1]):
                k = holders[h]
                if other[h] >= 0:
                    step = steps[beside[h] + x[r, other[h]]]
                    base[h] = starts[k] + step if step >= 0 else -1
                else:
                    base[h] = _cell(x, r, k, a, starts, axes, tables, steps)
                if base[h] >= 0:
                    _add_costs(costs, error, w, base[h], steps, own[h], sizes[a], now)
            logs = log_prior[prior_at[a] : prior_at[a] + sizes[a]]
            best = choose(cost, now, logs, temperature, uniform[q, a])
            moved += best != now
            x[r, a] = best
            for h in range(first[a], first[a + 1]):
                if base[h] >= 0 and steps[own[h] + best] >= 0:
                    error[base[h] + steps[own[h] + best]] += 1.0
    return moved


@njit(cache=True)
def _add_costs(
    cost: Any, error: Any, w: Any, base: int, steps: Any, own: int, size: int, now: int
) -> None:
    """Take a record out of its cell of one block, and add what each category would cost there."""
    # Steps are read where they lie: a view of them would be counted as a reference every time.
    if steps[own + now] >= 0:
        error[base + steps[own + now]] -= 1.0
    for b in range(size):
        step = steps[own + b]
        if step >= 0:
            cost[b] += w[base + step] * (error[base + step] + 0.5)


@njit(cache=True)
def _exchange(
    x: Any, error: Any, w: Any, a: int, one: Any, two: Any, uniform: Any, temperature: float,
    starts: Any, axes: Any, tables: Any, steps: Any, holders: Any, first: Any, sizes: Any,
) -> int:  # fmt: skip
    """Exchange the codes of an axis between pairs of records where that helps, or by chance."""
    arrays = (starts, axes, tables, steps)
    own = holders[first[a] : first[a + 1]]
    moved = 0
    for q in range(len(one)):
        r, s = one[q], two[q]
        if x[r, a] == x[s, a]:
            continue
        change = _swap(x, error, w, a, r, s, own, arrays)
        is_better = change < -1e-9
        if temperature > 0.0:
            is_better = uniform[q] < 1.0 / (1.0 + np.exp(min(change / temperature, 700.0)))
        if is_better:
            moved += 1
        else:
            _swap(x, error, w, a, r, s, own, arrays)
    return moved


@njit(cache=True)
def _swap(x: Any, error: Any, w: Any, a: int, r: int, s: int, blocks: Any, arrays: Any) -> float:
    """Exchange two records' codes of an axis; returns by how much the loss changes."""
    starts, axes, tables, steps = arrays
    change = 0.0
    for k in blocks:
        table = _own_table(k, a, axes, tables)
        for here, there in ((r, s), (s, r)):
            base = _cell(x, here, k, a, starts, axes, tables, steps)
            if base < 0:
                continue
            step = steps[table + x[here, a]]
            if step >= 0:
                change -= w[base + step] * (error[base + step] - 0.5)
                error[base + step] -= 1.0
            step = steps[table + x[there, a]]
            if step >= 0:
                change += w[base + step] * (error[base + step] + 0.5)
                error[base + step] += 1.0
    x[r, a], x[s, a] = x[s, a], x[r, a]
    return change


@dataclass(eq=False)
class Search:
    """Records on their way to published cells."""

    design: ProductDesign  # the full crossing whose published cells are aimed at
    target: Real  # published values
    w: Real  # their precisions; loss and temperature are in these units
    x: Whole32  # the records: a code position for each axis. Sweeps change them in place.
    rng: np.random.Generator  # where chance comes from
    # For each axis the probability of each category, at temperatures above zero.
    prior: Sequence[Real]
    # Axes by the margins that are held exactly; a list of margins for each axis.
    held: Sequence[Sequence[tuple[int, ...]]] = ()
    # The part of the whole work that its sweeps are, and how many of them there are at most.
    span: tuple[float, float, int] = (0.0, 1.0, SETTLING)

    def __post_init__(self) -> None:
        self.lookup, self._done = Lookup.of(self.design), 0.0
        self.error = -self.target.astype(np.float64)
        _add(self.x, self.error, *self.lookup[:4])
        floor = 0.5 / max(1, len(self.x))  # a category without an estimate can still be tried
        logs = [np.log(np.maximum(p, floor)) for p in self.prior]
        self._log_prior = np.concatenate([*logs, np.zeros(1)])
        self._prior_at = np.cumsum([0, *map(len, logs)])
        within = [bool(margins) for margins in self.held] or [False] * len(self.design.axes)
        self._free: Mask = ~np.array(within, dtype=bool)
        self._pairs = PairMatrix.of(self.design, self.w) if self._free.all() else None

    def sweep(self, temperature: float = 0.0) -> int:
        """Every code of every record has its turn once; returns how many moved."""
        n, n_axes = self.x.shape
        order, pairs = self.rng.permutation(n), self._pairs
        arrays, prior = self.lookup, (self._log_prior, self._prior_at)
        slopes = pairs.slopes(self.error) if pairs else None
        moved = 0
        for first in range(0, n, _AT_ONCE):
            some = order[first : first + _AT_ONCE]
            uniform = self.rng.random((len(some), n_axes + 1))
            if pairs:
                rows = (slopes, pairs.weight, some, uniform, *prior, temperature, pairs.begins)
                moved += move_by_rows(self.x, *rows)
            else:
                moved += _move(
                    self.x, self.error, self.w, some, uniform, self._free, *prior, temperature,
                    *arrays,
                )  # fmt: skip
            self._tell(len(some) / n)
        if pairs:
            self._count(pairs)
        for a in np.flatnonzero(~self._free):
            one, two = self._partners(int(a))
            chance = self.rng.random(len(one))
            moved += _exchange(
                self.x, self.error, self.w, int(a), one, two, chance, temperature, *arrays
            )
        return int(moved)

    def _count(self, pairs: PairMatrix) -> None:
        """The errors of the records as they are now."""
        places = pairs.position[pairs.position >= 0]
        self.error[places] = -self.target[places]
        count_pairs(self.x, self.error, pairs.position, pairs.begins)

    def _tell(self, more: float) -> None:
        """Say how far the whole work is, after so much more of a sweep."""
        begin, end, sweeps = self.span
        self._done += more
        report(TASK, begin + (end - begin) * min(self._done / sweeps, 1.0))

    def _partners(self, a: int) -> tuple[Whole, Whole]:
        """Pairs that may exchange codes: they agree in held margins but for this axis."""
        others = sorted({b for margin in self.held[a] for b in margin if b != a})
        order = self.rng.permutation(len(self.x))
        if others:
            _, group = np.unique(self.x[order][:, others], axis=0, return_inverse=True)
            order = order[np.argsort(group.ravel(), kind="stable")]
            same = (self.x[order[:-1]][:, others] == self.x[order[1:]][:, others]).all(axis=1)
        else:
            same = np.ones(max(0, len(order) - 1), dtype=bool)
        # Neighbours in this order, every second pair, so that no record is in two of them.
        chosen = np.flatnonzero(same)
        chosen = chosen[chosen % 2 == int(self.rng.integers(2))]
        return order[chosen], order[chosen + 1]

    @property
    def loss(self) -> float:
        """Half the weighted sum of squared deviations."""
        return 0.5 * float(self.w @ self.error**2)

    @property
    def sums(self) -> Real:
        """The published cells of the records."""
        return self.error + self.target

    def run(self, temperatures: Sequence[float], *, settle: int = SETTLING) -> Search:
        """Sweeps at these temperatures, then sweeps without chance until hardly a code moves."""
        for temperature in temperatures:
            self.sweep(temperature)
        for _ in range(settle):
            moved = self.sweep()
            if moved * 2_000 <= self.x.size:  # the last moves change the loss by less than noise
                break
        return self


def draw_records(
    design: ProductDesign, one_way: Sequence[Real], n: int, rng: np.random.Generator
) -> Whole32:
    """Records with the given margins of each variable, rounded, and no relation between them."""
    return np.stack([_quota(p, n, rng) for p in one_way], axis=1).astype(np.int32)


def _quota(p: Real, n: int, rng: np.random.Generator) -> Whole:
    """Categories in random order whose numbers are n·p, rounded down or up."""
    p = np.maximum(p, 0.0)
    if not p.sum() > 0:
        p = np.ones_like(p)
    # Systematic sampling: one uniform number rounds all of them, so that they sum to n.
    edges = np.floor(np.cumsum(p) / p.sum() * n + rng.random()).astype(np.int64)
    edges[-1] = n
    counts = np.diff(np.concatenate([[0], np.clip(edges, 0, n)]))
    return rng.permutation(np.repeat(np.arange(len(p)), counts))
