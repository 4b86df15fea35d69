"""What a `site.toml` says, entry by entry, read with clear errors; nothing is opened here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from discreet.errors import ParameterError, check_known
from discreet.files import read_toml
from discreet.publication import Publication
from discreet.serve.data.dataset import DatasetInfo
from discreet.serve.data.source import Mode
from discreet.serve.office.config import AccountsConfig, AuditConfig, Proxies
from discreet.serve.policy.policy import Policy
from discreet.serve.site.language import offered_languages
from discreet.serve.site.sections import require_section, section, setting
from discreet.serve.web.texts import languages

_DATASET_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_MEASURE_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
UNITS = ("count", "weight")


@dataclass(frozen=True)
class ServerConfig:
    """Where and how a site answers."""

    host: str = setting("127.0.0.1", "Address to listen on; 0.0.0.0 answers other machines too.")
    port: int = setting(8000, "Port to listen on; 0 takes any free one.")
    root_path: str = setting("/", "Path that a web server in front removes from addresses.")
    workers: int = setting(1, "Processes that answer.")
    metrics: tuple[str, ...] = setting((), "Addresses or networks that may read /metrics.")

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ParameterError(f"port must lie in 0..65535, got {self.port}.")
        if self.workers < 1:
            raise ParameterError(f"workers must be at least 1, got {self.workers}.")
        if not self.root_path.startswith("/"):
            raise ParameterError(f"root_path must begin with a slash, got {self.root_path!r}.")
        Proxies(self.metrics)  # refuses what is no address


@dataclass(frozen=True)
class RecordsConfig:
    """Where the records of a data set are, as `discreet.open` takes it; confidential.

    Paths are relative to the site's file. `epsilon` and `delta` are the budget that the ledger
    keeps for private tables, for the changes of one unit that `relation` says.
    """

    source: str
    name: str | None = None
    edition: str = "1"
    id: str | None = None
    key: str | None = None
    keys: str | None = None
    weight: str | None = None
    mean_weight: float | None = None
    table: str | None = None
    codes: str | None = None
    secret: str | None = None
    ledger: str | None = None
    epsilon: float | None = None
    delta: float | None = None
    relation: Literal["add-remove", "replace", "known"] = "add-remove"
    editions: str | None = None
    churn: float | None = None
    planned: int | None = None
    random_keys: str | None = None
    convention: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    delimiter: str | None = None
    thousands: str | None = None
    header: int | None = None
    metadata: str | None = None
    time: str | tuple[str, ...] = ()
    period: str | None = None
    moves: Mapping[str, int] = field(default_factory=dict)
    recode: Mapping[str, Any] = field(default_factory=dict)
    structural_zeros: tuple[Mapping[str, Any], ...] = ()

    def __post_init__(self) -> None:
        if self.period is not None and self.edition == "1":  # a period is an edition
            object.__setattr__(self, "edition", self.period)


@dataclass(frozen=True)
class MeasureConfig:
    """A sum that is published beside the counts of a data set, once, by tables of its own.

    Attributes:
      recipe: How it is tabulated and protected; `[tabulate]` names the value.
      title: Its name for readers, written as inside a sentence, with what it is measured in.
      mean: The name of its mean, which is offered where this is said.
    """

    recipe: Publication
    title: str = ""
    mean: str = ""


@dataclass(frozen=True)
class DatasetConfig:
    """A data set: what readers are told, where its records are, how tables are protected.

    Attributes:
      name: Its name in addresses.
      about: What readers are told.
      records: Where the records are.
      recipe: How tables are protected; its margins say what is on offer.
      mode: `"release-once"`, or `"on-the-fly"`.
      labels: Names of variables for readers.
      variables: What is on offer, where that is not what the recipe's margins name.
      policy: What may be asked.
      connections: Connections to the engine, on the fly. A process makes two tables at a time, so
        more than two are never used.
      keep_cubes: Whether tables made on the fly are kept on the disk, for all processes.
      declared_records: The number of records as the office tells it, for prices; public.
      measures: Sums beside the counts, released once.
    """

    name: str
    about: DatasetInfo
    records: RecordsConfig | None
    recipe: Publication
    mode: Mode = "release-once"
    labels: Mapping[str, str] = field(default_factory=dict)
    variables: tuple[str, ...] = ()
    policy: Policy = field(default_factory=Policy)
    connections: int = 2
    keep_cubes: bool = False
    declared_records: int | None = None
    measures: Mapping[str, MeasureConfig] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.measures and self.mode != "release-once":
            raise ParameterError(
                f"data set {self.name!r} is made on the fly, and sums are released once: whoever "
                "had a sum in one crossing after the other would come near the largest "
                "contributor. Use mode = 'release-once', or leave out [datasets."
                f"{self.name}.measures]."
            )
        for entry in ("connections", "declared_records"):
            number = getattr(self, entry)
            if number is not None and number < 1:
                raise ParameterError(f"{entry} of {self.name!r} must be at least 1, got {number}.")


@dataclass(frozen=True)
class SiteConfig:
    """A site as its file describes it.

    Attributes:
      title: Heading of the pages.
      description: What the site is, in a sentence or two.
      contact: Whom to ask.
      address: Where visitors find the site, `https://tables.office.example`; links for programs
        and citations begin with it. If empty, they are whole on this machine alone.
      logo: A picture on the pages, an SVG or PNG file.
      languages: Languages of the pages, the first by default.
      accent: The colour of links and buttons, as `#rrggbb`.
      cache: The folder of built inner tables and kept cubes.
      server: Where the site answers.
      accounts: Who may ask, and how often.
      audit: Where questions are written down.
      datasets: The data sets, in the order of the catalogue.
      folder: The folder of the file, which paths are relative to.
    """

    title: str = "Table builder"
    description: str = ""
    contact: str = ""
    address: str = ""
    logo: str = ""
    languages: tuple[str, ...] = languages()
    accent: str = "#1f5f99"
    cache: str = "cache"
    server: ServerConfig = field(default_factory=ServerConfig)
    accounts: AccountsConfig = field(default_factory=AccountsConfig)
    audit: AuditConfig = field(default_factory=AuditConfig)
    datasets: tuple[DatasetConfig, ...] = ()
    folder: Path = Path()

    def __post_init__(self) -> None:
        if not self.title.strip():
            raise ParameterError("the title of a site must not be empty.")
        if self.address and not self.address.startswith(("https://", "http://")):
            raise ParameterError(
                f"address must begin with https:// or http://, got {self.address!r}."
            )
        known = offered_languages(self.folder)
        for language in self.languages or ("",):
            if language not in known:
                raise ParameterError(
                    f"there are no texts in language {language!r}; known: {', '.join(known)}. "
                    "Another one is a file beside the site's, texts/CODE.toml."
                )
        digits = self.accent.removeprefix("#")
        if len(digits) != 6 or set(digits.lower()) - set("0123456789abcdef"):
            raise ParameterError(f"accent must be a colour such as #1f5f99, got {self.accent!r}.")

    @property
    def cache_folder(self) -> Path:
        """The folder of built inner tables and kept cubes."""
        return self.folder / self.cache


def read_site(path: str | Path) -> SiteConfig:
    """A site from its file; unknown entries are an error, never ignored."""
    return site_of(read_toml(path), Path(path).resolve().parent)


def site_of(given: Mapping[str, Any], folder: Path) -> SiteConfig:
    """A site from plain data; paths in it are relative to the folder."""
    datasets = given.get("datasets", {})
    if not isinstance(datasets, Mapping) or not datasets:
        raise ParameterError("the site has no data sets; describe one in [datasets.NAME].")
    policy = require_section(given.get("policy", {}), "[policy]")
    read = [_read_dataset(name, part, policy, folder) for name, part in datasets.items()]
    made: dict[str, Any] = {
        "datasets": tuple(read),
        "folder": folder,
        "server": section(ServerConfig, given.get("server", {}), "[server]"),
        "accounts": section(AccountsConfig, given.get("accounts", {}), "[accounts]"),
        "audit": section(AuditConfig, given.get("audit", {}), "[audit]"),
    }
    # One that is misspelt would be open to everybody.
    restricted = made["accounts"].analysts_only
    check_known("data set in analysts_only of [accounts]", restricted, datasets)
    plain = {k: v for k, v in given.items() if k not in (*made, "policy")}
    return section(SiteConfig, plain, "the site", **made)


def _read_dataset(name: str, given: Any, policy: Mapping[str, Any], folder: Path) -> DatasetConfig:
    where = f"[datasets.{name}]"
    if not _DATASET_NAME.fullmatch(name):
        raise ParameterError(
            f"the name of a data set is part of addresses: small letters, digits, - and _; got "
            f"{name!r}."
        )
    about = [f.name for f in fields(DatasetInfo)]
    known = [*about, *(f.name for f in fields(DatasetConfig) if f.name not in ("name", "about"))]
    check_known(f"entry of {where}", require_section(given, where), known)
    own = require_section(given.get("policy", {}), f"[datasets.{name}.policy]")
    made = {
        "name": name,
        "about": section(DatasetInfo, {k: v for k, v in given.items() if k in about}, where),
        "records": _read_records(given.get("records"), name),
        "recipe": _read_recipe(given.get("recipe"), where, folder),
        "measures": _read_measures(given.get("measures", {}), name, folder),
        "policy": section(Policy, {**policy, **own}, f"[datasets.{name}.policy]"),
    }
    rest = {k: v for k, v in given.items() if k not in (*about, *made)}
    return section(DatasetConfig, rest, where, **made)


def _read_records(given: Any, name: str) -> RecordsConfig:
    found = {"source": given} if isinstance(given, str) else given
    if not isinstance(found, Mapping) or "source" not in found:
        where = f"[datasets.{name}"
        raise ParameterError(f"{where}] needs records = FILE, or {where}.records] source.")
    return section(RecordsConfig, found, f"[datasets.{name}.records]")


def _read_measures(given: Any, dataset: str, folder: Path) -> dict[str, MeasureConfig]:
    found: dict[str, MeasureConfig] = {}
    for name, part in require_section(given, f"[datasets.{dataset}.measures]").items():
        where = f"[datasets.{dataset}.measures.{name}]"
        if not _MEASURE_NAME.fullmatch(name) or name in UNITS:
            raise ParameterError(
                f"the name of a measure is part of addresses: small letters, digits and _, and "
                f"not {' or '.join(UNITS)}; got {name!r}."
            )
        recipe = _read_recipe(require_section(part, where).get("recipe"), where, folder)
        if "value" not in recipe.magnitude:
            raise ParameterError(
                f"{where} sums nothing: its recipe needs value and contributor in tabulate, such "
                "as {margins = 'region*activity', value = 'turnover', contributor = 'enterprise'}."
            )
        value = recipe.magnitude["value"]
        for other, before in found.items():
            if before.recipe.magnitude["value"] == value:
                raise ParameterError(
                    f"{where} sums {value!r}, and so does {other!r}: what one of them hides the "
                    "other would tell. Put all tables of a value into one measure."
                )
        rest = {k: v for k, v in part.items() if k != "recipe"}
        found[name] = section(MeasureConfig, rest, where, recipe=recipe)
    return found


def _read_recipe(given: Any, where: str, folder: Path) -> Publication:
    if isinstance(given, str):
        return Publication.read(folder / given)
    if isinstance(given, Mapping):
        return Publication.from_dict(given)
    raise ParameterError(f"{where} needs a recipe: a file, or a section with the same entries.")
