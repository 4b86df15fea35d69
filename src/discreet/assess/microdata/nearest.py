"""How far records lie from each other: numbers in standard deviations, codes equal or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial import KDTree

from discreet.arrays import Array, Real
from discreet.assess.measure import POSITIVE, Score
from discreet.assess.microdata.matrix import main_effects
from discreet.assess.microdata.record_sets import (
    CONTROL,
    ORIGINAL,
    SYNTHETIC,
    RecordMeasure,
    RecordSets,
)

_MOST = 300
_SHARES = {"minimum": 0.0, "5 %": 0.05, "median": 0.5, "95 %": 0.95, "maximum": 1.0}


def places(sets: RecordSets) -> Real:
    r"""Records as points, the same for equal records.

    A number counts in standard deviations of the original, and two different codes are at
    distance 1; the squares of both are added up.
    """
    blocks = main_effects(sets, _MOST, all_levels=True)
    scaled = [b if name in sets.numbers else b / np.sqrt(2) for name, b in blocks.items()]
    return np.hstack(scaled)


def nearest(points: Real, others: Real) -> Array:
    """Distance of each point to the nearest of the others.

    Points that many records share are looked at once, since trees cannot split them.
    """
    distinct, place = np.unique(points, axis=0, return_inverse=True)
    tree = KDTree(np.unique(others, axis=0), balanced_tree=False)
    found = np.asarray(tree.query(distinct)[0], dtype=np.float64)
    return found[place.ravel()]


@dataclass(frozen=True)
class NearestRecordDistance(RecordMeasure):
    """Median distance of a synthetic record from the nearest original one.

    Numbers count in standard deviations, and two different codes as 1. It is a description: it
    does not measure what the records betray. Records far from the original can still tell who was
    among them, and records near to it need not; see `membership-inference`. Range: 0 upwards. The
    breakdown gives quantiles, and the same for control records where they are given.

    >>> round(NearestRecordDistance()({"a": ["x", "y"]}, {"a": ["z"]}).value, 4)
    1.0

    Args:
      control: Records of the same population that were not synthesized.
    """

    name = "nearest-record-distance"
    kind = "description"
    range = POSITIVE

    control: Any = None

    def __call__(self, original: Any, synthetic: Any) -> Score:
        """Take the measure."""
        frames = [original, synthetic] + ([] if self.control is None else [self.control])
        sets = self.sets(*frames)
        points = places(sets)
        own = points[sets.rows(ORIGINAL)]
        parts: dict[str, list[Any]] = {"quantile": list(_SHARES)}
        for name, place in (("synthetic", SYNTHETIC), ("control", CONTROL))[: len(frames) - 1]:
            distances = nearest(points[sets.rows(place)], own)
            parts[name] = np.quantile(distances, list(_SHARES.values())).tolist()
        return self.score(parts["synthetic"][2], sets.on, parts)
