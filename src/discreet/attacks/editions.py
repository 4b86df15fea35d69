"""Attacks on a series of editions: who left, and which counts stayed the same.

Both use exact likelihoods of every cell's series (`noise/series.py`). The intruder knows the
program, the mode of editions with its parameters, and about what share of the records changes; not
the secret. What the tables of one edition say of a profile, and who else explains a change, is
taken into account by a mean field over all profiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from discreet.arrays import Mask, Real, Whole
from discreet.attacks.frame import About, Claims, Knowledge, PublicAttack
from discreet.errors import DiscreetError, ParameterError
from discreet.noise.matrix import TransitionMatrix
from discreet.noise.series import LEAVERS, CellSeries
from discreet.release.inference.law import matrix_of
from discreet.tables.editions import EditionMode

_MOST_LEAVERS = 3.5  # cells that more people leave at a time say little of one of them
_ROUNDS = 6  # after which the mean field no longer moves by a percent
_LARGEST = 2_000_000  # profiles times tables that are held at a time
_TINY = 1e-300


@dataclass(frozen=True)
class Leavers(PublicAttack):
    """Names complete profiles of people who left, from all editions together.

    As many profiles are claimed as are expected to have left. Targets are tuples of codes, one for
    each variable, and the value is `True`. With one edition only there is nothing to compare: then
    profiles are claimed that are probably there, which is the baseline.

    Args:
      churn: Share of the records that leave between two editions.
      last: How many editions, up to the newest, people may have left in: 1 asks who left before
        the newest, 8 who left within a window of eight.
      skip: How many of the newest editions lie after the window.
      mode: The mode of editions, if it is not the one in the statement.
      law: The law of the noise, if it is not the perturbation table in the statement.
    """

    name: ClassVar[str] = "leavers"
    about: ClassVar[About] = "leavers"
    remedy: ClassVar[str] = 'keys of their own in each edition (`editions="fresh"` or "phased:4")'

    churn: float = 0.01
    last: int = 1
    skip: int = 0
    mode: str | None = None
    law: TransitionMatrix | None = None

    def refusal(self, release: Any, knowledge: Knowledge) -> str:
        """No edition before, or noise whose law is not told."""
        return _refusal(release, knowledge, self.law)

    def __call__(self, release: Any, knowledge: Knowledge, *, rng: np.random.Generator) -> Claims:
        """Profiles of people who left."""
        releases = (*knowledge.earlier, release)
        world = _World(releases, self.churn)
        law = self.law or matrix_of(release)
        mode = EditionMode.parse(self.mode or told_mode(release))
        series = world.series(law, mode)
        if len(releases) == 1:
            seen = np.log(np.maximum(series.presence(), 1e-9))
            score = np.log(world.chance) + world.over_cells(seen)
            expected = self.churn * world.people
        else:
            newest = len(releases) - self.skip
            steps = range(max(1, newest - self.last), newest)
            left = series.leave_likelihoods(list(steps))
            score = np.logaddexp.reduce([world.score(one) for one in left], axis=0)
            expected = self.churn * world.people * len(steps)
        ties = rng.random(len(score)) * 1e-9
        order = np.argsort(-(score + ties))[: max(1, round(expected))]
        targets = world.profiles(order)
        return Claims.ranked(targets, [True] * len(targets), score[order])


@dataclass(frozen=True)
class UnchangedCells(PublicAttack):
    """Guesses the counts of cells that did not change, by the exact posterior of their series.

    Targets are positions of published cells. The prior chance of a count n is in proportion to
    `decay`ⁿ, n ≥ 1, so that the best guess without a table is 1.

    Args:
      decay: How fast the prior falls.
      most: The largest count that is considered.
      mode: The mode of editions, if it is not the one in the statement.
      law: The law of the noise, if it is not the perturbation table in the statement.
    """

    name: ClassVar[str] = "unchanged-cells"
    beside: ClassVar[Literal["alone"]] = "alone"
    remedy: ClassVar[str] = 'kept or phased keys (`editions="phased:4"`), and fewer editions'

    decay: float = 0.6
    most: int = 40
    mode: str | None = None
    law: TransitionMatrix | None = None

    def refusal(self, release: Any, knowledge: Knowledge) -> str:
        """No edition before, or noise whose law is not told."""
        return _refusal(release, knowledge, self.law)

    def __call__(self, release: Any, knowledge: Knowledge, *, rng: np.random.Generator) -> Claims:
        """The most probable count of every cell."""
        releases = (*knowledge.earlier, release)
        values = np.array([np.asarray(r.z, dtype=np.int64) for r in releases])
        law, n = self.law or matrix_of(release), np.arange(1, self.most + 1)
        mode = EditionMode.parse(self.mode or told_mode(release))
        rows, reach = law.law[law.row_of(n)], law.max_move
        log = np.tile(n * np.log(self.decay), (values.shape[1], 1))
        due = _due(values, releases, mode) if mode.kind == "phased" else None
        for t, value in enumerate(values):
            move = value[:, None] - n
            chance = rows[np.arange(len(n)), np.clip(move + reach, 0, 2 * reach)]
            chance = np.where(np.abs(move) <= reach, chance, 0.0)
            again = _redraws(mode, n, None if due is None else due[t]) if t else np.ones(1)
            same = (value == values[t - 1])[:, None] if t else False
            log += np.log(chance * again + (1 - again) * same + _TINY)
        log -= np.logaddexp.reduce(log, axis=1, keepdims=True)
        best = log.argmax(axis=1)
        return Claims.ranked(
            range(values.shape[1]), n[best].tolist(), log[np.arange(len(best)), best]
        )


def _refusal(release: Any, knowledge: Knowledge, law: TransitionMatrix | None) -> str:
    if not knowledge.earlier:
        return "there is no earlier edition"
    try:
        matrix_of(release) if law is None else law
    except DiscreetError as error:
        return str(error).rstrip(".")
    return ""


def _redraws(mode: EditionMode, n: Whole, due: Real | None) -> Real:
    """The chance that a cell of unchanged records is drawn afresh."""
    if due is not None:
        return due[:, None]
    if mode.kind == "fresh":
        return np.ones(1)
    return np.asarray(1 - (1 - (mode.share or 0.0)) ** n)


class _World:
    """Cells of a series of releases, and the profiles of people that they are made of."""

    def __init__(self, releases: Sequence[Any], churn: float) -> None:
        self.releases, self.design, self.churn = releases, releases[0].design, churn
        self.values = np.array([np.asarray(r.z, dtype=np.int64) for r in releases])
        if any(r.design.n_published != self.design.n_published for r in releases):
            raise ParameterError("editions are compared cell by cell, but their tables differ.")
        members = self.design.members(np.arange(self.design.n_inner))
        if members.size > _LARGEST * 10:
            raise ParameterError(f"{self.design.n_inner:,} profiles are too many for this attack.")
        mean = np.append(self.values.mean(axis=0), 0.0)
        sizes = [len(np.unique(column)) for column in members.T]
        self.people = float(np.median([mean[np.unique(column)].sum() for column in members.T]))
        self.chance = self._independent(members, mean)
        weight = np.repeat(self.chance, members.shape[1]) * self.people
        mean_counts = np.bincount(members.ravel(), weight, minlength=self.design.n_published + 1)
        self.expected: Real = np.maximum(mean_counts[:-1].astype(np.float64), 1e-6)
        hidden = np.any([r.hidden for r in releases], axis=0)
        told = (churn * self.expected < _MOST_LEAVERS) & ~hidden
        # a cell with the same inner cells as another one tells nothing new
        told &= self.design.duplicates() == np.arange(self.design.n_published)
        fine = [k for k, size in enumerate(sizes) if size > 1]
        self.cells = np.flatnonzero(told)
        place = np.full(self.design.n_published + 1, -1)
        place[self.cells] = np.arange(len(self.cells))
        self.members = place[members[:, fine]]

    def _independent(self, members: Whole, mean: Real) -> Real:
        """The share of each profile if variables were independent, from published margins."""
        leaves = self.design.leaf_positions(np.arange(self.design.n_inner))
        chance = np.ones(self.design.n_inner)
        for axis, leaf in zip(self.design.axes, leaves, strict=True):
            sums: Any = np.zeros(len(axis))
            for column in members.T:
                cell, first = np.unique(column, return_index=True)
                if len(cell) >= len(axis) and np.array_equal(
                    leaf[first][np.searchsorted(cell, column)], leaf
                ):
                    sums = np.bincount(leaf[first], np.maximum(mean[cell], 0), len(axis))
                    break
            share = np.maximum(sums, 0.5)
            chance *= (share / share.sum())[leaf]
        return chance

    def series(self, law: TransitionMatrix, mode: EditionMode) -> CellSeries:
        """The series of the cells that tell something."""
        values = self.values[:, self.cells]
        due = _due(values, self.releases, mode) if mode.kind == "phased" else None
        return CellSeries(values, self.expected[self.cells], law, mode, self.churn, due)

    def over_cells(self, by_cell: Real) -> Real:
        """Sums over the cells that each profile is in."""
        return np.asarray(np.append(by_cell, 0.0)[self.members].sum(axis=1))

    def score(self, left: Real) -> Real:
        """Log odds that somebody of each profile left, others explained away by a mean field."""
        prior = np.log(self.churn * self.people * self.chance)
        k = np.arange(LEAVERS)
        factorial = np.array([1.0, 1.0, 2.0, 6.0, 24.0, 120.0])
        share = np.minimum(self.churn * self.people * self.chance, 0.5)
        padded = np.vstack([left, np.ones((1, LEAVERS))])[self.members]  # (profiles, tables, k)
        score = prior
        for _ in range(_ROUNDS):
            rate = np.zeros(len(self.cells) + 1)
            np.add.at(rate, self.members, share[:, None])
            rate[-1] = 0.0  # of the cells that tell nothing
            others = np.maximum(rate[self.members] - share[:, None], 1e-9)[..., None]
            law = others**k * np.exp(-others) / factorial
            more = np.log((padded[..., 1:] * law[..., :-1]).sum(axis=2))
            score = prior + (more - np.log((padded * law).sum(axis=2))).sum(
                axis=1, where=self.members >= 0
            )
            share = 0.5 * share + 0.5 / (1 + np.exp(-np.clip(score, -40, 40)))
        return np.asarray(score)

    def profiles(self, inner: Whole) -> list[tuple[str, ...]]:
        """Inner cells as tuples of codes."""
        leaves = self.design.leaf_positions(inner)
        named = [
            [axis.leaves[k] for k in leaf]
            for axis, leaf in zip(self.design.axes, leaves, strict=True)
        ]
        return list(zip(*named, strict=True))


def _due(values: Whole, releases: Sequence[Any], mode: EditionMode) -> Real:
    """The chance that each cell was drawn afresh in each edition.

    A cell whose value ever changed shows its phase; others may have been due at any time.
    """
    every = mode.every or 1
    places = [_place(release, t) for t, release in enumerate(releases)]
    phase = np.arange(every)
    hits = np.array([(place + phase) % every == 0 for place in places])  # (editions, phases)
    changed: Mask = np.diff(values, axis=0) != 0
    votes = changed.T.astype(np.float64) @ hits[1:]
    known = votes.max(axis=1) > 0
    guess = votes.argmax(axis=1)
    due = np.where(known[None], hits[:, guess], 1 / every)
    due[0] = 1.0
    return np.asarray(due, dtype=np.float64)


def _place(release: Any, index: int) -> int:
    """The place of an edition in its series, as its statement tells it."""
    steps = release.statement.steps
    told = steps[0].parameters.get("place", 0) if steps else 0
    return int(told) or index


def told_mode(release: Any) -> str:
    """The mode of editions that a statement tells."""
    steps = release.statement.steps
    told = str(steps[0].parameters.get("keys", "kept")) if steps else "kept"
    mode = EditionMode.parse(told)
    return "kept" if mode.kind == "given" else told
