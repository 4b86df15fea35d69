"""Pages that a disclosure review board can read: no script, no network, pictures inside.

Confidential: they are made from true counts or records, and readable by their owner only. What
they say stands in the templates beside this module.
"""

from __future__ import annotations

import datetime
import inspect
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment

from discreet import __version__
from discreet.assessment.assess import Assessment, assess, group_by_key
from discreet.assessment.compare.contestants import law_of
from discreet.assessment.compare.job import FITTED, OWN, PUBLISHED, table_digest
from discreet.assessment.compare.recommend import Recommendation, recommend
from discreet.assessment.compare.summary import Line
from discreet.assessment.plots import before_after, deviations, preserved, to_svg, transitions
from discreet.display import environment
from discreet.errors import DiscreetError
from discreet.facade.release import Trial
from discreet.files import OWNER_ONLY, ending_of, write_text
from discreet.progress import OutOfTimeError, time_limit
from discreet.progress import report as report_progress

if TYPE_CHECKING:
    from discreet.assessment.compare.comparison import Comparison
    from discreet.synthesis.preserved import Preserved

_ENDINGS = (".html", ".htm")
Cell = str | tuple[str, str]
"""A text, or a text with a remark in small print under it."""
_STAGES = {FITTED: "After fitting to expected inner frequencies", PUBLISHED: "As published"}
_SOURCES = {
    "keys": "the secret and the keys of the records in each cell; the same in every table",
    "table": "the secret and the whole table; other tables have other noise",
    "system": "the operating system; never the same twice",
}
_VERDICTS = {
    "equal": "Equal up to rounding, and therefore disclosed by the synthetic records.",
    "close": "Apart by at most a tenth of a standard deviation or of a correlation.",
    "different": "Further apart. Analyses of these figures need other methods or other terms.",
}

# Pictures of draws are drawn from a few of them, which are made again: enough cells to show the
# law of the noise, and no more draws of a slow method than the reader will wait for.
_CELLS_DRAWN = 20_000
_MOST_DRAWS = 25
_PATIENCE_SECONDS = 3.0
# Attacks on one release of a table, the quick ones first, and processor time of all on one method:
# a report waits for this, so what is not finished is said to be missing.
_ATTACKS = (
    *("averages", "group-attributes", "complements", "refit-log-linear"),
    *("integer-reconstruction", "bounds"),
)
_ATTACK_SECONDS = 10.0
_MATH = re.compile(r":math:`([^`]*)`")
# In this order: a command goes before the braces and the backslash that are part of it.
_SIGNS = {
    r"\mathrm": "",
    r"\varepsilon": "ε",
    r"\tfrac12": "½",
    r"\beta": "β",
    r"\tau": "τ",
    r"\sum": "Σ",
    r"\sqrt": "√",
    r"\max": "max ",
    "{": "",
    "}": "",
    "\\": "",
}


@cache
def templates(*packages: str) -> Environment:
    """The templates of pages, and those of other packages that extend them; texts are escaped."""
    found = environment(*packages, "discreet.assessment.report")
    found.filters["thousands"] = lambda number: f"{int(number):,}"
    return found


def write_report(found: Comparison, path: str | Path, thresholds: Mapping[str, float]) -> Path:
    """Write the page on a comparison; nothing is left behind when it cannot be made."""
    ending_of(path, _ENDINGS)
    return _write(path, "comparison.html", _comparison_parts(found, recommend(found, thresholds)))


def write_preserved(
    found: Preserved, path: str | Path, statement: str = "", assessment: Assessment | None = None
) -> Path:
    """Write what synthetic records preserve as a page with tables and a picture.

    Args:
      found: The comparison.
      path: A name that ends in `.html`.
      statement: What the synthetic records say of themselves.
      assessment: Risk and utility of the synthetic records.
    """
    ending_of(path, _ENDINGS)
    return _write(path, "records.html", _records_parts(found, statement, assessment))


def _write(path: str | Path, template: str, parts: Mapping[str, Any]) -> Path:
    return write_text(path, templates().get_template(template).render(parts), OWNER_ONLY)


def _records_parts(
    found: Preserved, statement: str, assessment: Assessment | None
) -> dict[str, Any]:
    """Figures by verdict; scores by kind, risk first; what does not apply, with the reason."""
    kinds = ("risk", "utility", "description")
    scores = sorted(assessment or (), key=lambda score: kinds.index(score.kind))
    verdicts = []
    for verdict, meaning in _VERDICTS.items():
        rows = [
            (f.kind, f.about, f"{f.original:.6g}", f"{f.synthetic:.6g}", f"{f.difference:.2g}")
            for f in found.figures
            if f.verdict == verdict
        ]
        verdicts.append((verdict, meaning, rows))
    return {
        "title": "Original and synthetic records",
        "marking": "Confidential. This page compares synthetic records with the original ones; it "
        "must not be published or sent on.",
        "subtitle": found.summary,
        "picture": to_svg(preserved(found)),
        "verdicts": verdicts,
        "has_scores": assessment is not None,
        "scores": [((s.name, s.on), s.kind, s.reading, f"{s.value:.4g}") for s in scores],
        "skipped": []
        if assessment is None
        else [f"{s.name}: {s.reason}" for s in assessment.skipped],
        "statement": statement,
    }


def _comparison_parts(found: Comparison, advice: Recommendation) -> dict[str, Any]:
    """What the template needs; the pictures, which take the time, one after another."""
    job, task = found.job, "writing the report"
    drawn = _draws_to_show(found)
    report_progress(task, 0.3)
    risk_utility = to_svg(found.plot())
    report_progress(task, 0.4)
    noise = list(_noise(found, drawn, advice.chosen or found.labels[0]))
    report_progress(task, 0.6)
    attacks = list(_attack_rows(found, drawn))
    report_progress(task, 1.0)
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    rows = found.frame.to_pylist()
    draws = max(row["replicates"] for row in rows)
    return {
        "title": "Comparison of protection methods",
        "marking": "Confidential. This page discusses true counts: it may be read by the review "
        "board and the custodian of the data, and must not be published or sent on.",
        "subtitle": f"{len(found.labels)} methods on one table, {today}.",
        "advice": advice,
        "conditions": list(dict.fromkeys(v.condition for v in advice.verdicts)),
        "verdicts": _verdict_rows(advice),
        "risk_utility": risk_utility,
        "noise": noise,
        "labels": list(found.labels),
        "attacks": attacks,
        "table": job.table,
        "variables": _variable_rows(job.table.design),
        "methods": [
            (label, _method_facts(found, k, drawn[label][0]))
            for k, label in enumerate(found.labels)
        ],
        "tuning": found.tuning,
        "draws": draws,
        "fitters": sorted({row["fitter"] for row in rows} - {"", OWN}),
        "fit_notes": sorted({_fit_note(row) for row in rows} - {""}),
        "scores": [(kind, list(_stages(found, kind))) for kind in ("risk", "utility")],
        "meanings": [(m.name, m.kind, _meaning(m)) for m in job.measures],
        "options": job.options,
        "has_entropy_risk": any(m.name == "entropy-risk" for m in job.measures),
        "is_private": any(c.method.source == "system" for c in job.contestants),
        "provenance": [
            ("program", f"discreet {__version__}"),
            ("unit of the values", job.table.unit),
            ("seed", job.seed),
            ("draws of each method", f"{draws:,}"),
            ("options of measures", ", ".join(f"{k}={v}" for k, v in job.options.items()) or "–"),
            ("digest of the table", table_digest(job.table)),
        ],
    }


def _fit_note(row: Line) -> str:
    """The note of a row on fits that did not converge; empty where all of them did."""
    is_of_fit = row["replicates"] and "the fit ended" in (row["note"] or "")
    return f"{row['label']}, {row['fitter']}: {row['note']}" if is_of_fit else ""


def _verdict_rows(advice: Recommendation) -> list[list[Cell]]:
    """What came out for each method, threshold by threshold."""
    rows: dict[str, list[Cell]] = {}
    for v in advice.verdicts:
        draws = f"{sum(v.acceptable)} of {len(v.acceptable)} draws meet it"
        rows.setdefault(v.label, [v.label]).append(
            v.outcome if v.mean is None else (v.outcome, draws)
        )
    return list(rows.values())


def _variable_rows(design: Any) -> list[tuple[str, str, str]]:
    rows = []
    for a, axis in enumerate(design.axes):
        used = dict.fromkeys(block.levels[a] for block in design.blocks)
        levels = ", ".join(f"{level.name} ({len(level):,})" for level in used if level is not None)
        rows.append((axis.name, f"{len(axis):,}", levels))
    return rows


def _method_facts(found: Comparison, k: int, trial: Trial) -> list[tuple[str, str]]:
    """All parameters of a method, and the statement that its release would carry."""
    contestant = found.job.contestants[k]
    chosen = json.dumps(contestant.parameters, ensure_ascii=False).strip("{}").replace('"', "")
    return [
        ("method", contestant.method.name),
        ("parameters", chosen or "all by default"),
        ("noise from", _SOURCES[contestant.method.source]),
        ("statement", trial.statement.text),
    ]


def _stages(found: Comparison, kind: str) -> Iterator[tuple[str, list[str], Any, list[str]]]:
    """Heading, columns and rows of each stage, and the measures without values, by reason."""
    for stage, heading in _STAGES.items():
        here = [r for r in found.frame.to_pylist() if (r["kind"], r["stage"]) == (kind, stage)]
        rows = [row for row in here if row["replicates"]]
        if rows:
            yield (
                heading,
                *_score_table(found, rows),
                _lacking([r for r in here if not r["replicates"]]),
            )


def _score_table(found: Comparison, rows: Sequence[Line]) -> tuple[list[str], list[list[Cell]]]:
    columns = [key for key in dict.fromkeys((r["label"], r["fitter"]) for r in rows) if key[0]]
    lines: dict[tuple[str, str], dict[tuple[str, str], Line]] = {}
    for row in rows:
        lines.setdefault((row["measure"], row["on"]), {})[(row["label"], row["fitter"])] = row
    has_fitters = len(columns) > len(found.labels)
    header = ["measure", *(f"{a}, {b}" if has_fitters else a for a, b in columns)]
    body: list[list[Cell]] = []
    for (measure, on), values in lines.items():
        reading = next(iter(values.values()))["reading"]
        cells: list[Cell] = [_interval(values[c]) if c in values else "–" for c in columns]
        body.append([(measure, f"{on}; {reading}"), *cells])
    return header, body


def _interval(row: Line) -> Cell:
    """Mean and range in three digits; a single draw has no range."""
    ends = [row[name] for name in ("mean", "lower", "upper") if row[name] is not None]
    # Sums of cells that cancel leave rounding errors of 1e-16, which are no digits of a score.
    mean, *ends = ["0" if abs(value) < 1e-9 else f"{value:.3g}" for value in ends]
    return (mean, " – ".join(ends)) if ends else mean


def _lacking(rows: Sequence[Line]) -> list[str]:
    """Measures that have no values, by the reason and the methods they lack."""
    of_measure = group_by_key(((row["note"], row["measure"]), row["label"]) for row in rows)
    reasons = group_by_key(
        ((note, ", ".join(labels)), name) for (note, name), labels in of_measure.items()
    )
    return [f"{', '.join(names)} ({who}): {why}" for (why, who), names in reasons.items()]


def _meaning(measure: Any) -> str:
    """What a measure says, in the first line of its own description."""
    described = getattr(measure, "meaning", inspect.getdoc(type(measure)) or "")
    return plain_words(described.partition("\n")[0])


def plain_words(line: str) -> str:
    r"""A line of a docstring without mark-up.

    >>> plain_words(r"Mean absolute deviation, :math:`\sum|f - g|/n`.")
    'Mean absolute deviation, Σ|f - g|/n.'
    """

    def formula(found: re.Match[str]) -> str:
        source = found[1]
        for sign, shown in _SIGNS.items():
            source = source.replace(sign, shown)
        return source

    return _MATH.sub(formula, line).replace("`", "")


def _draws_to_show(found: Comparison) -> dict[str, list[Trial]]:
    """Some draws of every method, made again: as many as a few seconds allow."""
    most = max(1, min(_MOST_DRAWS, _CELLS_DRAWN // max(found.job.table.design.n_published, 1)))
    drawn: dict[str, list[Trial]] = {}
    for label in found.labels:
        started, trials = time.monotonic(), drawn.setdefault(label, [])
        for trial in found.trials(label, most):
            trials.append(trial)
            if time.monotonic() - started >= _PATIENCE_SECONDS:
                break
    return drawn


def _attack_rows(found: Comparison, drawn: Mapping[str, Sequence[Trial]]) -> Iterator[list[Cell]]:
    """By attack its lift on one draw of each method; nothing of methods that it cannot attack."""
    lifts = {label: dict(_lifts(found.job.table, trials[0])) for label, trials in drawn.items()}
    for name in _ATTACKS:
        cells = [lifts[label].get(name, "not finished") for label in found.labels]
        if any(cell != "–" for cell in cells):
            yield [name, *cells]


def _lifts(table: Any, trial: Trial) -> Iterator[tuple[str, Cell]]:
    try:
        with time_limit(_ATTACK_SECONDS):
            for name in _ATTACKS:
                score = assess(table, trial, [name])[name]
                is_found = score.on != "nothing to attack"
                yield name, (f"{score.value:.2f}", score.on) if is_found else "–"
    except OutOfTimeError:
        return
    except DiscreetError:  # a table without counts or without people, which no attack is about
        yield from ((name, "–") for name in _ATTACKS)


def _noise(
    found: Comparison, drawn: Mapping[str, Sequence[Trial]], label: str
) -> Iterator[tuple[str, str]]:
    """Deviations of all methods, laws of those that have one, and one draw cell by cell."""
    table = found.job.table
    numbers = ", ".join(f"{name}: {len(trials)}" for name, trials in drawn.items())
    yield to_svg(deviations(table, drawn)), f"Draws shown: {numbers}."
    for contestant in found.job.contestants:
        law, trials = law_of(contestant.method), drawn[contestant.label]
        if law is not None:
            caption = f"{contestant.label}: its designed law and what {len(trials)} draws show."
            yield to_svg(transitions(law, table, trials)), caption
    one = to_svg(before_after(table, drawn[label][0]))
    yield one, f"One draw of {label}; the release will be another one."
