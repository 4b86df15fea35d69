"""A page on what synthetic records preserve, for the custodian and the review board."""

from __future__ import annotations

from pathlib import Path

from discreet.assess.assess import Assessment
from discreet.assess.plots.preserved import preserved
from discreet.assess.plots.style import to_svg
from discreet.assess.report.markup import bullets, figure, grid, paragraph, section, text
from discreet.assess.report.page import document
from discreet.errors import ParameterError
from discreet.files import OWNER_ONLY, written_whole
from discreet.synthesize.preserved import Preserved, Verdict

_KINDS = ("risk", "utility", "description")
TITLE = "Original and synthetic records"
_MARKING = (
    "Confidential. This page compares synthetic records with the original ones; it must not be "
    "published or sent on."
)
_MEANINGS: dict[Verdict, str] = {
    "equal": "Equal up to rounding, and therefore disclosed by the synthetic records.",
    "close": "Apart by at most a tenth of a standard deviation or of a correlation.",
    "different": "Further apart. Analyses of these figures need other methods or other terms.",
}


def write_preserved(
    found: Preserved,
    path: str | Path,
    statement: str = "",
    assessment: Assessment | None = None,
) -> Path:
    """Write the comparison as a page with table and picture, readable by its owner only.

    Args:
      found: The comparison.
      path: A name that ends in `.html`.
      statement: What the synthetic records say of themselves.
      assessment: Risk and utility of the synthetic records.
    """
    target = Path(path)
    if target.suffix not in (".html", ".htm"):
        raise ParameterError(f"cannot write {target.name!r}: a report's name must end in .html.")
    with written_whole(target, OWNER_ONLY) as temporary:
        temporary.write_text(document(TITLE, _body(found, statement, assessment)), encoding="utf-8")
    return target


def _body(found: Preserved, statement: str, assessment: Assessment | None) -> str:
    head = f'<header><p class="marking">{text(_MARKING)}</p><h1>{text(TITLE)}</h1>'
    head += paragraph(found.summary, "quiet") + "</header>"
    caption = "Each record and each correlation before and after; below, every figure by its kind."
    parts = [section("Pictures", figure(to_svg(preserved(found)), caption))]
    parts += [_table(found, verdict) for verdict in _MEANINGS]
    if assessment is not None:
        parts.append(_scores(assessment))
    if statement:
        parts.append(section("Statement", paragraph(statement)))
    return "\n".join([head, *parts])


def _scores(assessment: Assessment) -> str:
    """Risk first, then utility and descriptions; what does not apply, with the reason."""
    order = sorted(assessment, key=lambda score: _KINDS.index(score.kind))
    header = ("measure", "kind", "reading", "value")
    rows = [((s.name, s.on), s.kind, s.reading, f"{s.value:.4g}") for s in order]
    lines = [f"{skipped.name}: {skipped.reason}" for skipped in assessment.skipped]
    more = paragraph("Not applicable:") + bullets(lines) if lines else ""
    return section("Risk and utility", grid(header, rows, numbers=1), more)


def _table(found: Preserved, verdict: Verdict) -> str:
    header = ("figure", "of", "original", "synthetic", "difference")
    rows = [
        (f.kind, f.about, f"{f.original:.6g}", f"{f.synthetic:.6g}", f"{f.difference:.2g}")
        for f in found.with_verdict(verdict)
    ]
    shown = grid(header, rows, numbers=3) if rows else paragraph("None.")
    return section(verdict.capitalize(), paragraph(_MEANINGS[verdict]), shown)
