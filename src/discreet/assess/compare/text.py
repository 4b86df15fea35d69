"""A comparison for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from discreet.assess.compare.choose import Line
    from discreet.assess.compare.comparison import Comparison

_HEADER = ("method", "fitter", "risk", "95 % of draws", "utility", "95 % of draws")


def comparison_text(found: Comparison) -> str:
    """Risk and utility of every method, and how an equal risk was reached."""
    from discreet.assess.compare.choose import paired

    risk, utility = found.risk(), found.utility()
    draws = max(line["replicates"] for line in risk.lines)
    rows = [_row(a, b) for a, b in paired(risk, utility)]
    lines = [
        f"Comparison (confidential): {len(found.labels)} methods, {draws:,} draws each",
        f"risk: {risk.title}, {risk.lines[0]['reading']}; "
        f"utility: {utility.title}, {utility.lines[0]['reading']}",
        "",
        *aligned([_HEADER, *rows]),
    ]
    if found.tuning:
        lines += ["", *(f"  {t.sentence}" for t in found.tuning)]
    return "\n".join(lines)


def _row(risk: Line, utility: Line) -> tuple[str, ...]:
    fitter = risk["fitter"] or utility["fitter"] or "–"
    return risk["label"], fitter, *number(risk), *number(utility)


def number(line: Line) -> tuple[str, str]:
    """Mean and interval."""
    return f"{line['mean']:.4g}", f"{line['lower']:.4g} to {line['upper']:.4g}"


def aligned(rows: list[tuple[str, ...]]) -> list[str]:
    """Columns under each other."""
    widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
    return [
        ("  " + "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True))).rstrip()
        for row in rows
    ]
