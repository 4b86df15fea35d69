"""Methods side by side on the same table, by the same measures, with uncertainty."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.assessment.assess import Framed, align_columns, group_by_key
from discreet.assessment.compare.contestants import MethodsLike, contestants
from discreet.assessment.compare.equal_risk import Tuned, Tuning, at_equal_risk
from discreet.assessment.compare.execution import Execution
from discreet.assessment.compare.job import Job, fitters_from, measures_from
from discreet.assessment.compare.summary import (
    RISKS,
    UTILITIES,
    Line,
    MeasureRows,
    first_of,
    is_dominated,
    pair_rows,
    select_rows,
    summarise,
    tied_with_first,
)
from discreet.assessment.measure import Measure, loss
from discreet.assessment.plots.risk_utility import risk_utility_map
from discreet.display import Display, Displayed, Grid
from discreet.display.bars import shows_progress
from discreet.errors import ParameterError, check_known
from discreet.facade.release import Trial
from discreet.facade.table import Table
from discreet.frames import Frame
from discreet.protect.publish import in_unit

if TYPE_CHECKING:
    import altair

RANGE = "95 % range"


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Displayed, Framed):
    """**Confidential.** Scores of several methods with their uncertainty.

    Attributes:
      frame: A row per method, stage, fitter and measure: label, method, parameters, stage,
        fitter, measure, kind, on, mean, sd, standard_error, lower, upper (a further draw lies
        between them with a probability of 95 %), replicates, direction, reading, note.
      replicates: The score of every draw.
      job: What was compared.
      tuning: What was done to bring the methods to equal risk, if that was asked for.
    """

    frame: Frame
    replicates: Frame
    job: Job
    tuning: tuple[Tuned, ...] = ()

    @property
    def labels(self) -> list[str]:
        """The methods' labels."""
        return [c.label for c in self.job.contestants]

    @property
    def kinds(self) -> set[str]:
        """Of risk and utility what has values."""
        return {row["kind"] for row in self.frame.to_pylist() if row["replicates"]}

    def risk(self, measure: str | None = None) -> MeasureRows:
        """Rows of a measure of risk: the one that was tuned to, or the first of a short list."""
        if measure is None and self.tuning:
            measure = self.tuning[0].measure
        return first_of(self.frame, RISKS, "risk") if measure is None else self[measure]

    def utility(self, measure: str | None = None) -> MeasureRows:
        """Rows of a measure of utility; Hellinger's by default."""
        return first_of(self.frame, UTILITIES, "utility") if measure is None else self[measure]

    def __getitem__(self, measure: str) -> MeasureRows:
        """Rows of a measure; ``name@published`` or ``name@fitted`` names the stage."""
        return select_rows(self.frame, measure)

    def ranking(self, utility: str | None = None) -> list[Line]:
        """Rows of a measure of utility, the best first; methods above an equal risk come last.

        `tied` tells the rows that differ from the first one by chance only.
        """
        chosen = self.utility(utility)
        late = {t.label for t in self.tuning if not t.reached}
        ordered = sorted(
            chosen.lines,
            key=lambda line: (line["label"] in late, loss(line["mean"], chosen.direction)),
        )
        reached = [line for line in ordered if line["label"] not in late]
        tied = tied_with_first(self.replicates, chosen, reached or ordered)
        return [{**line, "tied": any(line is other for other in tied)} for line in ordered]

    def efficient(self, risk: str | None = None, utility: str | None = None) -> list[Line]:
        """Rows of risk whose method no other one beats in risk and utility together (means)."""
        first, second = self.risk(risk), self.utility(utility)
        pairs = pair_rows(first, second)
        points = [
            (loss(a["mean"], first.direction), loss(b["mean"], second.direction)) for a, b in pairs
        ]
        found = zip(pairs, points, strict=True)
        return [line for (line, _), point in found if not is_dominated(point, points)]

    def plot(self, risk: str | None = None, utility: str | None = None) -> altair.LayerChart:
        """The risk–utility map: means with the 95 % ranges of single draws."""
        return risk_utility_map(self, risk, utility)

    def report(self, path: str | Path, thresholds: Mapping[str, float] | None = None) -> Path:
        """Write a self-contained, confidential HTML page for a review board.

        Args:
          path: Where to write it; only its owner will be able to read it.
          thresholds: By measure what is acceptable, such as ``{"exact-disclosure-own": 0.5,
            "hellinger-utility": 0.9}``; a recommendation is made by these.
        """
        from discreet.assessment.report.page import write_report  # start-up time: jinja2

        return write_report(self, path, thresholds or {})

    def trials(self, label: str, draws: int) -> Iterator[Trial]:
        """The first draws of a method, made again. They can be looked at, not released."""
        check_known("method of this comparison", [label], self.labels)
        sampler = self.job.samplers[self.labels.index(label)]
        yield from map(sampler, range(draws))

    def __repr__(self) -> str:
        """Risk and utility of every method, and how an equal risk was reached."""
        size, measures, rows, remarks = self._view()
        lines = [f"Comparison (confidential): {size}", measures, "", *align_columns(rows), *remarks]
        if self.tuning:
            lines += ["", *(f"  {t.sentence}" for t in self.tuning)]
        return "\n".join(lines)

    def _display(self) -> Display:
        size, measures, rows, remarks = self._view()
        tuning = [t.sentence for t in self.tuning]
        numbers = range(2, len(rows[0]) - 1)
        return Display(
            f"Comparison: {size}",
            "confidential",
            grids=[Grid.of(rows, measures, right=numbers)],
            lines=[*(line.strip() for line in remarks if line.strip()), *tuning],
        )

    def _view(self) -> tuple[str, str, list[tuple[str, ...]], list[str]]:
        """How large it is, what is measured, rows under their header, and remarks."""
        chosen, marks = self._measures_to_show(), self._marks()
        first, last = chosen[0][1], chosen[-1][1]
        draws = max(line["replicates"] for line in first.lines)
        header = ("method", "fitter", *(cell for kind, _ in chosen for cell in (kind, RANGE)), "")
        rows = [
            (*_row(*lines[: len(chosen)]), marks.get((lines[-1]["label"], lines[-1]["fitter"]), ""))
            for lines in pair_rows(first, last)
        ]
        size = f"{len(self.labels)} methods, {draws:,} draws each"
        measures = "; ".join(f"{kind}: {s.title}, {s.lines[0]['reading']}" for kind, s in chosen)
        return size, measures, [header, *rows], list(_remarks([s for _, s in chosen]))

    def _measures_to_show(self) -> list[tuple[str, MeasureRows]]:
        """The measure of risk and the one of utility, or what there is of them."""
        kinds = {"risk": self.risk, "utility": self.utility}
        chosen = [(kind, choose()) for kind, choose in kinds.items() if kind in self.kinds]
        return chosen or [("risk", self.risk())]

    def _marks(self) -> dict[tuple[str, str], str]:
        """The most useful row, and those that differ from it by chance only."""
        ranked = self.ranking() if "utility" in self.kinds else []
        if len(ranked) < 2:
            return {}
        tied = [line for line in ranked[1:] if line["tied"]]
        marks = {(line["label"], line["fitter"]): "tied with best" for line in tied}
        return {(ranked[0]["label"], ranked[0]["fitter"]): "best", **marks}


@shows_progress("comparing methods")
def compare(
    table: Table,
    methods: MethodsLike,
    *,
    fitters: Any = None,
    measures: str | Sequence[str | Measure] | None = None,
    unit: str | None = None,
    replicates: int = 100,
    seed: int = 1,
    equal_risk: tuple[str, float] | None = None,
    tune: Tuning | None = None,
    resume: str | Path | None = None,
    workers: int | None = None,
    progress: bool = True,
    **options: Any,
) -> Comparison:
    r"""Compare methods on one table by risk and utility, over many draws.

    Every draw has new keys, a secret and noise of its own, all from the seed (`Table.simulate`); no
    draw can be released, and the custodian's secret and ledger are not touched. Every draw is
    judged twice: *published*, as it stands, and *fitted*, after it was brought to expected inner
    frequencies: those of the release where it has them, or the fitter's. So risk is comparable.

    Promise: the same scores for the same seed, whatever the number of workers and the order of
    the methods; draw `i` of a method does not depend on the other methods.
    Cost: draws × methods × (protection + fits + twice the measures).

    Args:
      table: The true table.
      methods: Methods, or texts such as ``"cell-key:D=5,V=3,js=2"``; a mapping gives labels.
      fitters: A fitter or several, objects or names; by default the chain of a non-negative and
        a log-linear fit, which gives expected inner frequencies. None at all for an empty list.
      measures: Measures, objects or names; a readable choice by default, ``"all"`` for all.
      unit: What is published and compared, `"count"` or `"weight"`; must be said when the table has
        weights, unless all methods publish weighted counts only.
      replicates: Number of draws of every method.
      seed: Root of all streams.
      equal_risk: A measure of risk and a target: every method is first tuned to this risk, on
        draws of its own. A parameter that was given another value than its default is kept.
      tune: For `equal_risk`, by label or method name: which parameter to tune and over which
        values, such as ``{"laplace": ("epsilon", 0.1, 10)}`` or ``("cap", [1, 2, 5])``; `None`
        keeps a method as it is.
      resume: Directory of finished draws: an interrupted comparison goes on where it stopped.
        Draws made to find an equal risk are kept beside it.
      workers: Number of processes; by default all cores when the work is worth it.
      progress: Whether a bar shows how far the work is; nowhere but in terminals and notebooks.
      **options: Given to every measure that has an option of this name, such as
        `sensitive="party"`.

    See Langsrud & Lupp (2021).
    """
    named = contestants(methods)
    # One unit for all methods, or scores would not be of the same thing; who cannot is refused.
    units = {in_unit(table, c.method, unit or table.unit).unit for c in named}
    table = replace(table, unit=units.pop())
    job = Job(table, named, fitters_from(fitters), measures_from(measures), options, seed)
    how = Execution(replicates, workers, None if resume is None else Path(resume))
    job, tuning = _tune(job, equal_risk, tune, how)
    scores = how.scores(job)
    return Comparison(summarise(scores, job.measures), scores, job, tuning)


def _tune(
    job: Job, equal_risk: tuple[str, float] | None, tune: Tuning | None, how: Execution
) -> tuple[Job, tuple[Tuned, ...]]:
    """The job with every method at the risk that is asked for, if one is."""
    if equal_risk is not None:
        return at_equal_risk(job, equal_risk, tune or {}, how)
    if tune is not None:
        raise ParameterError("tune= says how to reach an equal risk; give equal_risk= as well.")
    return job, ()


def _remarks(chosen: Sequence[MeasureRows]) -> Iterator[str]:
    """What was measured of different things, and methods that were not measured, by reason."""
    yield from (f"  {s.remark}" for s in chosen if s.remark)
    reasons = group_by_key(
        ((s.title, reason), label) for s in chosen for label, reason in s.missing.items()
    )
    if reasons:
        yield from ("", "Not applicable")
    for (title, reason), labels in reasons.items():
        yield f"  {title}: {', '.join(labels)}: {reason}"


def _row(*lines: Line) -> tuple[str, ...]:
    fitter = next((line["fitter"] for line in lines if line["fitter"]), "–")
    return lines[0]["label"], fitter, *(cell for line in lines for cell in mean_and_range(line))


def mean_and_range(line: Line) -> tuple[str, str]:
    """Mean and range; a single draw has none."""
    if line["lower"] is None:
        return f"{line['mean']:.4g}", "–"
    return f"{line['mean']:.4g}", f"{line['lower']:.4g} to {line['upper']:.4g}"
