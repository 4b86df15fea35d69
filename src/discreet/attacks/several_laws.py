r"""Counts from several releases of one table by key, each under a law of its own.

A cell's key stands for one point :math:`u` of the unit interval, and every law looks its noise up
there. Count :math:`n` explains published values :math:`v_1, \dots, v_k` for the points

.. math:: \{u : n + m_i(n, u) = v_i \text{ for all } i\},

whose total length is the likelihood of :math:`n`. Laws whose noise is drawn apart, such as those of
other methods, multiply instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from discreet.arrays import Array, Real, Whole
from discreet.assessment.audit.ranges import law_of as read_law
from discreet.attacks.frame import Claims, Knowledge, PublicAttack
from discreet.errors import DiscreetError, ParameterError
from discreet.noise.matrix import TransitionMatrix

_POINTS = 4096  # of the unit interval, where intervals are compared


@dataclass(frozen=True)
class SeveralLaws(PublicAttack):
    """Claims the likeliest count of every cell, all counts being as likely beforehand.

    `knowledge.earlier` holds other releases of the same table. Laws follow from the statements, and
    cell-key releases under different laws are taken to share their keys. Where that is not so,
    `knowledge.extra["laws"]` has the law of every release, oldest first and the release's own at
    the end: laws in a tuple share their point; each other entry is drawn apart.

    Promise: with one release it is the best guess from that release alone, which is the baseline.
    Cost: laws × moves × cells comparisons of 4,096 points.
    """

    name: ClassVar[str] = "several-laws"
    remedy: ClassVar[str] = "one release of each table, under one law (the ledger refuses others)"
    beside: ClassVar[Literal["alone"]] = "alone"

    def refusal(self, release: Any, knowledge: Knowledge) -> str:
        """Noise whose law is not told, or hidden cells."""
        if "laws" in knowledge.extra:
            return ""
        try:
            for each in (*knowledge.earlier, release):
                law_of(each)
        except DiscreetError as error:
            return str(error).rstrip(".")
        return "cells are hidden" if release.hidden.any() else ""

    def __call__(self, release: Any, knowledge: Knowledge, *, rng: np.random.Generator) -> Claims:
        """The count of each published cell; ties go to the smaller count."""
        releases = [*knowledge.earlier, release]
        if "laws" in knowledge.extra:
            groups = [g if isinstance(g, tuple) else (g,) for g in knowledge.extra["laws"]]
        else:
            releases, groups = _grouped(releases)
        values = np.stack([np.asarray(r.z) for r in releases])
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


def law_of(release: Any) -> TransitionMatrix:
    """The law of keyed noise, built again from the public parameters in the statement."""
    for step in release.statement.steps:
        told = step.parameters
        is_keyed = step.name in ("protect:cell-key", "protect:drop-add", "protect:pram")
        if is_keyed and told.get("margins", "own") == "own" and not told.get("invariant"):
            return read_law(told, "drop-add" if step.name == "protect:drop-add" else None)
    raise ParameterError("the statement names no law of noise by key")


def _grouped(releases: list[Any]) -> tuple[list[Any], list[tuple[TransitionMatrix, ...]]]:
    """Releases in the order of their laws: cell keys under different laws share their point.

    Repeats of a release say nothing; another draw under the same law was drawn apart.
    """
    shared: dict[str, tuple[Any, TransitionMatrix]] = {}
    apart: list[tuple[Any, TransitionMatrix]] = []
    for release in releases:
        law, name = law_of(release), release.statement.steps[-1].name
        mark = f"{name}: {sorted(law.parameters.items(), key=str)}"
        known = [each for each, other in (*shared.values(), *apart) if other == law]
        if any(np.array_equal(each.z, release.z) for each in known):
            continue
        if name == "protect:cell-key" and mark not in shared:
            shared[mark] = release, law
        else:
            apart.append((release, law))
    groups = [tuple(law for _, law in shared.values())] if shared else []
    ordered = [release for release, _ in (*shared.values(), *apart)]
    return ordered, [*groups, *((law,) for _, law in apart)]


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
