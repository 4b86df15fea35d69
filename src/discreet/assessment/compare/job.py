"""What a comparison consists of: draws of every method, and the measures that judge each of them.

A draw is judged as published, and again after it was brought to expected inner frequencies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from discreet import __version__, digests
from discreet.assessment.assess import Assessment, assess, every_measure, measure_from, options_of
from discreet.assessment.compare.contestants import (
    Contestant,
    as_list,
    build_from,
    label_of,
    law_of,
)
from discreet.assessment.measure import Measure
from discreet.design.base import Design
from discreet.errors import ParameterError
from discreet.facade.release import Trial
from discreet.facade.table import Table
from discreet.frames import Frame
from discreet.noise.matrix import TransitionMatrix
from discreet.protect.publish import simulate
from discreet.solve.fit import Fitter, FitterBase, Prepared
from discreet.tables.protected import Method
from discreet.tables.storage import design_to_json

PUBLISHED, FITTED = "published", "fitted"
STAGES = (FITTED, PUBLISHED)
OWN = "own"
"""The fitter's name where the inner cells are part of the release."""
DEFAULT_MEASURES = (
    "exact-disclosure",
    "exact-disclosure-own",
    "disclosure-probability",
    "disclosure-probability-own",
    "targeted-attribution",
    "table-disclosure",
    "unchanged-cells",
    "unchanged-small-cells",
    "surviving-small-cells",
    "certain-nonzero",
    "repaired-entropy-risk",
    "hellinger-utility",
    "mean-absolute-deviation",
    "max-absolute-deviation",
    "mean-relative-deviation",
    "false-zeros",
    "false-positives",
    "withheld-cells",
    "additivity-error",
    "total-difference",
    "cramers-v-shift",
    "changed-decisions",
)
DEFAULT_FITTER = "chain"
"""What brings releases to expected inner frequencies (Langsrud & Lupp 2021)."""
Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Job:
    """**Confidential.** A table, the methods that protect it, and what judges every draw of them.

    Attributes:
      table: The true table.
      contestants: The methods with their labels.
      fitters: What recovers inner cells.
      measures: What is measured.
      options: Options of the measures.
      seed: Root of all streams.
    """

    table: Table
    contestants: tuple[Contestant, ...]
    fitters: tuple[Fitter, ...]
    measures: tuple[Measure, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 1

    @cached_property
    def samplers(self) -> tuple[Sampler, ...]:
        """The source of every contestant's draws."""
        return tuple(Sampler(self.table, c.method, self.seed) for c in self.contestants)

    def run(self, k: int, draws: Sequence[int]) -> Frame:
        """Scores of some draws of contestant `k`."""
        sampler, law = self.samplers[k], law_of(self.contestants[k].method)
        rows = [{"replicate": i, **row} for i in draws for row in self.judge(sampler(i), law)]
        words = ("stage", "fitter", "fit", "measure", "kind", "on", "direction", "note")
        kinds = {"replicate": "int32", **dict.fromkeys(words, "string"), "value": "float64"}
        return Frame.from_rows(rows, kinds)

    def judge(self, trial: Trial, law: TransitionMatrix | None) -> Iterator[Row]:
        """A row for each stage, fitter and measure of a draw.

        Args:
          trial: The draw.
          law: What its method did to each published cell, for measures of the noise itself. After
            a fit it no longer holds.
        """
        known = {} if law is None else options_for(self.measures, {"mechanism": law})
        published = assess(
            self.table, trial, self.measures, progress=False, **{**known, **self.options}
        )
        yield from _score_rows(published, PUBLISHED, "", "")
        if trial.y is not None:
            yield from _score_rows(published, FITTED, OWN, "")
            return
        for label, fitter in self._fitters_by_label.items():
            # A fit that stops early is judged like others: its status is part of the rows.
            fitted = trial.fit(fitter, progress=False)
            found = assess(self.table, fitted, self.measures, progress=False, **self.options)
            yield from _score_rows(found, FITTED, label, fitted.fit_result.status.name)

    @cached_property
    def _fitters_by_label(self) -> dict[str, PreparedOnce]:
        return {label_of(fitter): PreparedOnce(fitter) for fitter in self.fitters}

    def description(self) -> dict[str, Any]:
        """Digests of everything the scores depend on, by what it is."""
        return {
            "version": __version__,
            "table": table_digest(self.table),
            "unit": self.table.unit,
            "seed": self.seed,
            "fitters": [f"{label_of(f)} {short_digest(f)}" for f in self.fitters],
            "measures": [f"{m.name} {short_digest(m)}" for m in self.measures],
            "options": short_digest(dict(self.options)),
        }

    def __getstate__(self) -> dict[str, Any]:
        # Other processes make these when they first need them.
        kept_here = ("_fitters_by_label", "samplers")
        return {k: v for k, v in self.__dict__.items() if k not in kept_here}


class PreparedOnce(FitterBase):
    """A fitter that does once what depends on the design alone, and then fits many draws."""

    def __init__(self, fitter: Fitter) -> None:
        self.name = fitter.name
        self._fitter = fitter
        self._design: Design | None = None

    def prepare(self, design: Design) -> Prepared:
        """The fit of the design, prepared when it is first asked for."""
        if design is not self._design:
            self._design, self._fit = design, self._fitter.prepare(design)
        return self._fit


def _score_rows(found: Assessment, stage: str, fitter: str, fit: str) -> Iterator[Row]:
    where = {"stage": stage, "fitter": fitter, "fit": fit}
    for score in found:
        yield {
            **where,
            "measure": score.name,
            "kind": score.kind,
            "on": score.on,
            "direction": score.direction,
            "value": score.value,
        }
    for skipped in found.skipped:
        yield {**where, "measure": skipped.name, "kind": skipped.kind, "note": skipped.reason}


def measures_from(given: str | Sequence[str | Measure] | None) -> tuple[Measure, ...]:
    """Measures by name or as they are; a readable choice by default, ``"all"`` for all."""
    if given == "all":
        return tuple(every_measure("measure"))
    chosen = DEFAULT_MEASURES if given is None else as_list(given)
    built = tuple(measure_from("measure", m) for m in chosen)
    if not built:
        raise ParameterError("there is no measure to compare by.")
    return built


def options_for(measures: Sequence[Measure], options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that at least one of the measures has."""
    known = {name for measure in measures for name in options_of(measure)}
    return {name: value for name, value in options.items() if name in known}


def fitters_from(given: Any) -> tuple[Fitter, ...]:
    """Fitters by name or as they are; the chain to expected inner frequencies by default."""
    chosen = DEFAULT_FITTER if given is None else given
    built = tuple(build_from("fitter", fitter) for fitter in as_list(chosen))
    labels = [label_of(f) for f in built]
    if len(set(labels)) < len(labels):
        raise ParameterError(f"fitters must differ from each other, got {', '.join(labels)}.")
    return built


@dataclass(frozen=True, eq=False)
class Sampler:
    """Numbered draws of a method, each a function of the seed, the method's name and the number.

    All methods that use cell keys see the same new keys in draw `i`, and all settings of another
    method the same random numbers, so that differences between settings are not drowned in noise.
    """

    table: Table  # the true table
    method: Method  # the method
    seed: int  # root of the streams

    def __call__(self, i: int) -> Trial:
        """Draw number `i`."""
        unit, name = self.table.unit, f"compare:{i}"
        drawn = simulate(self.table, self.method, {}, seed=self.seed, unit=unit, name=name)
        return Trial.wrap(drawn)


def short_digest(*things: Any) -> str:
    """The beginning of a hash of the contents, long enough for names of files."""
    try:
        return digests.digest(*things).hex()[:16]
    except ParameterError as error:
        raise ParameterError(f"{error} Or leave out resume=.") from None


def table_digest(table: Table) -> str:
    """A hash of the design, the true values and their bounds; keys are redrawn and do not count."""
    design = table.design
    if design.over_variables is not None:
        cells: list[Any] = [design_to_json(design), design.inner_codes()]
    else:
        X = design.matrix()
        cells = [X.shape, X.indptr, X.indices]
    values = [table.published, *([] if table.inner is None else [table.inner])]
    numbers = [(v.count, v.weight, v.weight_squared) for v in values]
    rule, bounds = table.convention, table.data_set.bounds
    return short_digest(cells, numbers, rule.name, rule.modulus, bounds)
