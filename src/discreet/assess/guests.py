"""Measures of other packages: their faults name the plug-in, and stop only who asked for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet import registry
from discreet.assess.compare.contestants import built_from
from discreet.assess.measure import EVERYTHING, Measure, NotApplicableError, Score

if TYPE_CHECKING:
    from discreet.errors import PluginError


@dataclass(frozen=True)
class GuestMeasure:
    """A measure of a plug-in.

    Attributes:
      measure: The measure as the plug-in made it.
      registry_kind: `"measure"` or `"measure of records"`.
      registered: The name that the plug-in registers.
      is_asked: Whether it was asked for by its name. If it was not, it does not apply where it
        fails, so that other measures are taken.
    """

    measure: Measure
    registry_kind: str
    registered: str
    is_asked: bool

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
        fault = registry.fault(self.registry_kind, self.registered, why)
        return fault if self.is_asked else NotApplicableError(str(fault))


def every_measure(kind: str) -> list[Measure]:
    """Every measure of tables or of records."""
    found = registry.each(kind, texts=("name", "kind"), calls=("__call__",))
    return [_welcomed(kind, name, measure, is_asked=False) for name, measure in found.items()]


def measure_from(kind: str, given: str | Measure) -> Measure:
    """A measure from a text such as ``"unchanged-small-cells:small=3"``; others pass through."""
    if not isinstance(given, str):
        return given
    name = given.partition(":")[0].strip()
    return _welcomed(kind, name, built_from(kind, given), is_asked=True)


def _welcomed(kind: str, name: str, measure: Measure, *, is_asked: bool) -> Measure:
    if name in registry.KINDS[kind]:
        return measure
    return GuestMeasure(measure, kind, name, is_asked)
