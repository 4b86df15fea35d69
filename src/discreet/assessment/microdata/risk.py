"""Risk of synthetic records: attributes told, records copied or near, members betrayed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.spatial import KDTree
from scipy.special import ndtri

from discreet.arrays import Array, Mask, Real, Whole
from discreet.assessment.measure import POSITIVE, NotApplicableError, Score
from discreet.assessment.microdata.record_sets import (
    CONTROL,
    ORIGINAL,
    SYNTHETIC,
    RecordMeasure,
    RecordSets,
    main_effects,
    row_classes,
)
from discreet.errors import check_known


@dataclass(frozen=True)
class CorrectAttribution(RecordMeasure):
    r"""How often a certain guess of a target from known keys is right (TCAP).

    A combination of keys on which all synthetic records have one target value gives a certain
    guess. Over the synthetic records with such keys that occur in the original, the mean share of
    original records with these keys that have the guessed value. Range: 0 to 1. Lower is safer, and
    the value must be read against the baseline in the breakdown: how often the most frequent value
    of all would be right for the same records. 0 if there is no certain guess.

    >>> people = {"job": ["a", "a", "b"], "ill": ["y", "n", "n"]}
    >>> made = {"job": ["a", "b", "b"], "ill": ["y", "n", "n"]}
    >>> round(CorrectAttribution(target="ill", keys=("job",))(people, made).value, 4)
    0.8333

    Args:
      target: The column that is guessed; numbers are cut into classes.
      keys: The columns that the attacker knows; by default all others.
      classes: Number of classes of a target that is a number.

    See Taub et al. (2019).
    """

    name = "correct-attribution"
    kind = "risk"

    target: str | None = None
    keys: tuple[str, ...] | None = None
    classes: int = 10

    def __call__(self, original: Any, synthetic: Any) -> Score:
        if self.target is None:
            raise NotApplicableError("name the column that is guessed: target=.")
        sets = self.sets(original, synthetic)
        known = [*(sets.names if self.keys is None else self.keys)]
        for name in (self.target, *known):
            if name not in sets.names:
                raise NotApplicableError(f"column {name!r} is not in both sets of records.")
        known = [name for name in known if name != self.target]
        if not known:
            raise NotApplicableError("name the columns that the attacker knows: keys=.")
        cells = row_classes([sets.exact(name) for name in known])
        found = attribution_shares(sets, cells, sets.classes(self.target, self.classes))
        parts = {"figure": list(found), "value": list(found.values())}
        on = f"{self.target} given {', '.join(known)}"
        return self.score(found["right guesses"], on, parts)


def attribution_shares(sets: RecordSets, cells: Whole, targets: Whole) -> dict[str, float]:
    """Share of right guesses, that of the most frequent value, and how many records they are.

    Args:
      sets: The records.
      cells: The combination of keys of each record.
      targets: The value of the target of each record.
    """
    before, after = sets.rows(ORIGINAL), sets.rows(SYNTHETIC)
    size = int(cells.max()) + 1
    is_sure, guess = _certain(cells[after], targets[after], size)
    in_original = np.bincount(cells[before], minlength=size)
    right = np.bincount(cells[before], targets[before] == guess[cells[before]], size)
    common = np.bincount(targets[before]).argmax()
    usual = np.bincount(cells[before], targets[before] == common, size)
    chosen = cells[after][(is_sure & (in_original > 0))[cells[after]]]
    counts = np.maximum(in_original, 1)
    return {
        "right guesses": float((right / counts)[chosen].mean()) if len(chosen) else 0.0,
        "baseline": float((usual / counts)[chosen].mean()) if len(chosen) else 0.0,
        "share of synthetic records with a certain guess": len(chosen) / sets.sizes[SYNTHETIC],
    }


def _certain(cells: Whole, targets: Whole, size: int) -> tuple[Mask, Whole]:
    """Which combinations have one target value only, and one of their values."""
    low = np.full(size, np.iinfo(np.int64).max)
    high = np.full(size, -1)
    np.minimum.at(low, cells, targets)
    np.maximum.at(high, cells, targets)
    return low == high, high.astype(np.int64)


@dataclass(frozen=True)
class _Repeated(RecordMeasure):
    """A measure of records that both sets have; numbers are equal up to 1e-6 of their spread."""

    kind = "risk"

    def count_combinations(self, original: Any, synthetic: Any) -> tuple[str, Array, Array]:
        """The columns in words, and how often each combination of values occurs in both sets."""
        sets = self.sets(original, synthetic)
        names = self.columns_to_compare(sets.names)
        cells = row_classes([sets.exact(name) for name in names])
        before, after = (
            np.bincount(cells[sets.rows(place)], minlength=int(cells.max()) + 1)
            for place in (ORIGINAL, SYNTHETIC)
        )
        return ", ".join(names), before, after

    def columns_to_compare(self, names: list[str]) -> list[str]:
        """The columns that are compared."""
        return names


@dataclass(frozen=True)
class CopiedRecords(_Repeated):
    """Share of synthetic records that are the same as an original one in every column.

    Range: 0 to 1. Lower is safer. Few columns with few codes agree by chance, so that copies tell
    something only where a record has many possible values. The breakdown counts them.

    >>> CopiedRecords()({"a": [1.0, 2.0]}, {"a": [2.0, 3.0]}).value
    0.5
    """

    name = "copied-records"

    def __call__(self, original: Any, synthetic: Any) -> Score:
        on, before, after = self.count_combinations(original, synthetic)
        copies, total = int(after[before > 0].sum()), int(after.sum())
        parts = {"copies": [copies], "synthetic_records": [total]}
        return self.score(copies / total, on, parts)


@dataclass(frozen=True)
class ReplicatedUniques(_Repeated):
    """Share of original records that are alone with their keys and come back alone.

    Somebody who is unique and meets a unique synthetic record will take it for his own. Range:
    0 to 1. Lower is safer. The breakdown counts uniques of both and those in common.

    >>> ReplicatedUniques()({"a": ["x", "y", "y"]}, {"a": ["x", "y", "z"]}).breakdown.to_pylist()
    [{'uniques': 1, 'synthetic_uniques': 3, 'replicated': 1, 'original_records': 3}]

    Args:
      keys: The columns by which people are known; by default all.

    See Raab, Nowok & Dibben (2024).
    """

    name = "replicated-uniques"

    keys: tuple[str, ...] | None = None

    def columns_to_compare(self, names: list[str]) -> list[str]:
        """The keys."""
        check_known("column of both sets of records", self.keys or (), names)
        if self.keys is not None and not self.keys:
            raise NotApplicableError("name at least one column by which people are known: keys=.")
        return names if self.keys is None else list(self.keys)

    def __call__(self, original: Any, synthetic: Any) -> Score:
        on, before, after = self.count_combinations(original, synthetic)
        total, replicated = int(before.sum()), int(((before == 1) & (after == 1)).sum())
        parts = {
            "uniques": [int((before == 1).sum())],
            "synthetic_uniques": [int((after == 1).sum())],
            "replicated": [replicated],
            "original_records": [total],
        }
        return self.score(replicated / total, on, parts)


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
        frames = [original, synthetic] + ([] if self.control is None else [self.control])
        sets = self.sets(*frames)
        points = places(sets)
        own = points[sets.rows(ORIGINAL)]
        parts: dict[str, list[Any]] = {"quantile": list(_SHARES)}
        for name, place in (("synthetic", SYNTHETIC), ("control", CONTROL))[: len(frames) - 1]:
            distances = nearest(points[sets.rows(place)], own)
            parts[name] = np.quantile(distances, list(_SHARES.values())).tolist()
        return self.score(parts["synthetic"][2], sets.on, parts)


NO_CONTROL = (
    "give records of the same population that were not synthesized: control=. Set some aside "
    "before the records are synthesized."
)
_FEW_ALARMS = 0.01  # share of the control records that are taken for members
_CHANCE = 0.05  # shared out among the attackers, since the best of them counts


@dataclass(frozen=True)
class MembershipInference(RecordMeasure):
    r"""Probability that a member lies nearer to the synthetic records than a control record.

    The area under the curve of an attacker who takes people near to a synthetic record for
    members: :math:`P(d_m < d_c) + \tfrac12 P(d_m = d_c)`. Several are tried, one with all columns
    and one with each column alone, and the best one counts. Range: 0 to 1. 0.5 is pure guessing,
    1 is certainty; lower is safer. The breakdown has a row for each attacker, with the standard
    error of guessing, :math:`\sqrt{(m + c + 1)/(12mc)}` for m members and c control records, and
    the limit that the best one exceeds by chance at most once in twenty times.

    An attacker who does better may exist. Columns that are published as they are betray their
    people by themselves: leave them out with `columns=` to see what the synthetic ones add.

    >>> people = {"a": [1.0, 2.0, 3.0]}, {"a": [1.0, 2.0, 3.0]}
    >>> MembershipInference(control={"a": [1.5, 2.5, 3.5]})(*people).value
    1.0

    Args:
      control: Records of the same population that were not synthesized.

    See Yeom et al. (2018), Hilprecht et al. (2019).
    """

    name = "membership-inference"
    kind = "risk"
    figure: ClassVar[str] = "area"

    control: Any = None

    def __call__(self, original: Any, synthetic: Any) -> Score:
        if self.control is None:
            raise NotApplicableError(NO_CONTROL)
        sets = self.sets(original, synthetic, self.control)
        knowing = {"all columns": sets} | {f"{n} alone": sets.only(n) for n in sets.names}
        if len(sets.names) == 1:
            del knowing["all columns"]
        m, c = sets.sizes[ORIGINAL], sets.sizes[CONTROL]
        error, chance = math.sqrt((m + c + 1) / (12 * m * c)), _CHANCE / len(knowing)
        rows = [
            {
                "attacker": attacker,
                **_attack_success(known),
                "error_of_guessing": error,
                "area_limit": 0.5 - error * float(ndtri(chance)),
                "advantage_limit": math.sqrt(-math.log(chance) * (m + c) / (2 * m * c)),
            }
            for attacker, known in knowing.items()
        ]
        parts: dict[str, list[Any]] = {n: [row[n] for row in rows] for n in rows[0]}
        return self.score(max(parts[self.figure]), sets.on, parts)


@dataclass(frozen=True)
class MembershipAdvantage(MembershipInference):
    r"""Largest lead of an attacker: members he finds less control records he takes for members.

    :math:`\max_t \{P(d_m \le t) - P(d_c \le t)\}` over thresholds t of the distance to the nearest
    synthetic record. Range: 0 to 1 (certainty). Lower is safer. The best attacker and threshold
    are found afterwards, so that guessing does not have 0: the breakdown gives the limit that it
    exceeds at most once in twenty times. The attackers are those of `membership-inference`.

    >>> people = {"a": [1.0, 2.0, 3.0, 4.0]}, {"a": [1.0, 2.0, 9.0, 9.5]}
    >>> MembershipAdvantage(control={"a": [5.0, 6.0, 3.5, 2.5]})(*people).value
    0.5

    See Yeom et al. (2018).
    """

    name = "membership-advantage"
    figure = "advantage"


def _attack_success(sets: RecordSets) -> dict[str, float]:
    """What an attacker who knows these columns finds out."""
    points = places(sets)
    shown = points[sets.rows(SYNTHETIC)]
    members = nearest(points[sets.rows(ORIGINAL)], shown)
    others = nearest(points[sets.rows(CONTROL)], shown)
    return {
        "area": area(members, others),
        "advantage": advantage(members, others),
        "found_at_1_percent_false_alarms": _found(members, others, _FEW_ALARMS),
    }


def area(members: Array, others: Array) -> float:
    """Probability that a member's distance is smaller than another one's; ties count half."""
    ordered = np.sort(others)
    below = np.searchsorted(ordered, members, side="left")
    equal = np.searchsorted(ordered, members, side="right") - below
    beaten = len(others) - below - 0.5 * equal
    return float(beaten.mean() / len(others))


def advantage(members: Array, others: Array) -> float:
    """Largest difference of the shares of members and others within a distance."""
    thresholds = np.unique(members)
    hits = np.searchsorted(np.sort(members), thresholds, side="right") / len(members)
    alarms = np.searchsorted(np.sort(others), thresholds, side="right") / len(others)
    return float(max(0.0, (hits - alarms).max()))


def _found(members: Array, others: Array, alarms: float) -> float:
    """Share of members within the largest distance that has few enough false alarms."""
    ordered = np.sort(others)
    limit = ordered[min(math.floor(alarms * len(ordered)), len(ordered) - 1)]
    return float((members < limit).mean())
