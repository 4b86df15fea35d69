"""Bring every method to the same risk first, then compare utility.

Langsrud & Lupp (2021), section 8: decide the acceptable risk, tune each method to it, and let
the utility decide.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

from discreet.assess.compare.choose import selected
from discreet.assess.compare.contestants import Contestant, label_of
from discreet.assess.compare.execution import Execution
from discreet.assess.compare.job import Job
from discreet.assess.compare.judge import options_for
from discreet.assess.compare.summary import summarise
from discreet.assess.compare.tunable import Range, is_chosen, range_for, value_of, with_parameter
from discreet.assess.guests import measure_from
from discreet.assess.measure import Measure
from discreet.errors import InfeasibleError, ParameterError, UnknownNameError
from discreet.randomness import stream
from discreet.tables.protected import Method

Tuning = Mapping[str, Range | Sequence[Any] | None]

TASK = "tuning to equal risk"
_FIRST_GRID = 7
_BISECTIONS = 6
_MOVES = 3.0  # standard errors between the lowest and the highest of several risks


class Tried(NamedTuple):
    """One setting of a method and the risk it has."""

    value: float
    risk: float
    standard_error: float


def moves(tried: Sequence[Tried]) -> bool:
    """Whether the risks of several settings differ by more than chance; that of one may."""
    if len(tried) < 2:
        return True
    low, high = (end(tried, key=lambda t: t.risk) for end in (min, max))
    noise = math.hypot(low.standard_error, high.standard_error)
    return high.risk - low.risk > _MOVES * noise


@dataclass(frozen=True)
class Tuned:
    """How one method was brought to the risk, or why it could not be.

    Attributes:
      label: The method's label after tuning.
      measure: The measure of risk.
      parameter: The parameter that was tuned; empty when there is none.
      value: Its value.
      risk: Mean risk at this value.
      standard_error: Standard error of this mean.
      target: The risk that was asked for.
      reached: Whether the risk is at most the target.
      tried: Every setting that was tried.
    """

    label: str
    measure: str
    parameter: str
    value: float | None
    risk: float
    standard_error: float
    target: float
    reached: bool
    tried: tuple[Tried, ...] = ()

    @property
    def sentence(self) -> str:
        """What happened, in plain words."""
        if math.isnan(self.risk):
            return f"{self.label}: its risk could not be measured, so it is not at the target."
        risk = f"risk {self.risk:.4g} ± {self.standard_error:.2g}"
        verdict = f"{'within' if self.reached else 'above'} the target {self.target:g}"
        if not self.parameter:
            return f"{self.label}: {risk}, {verdict}; nothing to tune."
        setting = f"{self.parameter}={self.value:.4g}"
        if not moves(self.tried):
            still = f"{self.parameter} does not move it by more than chance"
            return f"{self.label}: {risk}, {verdict}, at {setting}; {still}."
        if not self.reached:
            aim = f"cannot reach the target {self.target:g}"
            return f"{self.label}: {aim}; its lowest is {risk}, at {setting}."
        if self.risk == max(t.risk for t in self.tried):
            return f"{self.label}: {risk} at its weakest, {setting}; the target is {self.target:g}."
        return f"{self.label}: {risk} at {setting}; the target is {self.target:g}."


def at_equal_risk(
    job: Job, goal: tuple[str, float], tune: Tuning, how: Execution
) -> tuple[Job, tuple[Tuned, ...]]:
    """The job with every method at the setting nearest to the target risk, from below.

    The measure of risk is added to the job's measures if it is not among them.

    Each setting is judged by the mean risk of its draws, with the same random numbers for all
    settings of a method. A grid finds where the risk crosses the target, bisection refines it.
    The draws come from a stream of their own, so that what is compared did not choose the setting.
    Cost: about a dozen settings × draws for each method.
    """
    measure, target = _checked(goal)
    _check_names(tune, job.contestants)
    chosen = _measure_of(job, measure)
    judged = replace(
        job,
        measures=(chosen,),
        options=options_for([chosen], job.options),
        seed=int(stream(job.seed, TASK).integers(2**62)),
    )
    folder = None if how.resume is None else how.resume.with_name(f"{how.resume.name}-tuning")
    within = Execution(how.replicates, how.workers, folder)
    searches = [Search(c, _range_of(c, tune), target) for c in job.contestants]
    while asked := [(s, value) for s in searches for value in s.next_values()]:
        measure, risks = _risks(judged, within, asked, measure)
        for (search, value), risk in zip(asked, risks, strict=True):
            search.tried.append(Tried(value, *risk))
    tuning = tuple(search.result(measure) for search in searches)
    methods = [s.method_at(t.value) for s, t in zip(searches, tuning, strict=True)]
    labels = _labels(job.contestants, methods)
    named = tuple(replace(t, label=label) for t, label in zip(tuning, labels, strict=True))
    is_new = all(m is not chosen for m in job.measures)
    measures = (*job.measures, chosen) if is_new else job.measures
    contestants = tuple(map(Contestant, labels, methods))
    return replace(job, contestants=contestants, measures=measures), named


def _labels(before: Sequence[Contestant], methods: Sequence[Method]) -> list[str]:
    """Labels that show the tuned value, unless they were given or would be the same."""
    tuned = [
        label_of(method) if c.label == label_of(c.method) else c.label
        for c, method in zip(before, methods, strict=True)
    ]
    return tuned if len(set(tuned)) == len(tuned) else [c.label for c in before]


def _checked(goal: Any) -> tuple[str, float]:
    try:
        measure, target = goal
        return str(measure), float(target)
    except (TypeError, ValueError):
        wanted = "a measure and a target, such as ('exact-disclosure-own', 0.5)"
        raise ParameterError(f"equal_risk needs {wanted}; got {goal!r}.") from None


def _check_names(tune: Mapping[str, Any], known: Sequence[Contestant]) -> None:
    names = dict.fromkeys(name for c in known for name in (c.label, c.method.name))
    for name in tune:
        if name not in names:
            raise UnknownNameError("method to tune", name, names)


def _measure_of(job: Job, measure: str) -> Measure:
    """The job's own measure of this name, or a new one."""
    name = measure.partition("@")[0]
    own = [m for m in job.measures if m.name == name]
    chosen: Measure = own[0] if own else measure_from("measure", name)
    if chosen.kind != "risk" or getattr(chosen, "direction", "lower") != "lower":
        raise ParameterError(
            f"equal_risk needs a measure of risk that is lower where it is safer; {name!r} is not."
        )
    return chosen


def _range_of(contestant: Contestant, tune: Tuning) -> Range | None:
    """The range given for the label or the method's name, or the usual one.

    `None` keeps a method as it is, and so does a chosen value of the parameter usually tuned.
    """
    for name in (contestant.label, contestant.method.name):
        if name in tune:
            given = tune[name]
            return given if given is None or isinstance(given, Range) else Range.of(*given)
    usual = range_for(contestant.method)
    is_fixed = usual is not None and is_chosen(contestant.method, usual.parameter)
    return None if is_fixed else usual


def _risks(
    job: Job, how: Execution, asked: Sequence[tuple[Search, float]], measure: str
) -> tuple[str, list[tuple[float, float]]]:
    """The measure with its stage; mean risk and standard error of some settings.

    Of several fitters the worst counts. A risk that cannot be measured is not-a-number.
    """
    settings = tuple(Contestant(f"{n}", s.method_at(v)) for n, (s, v) in enumerate(asked))
    frame = summarise(how.scores(replace(job, contestants=settings), TASK), job.measures)
    chosen = selected(frame, measure)
    found = []
    for setting in settings:
        lines = [x for x in chosen.lines if x["label"] == setting.label]
        worst = max(lines, key=lambda x: x["mean"], default={"mean": math.nan})
        error = worst.get("standard_error", math.nan)
        found.append((worst["mean"], 0.0 if math.isnan(error) else error))
    return f"{chosen.measure}@{chosen.stage}", found


@dataclass
class Search:
    """The settings of one method that were tried so far.

    Attributes:
      contestant: The method as it was given.
      span: The parameter to tune and its range; nothing is tuned without one.
      target: The risk to reach.
      tried: Settings and their risks.
    """

    contestant: Contestant
    span: Range | None
    target: float
    tried: list[Tried] = field(default_factory=list)
    _grid_size: int = 0

    def next_values(self) -> list[float]:
        """Settings to try next: first a grid, then the middle of the step that crosses.

        Where the risk is the same all over the grid, the given setting is tried instead.
        """
        if self.span is None:
            return [] if self.tried else [math.nan]
        if not self.tried:
            return self._first(self.span)
        if not moves(self._measured):
            known, given = {t.value for t in self.tried}, self._given
            return [v for v in (given,) if v is not None and self.span.holds(v) and v not in known]
        if self.span.is_discrete or len(self.tried) >= self._grid_size + _BISECTIONS:
            return []
        inside = sorted(self._measured, key=lambda t: t.value)
        crossing = [(a, b) for a, b in pairwise(inside) if self._meets(a) != self._meets(b)]
        if not crossing:
            return []
        a, b = crossing[-1]
        return [self.span.middle(a.value, b.value)]

    def _first(self, span: Range) -> list[float]:
        usable = [value for value in span.grid(_FIRST_GRID) if self._can_be_made(value)]
        if not usable:
            raise ParameterError(
                f"{self.contestant.label}: no value of {span.parameter} in its range can be used. "
                "Name another range in tune=."
            )
        self._grid_size = len(usable)
        return usable

    def _can_be_made(self, value: float) -> bool:
        try:
            self.method_at(value)
        except InfeasibleError:
            return False
        return True

    def _meets(self, tried: Tried) -> bool:
        return tried.risk <= self.target

    def method_at(self, value: float | None) -> Method:
        """The method with this value of its parameter."""
        if self.span is None or value is None:
            return self.contestant.method
        method: Method = with_parameter(self.contestant.method, self.span.parameter, value)
        return method

    def result(self, measure: str) -> Tuned:
        """The weakest setting that meets the target, or the strongest there is."""
        tried = tuple(sorted(self._measured, key=lambda t: t.value))
        best = self._best(tried) if tried else Tried(math.nan, math.nan, 0.0)
        return Tuned(
            label=self.contestant.label,
            measure=measure,
            parameter="" if self.span is None else self.span.parameter,
            value=None if math.isnan(best.value) else best.value,
            risk=best.risk,
            standard_error=best.standard_error,
            target=self.target,
            reached=self._meets(best),
            tried=tried,
        )

    def _best(self, tried: Sequence[Tried]) -> Tried:
        """Of settings with the same risk the one next to those with a higher risk.

        Where the parameter does not move the risk, the setting stays near the given one.
        """
        alike, aim = tried, self._given
        if moves(tried):
            meeting = [t.risk for t in tried if self._meets(t)]
            risk = max(meeting) if meeting else min(t.risk for t in tried)
            alike = [t for t in tried if t.risk == risk]
            aim = max(tried, key=lambda t: t.risk).value
        return min(alike, key=lambda t: 0.0 if aim is None else abs(t.value - aim))

    @property
    def _measured(self) -> list[Tried]:
        return [t for t in self.tried if not math.isnan(t.risk)]

    @property
    def _given(self) -> float | None:
        """The value that the method was given with."""
        method = self.contestant.method
        return None if self.span is None else value_of(method, self.span.parameter)
