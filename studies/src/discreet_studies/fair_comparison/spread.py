"""Intervals and shares over redrawn keys and roundings, printed beside computed."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from discreet_studies.chance import quantile
from discreet_studies.fair_comparison import printed
from discreet_studies.fair_comparison.draws import CELL_KEY_DRAWS, Draws
from discreet_studies.model import Figure, PrintedTable, as_printed

ENDS = (0.025, 0.975)
INTERVAL_TOLERANCE = 0.004
_PAPER_DRAWS = 1_000
_SAME = 1e-3
_SAME_DRAW = 1e-6


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
        f"Shares agree within what chance does to our draws and to {_PAPER_DRAWS:,}, plus the "
        "rounding; the paper does not say how many keys it drew.",
    )


def _share(row: str, text: str, risks: NDArray[np.float64], risk: float) -> Figure:
    p = float(text) / 100
    error = math.sqrt(p * (1 - p) * (1 / len(risks) + 1 / _PAPER_DRAWS))
    found = 100 * float(np.mean(np.abs(risks - risk) < _SAME))
    return Figure(row, "percent", text, found, 100 * quantile(len(risks)) * error + 0.5)


def rounding_table(roundings: Draws) -> PrintedTable:
    """Sections 5 and 6: the two equally probable outcomes of small count rounding."""
    return PrintedTable(
        "Sections 5 and 6, redrawn roundings",
        "The two outcomes of small count rounding, and the percent of draws with each",
        tuple(_outcomes(roundings)),
        "Values agree when they round to the printed digits; shares within what chance does.",
    )


def _outcomes(roundings: Draws) -> Iterator[Figure]:
    rows = {"utility": (roundings.published, printed.ROUNDED_UTILITIES)}
    for title, texts in printed.ROUNDED_RISKS.items():
        rows[f"risk, {title}"] = (roundings.risks(title), texts)
    for name, (drawn, texts) in rows.items():
        error = quantile(len(drawn)) * 50 / math.sqrt(len(drawn))
        for text in texts:
            nearest = float(drawn[np.argmin(np.abs(drawn - float(text)))])
            share = 100 * float(np.mean(np.abs(drawn - nearest) < _SAME_DRAW))
            yield Figure(f"{name} {text}", "value", text, nearest, as_printed(text))
            yield Figure(f"{name} {text}", "percent", "50", share, error)
