"""Bring every method to the same risk first, then compare utility.

Langsrud & Lupp (2021), section 8: decide the acceptable risk, tune each method to it, and let
the utility decide. Each method has one parameter that sets its strength, with a usual range.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from discreet.assessment.assess import measure_from
from discreet.assessment.compare.contestants import Contestant, label_of
from discreet.assessment.compare.execution import Execution
from discreet.assessment.compare.job import Job, options_for
from discreet.assessment.compare.summary import select_rows, summarise
from discreet.assessment.measure import Measure
from discreet.errors import InfeasibleError, ParameterError, UnknownNameError, check_known
from discreet.noise.entropy import perturbation_table, variance_range
from discreet.noise.matrix import TransitionMatrix
from discreet.randomness import stream
from discreet.tables.protected import Method

TASK = "tuning to equal risk"

# A grid first, since risks need not fall or rise all the way; then halvings of the step in which
# the risk crosses the target. Seven points and six halvings find an ε of 0.05 to 20 within 2 %.
_FIRST_GRID = 7
_BISECTIONS = 6
_MOST_WHOLE = 25  # whole numbers that are all tried; of a longer range every second, third, …
_MOVES = 3.0  # standard errors between the lowest and the highest of several risks


@dataclass(frozen=True)
class ParameterRange:
    """Values of one parameter."""

    parameter: str  # its name
    low: float = 0.0  # smallest value
    high: float = 0.0  # largest value
    whole: bool = False  # whether only whole numbers will do
    logarithmic: bool = True  # whether steps are factors
    values: tuple[float, ...] = ()  # A list of values instead of a range

    def __post_init__(self) -> None:
        if not self.values and not self.low < self.high:
            raise ParameterError(
                f"the range of {self.parameter} must go upwards, got {self.low:g} to {self.high:g}."
            )

    @classmethod
    def of(cls, *given: Any) -> ParameterRange:
        """A range from ``("epsilon", 0.1, 10)`` or ``("cap", [1, 2, 5])``."""
        parameter, *values = given or ("",)
        if len(values) == 2 and not isinstance(values[0], Sequence):
            low, high = values
            whole = isinstance(low, int) and isinstance(high, int)
            return cls(parameter, low, high, whole=whole, logarithmic=low > 0)
        if len(values) == 1 and isinstance(values[0], Sequence) and values[0]:
            return cls(parameter, values=tuple(values[0]))
        raise ParameterError(
            f"give a range as (name, low, high) or (name, [value, …]) with at least one value, or "
            f"None to keep the method as it is; got {given}."
        )

    @property
    def is_discrete(self) -> bool:
        """Whether all values of interest are in the grid."""
        return self.whole or bool(self.values)

    def holds(self, value: float) -> bool:
        """Whether a value is one of these."""
        return value in self.values if self.values else self.low <= value <= self.high

    def grid(self, points: int) -> list[float]:
        """Values spread over the range; all of them where they are listed or few."""
        if self.values:
            return list(self.values)
        if self.whole:
            step = max(1, int(self.high - self.low) // _MOST_WHOLE)
            return list(range(int(self.low), int(self.high) + 1, step))
        spaced = np.geomspace if self.logarithmic else np.linspace
        return [float(v) for v in spaced(self.low, self.high, points)]

    def middle(self, a: float, b: float) -> float:
        """The value half-way between two."""
        return float(np.sqrt(a * b)) if self.logarithmic else (a + b) / 2


Tuning = Mapping[str, ParameterRange | Sequence[Any] | None]


class Tried(NamedTuple):
    """One setting of a method and the risk it has."""

    value: float
    risk: float
    standard_error: float


def is_risk_moved(tried: Sequence[Tried]) -> bool:
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
        if not is_risk_moved(self.tried):
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
    try:
        measure, target = goal
        measure, target = str(measure), float(target)
    except (TypeError, ValueError):
        wanted = "a measure and a target, such as ('exact-disclosure-own', 0.5)"
        raise ParameterError(f"equal_risk needs {wanted}; got {goal!r}.") from None
    names = dict.fromkeys(name for c in job.contestants for name in (c.label, c.method.name))
    check_known("method to tune", tune, names)
    chosen = _measure_of(job, measure)
    judged = replace(
        job,
        measures=(chosen,),
        options=options_for([chosen], job.options),
        seed=int(stream(job.seed, TASK).integers(2**62)),
    )
    folder = None if how.resume is None else how.resume.with_name(f"{how.resume.name}-tuning")
    within = Execution(how.replicates, how.workers, folder)
    searches = [StrengthSearch(c, _range_of(c, tune), target) for c in job.contestants]
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


def _range_of(contestant: Contestant, tune: Tuning) -> ParameterRange | None:
    """The range given for the label or the method's name, or the usual one.

    `None` keeps a method as it is, and so does a chosen value of the parameter usually tuned.
    """
    for name in (contestant.label, contestant.method.name):
        if name in tune:
            given = tune[name]
            if given is None or isinstance(given, ParameterRange):
                return given
            return ParameterRange.of(*given)
    method, usual = contestant.method, range_for(contestant.method)
    if usual is None:
        return None
    # A strength without a default, such as ε, must be given: it is a place to start from. One of
    # two names for it, ρ or ε, stands at `None` where the other is given.
    known = getattr(method, "__dataclass_fields__", {}).get(usual.parameter)
    default = getattr(known, "default", MISSING)
    is_chosen = default not in (MISSING, None) and getattr(method, usual.parameter) != default
    return None if is_chosen else usual


def _risks(
    job: Job, how: Execution, asked: Sequence[tuple[StrengthSearch, float]], measure: str
) -> tuple[str, list[tuple[float, float]]]:
    """The measure with its stage; mean risk and standard error of some settings.

    Of several fitters the worst counts. A risk that cannot be measured is not-a-number.
    """
    settings = tuple(Contestant(f"{n}", s.method_at(v)) for n, (s, v) in enumerate(asked))
    frame = summarise(how.scores(replace(job, contestants=settings), TASK), job.measures)
    chosen = select_rows(frame, measure)
    found = []
    for setting in settings:
        lines = [x for x in chosen.lines if x["label"] == setting.label]
        worst = max(lines, key=lambda x: x["mean"], default={"mean": math.nan})
        error = worst.get("standard_error", math.nan)
        found.append((worst["mean"], 0.0 if math.isnan(error) else error))
    return f"{chosen.measure}@{chosen.stage}", found


@dataclass
class StrengthSearch:
    """The settings of one method that were tried so far."""

    contestant: Contestant  # the method as it was given
    span: ParameterRange | None  # the parameter to tune and its range; nothing is tuned without one
    target: float  # the risk to reach
    tried: list[Tried] = field(default_factory=list)  # settings and their risks
    _grid_size: int = 0

    def next_values(self) -> list[float]:
        """Settings to try next: first a grid, then the middle of the step that crosses.

        Where the risk is the same all over the grid, the given setting is tried instead.
        """
        if self.span is None:
            return [] if self.tried else [math.nan]
        if not self.tried:
            return self._first_grid(self.span)
        if not is_risk_moved(self._with_risk):
            own = self._own_value
            is_new = own not in {t.value for t in self.tried}
            return [own] if own is not None and self.span.holds(own) and is_new else []
        if self.span.is_discrete or len(self.tried) >= self._grid_size + _BISECTIONS:
            return []
        inside = sorted(self._with_risk, key=lambda t: t.value)
        crossing = [(a, b) for a, b in pairwise(inside) if self._meets(a) != self._meets(b)]
        if not crossing:
            return []
        a, b = crossing[-1]
        return [self.span.middle(a.value, b.value)]

    def _first_grid(self, span: ParameterRange) -> list[float]:
        usable = []
        for value in span.grid(_FIRST_GRID):
            with suppress(InfeasibleError):  # a perturbation table that cannot be made
                self.method_at(value)
                usable.append(value)
        if not usable:
            raise ParameterError(
                f"{self.contestant.label}: no value of {span.parameter} in its range can be used. "
                "Name another range in tune=."
            )
        self._grid_size = len(usable)
        return usable

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
        tried = tuple(sorted(self._with_risk, key=lambda t: t.value))
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
        alike, aim = tried, self._own_value
        if is_risk_moved(tried):
            meeting = [t.risk for t in tried if self._meets(t)]
            risk = max(meeting) if meeting else min(t.risk for t in tried)
            alike = [t for t in tried if t.risk == risk]
            aim = max(tried, key=lambda t: t.risk).value
        return min(alike, key=lambda t: 0.0 if aim is None else abs(t.value - aim))

    @property
    def _with_risk(self) -> list[Tried]:
        return [t for t in self.tried if not math.isnan(t.risk)]

    @property
    def _own_value(self) -> float | None:
        """The value that the method came with, of its own or of its perturbation table."""
        if self.span is None:
            return None
        method, name = self.contestant.method, self.span.parameter
        designed = getattr(getattr(method, "matrix", None), "parameters", {})
        value = getattr(method, name, designed.get(name))
        return value if isinstance(value, (int, float)) else None


_USUAL = {
    "discrete-gaussian": ParameterRange("rho", 0.001, 50.0),
    "discrete-laplace": ParameterRange("epsilon", 0.05, 20.0),
    "laplace": ParameterRange("epsilon", 0.05, 20.0),
    "pram": ParameterRange("epsilon", 0.1, 6.0),
    "drop-add": ParameterRange("share", 0.01, 1.0),
    "safe": ParameterRange("min_count", 2, 12, whole=True),
    "small-count-rounding": ParameterRange("base", 2, 15, whole=True),
    "controlled-rounding": ParameterRange("base", 2, 15, whole=True),
}


def range_for(method: Method) -> ParameterRange | None:
    """The usual range of a method; `None` when it has no parameter that sets its strength."""
    matrix = getattr(method, "matrix", None)
    if method.name == "cell-key" and isinstance(matrix, TransitionMatrix):
        return _variances(matrix)
    if method.name == "pram" and matrix is not None:
        return ParameterRange("alpha", 0.05, 1.0) if getattr(method, "invariant", False) else None
    usual = _USUAL.get(method.name)
    if method.name == "discrete-gaussian" and getattr(method, "epsilon", None) is not None:
        return ParameterRange("epsilon", 0.05, 20.0)  # ρ is given, or ε with δ
    return usual


def with_parameter(method: Method, name: str, value: float) -> Any:
    """The method with another value of one parameter, of its own or of its perturbation table."""
    if not is_dataclass(method) or isinstance(method, type):
        raise ParameterError(f"method {method.name!r} has no parameters that could be set.")
    known = [field.name for field in fields(method)]
    if name in known:
        return replace(method, **{name: value})
    matrix = getattr(method, "matrix", None)
    if isinstance(matrix, TransitionMatrix) and {"D", "V", name} <= matrix.parameters.keys():
        made = perturbation_table(**{**matrix.parameters, name: value})
        return replace(method, **{"matrix": made})
    raise UnknownNameError(f"parameter of method {method.name!r}", name, known)


def _variances(matrix: TransitionMatrix) -> ParameterRange | None:
    """The variances that a designed perturbation table can have with its other parameters."""
    made = dict(matrix.parameters)
    if not {"D", "V", "js"} <= made.keys():
        return None
    span = variance_range(made["D"], made["js"], made.get("pstay"), made.get("mono", True))
    if span is None or not span[0] < span[1]:
        return None
    low, high = span
    # Near the ends rows of the table have nearly no freedom, and are not always found.
    edge = 0.01 * (high - low)
    return ParameterRange("V", low + edge, high - edge, logarithmic=False)
