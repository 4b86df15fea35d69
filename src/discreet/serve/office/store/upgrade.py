"""Migrations: the steps that bring an older database to the present form."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from discreet.errors import DataError

_FOLDER = Path(__file__).parent / "migrations"
_LOCK = 0x64697363  # any number that all versions agree on


def upgraded(connection: Connection, shown: str) -> None:
    """Run the steps that the database lacks, within the caller's transaction."""
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
    present = MigrationContext.configure(connection).get_current_revision()
    if present == newest():
        return
    if present is not None and present not in _known():
        raise DataError(
            f"the audit log {shown} was written by a newer version of discreet (step {present!r}). "
            "Update discreet, or name another audit log."
        )
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


@cache
def newest() -> str | None:
    """The name of the last step."""
    return ScriptDirectory.from_config(_config()).get_current_head()


def _known() -> set[str]:
    return {step.revision for step in ScriptDirectory.from_config(_config()).walk_revisions()}


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    return config
