"""Scores of single draws in one tidy table with their uncertainty."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.assess.measure import Score

if TYPE_CHECKING:
    import pyarrow as pa

WORDS = ("label", "method", "parameters", "stage", "fitter", "measure", "kind", "on")
NUMBERS = ("mean", "sd", "standard_error", "lower", "upper")
_BY = (*WORDS, "direction")
_QUANTILES = (0.025, 0.975)


def summarise(replicates: pa.Table) -> pa.Table:
    """Mean, spread and 95 % interval of every score.

    `sd` is the standard deviation between draws, `standard_error` that of the mean, and `lower`
    and `upper` are the 2.5 % and 97.5 % quantiles of the draws. A measure that never applies has
    no mean; its note says why.
    """
    import pyarrow as pa

    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in replicates.to_pylist():
        groups.setdefault(tuple(row[name] for name in WORDS), []).append(row)
    rows = [_row(dict(zip(WORDS, key, strict=True)), found) for key, found in groups.items()]
    return pa.Table.from_pylist(_without_gaps(rows), schema=_schema())


def _schema() -> pa.Schema:
    import pyarrow as pa

    words = [(name, pa.string()) for name in WORDS]
    numbers = [(name, pa.float64()) for name in NUMBERS]
    last = [(name, pa.string()) for name in ("direction", "reading", "note")]
    return pa.schema([*words, *numbers, ("replicates", pa.int32()), *last])


def _row(where: dict[str, Any], found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    values = np.array([row["value"] for row in found if row["value"] is not None])
    direction = next((row["direction"] for row in found if row["direction"]), None)
    reading = None
    if direction is not None:
        reading = Score("", 0.0, where["kind"], (0, 1), direction).reading
    facts = {"direction": direction, "reading": reading, "note": _note(found)}
    return {**where, **spread(values), "replicates": len(values), **facts}


def spread(values: np.ndarray[Any, Any]) -> dict[str, float | None]:
    """Mean, standard deviation, standard error and 95 % interval of the draws.

    >>> spread(np.array([1.0, 2.0, 3.0]))["standard_error"]
    0.5773502691896258
    """
    if not len(values):
        return dict.fromkeys(NUMBERS)
    sd = float(values.std(ddof=1)) if len(values) > 1 else math.nan
    lower, upper = np.quantile(values, _QUANTILES)
    numbers = (float(values.mean()), sd, sd / math.sqrt(len(values)), float(lower), float(upper))
    return dict(zip(NUMBERS, numbers, strict=True))


def _note(found: Sequence[Mapping[str, Any]]) -> str | None:
    """Why draws have no value, and how many fits did not end as they should."""
    reasons = Counter(row["note"] for row in found if row["note"])
    fits = Counter(row["fit"] for row in found if row["fit"] not in ("", "converged"))
    lines = [
        reason if n == len(found) else f"in {n} of {len(found)} draws: {reason}"
        for reason, n in reasons.items()
    ]
    lines += [f"the fit ended as {fit!r} in {n} of {len(found)} draws." for fit, n in fits.items()]
    return " ".join(lines) or None


def _without_gaps(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Draws without a value do not know on what it is; they join the group that does."""
    place = ("label", "stage", "fitter", "measure")
    known = {tuple(r[n] for n in place) for r in rows if r["on"]}
    return [r for r in rows if r["on"] or tuple(r[n] for n in place) not in known]
