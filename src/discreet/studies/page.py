"""A study as a page of its own: no script, no network, pictures inside."""

from __future__ import annotations

from pathlib import Path

from discreet.assess.plots.style import to_svg
from discreet.assess.report.markup import Cell, bullets, figure, grid, paragraph, section, text
from discreet.assess.report.page import document
from discreet.errors import ParameterError
from discreet.files import EVERYONE, OWNER_ONLY, written_whole
from discreet.studies.model import MARKING, Figure, Picture, PrintedTable, Study
from discreet.studies.text import reasons


def write_page(study: Study, path: str | Path) -> Path:
    """Write the page; nothing is left behind when it cannot be made."""
    target = Path(path)
    if target.suffix not in (".html", ".htm"):
        raise ParameterError(f"cannot write {target.name!r}: a page's name must end in .html.")
    content = page(study)
    with written_whole(target, OWNER_ONLY if study.is_confidential else EVERYONE) as temporary:
        temporary.write_text(content, encoding="utf-8")
    return target


def page(study: Study) -> str:
    """The page as text."""
    marking = paragraph(MARKING, "marking") if study.is_confidential else ""
    head = (
        f"<header>{marking}<h1>{text(study.title)}</h1>{paragraph(study.source, 'quiet')}</header>"
    )
    parts = [head, _verdict(study), *(_table(table) for table in study.tables)]
    if study.findings:
        parts.append(_findings(study))
    parts += [_picture(picture) for picture in study.pictures]
    if study.notes:
        parts.append(section("Notes", bullets(study.notes)))
    return document(study.title, "\n".join(parts))


def _verdict(study: Study) -> str:
    wrong = bullets(study.failures) if study.failures else ""
    return section("Verdict", paragraph(f"{study.summary} {study.seconds:.1f} s.", "lead"), wrong)


def _table(table: PrintedTable) -> str:
    """The paper's layout, our figure above the printed one."""
    places = {(f.row, f.column): f for f in table.figures}
    columns = table.columns
    body: list[list[Cell]] = [
        [row, *(_cell(places.get((row, column))) for column in columns)] for row in table.rows
    ]
    why = reasons(table)
    return section(
        f"{table.title}. {table.caption}",
        paragraph(
            f"Our figure, and below it the printed one with the difference. {table.agreement}",
            "quiet",
        ),
        grid(["", *columns], body, numbers=len(columns)),
        bullets(why) if why else "",
    )


def _cell(found: Figure | None) -> Cell:
    if found is None:
        return ""
    return found.shown, f"{found.printed} ({found.difference:+.2g}) {found.verdict.value}"


def _findings(study: Study) -> str:
    rows: list[list[Cell]] = [
        ["holds" if f.holds else "DOES NOT HOLD", (f.text, f.evidence)] for f in study.findings
    ]
    return section("Findings", grid(["", "what the paper says, and what we find"], rows))


def _picture(picture: Picture) -> str:
    return section(picture.title, figure(to_svg(picture.draw()), picture.caption))
