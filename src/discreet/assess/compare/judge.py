"""One draw, judged: as published, and after it was brought to expected inner frequencies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from discreet.assess.assess import Assessment, assess, options_of
from discreet.assess.compare.contestants import built_from, label_of, several
from discreet.assess.guests import every_measure, measure_from
from discreet.assess.measure import Measure
from discreet.design.base import Design
from discreet.errors import ParameterError
from discreet.facade.release import Trial
from discreet.facade.table import Table
from discreet.noise.matrix import TransitionMatrix
from discreet.solve.fit import Fitter, FitterBase, Prepared

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
class Judge:
    """The measures and fitters that every method meets.

    Attributes:
      table: The true table.
      measures: What is measured.
      fitters: What recovers inner cells where they are not part of a release.
      options: Options of the measures.
    """

    table: Table
    measures: tuple[Measure, ...]
    fitters: tuple[Fitter, ...]
    options: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, trial: Trial, law: TransitionMatrix | None = None) -> Iterator[Row]:
        """A row for each stage, fitter and measure.

        Args:
          trial: The draw.
          law: What its method did to each published cell, for measures of the noise itself. After
            a fit it no longer holds.
        """
        known = {} if law is None else options_for(self.measures, {"mechanism": law})
        published = assess(self.table, trial, self.measures, **{**known, **self.options})
        yield from _rows(published, PUBLISHED, "", "")
        if trial.y is not None:
            yield from _rows(published, FITTED, OWN, "")
            return
        for label, fitter in self._prepared.items():
            fitted = trial.fit(fitter, require=False)  # the status is part of the rows
            status = fitted.fit_result.status.name
            found = assess(self.table, fitted, self.measures, **self.options)
            yield from _rows(found, FITTED, label, status)

    @cached_property
    def _prepared(self) -> dict[str, PreparedOnce]:
        return {label_of(fitter): PreparedOnce(fitter) for fitter in self.fitters}


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


def _rows(found: Assessment, stage: str, fitter: str, fit: str) -> Iterator[Row]:
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
    chosen = DEFAULT_MEASURES if given is None else several(given)
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
    built = tuple(
        built_from("fitter", f) for f in several(DEFAULT_FITTER if given is None else given)
    )
    labels = [label_of(f) for f in built]
    if len(set(labels)) < len(labels):
        raise ParameterError(f"fitters must differ from each other, got {', '.join(labels)}.")
    return built
