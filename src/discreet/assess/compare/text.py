"""A comparison for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from discreet.assess.compare.choose import Line, Selection
    from discreet.assess.compare.comparison import Comparison

_DRAWS = "95 % of draws"


def comparison_text(found: Comparison) -> str:
    """Risk and utility of every method, and how an equal risk was reached."""
    from discreet.assess.compare.choose import paired

    chosen = _chosen(found)
    first, last = chosen[0], chosen[-1]
    draws = max(line["replicates"] for line in first[1].lines)
    header = ("method", "fitter", *(cell for kind, _ in chosen for cell in (kind, _DRAWS)))
    rows = [_row(*lines[: len(chosen)]) for lines in paired(first[1], last[1])]
    lines = [
        f"Comparison (confidential): {len(found.labels)} methods, {draws:,} draws each",
        "; ".join(f"{kind}: {s.title}, {s.lines[0]['reading']}" for kind, s in chosen),
        "",
        *aligned([header, *rows]),
    ]
    if found.tuning:
        lines += ["", *(f"  {t.sentence}" for t in found.tuning)]
    return "\n".join(lines)


def _chosen(found: Comparison) -> list[tuple[str, Selection]]:
    """The measure of risk and the one of utility, or what there is of them."""
    kinds = {"risk": found.risk, "utility": found.utility}
    chosen = [(kind, choose()) for kind, choose in kinds.items() if kind in found.kinds]
    return chosen or [("risk", found.risk())]


def _row(*lines: Line) -> tuple[str, ...]:
    fitter = next((line["fitter"] for line in lines if line["fitter"]), "–")
    return lines[0]["label"], fitter, *(cell for line in lines for cell in number(line))


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
