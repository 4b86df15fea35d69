"""From a `site.toml` to what it says, with clear errors; nothing is opened here."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from discreet.errors import DataError, ParameterError, UnknownNameError
from discreet.recipe import Recipe
from discreet.serve.data.dataset import About
from discreet.serve.office.config import OfficeConfig
from discreet.serve.policy.policy import Policy
from discreet.serve.site.config import MODES, DatasetConfig, Records, Server, SiteConfig
from discreet.serve.site.sections import section

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_PLAIN = ("labels", "variables", "connections", "keep_cubes")
_OWN = ("records", "recipe", "mode", "policy", *_PLAIN)


def read_site(path: str | Path) -> SiteConfig:
    """A site from its file; unknown entries are an error, never ignored."""
    file = Path(path)
    try:
        given = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}.") from error
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{path} is not valid TOML: {error}.") from error
    site = site_of(given, file.resolve().parent)
    OfficeConfig.of(site.accounts, site.audit)
    return site


def site_of(given: Mapping[str, Any], folder: Path) -> SiteConfig:
    """A site from plain data; paths in it are relative to the folder."""
    plain = {k: v for k, v in given.items() if k not in ("server", "policy", "datasets", "folder")}
    policy = given.get("policy", {})
    datasets = given.get("datasets", {})
    if not isinstance(datasets, Mapping) or not datasets:
        raise ParameterError("the site has no data sets; describe one in [datasets.NAME].")
    read = [_dataset(name, part, policy, folder) for name, part in datasets.items()]
    checked = section(SiteConfig, plain, "the site")
    return SiteConfig(
        **{name: getattr(checked, name) for name in plain},
        server=section(Server, given.get("server", {}), "[server]"),
        datasets=tuple(read),
        folder=folder,
    )


def _dataset(name: str, given: Any, policy: Mapping[str, Any], folder: Path) -> DatasetConfig:
    where = f"[datasets.{name}]"
    if not _NAME.fullmatch(name):
        raise ParameterError(
            f"the name of a data set is part of addresses: small letters, digits, - and _; got "
            f"{name!r}."
        )
    known = [*(f.name for f in fields(About)), *_OWN]
    if not isinstance(given, Mapping):
        raise ParameterError(f"{where} must be a section of entries, got {given!r}.")
    for entry in given:
        if entry not in known:
            raise UnknownNameError(f"entry of {where}", entry, known)
    about = section(About, {k: v for k, v in given.items() if k not in _OWN}, where)
    records = given.get("records")
    if isinstance(records, str):
        records = {"source": records}
    if not isinstance(records, Mapping) or "source" not in records:
        raise ParameterError(f"{where} needs records = FILE, or [datasets.{name}.records] source.")
    plain = section(_Plain, {k: v for k, v in given.items() if k in _PLAIN}, where)
    return DatasetConfig(
        name,
        about,
        section(Records, records, f"[datasets.{name}.records]"),
        _recipe(given.get("recipe"), where, folder),
        _mode(given.get("mode", MODES[0]), where),
        policy=section(Policy, {**policy, **given.get("policy", {})}, f"[datasets.{name}.policy]"),
        **vars(plain),
    )


@dataclass(frozen=True)
class _Plain:
    """The entries of a data set that are taken as they are."""

    labels: Mapping[str, str] = field(default_factory=dict)
    variables: tuple[str, ...] = ()
    connections: int = 2
    keep_cubes: bool = False


def _recipe(given: Any, where: str, folder: Path) -> Recipe:
    if isinstance(given, str):
        return Recipe.read(folder / given)
    if isinstance(given, Mapping):
        return Recipe.from_dict(given)
    raise ParameterError(f"{where} needs a recipe: a file, or a section with the same entries.")


def _mode(given: Any, where: str) -> Any:
    if given not in MODES:
        raise ParameterError(f"mode of {where} must be one of {', '.join(MODES)}; got {given!r}.")
    return given
