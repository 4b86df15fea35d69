"""A study as a page of its own (no script, no network, verdicts as colours), and as text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from discreet.assessment.plots.style import to_svg
from discreet.assessment.report.page import templates
from discreet.display import align_columns
from discreet.errors import ParameterError
from discreet.files import EVERYONE, OWNER_ONLY, written_whole
from discreet_studies.model import (
    MARKING,
    Figure,
    Finding,
    Ground,
    Outcome,
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
    Verdict.anchored: ("≅", "#e8e4f6"),
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
_HEADER = ("row", "column", "printed", "ours", "difference", "tolerance", "verdict")
_NUMBERS = (2, 3, 4, 5)
_LARGE = 99.5


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
    """The page as text: each table in the paper's layout, our figure above the printed one."""
    tables = [
        (table, {(f.row, f.column): (f, _difference(f)) for f in table.figures}, reasons(table))
        for table in study.tables
    ]
    return (
        templates("discreet_studies")
        .get_template("study.html")
        .render(
            title=study.title,
            marking=MARKING if study.is_confidential else "",
            subtitle=study.source,
            study=study,
            facts=facts(study),
            sentences=sentences(study),
            log=log_lines(study),
            looks=_COLOURS,
            outcomes=_OF_OUTCOME,
            tables=tables,
            pictures=[(picture, to_svg(picture.draw())) for picture in study.pictures],
        )
    )


def _difference(found: Figure) -> str:
    """How far our figure is from the printed one, and what is tolerated; empty where equal."""
    if found.verdict is Verdict.exact or not found.difference:
        return ""
    return f"{_number(found.difference, sign='+')} {tolerance(found)}"


def study_text(study: Study) -> str:
    """Everything a study has to say."""
    parts = [MARKING] if study.is_confidential else []
    parts.append(f"{study.title}\n{study.source}")
    parts += [table_text(table) for table in study.tables]
    parts += [
        f"{heading}\n" + "\n".join(_finding_lines(found))
        for heading, found in sentences(study).items()
        if found
    ]
    if study.notes:
        parts.append("Notes\n" + "\n".join(f"  - {note}" for note in study.notes))
    if study.log:
        parts.append("Log\n" + "\n".join(f"  {line}" for line in log_lines(study)))
    parts.append("\n".join(f"{name}: {value}" for name, value in facts(study)))
    wrong = "".join(f"\n  {line}" for line in study.failures)
    parts.append(f"{study.summary}{wrong}")
    return "\n\n".join(parts) + "\n"


def sentences(study: Study) -> dict[str, list[Finding]]:
    """The paper's sentences and ours, apart."""
    return {
        "What the paper says": [f for f in study.findings if not f.is_ours],
        "Checks of our own": [f for f in study.findings if f.is_ours],
    }


def facts(study: Study) -> list[tuple[str, str]]:
    """What a reader needs to run the study again."""
    found = study.origin
    if found is None:
        return []
    return [
        ("paper", found.reference),
        ("command", found.command),
        ("version", found.version),
        ("date", found.date),
        ("seed", str(found.seed)),
        ("processor time", f"{study.seconds:.0f} s"),
    ]


def log_lines(study: Study) -> list[str]:
    """What was frozen when, and why, oldest first."""
    return [
        f"{entry.date}: {entry.change} Reason: {entry.reason}"
        + (f" Digest {entry.digest}." if entry.digest else "")
        for entry in study.log
    ]


def table_text(table: PrintedTable) -> str:
    """A printed table, one line for each figure, and the reasons of known differences."""
    lines = [f"{table.title}. {table.caption}", f"  {table.agreement}"]
    rows = [_HEADER, *(_text_cells(f) for f in table.figures)]
    lines += [f"  {line}" for line in align_columns(rows, right=_NUMBERS)]
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
        _number(figure.difference, sign="+"),
        tolerance(figure),
        figure.verdict.value,
    )


def tolerance(figure: Figure) -> str:
    """What a figure may differ by; nothing where it is not judged or only rounded."""
    if figure.ground is Ground.other_data or figure.is_exact:
        return ""
    allowed = figure.tolerance if figure.known is None else figure.known.tolerance
    return f"±{_number(allowed)}"


def _number(value: float, sign: str = "") -> str:
    """Two digits, and whole numbers from a hundred on."""
    return f"{value:{sign},.0f}" if abs(value) >= _LARGE else f"{value:{sign}.2g}"


def _finding_lines(found: list[Finding]) -> Iterator[str]:
    for finding in found:
        yield f"  [{finding.outcome.value}] {finding.text}"
        yield f"      {finding.remark}"
