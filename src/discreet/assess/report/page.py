"""The whole page: no script, no network, pictures inside, readable by its owner only."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.assess.compare.recommend import Recommendation, recommend
from discreet.assess.report import pictures, sections
from discreet.assess.report.markup import paragraph, text
from discreet.assess.report.style import CSS
from discreet.errors import ParameterError
from discreet.files import OWNER_ONLY, written_whole
from discreet.progress import report as report_progress

if TYPE_CHECKING:
    from discreet.assess.compare.comparison import Comparison

TITLE = "Comparison of protection methods"
_MARKING = (
    "Confidential. This page discusses true counts: it may be read by the review board and the "
    "custodian of the data, and must not be published or sent on."
)
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def write_report(found: Comparison, path: str | Path, thresholds: Mapping[str, float]) -> Path:
    """Write the page; nothing is left behind when it cannot be made."""
    target = Path(path)
    if target.suffix not in (".html", ".htm"):
        raise ParameterError(f"cannot write {target.name!r}: a report's name must end in .html.")
    content = document(TITLE, "\n".join(_body(found, recommend(found, thresholds))))
    with written_whole(target, OWNER_ONLY) as temporary:
        temporary.write_text(content, encoding="utf-8")
    return target


def document(title: str, body: str, css: str = "") -> str:
    """A page around a body of markup, with further style where it needs some."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="robots" content="noindex"><title>{text(title)}</title>'
        f"<style>{CSS}{css}</style></head><body>\n{body}\n</body></html>\n"
    )


def _body(found: Comparison, advice: Recommendation) -> list[str]:
    """Decision first, evidence after it."""
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    head = (
        f'<header><p class="marking">{text(_MARKING)}</p><h1>{text(TITLE)}</h1>'
        + paragraph(f"{len(found.labels)} methods on one table, {today}.", "quiet")
        + "</header>"
    )
    drawn = pictures.draws_to_show(found)
    parts: list[Callable[[], str]] = [
        lambda: sections.decision(advice),
        lambda: pictures.risk_utility(found),
        lambda: sections.data(found),
        lambda: sections.methods(found, {k: v[0].statement.text for k, v in drawn.items()}),
        lambda: sections.procedure(found),
        lambda: sections.scores(found, "risk", "Risk"),
        lambda: sections.scores(found, "utility", "Utility"),
        lambda: pictures.noise(found, drawn, advice.chosen or found.labels[0]),
        lambda: sections.meanings(found),
        lambda: sections.blind_spots(found),
        lambda: sections.provenance(found),
    ]
    body = [head]
    for done, part in enumerate(parts, start=1):
        body.append(part())
        report_progress("writing the report", done / len(parts))
    return body
