"""What an office asks of a publication before it leaves the house, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from discreet import registry
from discreet.errors import ParameterError, check_known
from discreet.tables.statement import plain_data

DEFAULT, OFF = "default", "off"
ATTACKS = (
    "integer-reconstruction",
    "bounds",
    "complements",
    "contributor",
    "group-attributes",
    "nested-crossings",
    "refit-log-linear",
    "averages",
)
"""The default set: attacks on one release, the exact ones first. Those left out need other releases
or synthetic records, or take minutes where these take a second."""


@dataclass(frozen=True)
class Gate:
    """The section `[gate]` of a publication.

    Attributes:
      attack: `"default"`, `"off"`, or names of attacks.
      provably_fixed: How many people may be certain: the same in every table that agrees with a
        release, in cells of fewer than `small` people or in cells that it does not show.
      small: Cells of fewer people single somebody out, also where they are shown as they are.
      lift: The largest lift of an attack on people or on hidden cells; a method is stopped where
        it is above beyond chance.
      seconds: Processor time of all attacks together; what is not finished then is not judged.
    """

    attack: str | tuple[str, ...] = DEFAULT
    provably_fixed: int = 0
    small: int = 3
    lift: float = 0.1
    seconds: float = 60.0

    def __post_init__(self) -> None:
        if isinstance(self.attack, str) and self.attack not in (DEFAULT, OFF):
            raise ParameterError(
                f"[gate] attack is 'default', 'off' or a list of attacks, got {self.attack!r}; one "
                f"attack is a list as well: attack = [{self.attack!r}]."
            )
        for name in self.attacks:
            registry.load("attack", name)
        for name in ("provably_fixed", "small"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise ParameterError(
                    f"[gate] {name} is a whole number, zero or more, got {value!r}."
                )
        for name, most in (("lift", 1.0), ("seconds", float("inf"))):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ParameterError(f"[gate] {name} is a number, got {value!r}.")
            if not 0 <= value <= most:
                raise ParameterError(f"[gate] {name} lies between 0 and {most:g}, got {value!r}.")

    @property
    def is_off(self) -> bool:
        """Whether nothing is attacked."""
        return self.attack == OFF

    @property
    def attacks(self) -> tuple[str, ...]:
        """Names of the attacks."""
        if isinstance(self.attack, tuple):
            return self.attack
        return () if self.is_off else ATTACKS

    def to_dict(self) -> dict[str, Any]:
        """Plain data; what is as usual is left out."""
        return changed_entries(self)

    @classmethod
    def from_dict(cls, spec: Mapping[str, Any]) -> Gate:
        """The inverse of `to_dict`."""
        if not isinstance(spec, Mapping):
            raise ParameterError(f"[gate] is a section such as attack = 'off', got {spec!r}.")
        known = tuple(f.name for f in fields(cls))
        check_known("publication entry of [gate]", spec, known)
        given: dict[str, Any] = dict(spec)
        if isinstance(given.get("attack"), list):
            given["attack"] = tuple(given["attack"])
        return cls(**given)


def changed_entries(section: Any) -> dict[str, Any]:
    """The entries of a section that are not as usual, as plain data."""
    given = {f.name: getattr(section, f.name) for f in fields(section)}
    usual = type(section)()
    return {k: plain_data(v) for k, v in given.items() if v != getattr(usual, k)}


def check_kind(place: str, value: object, usual: object) -> None:
    """Refuse an entry that is no text, or no list of texts, as its usual value is."""
    if isinstance(usual, str) and not isinstance(value, str):
        raise ParameterError(f"{place} is a text in quotation marks, got {value!r}.")
    is_list = isinstance(value, (list, tuple)) and all(isinstance(text, str) for text in value)
    if isinstance(usual, tuple) and not is_list:
        shown = f', such as ["{value}"]' if isinstance(value, str) else ""
        raise ParameterError(f"{place} is a list of texts{shown}, got {value!r}.")
