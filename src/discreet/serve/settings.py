"""Every setting of the table builder, once: the command line, the config file and the docs."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from discreet.errors import DataError, ParameterError, UnknownNameError


class Setting(NamedTuple):
    """A setting's name, default and help."""

    name: str
    default: Any
    help: str


def _setting(default: Any, help: str) -> Any:
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True)
class Settings:
    """What the host of a table builder may choose."""

    host: str = _setting("127.0.0.1", "Address to listen on; 0.0.0.0 answers other machines too.")
    port: int = _setting(8000, "Port to listen on; 0 takes any free one.")
    root_path: str = _setting("/", "Path that a web server in front removes from addresses.")
    title: str = _setting("Table builder", "Heading of the pages.")
    max_variables: int = _setting(3, "Most variables in one table.")
    max_cells: int = _setting(10_000, "Most cells in one table, subtotals and totals included.")
    kept_tables: int = _setting(64, "Protected tables kept in memory for the next visitor.")

    def __post_init__(self) -> None:
        for setting in SETTINGS:
            _check_type(setting, getattr(self, setting.name))
        if not self.title.strip():
            raise ParameterError("title must not be empty.")
        if not 0 <= self.port <= 65535:
            raise ParameterError(f"port must lie in 0..65535, got {self.port}.")
        for name in ("max_variables", "max_cells", "kept_tables"):
            if getattr(self, name) < 1:
                raise ParameterError(f"{name} must be at least 1, got {getattr(self, name)}.")

    @classmethod
    def read(cls, path: str | Path) -> Settings:
        """Settings from a TOML file; unknown names are an error, never ignored."""
        try:
            given = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror}.") from error
        except tomllib.TOMLDecodeError as error:
            raise DataError(f"{path} is not valid TOML: {error}.") from error
        return cls().changed(given)

    def changed(self, given: Mapping[str, Any]) -> Settings:
        """These settings with those that are given; `None` leaves one as it is."""
        known = [setting.name for setting in SETTINGS]
        for name in given:
            if name not in known:
                raise UnknownNameError("setting", name, known)
        return replace(self, **{k: v for k, v in given.items() if v is not None})


SETTINGS = tuple(Setting(f.name, f.default, f.metadata["help"]) for f in fields(Settings))


def help_of(name: str) -> str:
    """A setting's help with its default, as the command line shows it."""
    setting = next(s for s in SETTINGS if s.name == name)
    return f"{setting.help} [default: {setting.default}]"


def _check_type(setting: Setting, value: Any) -> None:
    expected = type(setting.default)
    if type(value) is not expected:
        raise ParameterError(f"{setting.name} must be of type {expected.__name__}, got {value!r}.")
