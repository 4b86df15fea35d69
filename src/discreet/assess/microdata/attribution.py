"""What synthetic records say for certain about somebody whose keys are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Mask, Whole
from discreet.assess.measure import NotApplicableError, Score
from discreet.assess.microdata.record_sets import (
    ORIGINAL,
    SYNTHETIC,
    RecordMeasure,
    RecordSets,
    row_classes,
)


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
        """Take the measure."""
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
        found = attributed(sets, cells, sets.classes(self.target, self.classes))
        parts = {"figure": list(found), "value": list(found.values())}
        on = f"{self.target} given {', '.join(known)}"
        return self.score(found["right guesses"], on, parts)


def attributed(sets: RecordSets, cells: Whole, targets: Whole) -> dict[str, float]:
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
