"""Pages that a disclosure review board can read: no script, no network, pictures inside.

Confidential: they are made from true counts or records, and readable by their owner only.
"""

from __future__ import annotations

import datetime
import inspect
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet import __version__
from discreet.assess.assess import Assessment, group_by_key
from discreet.assess.compare.contestants import law_of
from discreet.assess.compare.job import FITTED, OWN, PUBLISHED, table_digest
from discreet.assess.compare.recommend import Recommendation, recommend
from discreet.assess.compare.summary import Line
from discreet.assess.plots.cells import before_after, deviations, transitions
from discreet.assess.plots.preserved import preserved
from discreet.assess.plots.style import to_svg
from discreet.assess.report.markup import (
    Cell,
    bullets,
    facts,
    figure,
    grid,
    paragraph,
    plain_words,
    section,
    text,
)
from discreet.errors import ParameterError
from discreet.facade.release import Trial
from discreet.files import OWNER_ONLY, written_whole
from discreet.progress import report as report_progress
from discreet.synthesize.preserved import Preserved, Verdict

if TYPE_CHECKING:
    from discreet.assess.compare.comparison import Comparison


COMPARISON_TITLE = "Comparison of protection methods"
_MARKING_OF_TABLES = (
    "Confidential. This page discusses true counts: it may be read by the review board and the "
    "custodian of the data, and must not be published or sent on."
)
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def write_report(found: Comparison, path: str | Path, thresholds: Mapping[str, float]) -> Path:
    """Write the page; nothing is left behind when it cannot be made."""
    target = Path(path)
    if target.suffix not in (".html", ".htm"):
        raise ParameterError(f"cannot write {target.name!r}: a report's name must end in .html.")
    content = document(
        COMPARISON_TITLE, "\n".join(_comparison_body(found, recommend(found, thresholds)))
    )
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


def _comparison_body(found: Comparison, advice: Recommendation) -> list[str]:
    """Decision first, evidence after it."""
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    head = (
        f'<header><p class="marking">{text(_MARKING_OF_TABLES)}</p><h1>{text(COMPARISON_TITLE)}</h1>'
        + paragraph(f"{len(found.labels)} methods on one table, {today}.", "quiet")
        + "</header>"
    )
    drawn = draws_to_show(found)
    parts: list[Callable[[], str]] = [
        lambda: decision(advice),
        lambda: risk_utility(found),
        lambda: data(found),
        lambda: methods(found, {k: v[0].statement.text for k, v in drawn.items()}),
        lambda: procedure(found),
        lambda: scores(found, "risk", "Risk"),
        lambda: scores(found, "utility", "Utility"),
        lambda: noise(found, drawn, advice.chosen or found.labels[0]),
        lambda: meanings(found),
        lambda: blind_spots(found),
        lambda: provenance(found),
    ]
    body = [head]
    for done, part in enumerate(parts, start=1):
        body.append(part())
        report_progress("writing the report", done / len(parts))
    return body


_STAGES = {
    FITTED: "After fitting to expected inner frequencies",
    PUBLISHED: "As published",
}
_SOURCES = {
    "keys": "the secret and the keys of the records in each cell; the same in every table",
    "table": "the secret and the whole table; other tables have other noise",
    "system": "the operating system; never the same twice",
}


def decision(advice: Recommendation) -> str:
    """The recommendation and what it rests on."""
    conditions = list(dict.fromkeys(v.condition for v in advice.verdicts))
    cells: dict[str, list[Cell]] = {}
    for v in advice.verdicts:
        draws = f"{sum(v.acceptable)} of {len(v.acceptable)} draws meet it"
        cells.setdefault(v.label, []).append(v.outcome if v.mean is None else (v.outcome, draws))
    rows = [[label, *own] for label, own in cells.items()]
    table = grid(["method", *conditions], rows) if rows else ""
    return section("Recommendation", paragraph(advice.sentence, "lead"), table)


def data(found: Comparison) -> str:
    """The table that is to be published, with facts that only insiders may know."""
    table = found.job.table
    design, z = table.design, table.z
    lines = [
        f"{design.n_published:,} published cells, {design.n_inner:,} inner cells.",
        f"Empty published cells: {int((z == 0).sum()):,}; with a true count of 1 or 2: "
        f"{int(((z > 0) & (z < 3)).sum()):,}.",
    ]
    if table.inner is not None:
        y = table.y
        lines.append(
            f"{int(y.sum()):,} records. Empty inner cells: {int((y == 0).sum()):,}; with a single "
            f"record: {int((y == 1).sum()):,}."
        )
    header = ("variable", "categories", "levels published")
    rows = [(axis.name, f"{len(axis):,}", _levels(design, a)) for a, axis in enumerate(design.axes)]
    return section("Data", bullets(lines), grid(header, rows) if rows else "", _margins(design))


def _levels(design: Any, a: int) -> str:
    used = dict.fromkeys(block.levels[a] for block in design.blocks)
    return ", ".join(f"{level.name} ({len(level):,})" for level in used if level is not None)


def _margins(design: Any) -> str:
    if not design.terms:
        return ""
    named = [" × ".join(term) or "total" for term in design.terms]
    return paragraph(f"Published tables: {'; '.join(named)}.")


def methods(found: Comparison, statements: Mapping[str, str]) -> str:
    """What was compared, with all parameters and the statement each release would carry."""
    parts = []
    for contestant in found.job.contestants:
        chosen = json.dumps(contestant.parameters, ensure_ascii=False).strip("{}").replace('"', "")
        rows = [
            ("method", contestant.method.name),
            ("parameters", chosen or "all by default"),
            ("noise from", _SOURCES[contestant.method.source]),
            ("statement", statements[contestant.label]),
        ]
        parts.append(f"<h3>{text(contestant.label)}</h3>{facts(rows)}")
    return section("Methods", *parts, _tuning(found))


def _tuning(found: Comparison) -> str:
    if not found.tuning:
        return ""
    target = found.tuning[0]
    measure = target.measure.partition("@")[0]
    intro = f"Each method was first tuned to {measure} of {target.target:g}, on draws of their own:"
    return paragraph(intro) + bullets(t.sentence for t in found.tuning)


def procedure(found: Comparison) -> str:
    """How the scores came about."""
    rows = found.frame.to_pylist()
    draws = max(row["replicates"] for row in rows)
    fitters = sorted({row["fitter"] for row in rows} - {"", OWN})
    lines = [
        f"Every method protected the table {draws:,} times, each time with new record keys, "
        "another secret and other noise.",
        "Every draw was measured as published, and again after it was brought to expected inner "
        "frequencies: those of the release where it has them, otherwise fitted "
        f"({', '.join(fitters) or 'not needed'}). An intruder can do the same, and it makes "
        "methods comparable that publish very different things.",
        "Tables show the mean over the draws and below it the range in which a further draw lies "
        "with a probability of 95 %; it is the wider, the fewer draws there are. One draw is "
        "released, so the range matters as much as the mean.",
    ]
    notes = sorted({f"{r['label']}, {r['fitter']}: {r['note']}" for r in rows if _is_fit_note(r)})
    return section("How it was measured", bullets(lines), bullets(notes) if notes else "")


def _is_fit_note(row: Line) -> bool:
    return bool(row["note"] and row["replicates"] and "the fit ended" in row["note"])


def scores(found: Comparison, kind: str, title: str) -> str:
    """All measures of risk or utility, at both stages."""
    parts = []
    for stage, heading in _STAGES.items():
        here = [r for r in found.frame.to_pylist() if (r["kind"], r["stage"]) == (kind, stage)]
        rows = [row for row in here if row["replicates"]]
        if rows:
            parts.append(f"<h3>{heading}</h3>" + _score_table(found, rows) + _not_applicable(here))
    return section(title, *parts)


def _not_applicable(rows: Sequence[Line]) -> str:
    """Measures that have no values, by the reason and the methods they lack."""
    lacking = [row for row in rows if not row["replicates"]]
    of_measure = group_by_key(((row["note"], row["measure"]), row["label"]) for row in lacking)
    reasons = group_by_key(
        ((note, ", ".join(labels)), name) for (note, name), labels in of_measure.items()
    )
    lines = [f"{', '.join(names)} ({who}): {why}" for (why, who), names in reasons.items()]
    return paragraph("Not applicable:") + bullets(lines) if lines else ""


def _score_table(found: Comparison, rows: Sequence[Line]) -> str:
    columns = [key for key in dict.fromkeys((r["label"], r["fitter"]) for r in rows) if key[0]]
    lines: dict[tuple[str, str], dict[tuple[str, str], Line]] = {}
    for row in rows:
        lines.setdefault((row["measure"], row["on"]), {})[(row["label"], row["fitter"])] = row
    several = len(columns) > len(found.labels)
    header = ["measure", *(f"{a}, {b}" if several else a for a, b in columns)]
    body: list[list[Cell]] = []
    for (measure, on), values in lines.items():
        reading = next(iter(values.values()))["reading"]
        shown: list[Cell] = [_interval(values[c]) if c in values else "–" for c in columns]
        body.append([(measure, f"{on}; {reading}"), *shown])
    return grid(header, body, numbers=len(columns))


def _interval(row: Line) -> Cell:
    if row["lower"] is None:
        return _number(row["mean"])
    mean, low, high = (_number(row[name]) for name in ("mean", "lower", "upper"))
    return mean, f"{low} – {high}"


def _number(value: float) -> str:
    """Three digits, and no dust from rounding errors."""
    return "0" if abs(value) < 1e-9 else f"{value:.3g}"


def meanings(found: Comparison) -> str:
    """What each measure says, from its own description."""
    rows = []
    for measure in found.job.measures:
        described = getattr(measure, "meaning", inspect.getdoc(type(measure)) or "")
        rows.append((measure.name, measure.kind, plain_words(described.partition("\n")[0])))
    return section("What the measures say", grid(("measure", "kind", "meaning"), rows))


def blind_spots(found: Comparison) -> str:
    """What no number on this page covers."""
    names = {measure.name for measure in found.job.measures}
    lines = [
        "Other tables of the same people: earlier editions, other offices, later requests. "
        "Differences between tables can reveal what each of them hides.",
        "What an intruder knows beforehand. Measures assume that he knows the quasi-identifiers "
        "and nothing else, or in addition his own record.",
        "Groups that are homogeneous in truth: if everybody of a group is in one category, noise "
        "on the counts need not hide it.",
        "Cleverer attacks than the fit used here. Differential privacy bounds what one record "
        "adds to any attack, within its budget; it does not bound what is learned about groups.",
        "The harm that a disclosure does. All groups count alike, sensitive or not.",
        "Uses of the table that the measures of utility do not resemble.",
    ]
    if "sensitive" not in found.job.options:
        lines.insert(0, "Disclosure of a sensitive variable: none was named.")
    if "entropy-risk" in names:
        lines.append("The entropy risk takes records moved into truly empty cells as known.")
    if any(c.method.source == "system" for c in found.job.contestants):
        lines.append(
            "Differentially private methods were simulated with a seeded generator of the same "
            "law; their guarantee holds for the release that the operating system draws."
        )
    return section("What the measures do not see", bullets(lines))


def provenance(found: Comparison) -> str:
    """What is needed to make the page again."""
    rows = [
        ("program", f"discreet {__version__}"),
        ("unit of the values", str(found.job.table.unit)),
        ("seed", str(found.job.seed)),
        ("draws of each method", f"{max(found.frame['replicates'].to_pylist()):,}"),
        ("options of measures", ", ".join(f"{k}={v}" for k, v in found.job.options.items()) or "–"),
        ("digest of the table", table_digest(found.job.table)),
    ]
    return section("Made with", facts(rows))


_CELLS_DRAWN = 20_000
_MOST_DRAWS = 25
_PATIENCE = 3.0
Drawn = dict[str, list[Trial]]


def risk_utility(found: Comparison) -> str:
    """The map."""
    caption = (
        "Each method at its mean risk and mean utility. Where bars overlap, single draws of the "
        "methods can come out in the other order."
    )
    return section("Risk and utility", figure(to_svg(found.plot()), caption))


def draws_to_show(found: Comparison) -> Drawn:
    """Some draws of every method, made again: as many as a few seconds allow."""
    most = max(1, min(_MOST_DRAWS, _CELLS_DRAWN // max(found.job.table.design.n_published, 1)))
    return {label: _while_quick(found.trials(label, most)) for label in found.labels}


def _while_quick(trials: Iterator[Trial]) -> list[Trial]:
    started = time.monotonic()
    drawn = [next(trials)]
    while time.monotonic() - started < _PATIENCE and (more := next(trials, None)) is not None:
        drawn.append(more)
    return drawn


def noise(found: Comparison, drawn: Drawn, label: str) -> str:
    """Deviations of all methods, laws of those that have one, and one draw cell by cell."""
    table = found.job.table
    numbers = ", ".join(f"{name}: {len(trials)}" for name, trials in drawn.items())
    parts = [figure(to_svg(deviations(table, drawn)), f"Draws shown: {numbers}.")]
    for contestant in found.job.contestants:
        law = law_of(contestant.method)
        if law is not None:
            trials = drawn[contestant.label]
            chart = transitions(law, table, trials)
            caption = f"{contestant.label}: its designed law and what {len(trials)} draws show."
            parts.append(figure(to_svg(chart), caption))
    cells = before_after(table, drawn[label][0])
    parts.append(figure(to_svg(cells), f"One draw of {label}; the release will be another one."))
    return section("What happens to the cells", *parts)


_KINDS = ("risk", "utility", "description")
RECORDS_TITLE = "Original and synthetic records"
_MARKING_OF_RECORDS = (
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
        temporary.write_text(
            document(RECORDS_TITLE, _records_body(found, statement, assessment)), encoding="utf-8"
        )
    return target


def _records_body(found: Preserved, statement: str, assessment: Assessment | None) -> str:
    head = (
        f'<header><p class="marking">{text(_MARKING_OF_RECORDS)}</p><h1>{text(RECORDS_TITLE)}</h1>'
    )
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


CSS = """
:root { --ink: #1a1a1a; --quiet: #555; --line: #d5d5d5; --warn: #8a1c00; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 1.5rem 1.25rem 4rem; color: var(--ink);
  font: 1rem/1.5 "Helvetica Neue", Helvetica, Arial, "DejaVu Sans", sans-serif; background: #fff; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0.8rem 0 0.2rem; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 0.5rem; padding-top: 0.6rem;
  border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.4rem 0 0.3rem; }
p { margin: 0.5rem 0; max-width: 46rem; }
ul { margin: 0.4rem 0; padding-left: 1.3rem; max-width: 46rem; }
li { margin: 0.25rem 0; }
.marking { border: 2px solid var(--warn); color: var(--warn); padding: 0.5rem 0.8rem;
  font-weight: bold; max-width: none; }
.lead { font-size: 1.08rem; border-left: 4px solid #0072b2; padding: 0.2rem 0 0.2rem 0.9rem; }
.quiet { color: var(--quiet); font-size: 0.9rem; }
.wide { overflow-x: auto; margin: 0.7rem 0; }
table { border-collapse: collapse; font-size: 0.88rem; }
th, td { text-align: left; vertical-align: top; padding: 0.28rem 0.8rem 0.28rem 0;
  border-bottom: 1px solid var(--line); }
th { border-bottom: 2px solid #888; }
tbody th { border-bottom: 1px solid var(--line); font-weight: normal; color: var(--quiet);
  min-width: 9rem; }
small { display: block; color: var(--quiet); font-size: 0.8rem; white-space: nowrap; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
figure { margin: 1rem 0; overflow-x: auto; }
figure svg { max-width: 100%; height: auto; }
figcaption { color: var(--quiet); font-size: 0.9rem; max-width: 46rem; }
@media print { body { max-width: none; padding: 0; font-size: 10pt; }
  section, figure, tr { break-inside: avoid; } h2 { break-after: avoid; } }
"""
