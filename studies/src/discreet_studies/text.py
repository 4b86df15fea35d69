"""A study as text for the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from discreet.design.show import aligned
from discreet_studies.model import MARKING, Figure, Ground, PrintedTable, Study, Verdict

_HEADER = ("row", "column", "printed", "ours", "difference", "tolerance", "verdict")
_NUMBERS = (2, 3, 4, 5)


def study_text(study: Study) -> str:
    """Everything a study has to say."""
    parts = [MARKING] if study.is_confidential else []
    parts.append(f"{study.title}\n{study.source}")
    parts += [table_text(table) for table in study.tables]
    if study.findings:
        parts.append("Findings\n" + "\n".join(_findings(study)))
    if study.notes:
        parts.append("Notes\n" + "\n".join(f"  - {note}" for note in study.notes))
    wrong = "".join(f"\n  {line}" for line in study.failures)
    parts.append(f"{study.summary} {study.seconds:.1f} s.{wrong}")
    return "\n\n".join(parts) + "\n"


def table_text(table: PrintedTable) -> str:
    """A printed table, one line for each figure, and the reasons of known differences."""
    lines = [f"{table.title}. {table.caption}", f"  {table.agreement}"]
    rows = [_HEADER, *(_cells(f) for f in table.figures)]
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


def _cells(figure: Figure) -> tuple[str, ...]:
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


def _findings(study: Study) -> Iterator[str]:
    for finding in study.findings:
        yield f"  [{finding.outcome.value}] {finding.text}"
        yield f"      {finding.remark}"
