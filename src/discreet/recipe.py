"""A whole run as plain data: what to tabulate, how to protect it, how to fit it.

Python, the command line and the table builder all go through `Recipe.run`, so a table that was
clicked together can be replayed from a script. A recipe holds no data, no path to a secret and no
credentials.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from discreet import registry
from discreet.design.formula import Margins, parse
from discreet.design.support import Support
from discreet.errors import DataError, ParameterError, UnknownNameError
from discreet.facade.table import Table
from discreet.files import written_whole
from discreet.release.fitting import METHODS, check_zeros

if TYPE_CHECKING:
    from discreet.facade.microdata import Microdata
    from discreet.facade.release import Release, Result

P = TypeVar("P", bound="Result")


@dataclass(frozen=True)
class Choice:
    """A registered name with plain parameters."""

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        parameters = _read_only(self.parameters, f"parameters of {self.name!r}")
        object.__setattr__(self, "parameters", parameters)

    def __reduce__(self) -> tuple[Any, ...]:
        return Choice, (self.name, dict(self.parameters))


_MAGNITUDE = ("value", "contributor", "holding", "negative", "largest")
"""Entries of [tabulate] that speak of a value."""


@dataclass(frozen=True)
class Recipe:
    """From records to a release.

    Attributes:
      margins: What is published: a formula or a list of tuples.
      method: How it is protected.
      fitter: How inner cells are recovered afterwards, if at all.
      unit: What is published, `"count"` or `"weight"`; must be said when the data have weights.
      rounding: How fitted inner cells become whole numbers, if at all.
      seed: Seed of the rounding, which works on public values; used for nothing else.
      hierarchies: Files with hierarchies, by variable.
      support: Which combinations are inner cells.
      zeros: Which inner cells the fit may fill, `"all"` or `"margins"`; as for `Release.fit`.
      magnitude: What is summed and whose it is, for tables of magnitudes: `value`, `contributor`
        and perhaps `holding`, `negative` and `largest`, as for `Microdata.tabulate`.
    """

    margins: Margins
    method: Choice
    fitter: Choice | None = None
    unit: str | None = None
    rounding: str | None = None
    seed: int | None = None
    hierarchies: Mapping[str, str] = field(default_factory=dict)
    support: Support = "all"
    zeros: str = "all"
    magnitude: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        parse(self.margins)
        _only(self.magnitude, _MAGNITUDE, "entry of [tabulate]")
        if self.rounding is not None and self.fitter is None:
            raise ParameterError("only fitted inner cells can be rounded: name a fitter.")
        if self.zeros != "all" and self.fitter is None:
            raise ParameterError("zeros says what a fit may fill: name a fitter.")
        check_zeros(self.zeros)
        if self.rounding is not None and self.rounding not in METHODS:
            raise UnknownNameError("rounding", self.rounding, METHODS)
        if (self.seed is None) != (self.rounding is None):
            raise ParameterError(
                "a recipe has a seed exactly when it rounds: give [fit] round and seed, or neither."
            )
        for name in ("hierarchies", "magnitude"):
            object.__setattr__(self, name, _read_only(getattr(self, name), name))

    def __reduce__(self) -> tuple[Any, ...]:
        return Recipe.from_dict, (self.to_dict(),)

    def tabulate(self, data: Microdata, *, inner: bool = True) -> Table:
        """The confidential table that the recipe asks for."""
        return data.tabulate(
            self.margins,
            hierarchies=self.hierarchies or None,
            support=self.support,
            **self.magnitude,
            inner=inner,
        )

    def run(
        self,
        data: Microdata | Table,
        *,
        secret: Any = None,
        ledger: Any = None,
        again: bool = False,
        previous: Any = None,
    ) -> Release:
        """Tabulate (unless a table is given), protect and fit.

        Promise: what was protected, and perhaps paid for with a budget, is returned. Where a fit
        did not reach its tolerance, the statement says so.

        Args:
          data: The records, or a table of them.
          secret: The custodian's secret, where the data do not bring it.
          ledger: The custodian's ledger, where the data do not bring it.
          again: As for `Table.protect`.
          previous: As for `Table.protect`.
        """
        if secret is not None:
            data = data.with_secret(secret)
        table = data if isinstance(data, Table) else self.tabulate(data)
        method = registry.build("method", self.method.name, self.method.parameters)
        return self.fit(
            table.protect(method, unit=self.unit, ledger=ledger, again=again, previous=previous)
        )

    def fit(self, release: P) -> P:
        """A release, or a trial, with the recipe's fit and rounding, if it has any."""
        if self.fitter is None:
            return release
        fitter = registry.build("fitter", self.fitter.name, self.fitter.parameters)
        fitted = release.fit(fitter, zeros=self.zeros, decimals=True)
        if self.rounding is None or self.seed is None:
            return fitted
        return fitted.round(self.rounding, seed=self.seed)

    def of(self, margins: Margins) -> Recipe:
        """The same recipe for other margins."""
        return replace(self, margins=margins)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, in the shape of `recipe.toml`."""
        margins = self.margins
        listed = margins if isinstance(margins, str) else [list(t) for t in parse(margins)]
        tabulate: dict[str, Any] = {"margins": listed, "support": self.support, **self.magnitude}
        if self.hierarchies:
            tabulate["hierarchies"] = dict(self.hierarchies)
        protect: dict[str, Any] = {"method": self.method.name}
        if self.unit is not None:
            protect["unit"] = self.unit
        if self.method.parameters:
            protect["parameters"] = deepcopy(dict(self.method.parameters))
        spec = {"tabulate": tabulate, "protect": protect}
        if self.fitter is not None:
            spec["fit"] = {"fitter": self.fitter.name}
            if self.fitter.parameters:
                spec["fit"]["parameters"] = deepcopy(dict(self.fitter.parameters))
            if self.zeros != "all":
                spec["fit"]["zeros"] = self.zeros
            if self.rounding is not None:
                spec["fit"] |= {"round": self.rounding, "seed": self.seed}
        return spec

    @classmethod
    def from_dict(cls, spec: Mapping[str, Any]) -> Recipe:
        """A recipe from plain data; unknown entries are an error, never ignored."""
        _only(spec, ("tabulate", "protect", "fit"), "section")
        known = ("margins", "support", "hierarchies", *_MAGNITUDE)
        tabulate = _section(spec, "tabulate", known)
        if isinstance(spec.get("protect"), Mapping) and "seed" in spec["protect"]:
            raise ParameterError(_SEED)
        protect = _section(spec, "protect", ("method", "unit", "parameters"))
        entries = ("fitter", "parameters", "zeros", "round", "seed")
        fit = {} if spec.get("fit") is None else _section(spec, "fit", entries)
        is_fitted = spec.get("fit") is not None
        return cls(
            margins=_entry(tabulate, "margins", "tabulate"),
            method=Choice(_entry(protect, "method", "protect"), protect.get("parameters", {})),
            fitter=Choice(_entry(fit, "fitter", "fit"), fit.get("parameters", {}))
            if is_fitted
            else None,
            zeros=fit.get("zeros", "all"),
            rounding=fit.get("round"),
            seed=fit.get("seed"),
            unit=protect.get("unit"),
            hierarchies=tabulate.get("hierarchies", {}),
            support=tabulate.get("support", "all"),
            magnitude={name: tabulate[name] for name in _MAGNITUDE if name in tabulate},
        )

    @classmethod
    def read(cls, path: str | Path) -> Recipe:
        """A recipe from a `recipe.toml`."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror}.") from error
        try:
            return cls.from_dict(tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise DataError(f"{path} is not valid TOML: {error}.") from error

    def write(self, path: str | Path) -> Path:
        """Write the recipe as TOML."""
        import tomli_w

        with written_whole(path) as temporary:
            temporary.write_text(tomli_w.dumps(self.to_dict()), encoding="utf-8")
        return Path(path)


_SEED = (
    "[protect] has a seed, but publication draws from a secret: whoever reads a seed can undo the "
    "noise. Remove it and run the recipe with a secret (`recipe.run(data, secret=...)`, `discreet "
    "run --secret keys.secret`); a seed for the rounding goes to [fit]."
)


def _read_only(entries: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    if not isinstance(entries, Mapping):
        raise ParameterError(f"{kind} must be a table of names and values, got {entries!r}.")
    return MappingProxyType(deepcopy(dict(entries)))


def _only(spec: Mapping[str, Any], known: tuple[str, ...], kind: str) -> None:
    for name in spec:
        if name not in known:
            raise UnknownNameError(f"recipe {kind}", name, known)


def _section(spec: Mapping[str, Any], name: str, known: tuple[str, ...]) -> Mapping[str, Any]:
    section = spec.get(name)
    if not isinstance(section, Mapping):
        raise ParameterError(f"the recipe has no [{name}] section.")
    _only(section, known, f"entry of [{name}]")
    return section


def _entry(section: Mapping[str, Any], entry: str, name: str) -> Any:
    if entry not in section:
        raise ParameterError(f"section [{name}] of the recipe needs {entry!r}.")
    return section[entry]
