"""From a `site.toml` to what it says, with clear errors; nothing is opened here."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from discreet.errors import DataError, ParameterError, UnknownNameError
from discreet.recipe import Recipe
from discreet.serve.data.dataset import About
from discreet.serve.office.config import AccountsConfig, AuditConfig
from discreet.serve.policy.policy import Policy
from discreet.serve.site.config import DatasetConfig, Records, Server, SiteConfig
from discreet.serve.site.sections import section

_SECTIONS: dict[str, type[Server | AccountsConfig | AuditConfig]] = {
    "server": Server,
    "accounts": AccountsConfig,
    "audit": AuditConfig,
}
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


def read_site(path: str | Path) -> SiteConfig:
    """A site from its file; unknown entries are an error, never ignored."""
    file = Path(path)
    try:
        given = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}.") from error
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{path} is not valid TOML: {error}.") from error
    return site_of(given, file.resolve().parent)


def site_of(given: Mapping[str, Any], folder: Path) -> SiteConfig:
    """A site from plain data; paths in it are relative to the folder."""
    datasets = given.get("datasets", {})
    if not isinstance(datasets, Mapping) or not datasets:
        raise ParameterError("the site has no data sets; describe one in [datasets.NAME].")
    policy = given.get("policy", {})
    read = [_dataset(name, part, policy, folder) for name, part in datasets.items()]
    made: dict[str, Any] = {"datasets": tuple(read), "folder": folder}
    for name, cls in _SECTIONS.items():
        made[name] = section(cls, given.get(name, {}), f"[{name}]")
    plain = {k: v for k, v in given.items() if k not in (*made, "policy")}
    return section(SiteConfig, plain, "the site", **made)


def _dataset(name: str, given: Any, policy: Mapping[str, Any], folder: Path) -> DatasetConfig:
    where = f"[datasets.{name}]"
    if not _NAME.fullmatch(name):
        raise ParameterError(
            f"the name of a data set is part of addresses: small letters, digits, - and _; got "
            f"{name!r}."
        )
    if not isinstance(given, Mapping):
        raise ParameterError(f"{where} must be a section of entries, got {given!r}.")
    told, own = ([f.name for f in fields(cls)] for cls in (About, DatasetConfig))
    for entry in given:
        if entry not in (*told, *own[2:]):
            raise UnknownNameError(f"entry of {where}", entry, [*told, *own[2:]])
    made = {
        "name": name,
        "about": section(About, {k: v for k, v in given.items() if k in told}, where),
        "records": _records(given.get("records"), name),
        "recipe": _recipe(given.get("recipe"), where, folder),
        "policy": section(
            Policy, {**policy, **given.get("policy", {})}, f"[datasets.{name}.policy]"
        ),
    }
    rest = {k: v for k, v in given.items() if k not in (*told, *made)}
    return section(DatasetConfig, rest, where, **made)


def _records(given: Any, name: str) -> Records:
    found = {"source": given} if isinstance(given, str) else given
    if not isinstance(found, Mapping) or "source" not in found:
        where = f"[datasets.{name}"
        raise ParameterError(f"{where}] needs records = FILE, or {where}.records] source.")
    return section(Records, found, f"[datasets.{name}.records]")


def _recipe(given: Any, where: str, folder: Path) -> Recipe:
    if isinstance(given, str):
        return Recipe.read(folder / given)
    if isinstance(given, Mapping):
        return Recipe.from_dict(given)
    raise ParameterError(f"{where} needs a recipe: a file, or a section with the same entries.")
