"""A publication as plain data: a set of tables from data to files, period after period.

Python, the command line and the table builder all go through `Publication.run`, so a table that was
clicked together can be replayed from a script. The sections of a `publication.toml` are
`[publication]` (titles, formats, where), `[data]` (what `discreet.open` takes), `[tables]`,
`[tabulate]`, `[protect]`, `[fit]` and `[gate]`; a site's file needs those from `[tabulate]` on. A
publication holds paths to records and to a secret at most, never the secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from discreet import registry
from discreet.design.formula import Margins, parse
from discreet.design.support import Support
from discreet.errors import ParameterError, UnknownNameError, check_known
from discreet.facade.table import Table
from discreet.files import read_toml, write_text
from discreet.publication.rules import Gate, changed_entries, check_kind
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


_PATHS = ("source", "codes", "secret", "ledger", "keys", "random_keys", "metadata")
"""Entries of [data] that name files."""
_MAGNITUDE = ("value", "contributor", "holding", "negative", "largest")
"""Entries of [tabulate] that speak of a value."""


@dataclass(frozen=True)
class Outlet:
    """What readers are told of a publication, in which formats, and where the files lie.

    Attributes:
      name: A short name, that of its files.
      title: What the publication is called.
      source: Who made the figures.
      licence: The terms of use.
      contact: Who answers questions.
      footnotes: What readers must know of all tables.
      formats: Formats of the tables.
      languages: Languages of the notes; the first is that of the tables.
      folder: Where editions are published, a folder for each.
      log: Where confidential logs are kept, a folder for each edition.
      time: What periods are called, `"year"`, where editions are periods; they have series then.
    """

    name: str = "publication"
    title: str = ""
    source: str = ""
    licence: str = ""
    contact: str = ""
    footnotes: tuple[str, ...] = ()
    formats: tuple[str, ...] = ("xlsx", "csv")
    languages: tuple[str, ...] = ("en",)
    folder: str = "published"
    log: str = "confidential"
    time: str = ""

    def __post_init__(self) -> None:
        for each in fields(self):
            check_kind(f"[publication] {each.name}", getattr(self, each.name), each.default)
        for name in self.formats:
            registry.load("format", name)

    def to_dict(self) -> dict[str, Any]:
        """Plain data; what is as usual is left out."""
        return changed_entries(self)

    @classmethod
    def from_dict(cls, spec: Mapping[str, Any]) -> Outlet:
        """The inverse of `to_dict`."""
        _only(spec, tuple(f.name for f in fields(cls)), "entry of [publication]")
        given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in spec.items()}
        return cls(**given)


@dataclass(frozen=True)
class Publication:
    """From records to a release, and to the files that are handed out.

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
      data: What `discreet.open` takes, `source` first; empty where the records come otherwise.
      outlet: What readers are told, in which formats, and where the files lie.
      told: Titles and footnotes of single tables, by their names.
      gate: What attacks may find before it is published; the usual rules when absent.
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
    data: Mapping[str, Any] = field(default_factory=dict)
    outlet: Outlet = field(default_factory=lambda: Outlet())
    told: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    gate: Gate | None = None

    def __post_init__(self) -> None:
        crossed = {name.partition("[")[0] for term in parse(self.margins) for name in term}
        if self.time in crossed:
            raise ParameterError(
                f"tables are crossed with {self.time!r}, which tells periods: each period is an "
                "edition, and series have all of them. Leave it out of the margins."
            )
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
                "a publication has a seed exactly when it rounds: give [fit] round and seed, or "
                "neither."
            )
        for name in ("hierarchies", "magnitude", "data", "told"):
            object.__setattr__(self, name, _read_only(getattr(self, name), name))

    def __reduce__(self) -> tuple[Any, ...]:
        return Publication.from_dict, (self.to_dict(),)

    def tabulate(self, data: Microdata, **options: Any) -> Table:
        """The confidential table that the publication asks for.

        Options are `engine` and `inner` as for `Microdata.tabulate`.
        """
        return data.tabulate(
            self.margins,
            hierarchies=self.hierarchies or None,
            support=self.support,
            **self.magnitude,
            **options,
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
        method, _ = self.build()  # before anything is drawn or paid for
        table = data if isinstance(data, Table) else self.tabulate(data)
        return self.fit(
            table.protect(method, unit=self.unit, ledger=ledger, again=again, previous=previous)
        )

    def build(self) -> tuple[Any, Any]:
        """The method and the fitter, if there is one; names and parameters are checked."""
        method = registry.build("method", self.method.name, self.method.parameters)
        return method, self._build_fitter()

    def _build_fitter(self) -> Any:
        if self.fitter is None:
            return None
        return registry.build("fitter", self.fitter.name, self.fitter.parameters)

    def fit(self, release: P) -> P:
        """A release, or a trial, with the publication's fit and rounding, if it has any."""
        fitter = self._build_fitter()
        if fitter is None:
            return release
        # what is handed out in files has whole counts unless another rounding is asked for
        keeps_decimals: bool | None = self.rounding is not None or not self.data
        if not keeps_decimals and not release.makes_whole:
            keeps_decimals = None  # experiments as usual
        fitted = release.fit(fitter, zeros=self.zeros, decimals=keeps_decimals)
        if self.rounding is None or self.seed is None:
            return fitted
        return fitted.round(self.rounding, seed=self.seed)

    def of(self, margins: Margins) -> Publication:
        """The same for other margins."""
        return replace(self, margins=margins)

    @property
    def rules(self) -> Gate:
        """What attacks may find."""
        return self.gate or Gate()

    @property
    def time(self) -> str:
        """What periods are called; empty where editions are none."""
        column = self.data.get("time", "")
        return self.outlet.time or (column if isinstance(column, str) else "")

    def at(self, base: Path) -> Publication:
        """The publication with its paths, which are relative to this folder, made whole."""
        data = dict(self.data)
        for name in _PATHS:
            if isinstance(data.get(name), str) and is_local(data[name]):
                data[name] = str(base / data[name])
        if isinstance(data.get("hierarchies"), Mapping):
            data["hierarchies"] = _under(base, data["hierarchies"])
        return replace(self, data=data, hierarchies=_under(base, self.hierarchies))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, in the shape of a `publication.toml`; empty sections are left out."""
        outlet, data = self.outlet.to_dict(), deepcopy(dict(self.data))
        first = {"publication": outlet, "data": data, "tables": self._tables_to_dict()}
        spec = {name: section for name, section in first.items() if section}
        tabulate: dict[str, Any] = {"support": self.support, **self.magnitude}
        if "tables" not in spec:
            tabulate = {"margins": _plain(self.margins), **tabulate}
        if self.hierarchies:
            tabulate["hierarchies"] = dict(self.hierarchies)
        protect: dict[str, Any] = {"method": self.method.name}
        if self.unit is not None:
            protect["unit"] = self.unit
        if self.method.parameters:
            protect["parameters"] = deepcopy(dict(self.method.parameters))
        spec |= {"tabulate": tabulate, "protect": protect}
        if self.fitter is not None:
            spec["fit"] = {"fitter": self.fitter.name}
            if self.fitter.parameters:
                spec["fit"]["parameters"] = deepcopy(dict(self.fitter.parameters))
            if self.zeros != "all":
                spec["fit"]["zeros"] = self.zeros
            if self.rounding is not None:
                spec["fit"] |= {"round": self.rounding, "seed": self.seed}
        if self.gate is not None:
            spec["gate"] = self.gate.to_dict()
        return spec

    def _tables_to_dict(self) -> dict[str, Any]:
        """Sections of the tables that have names of their own."""
        if not isinstance(self.margins, Mapping):
            return {}
        told = self.told
        return {n: {"margins": _plain(m), **told.get(n, {})} for n, m in self.margins.items()}

    @classmethod
    def from_dict(cls, spec: Mapping[str, Any]) -> Publication:
        """A publication from plain data; unknown entries are an error, never ignored."""
        _only(
            spec, ("publication", "data", "tables", "tabulate", "protect", "fit", "gate"), "section"
        )
        known = ("margins", "support", "hierarchies", *_MAGNITUDE)
        tables = _tables(spec)
        if not tables and "tabulate" not in spec:
            raise ParameterError(_NO_TABLES)
        tabulate = _section({"tabulate": {}, **spec} if tables else spec, "tabulate", known)
        if tables and "margins" in tabulate:
            raise ParameterError("name the margins in [tables] or in [tabulate], not in both.")
        if isinstance(spec.get("protect"), Mapping) and "seed" in spec["protect"]:
            raise ParameterError(_SEED)
        protect = _section(spec, "protect", ("method", "unit", "parameters"))
        entries = ("fitter", "parameters", "zeros", "round", "seed")
        fit = {} if spec.get("fit") is None else _section(spec, "fit", entries)
        is_fitted = spec.get("fit") is not None
        return cls(
            margins={name: each["margins"] for name, each in tables.items()}
            or _entry(tabulate, "margins", "tabulate"),
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
            data=_read_only(spec.get("data", {}), "[data]"),
            outlet=Outlet.from_dict(spec.get("publication", {})),
            told={n: {k: v for k, v in t.items() if k != "margins"} for n, t in tables.items()},
            gate=Gate.from_dict(spec["gate"]) if "gate" in spec else None,
        )

    @classmethod
    def read(cls, path: str | Path) -> Publication:
        """A publication from its file."""
        return cls.from_dict(read_toml(path))

    def write(self, path: str | Path) -> Path:
        """Write the publication as TOML."""
        import tomli_w

        return write_text(path, tomli_w.dumps(self.to_dict()))


_NO_TABLES = (
    'the publication has no tables: name each in a section of its own, [tables."Age by region"] '
    'with margins = "region*age".'
)
_SEED = (
    "[protect] has a seed, but publication draws from a secret: whoever reads a seed can undo the "
    "noise. Remove it and run the publication with a secret (`publication.run(data, secret=...)`, "
    "or [data] secret = 'keys.secret'); a seed for the rounding goes to [fit]."
)


def is_local(text: str) -> bool:
    """Whether a source is a path, and no address or table of a database."""
    return "://" not in text and not text.startswith("::")


def _under(base: Path, named: Mapping[str, Any]) -> dict[str, Any]:
    """Files of hierarchies by variable, one or several each."""
    return {
        variable: str(base / files)
        if isinstance(files, str)
        else [str(base / file) for file in files]
        for variable, files in named.items()
    }


def _read_only(entries: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    if not isinstance(entries, Mapping):
        raise ParameterError(f"{kind} must be a table of names and values, got {entries!r}.")
    return MappingProxyType(deepcopy(dict(entries)))


def _only(spec: Mapping[str, Any], known: tuple[str, ...], kind: str) -> None:
    check_known(f"publication {kind}", spec, known)


def _section(spec: Mapping[str, Any], name: str, known: tuple[str, ...]) -> Mapping[str, Any]:
    section = spec.get(name)
    if not isinstance(section, Mapping):
        raise ParameterError(f"the publication has no [{name}] section.")
    _only(section, known, f"entry of [{name}]")
    return section


def _entry(section: Mapping[str, Any], entry: str, name: str) -> Any:
    if entry not in section:
        raise ParameterError(f"section [{name}] of the publication needs {entry!r}.")
    return section[entry]


def _tables(spec: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The sections of single tables by their names."""
    found = _read_only(spec.get("tables", {}), "[tables]")
    for name, section in found.items():
        if not isinstance(section, Mapping) or "margins" not in section:
            raise ParameterError(f"[tables.{name!r}] needs margins, such as 'region*age'.")
        _only(section, ("margins", "title", "footnotes"), f"entry of [tables.{name!r}]")
        check_kind(f"[tables.{name!r}] title", section.get("title", ""), "")
        check_kind(f"[tables.{name!r}] footnotes", section.get("footnotes", ()), ())
    return dict(found)


def _plain(margins: Margins) -> Any:
    return margins if isinstance(margins, str) else [list(term) for term in parse(margins)]
