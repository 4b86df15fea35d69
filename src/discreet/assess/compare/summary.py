"""Scores of single draws in one tidy table with their uncertainty."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.assess.measure import Score

if TYPE_CHECKING:
    import pyarrow as pa

WORDS = ("label", "method", "parameters", "stage", "fitter", "measure", "kind")
NUMBERS = ("mean", "sd", "standard_error", "lower", "upper")
_QUANTILES = (0.025, 0.975)

Rows = Sequence[Mapping[str, Any]]


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
    rows = [
        {**dict(zip(WORDS, key, strict=True)), **line}
        for key, found in groups.items()
        for line in _lines(found)
    ]
    return pa.Table.from_pylist(rows, schema=_schema())


def _schema() -> pa.Schema:
    import pyarrow as pa

    words = [(name, pa.string()) for name in (*WORDS, "on")]
    numbers = [(name, pa.float64()) for name in NUMBERS]
    last = [(name, pa.string()) for name in ("direction", "reading", "note")]
    return pa.schema([*words, *numbers, ("replicates", pa.int32()), *last])


def _lines(found: Rows) -> Iterator[dict[str, Any]]:
    """A line for everything that one measure was taken of; one if it never applied."""
    missing = [row for row in found if row["value"] is None]
    for on in dict.fromkeys(row["on"] for row in found if row["value"] is not None):
        taken = [row for row in found if row["value"] is not None and row["on"] == on]
        yield _line(taken, missing)
    if len(missing) == len(found):
        yield _line([], missing)


def _line(taken: Rows, missing: Rows) -> dict[str, Any]:
    values = np.array([row["value"] for row in taken])
    line: dict[str, Any] = {"on": None, "direction": None, "reading": None}
    if taken:
        first = taken[0]
        score = Score(first["measure"], 0.0, first["kind"], (0, 1), first["direction"])
        line = {"on": first["on"], "direction": first["direction"], "reading": score.reading}
    return {**line, **spread(values), "replicates": len(values), "note": _note(taken, missing)}


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


def _note(taken: Rows, missing: Rows) -> str | None:
    """Why some draws have no value, and how many fits did not end as they should."""
    draws = len({row["replicate"] for row in (*taken, *missing)})
    reasons = Counter(row["note"] for row in missing) if len(taken) < draws else {}
    fits = Counter(row["fit"] for row in taken if row["fit"] not in ("", "converged"))
    lines = [
        reason if n == draws else f"in {n} of {draws} draws: {reason}"
        for reason, n in reasons.items()
    ]
    lines += [f"the fit ended as {fit!r} in {n} of {draws} draws." for fit, n in fits.items()]
    return " ".join(lines) or None
