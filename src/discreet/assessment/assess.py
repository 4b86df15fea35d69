"""Every measure of a table and its release, in one tidy table.

Measures of other packages take part; their faults name the plug-in, and stop only who asked for
them by name.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from discreet import display, registry
from discreet.assessment.compare.contestants import build_from
from discreet.assessment.measure import EVERYTHING, Measure, NotApplicableError, Score
from discreet.display import Display, Displayed, Grid
from discreet.display.bars import shows_progress
from discreet.errors import DesignError, ParameterError, PluginError, UnknownNameError, check_known
from discreet.facade.table import Table
from discreet.frames import Frame
from discreet.progress import report
from discreet.release.inference.law import matrix_of
from discreet.tables import show
from discreet.tables.protected import Protected
from discreet.tables.truth import TrueTable

Key = TypeVar("Key", bound=Hashable)
Thing = TypeVar("Thing", bound=Hashable)
HEADER = ("measure", "on", "value", "range", "reading")


@dataclass(frozen=True)
class Skipped:
    """A measure that does not apply, and why."""

    name: str
    kind: str
    reason: str


class Framed(show.Frames):
    """Something that is a table; any library that reads Arrow takes it as one."""

    if TYPE_CHECKING:

        @property
        def frame(self) -> Frame:
            """The table."""

    def to_frame(self) -> Frame:
        """The table."""
        return self.frame


@dataclass(frozen=True, repr=False)
class Assessment(Displayed, Framed):
    """**Confidential.** Scores of a table and its release, and the measures that do not apply.

    Any library that reads Arrow takes it as a table: `polars.DataFrame(assessment)`.
    """

    scores: tuple[Score, ...]
    skipped: tuple[Skipped, ...] = ()

    @property
    def frame(self) -> Frame:
        """A row per measure: measure, kind, on, value, low, high, reading, note.

        The note says why a measure does not apply; its value is then missing.
        """
        numbers = dict.fromkeys(("value", "low", "high"), "float64")
        names = ("measure", "kind", "on", "value", "low", "high", "reading", "note")
        rows: list[tuple[Any, ...]] = [
            (s.name, s.kind, s.on, s.value, *s.range, s.reading, None) for s in self.scores
        ]
        rows += [(s.name, s.kind, *[None] * 5, s.reason) for s in self.skipped]
        kinds = {name: numbers.get(name, "string") for name in names}
        return Frame.from_rows([dict(zip(names, r, strict=True)) for r in rows], kinds)

    def __getitem__(self, name: str) -> Score:
        """The score of one measure."""
        for score in self.scores:
            if score.name == name:
                return score
        for skipped in self.skipped:
            if skipped.name == name:
                raise NotApplicableError(f"measure {name!r} does not apply: {skipped.reason}")
        raise UnknownNameError("measure", name, dict.fromkeys(s.name for s in self.scores))

    def __iter__(self) -> Iterator[Score]:
        return iter(self.scores)

    def __len__(self) -> int:
        return len(self.scores)

    def __repr__(self) -> str:
        lines = ["Assessment (confidential)"]
        for kind in ("risk", "utility", "description"):
            chosen = [_score_row(s) for s in self.scores if s.kind == kind]
            if chosen:
                lines += ["", kind.capitalize(), *align_columns([HEADER, *chosen], right=[2])]
        if self.skipped:
            lines += ["", "Not applicable"]
            lines += [f"  {', '.join(names)}: {why}" for why, names in self._reasons().items()]
        return "\n".join(lines)

    def _reasons(self) -> dict[str, list[str]]:
        """Measures that do not apply, by the reason."""
        return group_by_key((s.reason, s.name) for s in self.skipped)

    def _display(self) -> Display:
        kinds = ("risk", "utility", "description")
        scores = {kind: [_score_row(s) for s in self.scores if s.kind == kind] for kind in kinds}
        grids = [
            Grid.of([HEADER, *rows], kind.capitalize(), right=[2])
            for kind, rows in scores.items()
            if rows
        ]
        lacking = [f"{', '.join(names)}: {why}" for why, names in self._reasons().items()]
        lines = [("Not applicable", lacking)] if lacking else []
        return Display("Assessment", "confidential", grids=grids, lines=lines)


@shows_progress("measuring risk and utility")
def assess(
    table: Table | Any,
    release: Protected | Any,
    measures: Sequence[str | Measure] | None = None,
    **options: Any,
) -> Assessment:
    """Every measure of risk and utility of a release against what it was made from.

    The result is confidential: it is a function of true counts or records. Measures that do not
    apply are listed with the reason. Values are compared in the unit of the release.

    Args:
      table: The true table; or the original records, as `Microdata` or a frame.
      release: What is published of it; or the synthetic records.
      measures: Names, such as ``"unchanged-small-cells:small=3"``, or measures; all by default.
      **options: Given to every measure that has an option of this name, such as
        `sensitive="party"`, `mechanism=ptable`, `fitter=NonNegative()`, `small=3` of tables, and
        `control=others`, `target="illness"`, `keys=("age", "sex")` of records. The
        mechanism is that of the release's own statement unless it is given.

    Raises:
      UnknownNameError: No measure of this name, or none with this option.
      PluginError: A measure of a plug-in failed that was asked for by its name; without names it
        is listed among those that do not apply.
    """
    kind = "measure" if isinstance(table, TrueTable) else "measure of records"
    chosen = every_measure(kind) if measures is None else [measure_from(kind, m) for m in measures]
    # The law of weak private noise has thousands of rows: it is made for measures that ask for it.
    asks = kind == "measure" and any(getattr(m, "mechanism", 0) is None for m in chosen)
    told = _mechanism_told(release) if asks and "mechanism" not in options else {}
    built = [_with_options(m, {**_unset(m, told), **options}) for m in chosen]
    known = sorted({name for measure in built for name in options_of(measure)})
    check_known("option of these measures", options, known)
    scores, skipped = [], []
    for k, measure in enumerate(built):
        report("measures", k / len(built))
        try:
            scores.append(measure(table, release))
        except NotApplicableError as error:
            skipped.append(Skipped(measure.name, measure.kind, str(error)))
    return Assessment(tuple(scores), tuple(skipped))


def _mechanism_told(release: Any) -> dict[str, Any]:
    """The law of the noise as an option of measures, where the release's own statement tells it."""
    try:
        return {"mechanism": matrix_of(release)}
    except (DesignError, ParameterError):
        return {}


def _unset(measure: Measure, told: Mapping[str, Any]) -> dict[str, Any]:
    """What is told of the options that a measure has and that nobody chose."""
    return {name: value for name, value in told.items() if getattr(measure, name, 0) is None}


def options_of(measure: Measure) -> list[str]:
    """Names of the options; a measure that is no dataclass has none."""
    if isinstance(measure, PluginMeasure):
        return options_of(measure.measure)
    return [field.name for field in fields(measure)] if is_dataclass(measure) else []


def _with_options(measure: Measure, options: Mapping[str, Any]) -> Measure:
    """The measure with those of the options that it has."""
    if isinstance(measure, PluginMeasure):
        return replace(measure, measure=_with_options(measure.measure, options))
    own = {name: options[name] for name in options_of(measure) if name in options}
    return replace(measure, **own) if is_dataclass(measure) and own else measure


def _score_row(score: Score) -> tuple[str, ...]:
    low, high = (f"{end:g}".replace("inf", "∞") for end in score.range)
    return score.name, score.on, f"{score.value:.4g}", f"{low} to {high}", score.reading


@dataclass(frozen=True)
class PluginMeasure:
    """A measure of a plug-in."""

    measure: Measure  # the measure as the plug-in made it
    registry_kind: str  # `"measure"` or `"measure of records"`
    registered: str  # the name that the plug-in registers
    is_asked: bool  # whether it was asked for by its name; if not, it does not apply where it fails

    @property
    def name(self) -> str:
        """The measure's own name."""
        return getattr(self.measure, "name", self.registered)

    @property
    def kind(self) -> Any:
        """What it measures."""
        return getattr(self.measure, "kind", "description")

    @property
    def range(self) -> tuple[float, float]:
        """Smallest and largest value it can take."""
        return getattr(self.measure, "range", EVERYTHING)

    @property
    def direction(self) -> str:
        """Which values are better (safer)."""
        return getattr(self.measure, "direction", "lower")

    def __call__(self, table: Any, release: Any) -> Score:
        """The score, or an error that names the plug-in."""
        try:
            score: Any = self.measure(table, release)
        except NotApplicableError:
            raise
        except Exception as error:  # whatever another package's code raises
            raise self._fault(f"{type(error).__name__}: {error}") from error
        if not isinstance(score, Score):
            raise self._fault(f"a Score was expected, not {type(score).__name__}")
        return score

    def _fault(self, why: str) -> NotApplicableError | PluginError:
        # Who asked for every measure wants the others; who asked for this one wants the error.
        fault = registry.fault(self.registry_kind, self.registered, why)
        return fault if self.is_asked else NotApplicableError(str(fault))


def every_measure(kind: str) -> list[Measure]:
    """Every measure of tables or of records."""
    found = registry.each(kind, texts=("name", "kind"), calls=("__call__",))
    return [_guard_plugin(kind, name, measure, is_asked=False) for name, measure in found.items()]


_LIFT = "discreet.attacks.lift:AttackLift"  # above this floor, as other measures of attacks are


def measure_from(kind: str, given: str | Measure) -> Measure:
    """A measure from a text such as ``"unchanged-small-cells:small=3"``; others pass through.

    The name of an attack is its lift as a measure of risk.
    """
    if not isinstance(given, str):
        return given
    name = given.partition(":")[0].strip()
    if kind == "measure" and name not in registry.names(kind) and name in registry.names("attack"):
        as_risk: Measure = registry.load_path(_LIFT)(build_from("attack", given))
        return as_risk
    return _guard_plugin(kind, name, build_from(kind, given), is_asked=True)


def _guard_plugin(kind: str, name: str, measure: Measure, *, is_asked: bool) -> Measure:
    if name in registry.KINDS[kind]:
        return measure
    return PluginMeasure(measure, kind, name, is_asked)


def align_columns(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Columns under each other, indented; some of them to the right."""
    return [f"  {line}" for line in display.align_columns(rows, right)]


def group_by_key(pairs: Iterable[tuple[Key, Thing]]) -> dict[Key, list[Thing]]:
    """Things by key, in order and each once.

    >>> group_by_key([("b", 1), ("a", 2), ("b", 3), ("b", 1)])
    {'b': [1, 3], 'a': [2]}
    """
    found: dict[Key, dict[Thing, None]] = {}
    for key, thing in pairs:
        found.setdefault(key, {})[thing] = None
    return {key: list(things) for key, things in found.items()}
