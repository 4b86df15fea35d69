"""Addresses of the office's database, read and shown without passwords."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from discreet.errors import ParameterError

_POSTGRES = ("postgresql", "postgres")


def url_of(address: str | Path) -> URL:
    """The database at a path, or at an address that begins with `postgresql://`."""
    if "://" not in str(address):
        return URL.create("sqlite", database=str(Path(address).absolute()))
    try:
        found = make_url(str(address))
    except (ArgumentError, ValueError):  # the cause would quote the password
        raise ParameterError(f"the address of the audit log cannot be read. {_LOOKS}") from None
    scheme = found.drivername.partition("+")[0]
    if scheme not in _POSTGRES:
        raise ParameterError(f"the audit log cannot be kept in {scheme!r}. {_LOOKS}")
    return found.set(drivername="postgresql+psycopg")


_LOOKS = "Give the path of an SQLite file, or postgresql://user:password@host/database."
