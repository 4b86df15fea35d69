"""What a `site.toml` says, entry by entry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from discreet.errors import ParameterError
from discreet.recipe import Recipe
from discreet.serve.data.dataset import About
from discreet.serve.data.source import Mode
from discreet.serve.office.config import AccountsConfig, AuditConfig
from discreet.serve.policy.policy import Policy
from discreet.serve.site.sections import setting
from discreet.serve.web.texts import languages


@dataclass(frozen=True)
class Server:
    """Where and how a site answers."""

    host: str = setting("127.0.0.1", "Address to listen on; 0.0.0.0 answers other machines too.")
    port: int = setting(8000, "Port to listen on; 0 takes any free one.")
    root_path: str = setting("/", "Path that a web server in front removes from addresses.")
    workers: int = setting(1, "Processes that answer.")

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ParameterError(f"port must lie in 0..65535, got {self.port}.")
        if self.workers < 1:
            raise ParameterError(f"workers must be at least 1, got {self.workers}.")


@dataclass(frozen=True)
class Records:
    """Where the records of a data set are, as `discreet.open` takes it; confidential.

    Paths are relative to the site's file. `epsilon` and `delta` are the budget that the ledger
    keeps for private tables.
    """

    source: str
    name: str | None = None
    edition: str = "1"
    id: str | None = None
    key: str | None = None
    keys: str | None = None
    weight: str | None = None
    table: str | None = None
    codes: str | None = None
    secret: str | None = None
    ledger: str | None = None
    epsilon: float | None = None
    delta: float | None = None
    editions: str | None = None
    random_keys: str | None = None
    convention: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    recode: Mapping[str, Any] = field(default_factory=dict)
    structural_zeros: tuple[Mapping[str, Any], ...] = ()


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
      connections: Questions that the engine answers at a time, on the fly.
      keep_cubes: Whether tables made on the fly are kept on the disk, for all processes.
    """

    name: str
    about: About
    records: Records | None
    recipe: Recipe
    mode: Mode = "release-once"
    labels: Mapping[str, str] = field(default_factory=dict)
    variables: tuple[str, ...] = ()
    policy: Policy = field(default_factory=Policy)
    connections: int = 2
    keep_cubes: bool = False


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
    server: Server = field(default_factory=Server)
    accounts: AccountsConfig = field(default_factory=AccountsConfig)
    audit: AuditConfig = field(default_factory=AuditConfig)
    datasets: tuple[DatasetConfig, ...] = ()
    folder: Path = Path()

    def __post_init__(self) -> None:
        if not self.title.strip():
            raise ParameterError("the title of a site must not be empty.")
        for language in self.languages or ("",):
            if language not in languages():
                raise ParameterError(
                    f"there are no texts in language {language!r}; known: {', '.join(languages())}."
                )
        digits = self.accent.removeprefix("#")
        if len(digits) != 6 or set(digits.lower()) - set("0123456789abcdef"):
            raise ParameterError(f"accent must be a colour such as #1f5f99, got {self.accent!r}.")

    @property
    def cache_folder(self) -> Path:
        """The folder of built inner tables and kept cubes."""
        return self.folder / self.cache
