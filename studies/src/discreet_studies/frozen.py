"""Stand-ins, tolerances and seeds, frozen before a run; whoever changes one says why in a log."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from discreet.arrays import Whole
from discreet_studies.model import Finding, LogEntry, own

SEEDS = tuple(range(1, 21))
"""Seeds over which verdicts are reported as shares; fixed in advance."""
_DIGITS = 16


def digest(frozen: Mapping[str, Any]) -> str:
    """Digest of everything that is frozen, whatever the order of its names."""
    text = json.dumps(frozen, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def digest_counts(y: Whole) -> str:
    """Digest of the counts of a stand-in, which tells that its generator is as it was."""
    return hashlib.sha256(y.astype("<i8").tobytes()).hexdigest()[:_DIGITS]


def is_frozen(frozen: Mapping[str, Any], log: Sequence[LogEntry]) -> Finding:
    """Whether nothing has changed since the last entry of the log."""
    found = digest(frozen)
    return own(
        "Stand-in, tolerances and seeds are those of the last entry of the log.",
        found == log[-1].digest,
        f"Digest {found}, frozen on {log[-1].date}.",
    )
