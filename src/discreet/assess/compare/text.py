"""A comparison for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from discreet.assess.compare.choose import Line, Selection, paired
from discreet.assess.listing import aligned, grouped

if TYPE_CHECKING:
    from discreet.assess.compare.comparison import Comparison

RANGE = "95 % range"


def comparison_text(found: Comparison) -> str:
    """Risk and utility of every method, and how an equal risk was reached."""
    chosen, marks = _chosen(found), _marks(found)
    first, last = chosen[0][1], chosen[-1][1]
    draws = max(line["replicates"] for line in first.lines)
    header = ("method", "fitter", *(cell for kind, _ in chosen for cell in (kind, RANGE)), "")
    rows = [
        (*_row(*lines[: len(chosen)]), marks.get((lines[-1]["label"], lines[-1]["fitter"]), ""))
        for lines in paired(first, last)
    ]
    lines = [
        f"Comparison (confidential): {len(found.labels)} methods, {draws:,} draws each",
        "; ".join(f"{kind}: {s.title}, {s.lines[0]['reading']}" for kind, s in chosen),
        "",
        *aligned([header, *rows]),
        *_remarks([selection for _, selection in chosen]),
    ]
    if found.tuning:
        lines += ["", *(f"  {t.sentence}" for t in found.tuning)]
    return "\n".join(lines)


def _chosen(found: Comparison) -> list[tuple[str, Selection]]:
    """The measure of risk and the one of utility, or what there is of them."""
    kinds = {"risk": found.risk, "utility": found.utility}
    chosen = [(kind, choose()) for kind, choose in kinds.items() if kind in found.kinds]
    return chosen or [("risk", found.risk())]


def _marks(found: Comparison) -> dict[tuple[str, str], str]:
    """The most useful row, and those that differ from it by chance only."""
    ranked = found.ranking() if "utility" in found.kinds else []
    shown = [line for k, line in enumerate(ranked) if len(ranked) > 1 and (k == 0 or line["tied"])]
    keys = [(line["label"], line["fitter"]) for line in shown]
    return {key: "tied with best" if k else "best" for k, key in enumerate(keys)}


def _remarks(chosen: Sequence[Selection]) -> Iterator[str]:
    """What was measured of different things, and methods that were not measured, by reason."""
    yield from (f"  {s.remark}" for s in chosen if s.remark)
    reasons = grouped(
        ((s.title, reason), label) for s in chosen for label, reason in s.missing.items()
    )
    if reasons:
        yield from ("", "Not applicable")
    for (title, reason), labels in reasons.items():
        yield f"  {title}: {', '.join(labels)}: {reason}"


def _row(*lines: Line) -> tuple[str, ...]:
    fitter = next((line["fitter"] for line in lines if line["fitter"]), "–")
    return lines[0]["label"], fitter, *(cell for line in lines for cell in number(line))


def number(line: Line) -> tuple[str, str]:
    """Mean and range; a single draw has none."""
    if line["lower"] is None:
        return f"{line['mean']:.4g}", "–"
    return f"{line['mean']:.4g}", f"{line['lower']:.4g} to {line['upper']:.4g}"
