"""The tables of the office's database as they are after the last migration."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Date,
    DateTime,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)

METADATA = MetaData()
_NUMBER = BigInteger().with_variant(Integer, "sqlite")  # SQLite counts up plain integers alone

AUDIT = Table(
    "audit",
    METADATA,
    Column("id", _NUMBER, primary_key=True),
    Column("time", DateTime, nullable=False),  # UTC
    Column("visitor", String(80), nullable=False),
    Column("dataset", String(80), nullable=False),
    Column("edition", String(80), nullable=False),
    Column("address", Text, nullable=False),
    Column("kind", String(20), nullable=False),
    Column("outcome", String(40), nullable=False),
    Column("cells", Integer, nullable=False),
    Column("milliseconds", Float, nullable=False),
    Index("audit_by_time", "time"),
)
SWITCHES = Table(
    "switches",
    METADATA,
    Column("dataset", String(80), primary_key=True),
    Column("is_closed", Boolean, nullable=False),
    Column("time", DateTime, nullable=False),
    Column("visitor", String(80), nullable=False),
)
TOKENS = Table(
    "tokens",
    METADATA,
    Column("id", String(16), primary_key=True),
    Column("name", String(80), nullable=False, unique=True),
    Column("role", String(20), nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("time", DateTime, nullable=False),
    Column("revoked", DateTime),
)
SECRETS = Table(
    "secrets",
    METADATA,
    Column("name", String(20), primary_key=True),
    Column("day", Date, nullable=False),
    Column("value", LargeBinary, nullable=False),
)
RELOADS = Table(
    "reloads",
    METADATA,
    Column("id", _NUMBER, primary_key=True),
    Column("time", DateTime, nullable=False),
    Column("visitor", String(80), nullable=False),
)
