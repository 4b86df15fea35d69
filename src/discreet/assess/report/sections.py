"""The parts of the report, each from the comparison alone."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from discreet import __version__
from discreet.assess.compare.choose import Line
from discreet.assess.compare.fingerprint import table_digest
from discreet.assess.compare.judge import FITTED, OWN, PUBLISHED
from discreet.assess.listing import grouped
from discreet.assess.report.markup import (
    Cell,
    bullets,
    facts,
    grid,
    paragraph,
    plain_words,
    section,
    text,
)

if TYPE_CHECKING:
    from discreet.assess.compare.comparison import Comparison
    from discreet.assess.compare.recommend import Recommendation

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
    of_measure = grouped(((row["note"], row["measure"]), row["label"]) for row in lacking)
    reasons = grouped(
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
