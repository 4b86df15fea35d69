"""Intervals and shares over redrawn keys and roundings, printed beside computed."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from discreet.studies.fair_comparison import printed
from discreet.studies.fair_comparison.draws import CELL_KEY_DRAWS, Draws
from discreet.studies.model import Figure, PrintedTable, as_printed

ENDS = (0.025, 0.975)
INTERVAL_TOLERANCE = 0.004
_PAPER_DRAWS = 1_000
_SAME = 1e-3


def interval_table(keys: Draws) -> PrintedTable:
    """Section 5: 95 % intervals of the utility."""
    tolerance = INTERVAL_TOLERANCE * max(1.0, math.sqrt(CELL_KEY_DRAWS / len(keys.published)))
    drawn = {"as published": keys.published, "additivity restored": keys.restored}
    figures = tuple(
        Figure(row, column, text, float(np.quantile(drawn[row], end)), tolerance)
        for row, texts in printed.INTERVALS.items()
        for column, end, text in zip(("lower end", "upper end"), ENDS, texts, strict=True)
    )
    return PrintedTable(
        "Section 5, redrawn keys",
        "95 % intervals of the cell key method's utility",
        figures,
        f"Ends agree within {tolerance:.3g}; the paper does not say how many keys it drew.",
    )


def share_table(keys: Draws) -> PrintedTable:
    """Section 6: how often each risk occurs."""
    figures = tuple(
        _share(f"{title}, risk {risk}", text, keys.risks(title), float(risk))
        for title, shares in printed.SHARES.items()
        for risk, text in shares.items()
    )
    return PrintedTable(
        "Section 6, redrawn keys",
        "Percent of draws of the cell key method with each risk",
        figures,
        "Shares agree within three standard errors of the difference of our draws and "
        f"{_PAPER_DRAWS:,}, plus the rounding; the paper does not say how many keys it drew.",
    )


def _share(row: str, text: str, risks: NDArray[np.float64], risk: float) -> Figure:
    p = float(text) / 100
    error = math.sqrt(p * (1 - p) * (1 / len(risks) + 1 / _PAPER_DRAWS))
    found = 100 * float(np.mean(np.abs(risks - risk) < _SAME))
    return Figure(row, "percent", text, found, 300 * error + 0.5)


def rounding_table(roundings: Draws) -> PrintedTable:
    """Sections 5 and 6: the two equally probable outcomes of small count rounding."""
    return PrintedTable(
        "Sections 5 and 6, redrawn roundings",
        "The two outcomes of small count rounding, and the percent of draws with each",
        tuple(_outcomes(roundings)),
        "Values agree when they round to the printed digits; shares within three standard errors.",
    )


def _outcomes(roundings: Draws) -> Iterator[Figure]:
    rows = {"utility": (roundings.published, printed.ROUNDED_UTILITIES)}
    for title, texts in printed.ROUNDED_RISKS.items():
        rows[f"risk, {title}"] = (roundings.risks(title), texts)
    for name, (drawn, texts) in rows.items():
        error = 150 / math.sqrt(len(drawn))
        for text in texts:
            near = np.abs(drawn - float(text)) <= as_printed(text)
            value = float(drawn[near].mean()) if near.any() else math.nan
            row = f"{name} {text}"
            yield Figure(row, "value", text, value, as_printed(text))
            yield Figure(row, "percent", "50", 100 * float(near.mean()), error)
