"""A study as a page of its own (no script, no network, verdicts as colours), and as text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from discreet.assess.plots.style import to_svg
from discreet.assess.report.markup import bullets, figure, paragraph, section, text
from discreet.assess.report.page import document
from discreet.errors import ParameterError
from discreet.files import EVERYONE, OWNER_ONLY, written_whole
from discreet.tables.show import aligned
from discreet_studies.model import (
    MARKING,
    Figure,
    Ground,
    Outcome,
    Picture,
    PrintedTable,
    Study,
    Verdict,
)

_COLOURS = {
    Verdict.exact: ("=", "#d9f0dc"),
    Verdict.within: ("≈", "#dcebf8"),
    Verdict.construction: ("∴", "#ececec"),
    Verdict.other_data: ("·", "#ffffff"),
    Verdict.explained: ("≠", "#fdeebf"),
    Verdict.outside: ("✗", "#f6c3b8"),
}
"""Sign and colour of every verdict; a sign as well, since not everybody sees colours."""
_OF_OUTCOME = {
    Outcome.holds: Verdict.exact,
    Outcome.undecided: Verdict.within,
    Outcome.explained: Verdict.explained,
    Outcome.not_judged: Verdict.other_data,
    Outcome.fails: Verdict.outside,
}
_LARGE = 7  # columns from which tables are set smaller
CSS = (
    "body { max-width: 110rem; } td small { font-size: 0.75rem; line-height: 1.25; }\n"
    ".figures td, .figures th { padding: 0.25rem 0.45rem; } .figures i { font-style: normal; }\n"
    ".figures thead th + th { text-align: right; } .sentences thead th + th { text-align: left; }\n"
    ".small { font-size: 0.75rem; } .small small { font-size: 0.68rem; }\n"
    ".legend span { display: inline-block; padding: 0.1rem 0.6rem; margin: 0 0.4rem 0.3rem 0;\n"
    "  border: 1px solid var(--line); }\n"
    "* { print-color-adjust: exact; -webkit-print-color-adjust: exact; }\n"
) + "\n".join(f".{verdict.name} {{ background: {c}; }}" for verdict, (_, c) in _COLOURS.items())
_HEADER = ("row", "column", "printed", "ours", "difference", "tolerance", "verdict")
_NUMBERS = (2, 3, 4, 5)


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
    return document(study.title, "\n".join(parts), CSS)


def _verdict(study: Study) -> str:
    wrong = bullets(study.failures) if study.failures else ""
    said = paragraph(f"{study.summary} {study.seconds:.1f} s.", "lead")
    return section("Verdict", said, wrong, _legend(study))


def _legend(study: Study) -> str:
    keys = "".join(
        f'<span class="{verdict.name}">{_COLOURS[verdict][0]} {text(verdict.value)}: {n}</span>'
        for verdict, n in study.verdicts.items()
    )
    how = (
        "Each cell shows our figure, below it the printed one, and below that the difference with "
        "what is tolerated. Figures on other data are shown and not judged."
    )
    return f'<p class="legend">{keys}</p>{paragraph(how, "quiet")}'


def _table(table: PrintedTable) -> str:
    """The paper's layout, our figure above the printed one."""
    places = {(f.row, f.column): f for f in table.figures}
    columns = table.columns
    rows = (
        _row(row, [_cell(places.get((row, column))) for column in columns]) for row in table.rows
    )
    why = reasons(table)
    return section(
        f"{table.title}. {table.caption}",
        paragraph(table.agreement, "quiet"),
        _grid(
            ["", *columns], "".join(rows), "figures small" if len(columns) > _LARGE else "figures"
        ),
        bullets(why) if why else "",
    )


def _grid(header: list[str], body: str, css: str) -> str:
    head = "".join(f"<th>{text(name)}</th>" for name in header)
    return (
        f'<div class="wide"><table class="{css}"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _row(name: str, cells: list[str]) -> str:
    return f'<tr><th scope="row">{text(name)}</th>{"".join(cells)}</tr>'


def _cell(found: Figure | None) -> str:
    if found is None:
        return "<td></td>"
    lines = [found.printed]
    if found.verdict is not Verdict.exact and found.difference:
        lines.append(f"{found.difference:+.2g} {tolerance(found)}")
    small = "".join(f"<small>{text(line)}</small>" for line in lines)
    verdict = found.verdict
    sign = f"<i>{_COLOURS[verdict][0]}</i>"
    return f'<td class="number {verdict.name}">{text(found.shown)} {sign}{small}</td>'


def _findings(study: Study) -> str:
    rows = "".join(
        f'<tr><td class="{_OF_OUTCOME[f.outcome].name}">{text(f.outcome.value)}</td>'
        f"<td>{text(f.text)}<br>{text(f.remark)}</td></tr>"
        for f in study.findings
    )
    return section(
        "Findings", _grid(["", "what the paper says, and what we find"], rows, "sentences")
    )


def _picture(picture: Picture) -> str:
    return section(picture.title, figure(to_svg(picture.draw()), picture.caption))


def study_text(study: Study) -> str:
    """Everything a study has to say."""
    parts = [MARKING] if study.is_confidential else []
    parts.append(f"{study.title}\n{study.source}")
    parts += [table_text(table) for table in study.tables]
    if study.findings:
        parts.append("Findings\n" + "\n".join(_finding_lines(study)))
    if study.notes:
        parts.append("Notes\n" + "\n".join(f"  - {note}" for note in study.notes))
    wrong = "".join(f"\n  {line}" for line in study.failures)
    parts.append(f"{study.summary} {study.seconds:.1f} s.{wrong}")
    return "\n\n".join(parts) + "\n"


def table_text(table: PrintedTable) -> str:
    """A printed table, one line for each figure, and the reasons of known differences."""
    lines = [f"{table.title}. {table.caption}", f"  {table.agreement}"]
    rows = [_HEADER, *(_text_cells(f) for f in table.figures)]
    lines += [f"  {line}" for line in aligned(rows, right=_NUMBERS)]
    lines += [f"  {reason}" for reason in reasons(table)]
    return "\n".join(lines)


def reasons(table: PrintedTable) -> list[str]:
    """Why figures of a table differ from the printed ones, each reason once."""
    found: dict[str, list[str]] = {}
    for f in table.figures:
        if f.known is not None and f.verdict is Verdict.explained:
            found.setdefault(f.known.reason, []).append(f"{f.row}, {f.column}")
    return [f"{'; '.join(places)}: {reason}" for reason, places in found.items()]


def _text_cells(figure: Figure) -> tuple[str, ...]:
    return (
        figure.row,
        figure.column,
        figure.printed,
        figure.shown,
        f"{figure.difference:+.2g}",
        tolerance(figure),
        figure.verdict.value,
    )


def tolerance(figure: Figure) -> str:
    """What a figure may differ by; nothing where it is not judged or only rounded."""
    if figure.ground is Ground.other_data or figure.is_exact:
        return ""
    allowed = figure.tolerance if figure.known is None else figure.known.tolerance
    return f"±{allowed:.2g}"


def _finding_lines(study: Study) -> Iterator[str]:
    for finding in study.findings:
        yield f"  [{finding.outcome.value}] {finding.text}"
        yield f"      {finding.remark}"
