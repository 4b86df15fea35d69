r"""Counts from several releases of one table by key, each under a law of its own.

A cell's key stands for one point :math:`u` of the unit interval, and every law looks its noise up
there. Count :math:`n` explains published values :math:`v_1, \dots, v_k` for the points

.. math:: \{u : n + m_i(n, u) = v_i \text{ for all } i\},

whose total length is the likelihood of :math:`n`. Laws whose noise is drawn apart, such as those of
other methods, multiply instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from discreet.arrays import Array, Real, Whole
from discreet.attack.frame import Claims, Knowledge
from discreet.errors import ParameterError
from discreet.noise.matrix import TransitionMatrix

_POINTS = 4096  # of the unit interval, where intervals are compared


@dataclass(frozen=True)
class SeveralLaws:
    """Claims the likeliest count of every cell, all counts being as likely beforehand.

    What it needs beside the release: `knowledge.earlier`, the other releases of the same table, and
    `knowledge.extra["laws"]`, the public law of every release, oldest first and the release's own
    at the end. Laws in a tuple share their point; each other entry is drawn apart.

    Promise: with one release it is the best guess from that release alone, which is the baseline.
    Cost: laws × moves × cells comparisons of 4,096 points.
    """

    name: ClassVar[str] = "several-laws"

    def __call__(self, release: Any, knowledge: Knowledge, *, rng: np.random.Generator) -> Claims:
        """The count of each published cell; ties go to the smaller count."""
        values = np.stack([np.asarray(r.z) for r in (*knowledge.earlier, release)])
        groups = [g if isinstance(g, tuple) else (g,) for g in knowledge.extra["laws"]]
        if sum(map(len, groups)) != len(values):
            raise ParameterError(
                f"{len(values)} releases need as many laws, got {sum(map(len, groups))}."
            )
        reach = max(law.max_move for group in groups for law in group)
        # the last release bounds the count; others only narrow it down
        candidates = values[-1][:, None] + np.arange(-reach, reach + 1)
        chance = np.where(candidates >= 0, 1.0, 0.0)
        first = 0
        for group in groups:
            shown = values[first : first + len(group)]
            chance *= _likelihood(group, shown, candidates)
            first += len(group)
        best = chance.argmax(axis=1)
        rows = np.arange(len(best))
        sure = chance[rows, best] / np.maximum(chance.sum(axis=1), 1e-300)
        said = candidates[rows, best].tolist()
        return Claims.ranked(range(len(said)), said, sure)


def _likelihood(laws: tuple[TransitionMatrix, ...], values: Array, candidates: Whole) -> Real:
    """The length of the points at which every law leads a candidate to the value shown."""
    counts, place = np.unique(np.maximum(candidates, 0), return_inverse=True)
    points = (np.arange(_POINTS) + 0.5) / _POINTS
    noise = np.stack([_noise(law, counts, points) for law in laws])
    place = place.reshape(candidates.shape)
    length = np.zeros(candidates.shape)
    for k in range(candidates.shape[1]):
        fits = np.ones((len(candidates), _POINTS), dtype=bool)
        for law in range(len(laws)):
            fits &= noise[law][place[:, k]] == (values[law] - candidates[:, k])[:, None]
        length[:, k] = fits.mean(axis=1)
    return length


def _noise(law: TransitionMatrix, counts: Whole, points: Real) -> Whole:
    """The move of each count at each point."""
    keys = (points * 2**32).astype(np.int64)
    each = [law.noise(np.full(len(keys), count), keys, 2**32) for count in counts]
    return np.stack(each)
