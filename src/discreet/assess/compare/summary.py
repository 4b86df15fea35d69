"""Scores of single draws in one tidy table with their uncertainty."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Real
from discreet.assess.measure import EVERYTHING, Measure, Score

if TYPE_CHECKING:
    import pyarrow as pa

WORDS = ("label", "method", "parameters", "stage", "fitter", "measure", "kind")
NUMBERS = ("mean", "sd", "standard_error", "lower", "upper")
_TAIL, _TAIL_OF_FEW = 0.025, 0.01

Rows = Sequence[Mapping[str, Any]]
Ends = tuple[float, float]


def summarise(replicates: pa.Table, measures: Sequence[Measure]) -> pa.Table:
    """Mean, spread and 95 % range of every score.

    `sd` is the standard deviation between draws, `standard_error` that of the mean. A further
    draw lies between `lower` and `upper` with a probability of 95 %. A measure that never applies
    has no mean; its note says why.

    Args:
      replicates: The scores of single draws.
      measures: What was measured; ranges end at the smallest and largest value of a measure.
    """
    import pyarrow as pa

    limits = {m.name: getattr(m, "range", EVERYTHING) for m in measures}
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in replicates.to_pylist():
        groups.setdefault(tuple(row[name] for name in WORDS), []).append(row)
    rows = [
        {**dict(zip(WORDS, key, strict=True)), **line}
        for key, found in groups.items()
        for line in _lines(found, limits.get(found[0]["measure"], EVERYTHING))
    ]
    return pa.Table.from_pylist(rows, schema=_schema())


def _schema() -> pa.Schema:
    import pyarrow as pa

    words = [(name, pa.string()) for name in (*WORDS, "on")]
    numbers = [(name, pa.float64()) for name in NUMBERS]
    last = [(name, pa.string()) for name in ("direction", "reading", "note")]
    return pa.schema([*words, *numbers, ("replicates", pa.int32()), *last])


def _lines(found: Rows, limits: Ends) -> Iterator[dict[str, Any]]:
    """A line for everything that one measure was taken of; one if it never applied."""
    missing = [row for row in found if row["value"] is None]
    for on in dict.fromkeys(row["on"] for row in found if row["value"] is not None):
        taken = [row for row in found if row["value"] is not None and row["on"] == on]
        yield _line(taken, missing, limits)
    if len(missing) == len(found):
        yield _line([], missing, limits)


def _line(taken: Rows, missing: Rows, limits: Ends) -> dict[str, Any]:
    values = np.array([row["value"] for row in taken])
    line: dict[str, Any] = {"replicates": len(values), "note": _note(taken, missing)}
    if taken:
        first = taken[0]
        score = Score(first["measure"], 0.0, first["kind"], (0, 1), first["direction"])
        line |= {"on": first["on"], "direction": first["direction"], "reading": score.reading}
    return {**line, **spread(values, limits)}


def spread(values: Real, limits: Ends = EVERYTHING) -> dict[str, float | None]:
    """Mean, standard deviation, standard error and 95 % range of the draws.

    >>> spread(np.array([1.0, 2.0, 3.0]))["standard_error"]
    0.5773502691896258
    """
    if not len(values):
        return dict.fromkeys(NUMBERS)
    sd = float(values.std(ddof=1)) if len(values) > 1 else math.nan
    ends = prediction_range(values, limits)
    numbers = (float(values.mean()), sd, sd / math.sqrt(len(values)), *ends)
    return dict(zip(NUMBERS, numbers, strict=True))


def prediction_range(values: Real, limits: Ends = EVERYTHING) -> tuple[float | None, float | None]:
    r"""The range in which a further draw lies with a probability of at least 95 %.

    From 39 draws on it ends at two order statistics, :math:`x_{(r)}` and :math:`x_{(n+1-r)}` with
    :math:`r = \lfloor 0.025(n+1) \rfloor`, whatever the distribution. With fewer draws even the
    smallest and the largest are too near to each other: the range also holds
    :math:`\bar x \pm t_{n-1}\,s\sqrt{1 + 1/n}`, with 1 % on each side for normal values, so that
    skewed ones reach 95 % as well. One draw has no range, and fewer than seven equal draws say
    little about the next one.

    >>> prediction_range(np.arange(39.0)), prediction_range(np.array([4.0]))
    ((0.0, 38.0), (None, None))
    """
    n = len(values)
    if n < 2:
        return None, None
    rank = int(_TAIL * (n + 1) + 1e-9)
    if rank:
        ends = np.partition(values, (rank - 1, n - rank))[[rank - 1, n - rank]]
        return float(ends[0]), float(ends[1])
    from scipy.special import stdtrit

    reach = stdtrit(n - 1, 1 - _TAIL_OF_FEW) * values.std(ddof=1) * math.sqrt(1 + 1 / n)
    low = min(values.mean() - reach, values.min())
    high = max(values.mean() + reach, values.max())
    return float(max(low, limits[0])), float(min(high, limits[1]))


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
