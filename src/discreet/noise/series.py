r"""What a series of editions tells: exact likelihoods of the published values of each cell.

The true count of a cell moves by :math:`n' = n - \mathrm{Bin}(n, r) + \mathrm{Poisson}(r m)`, with
churn :math:`r` and expected count :math:`m`; the law of the noise and the mode of editions say what
is published of it. Forward and backward sums over the counts give the probability of the whole
series, given that `k` people left the cell between two of its editions. Everything here follows
from public parameters; an intruder can compute it, and so can the custodian beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from discreet.arrays import Array, Mask, Real, Whole
from discreet.digests import digest
from discreet.noise.matrix import TransitionMatrix
from discreet.randomness import stream
from discreet.tables.editions import EditionMode

LEAVERS = 6  # people of one cell who leave at a time; more say little about any one of them
_BINS = 40  # expected counts are told apart to some percent, which moves no likelihood
_SLACK = 12  # how far a repeated value may lie behind its count, beyond the noise
_CHUNK = 1_000  # cells at a time: their pairs of counts fit into some hundred megabytes
_TINY = 1e-300


@dataclass(frozen=True, eq=False)
class CellSeries:
    """Published values of some cells over editions, and what is publicly known of them."""

    values: Whole  # published values, a row for each edition
    expected: Real  # the expected count of each cell
    matrix: TransitionMatrix  # the law of the noise
    mode: EditionMode  # how editions follow each other
    churn: float  # share of the records that leave between two editions, and of those that join
    # For phased values the chance that a cell is drawn afresh, a row for each edition.
    due: Real | None = None

    def leave_likelihoods(self, steps: Sequence[int]) -> Real:
        """P(series | k left before edition t), for each t of the steps, each cell and each k."""
        found = np.empty((len(steps), self.values.shape[1], LEAVERS))
        order = np.argsort(self.expected)  # counts of small cells move little: few states
        for start in range(0, self.values.shape[1], _CHUNK):
            part = order[start : start + _CHUNK]
            found[:, part] = _Filter(self.cells(part), self._moves).leave(steps)
        return found

    def presence(self) -> Real:
        """E[n | first edition] over the expected count: what one edition says of each cell."""
        alone = CellSeries(self.values[:1], self.expected, self.matrix, self.mode, self.churn)
        chance = _Filter(alone, None).forward[0]
        counts = np.maximum(_window(alone)[None] + alone.values[0][:, None], 0)
        return np.asarray((chance * counts).sum(axis=1) / np.maximum(self.expected, _TINY))

    def cells(self, part: Whole) -> CellSeries:
        """The same for some of the cells."""
        due = None if self.due is None else self.due[:, part]
        few = self.values[:, part], self.expected[part]
        return CellSeries(*few, self.matrix, self.mode, self.churn, due)

    @cached_property
    def _moves(self) -> _Moves:
        most = int(self.values.max(initial=0)) + self.matrix.max_move + _SLACK + 1
        return _Moves(self.expected, self.churn, most)


class _Moves:
    """Laws of leaving and joining by expected count, tabulated once for all cells."""

    def __init__(self, expected: Real, churn: float, most: int) -> None:
        from scipy.special import gammaln

        low, high = max(float(expected.min()), 1e-3), max(float(expected.max()), 2e-3)
        self.centres = np.geomspace(low, max(high, low * 1.0001), _BINS)
        self.reach = 2 * most if most < 40 else 60
        n, k = np.arange(most + 1), np.arange(self.reach + 1)
        rate = churn * self.centres[:, None]
        self.joins = np.exp(k * np.log(rate) - rate - gammaln(k + 1))  # (bins, joined)
        ways = gammaln(n + 1)[:, None] - gammaln(k + 1) - gammaln(np.maximum(n[:, None] - k, 0) + 1)
        odds = k * math.log(churn) + (n[:, None] - k) * math.log1p(-min(churn, 1 - 1e-12))
        self.leaves = np.where(k <= n[:, None], np.exp(ways + odds), 0.0)  # (count, left)
        self.nobody = (1 - churn) ** n * self.joins[:, :1]
        self.net = np.zeros((_BINS, most + 1, 2 * self.reach + 1))
        for left in range(min(most, self.reach) + 1):
            if self.leaves[:, left].max() < 1e-12:
                break
            ahead = slice(self.reach - left, 2 * self.reach + 1 - left)
            self.net[:, :, ahead] += self.leaves[None, :, left, None] * self.joins[:, None, :]

    def bin_of(self, expected: Real) -> Whole:
        """The tabulated expected count nearest to each."""
        logs = np.log(self.centres)
        step = max(logs[1] - logs[0], 1e-12)
        place = np.rint((np.log(np.maximum(expected, self.centres[0])) - logs[0]) / step)
        return np.asarray(np.clip(place, 0, _BINS - 1), dtype=np.int64)


def _window(series: CellSeries) -> Whole:
    """Counts that a value can stand for, relative to it."""
    reach = series.matrix.max_move
    if series.mode.kind == "phased":  # three deviations of what can change before a value is due
        age = min(series.mode.every or 1, len(series.values) - 1)
        spread = 2 * series.churn * float(series.expected.max(initial=0.0)) * age
        reach += min(_SLACK, math.ceil(3 * math.sqrt(spread)) + 1)
    return np.arange(-reach, reach + 1)


class _Filter:
    """Forward and backward sums over the counts of cells; states lie around each value."""

    def __init__(self, series: CellSeries, moves: _Moves | None) -> None:
        from scipy.special import gammaln

        self.series, self.window = series, _window(series)
        self.counts = series.values[:, :, None] + self.window  # (editions, cells, states)
        self.emit = self._emissions()
        first, mean = np.maximum(self.counts[0], 0), np.maximum(series.expected, _TINY)[:, None]
        prior = np.exp(first * np.log(mean) - mean - gammaln(first + 1)) * (self.counts[0] >= 0)
        self.forward = [_normalise(prior * self.emit[0])]
        if moves is None:
            return
        self.moves, self.bins = moves, moves.bin_of(series.expected)
        steps = [self._step(t) for t in range(1, len(series.values))]
        for step in steps:
            self.forward.append(_normalise(np.einsum("cij,ci->cj", step, self.forward[-1])))
        self.backward = [np.ones_like(prior)]
        for step in reversed(steps):
            self.backward.append(_normalise(np.einsum("cij,cj->ci", step, self.backward[-1])))
        self.backward.reverse()

    def leave(self, steps: Sequence[int]) -> Real:
        """P(series | k left), up to a factor for each cell."""
        return np.array([self._leave(t) for t in steps])

    def _leave(self, t: int) -> Real:
        from scipy.special import gammaln

        before, net = self._places(t)
        shown = self._chance_of_values(t)
        weight = self.forward[t - 1][:, :, None] * self.backward[t][:, None, :]
        rate = self.series.churn * np.maximum(self.series.expected, 1e-9)
        found = np.empty((len(rate), LEAVERS))
        for k in range(LEAVERS):
            joined = net + k
            chance = self.moves.joins[
                self.bins[:, None, None], np.clip(joined, 0, self.moves.reach)
            ] * ((joined >= 0) & (joined <= self.moves.reach))
            chance *= self.moves.leaves[before, k][:, :, None] * self._is_possible(t)
            how = self._shown_unmoved(t, shown) if k == 0 else shown
            how = np.where(joined == 0, how, shown) if k == 0 else shown
            prior = np.exp(k * np.log(rate) - rate - gammaln(k + 1))
            found[:, k] = (weight * chance * how).sum(axis=(1, 2)) / np.maximum(prior, _TINY)
        return np.asarray(found / np.maximum(found.max(axis=1, keepdims=True), _TINY) + 1e-12)

    def _step(self, t: int) -> Real:
        """P(count and value of edition t | count and value of the one before)."""
        before, net = self._places(t)
        inside = np.abs(net) <= self.moves.reach
        place = np.clip(net + self.moves.reach, 0, 2 * self.moves.reach)
        law = self.moves.net[self.bins[:, None, None], before[:, :, None], place]
        shown = self._chance_of_values(t)
        step = law * inside * self._is_possible(t) * shown
        if self.series.mode.kind != "phased":
            still = self.moves.nobody[self.bins[:, None], before][:, :, None] * (net == 0)
            step += still * self._is_possible(t) * (self._shown_unmoved(t, shown) - shown)
        return np.asarray(step)

    def _chance_of_values(self, t: int) -> Real:
        """P(value of edition t | its count), where somebody moved or values are phased."""
        drawn: Real = self.emit[t][:, None, :]
        if self.series.mode.kind != "phased" or self.series.due is None:
            return drawn
        due = self.series.due[t][:, None, None]
        return np.asarray(due * drawn + (1 - due) * self._is_same(t))

    def _shown_unmoved(self, t: int, shown: Real) -> Real:
        """The same where nobody moved, so that keys may be the old ones."""
        mode = self.series.mode
        if mode.kind in ("phased", "fresh"):
            return shown
        n = np.maximum(self.counts[t - 1], 0)[:, :, None]
        redrawn = 1 - (1 - (mode.share or 0.0)) ** n
        return np.asarray(redrawn * shown + (1 - redrawn) * self._is_same(t))

    def _is_same(self, t: int) -> Mask:
        same: Mask = (self.series.values[t] == self.series.values[t - 1])[:, None, None]
        return same

    def _is_possible(self, t: int) -> Mask:
        both = (self.counts[t - 1] >= 0)[:, :, None] & (self.counts[t] >= 0)[:, None, :]
        return np.asarray(both, dtype=bool)

    def _places(self, t: int) -> tuple[Whole, Whole]:
        before, after = self.counts[t - 1], self.counts[t]
        return np.clip(before, 0, self.moves.leaves.shape[0] - 1), (
            after[:, None, :] - before[:, :, None]
        )

    def _emissions(self) -> Real:
        matrix, window = self.series.matrix, self.window
        reach = matrix.max_move
        rows = matrix.row_of(np.maximum(self.counts, 0))
        law = matrix.law[rows, np.clip(reach - window, 0, 2 * reach)]
        return np.where((self.counts >= 0) & (np.abs(window) <= reach), law, 0.0)


def _normalise(chance: Array) -> Real:
    """Chances of one cell divided by their sum, so that long series do not underflow."""
    return np.asarray(chance / np.maximum(chance.sum(axis=1, keepdims=True), _TINY))


_FINEST = (0, 1, 2, 3)  # cells of the finest table hold 1 to 8 records, in powers of two
_LEVELS = 12  # powers of two of the records of a cell, up to 2,048
_POOL, _PEOPLE, _WINDOW = 120, 4_000, 8  # cells of each size, people, editions of the window
_MOST_LEAVERS = 3.5  # cells that more people leave at a time say little of one of them
Tables = int | tuple[int, ...]
"""How many tables a person stands in; or the number of cells of each, from which sizes follow."""


class _SameLaw:
    """A law that is told from others by its contents, so that figures are computed once."""

    def __init__(self, matrix: TransitionMatrix) -> None:
        self.matrix = matrix
        self.key = digest(matrix.starts, matrix.moves, matrix.widths, matrix.period)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _SameLaw) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def leaver_claims(
    mode: EditionMode, matrix: TransitionMatrix, tables: Tables, churn: float, editions: int
) -> tuple[float, float]:
    r"""Share of claims about leavers that are right: as many as left, and the surest tenth of them.

    The intruder sees all editions of a person's cells, one in each of the tables, and asks whether
    somebody of the profile left within a window of eight editions; one person in each profile is
    expected. Cells of the finest table hold 1 to 8 records, those of a table with a tenth of its
    cells ten times as many. With likelihood ratio :math:`\Lambda`, those who stayed pass a
    threshold with chance :math:`E_1[\Lambda^{-1}; \Lambda > s]`, so that leavers alone need be
    drawn.

    Cost: about 0.1 s at two editions and 2 s at forty, once for all equal parameters.
    """
    if editions < 2:
        return churn, churn
    return _leaver_claims(mode, _SameLaw(matrix), tables, churn, editions)


@lru_cache(maxsize=256)
def _leaver_claims(
    mode: EditionMode, law: _SameLaw, tables: Tables, churn: float, editions: int
) -> tuple[float, float]:
    cells = np.array((1,) * tables if isinstance(tables, int) else tables, dtype=np.float64)
    above = np.rint(np.log2(cells.max() / cells)).astype(np.int64)
    finest = stream(1, "editions.claims").choice(_FINEST, _PEOPLE)
    level = np.minimum(finest[:, None] + above, _LEVELS - 1)
    used = tuple(np.unique(level).tolist())
    ratio, drawn = _ratios_of_levels(mode, law, churn, editions, used)
    pick = level * _POOL + deepcopy(drawn).integers(_POOL, size=level.shape)
    total = np.logaddexp.reduce(ratio[:, pick].sum(axis=2), axis=0) - math.log(len(ratio))
    prior = min(churn * len(ratio), 0.5)
    return _precision(total, prior, prior), _precision(total, prior, prior / 10)


@lru_cache(maxsize=64)
def _ratios_of_levels(
    mode: EditionMode, law: _SameLaw, churn: float, editions: int, used: tuple[int, ...]
) -> tuple[Real, np.random.Generator]:
    """Log ratios of cells of some sizes, for each step of the window, and the stream behind them.

    Tables of many designs have cells of the same sizes, and this is nearly all the work.
    """
    rng = stream(1, "editions.claims")
    rng.choice(_FINEST, _PEOPLE)  # drawn before, for all sizes
    window = min(_WINDOW, editions - 1)
    first = max(1, editions // 2 - window // 2)
    steps = list(range(first, min(first + window, editions)))
    levels = np.repeat(np.arange(_LEVELS), _POOL)
    told = (churn * 2.0**levels < _MOST_LEAVERS) & np.isin(levels, used)
    ratio = np.zeros((len(steps), len(levels)))
    gone, mean = steps[len(steps) // 2], np.exp2(levels[told]).astype(np.float64)
    series = _draw_edition(mode, law.matrix, churn, editions, gone, mean, rng)
    ratio[:, told] = _log_ratios(series, steps)
    return ratio, rng


def _log_ratios(series: CellSeries, steps: Sequence[int]) -> Real:
    """Log of P(series | one left, and perhaps others) over P(series | perhaps others)."""
    left, k = series.leave_likelihoods(steps), np.arange(LEAVERS)
    rate = series.churn * series.expected[:, None]
    others = np.exp(k * np.log(rate) - rate - np.array([math.lgamma(i + 1) for i in k]))
    more = (left[:, :, 1:] * others[:, :-1]).sum(axis=2)
    return np.asarray(np.log(more) - np.log((left * others).sum(axis=2)))


def _precision(ratios: Real, prior: float, claimed: float) -> float:
    """Share of right claims, if the surest share of all profiles is claimed."""
    order = np.sort(ratios)[::-1]
    right = prior * np.arange(1, len(order) + 1) / len(order)
    wrong = (1 - prior) * np.cumsum(np.exp(-order)) / len(order)
    last = min(int(np.searchsorted(right + wrong, claimed)), len(order) - 1)
    return float(right[last] / (right[last] + wrong[last]))


def _draw_edition(
    mode: EditionMode,
    matrix: TransitionMatrix,
    churn: float,
    editions: int,
    gone: int,
    mean: Real,
    rng: np.random.Generator,
) -> CellSeries:
    """Series of cells that one known person leaves before edition `gone`."""
    n = len(mean)
    since = np.maximum(gone - rng.geometric(churn, n), 0)  # when that person joined
    count, values = rng.poisson(mean), np.zeros((editions, n), dtype=np.int64)
    every = mode.every or 1
    phase = rng.integers(every, size=n)
    due = np.array([(t + phase) % every == 0 for t in range(editions)])
    due[0] = True
    for t in range(editions):
        left, joined = rng.binomial(count, churn if t else 0.0), rng.poisson(churn * mean * (t > 0))
        count = count - left + joined
        total = count + ((since <= t) & (t < gone))
        moved = (left + joined > 0) | (t == since) | (t == gone)
        drawn = total + matrix.noise(total, rng.integers(2**32, size=n), 2**32)
        renewed = rng.random(n) < 1 - (1 - (mode.share or 0.0)) ** total
        again = {"phased": due[t], "fresh": np.ones(n, bool)}.get(mode.kind, moved | renewed)
        values[t] = np.where(again, drawn, values[t - 1]) if t else drawn
    chance = due.astype(np.float64) if mode.kind == "phased" else None
    return CellSeries(values, mean, matrix, mode, churn, chance)


_CELLS, _DECAY, _TOP = 4_000, 0.6, 40


def draws_of(mode: EditionMode, editions: int) -> int:
    """How often the value of an unchanged cell is drawn, at most, in so many editions."""
    if mode.kind in ("kept", "given"):
        return 1
    return 1 + (editions - 1) // (mode.every or 1)


def unchanged_recovered(mode: EditionMode, matrix: TransitionMatrix, editions: int) -> float:
    """Share of unchanged small cells whose count the exact posterior gives, after some editions.

    Counts n are drawn with chances in proportion to 0.6ⁿ, n ≥ 1; the best guess alone is right for
    40 % of them. A renewed cell of n records is drawn afresh with chance 1 − (1 − q)ⁿ.
    """
    return _unchanged_recovered(mode, _SameLaw(matrix), editions)


@lru_cache(maxsize=256)
def _unchanged_recovered(mode: EditionMode, law: _SameLaw, editions: int) -> float:
    matrix = law.matrix
    rng = stream(1, "editions.unchanged")
    candidates = np.arange(1, _TOP)
    prior = _DECAY**candidates / (_DECAY**candidates).sum()
    n = rng.choice(candidates, _CELLS, p=prior)
    rows, reach = matrix.law[matrix.row_of(candidates)], matrix.max_move
    again = 1 - (1 - (mode.share or 0.0)) ** candidates if mode.share else np.ones(len(candidates))
    log, last = np.tile(np.log(prior), (_CELLS, 1)), np.zeros(_CELLS, dtype=np.int64)
    for t in range(editions if mode.share else draws_of(mode, editions)):
        drawn = n + matrix.noise(n, rng.integers(2**32, size=_CELLS), 2**32)
        redraws = rng.random(_CELLS) < again[n - 1] if t else np.ones(_CELLS, bool)
        value = np.where(redraws, drawn, last)
        move = value[:, None] - candidates
        chance = rows[np.arange(len(candidates)), np.clip(move + reach, 0, 2 * reach)]
        chance = np.where(np.abs(move) <= reach, chance, 0.0)
        same = (value == last)[:, None] * (1 - again) if t else 0.0
        log += np.log((chance * again if t else chance) + same + _TINY)
        last = value
    return float((candidates[log.argmax(axis=1)] == n).mean())
