"""A real PostgreSQL and a real Spark, each started once and stopped by its ids."""

from dataclasses import dataclass
from typing import Any

import ibis
import psycopg
import pytest

import discreet as dc
from discreet.frames import read_frame
from discreet.records import QueryEngine
from discreet.records.backend import connection_of
from discreet.records.connection import attempt
from tests import servers


@pytest.fixture(scope="session")
def server():
    """A PostgreSQL server with a log of every statement."""
    with servers.postgres() as server:
        yield server


@pytest.fixture(scope="session")
def session():
    """A Spark session with executors in processes of their own."""
    with servers.spark() as session:
        yield session


@pytest.fixture
def sql(server):
    """A connection of the custodian's own."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def libpq(server, monkeypatch):
    """The server in libpq's environment variables."""
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)


@dataclass(frozen=True)
class Place:
    """An engine and a back end that holds records."""

    backend: Any
    engine: Any = QueryEngine()

    def stored(self, frame, name=None):
        """A new table with the frame's records."""
        name = name or ibis.util.gen_name("people")
        return attempt(
            lambda: connection_of(self.backend).store(name, read_frame(frame)), "the records"
        )

    def people(self, frame, **roles):
        return dc.open(self.stored(frame), **roles)

    def tabulate(self, frame, margins, *, roles=None, **options):
        return self.people(frame, **(roles or {})).tabulate(margins, engine=self.engine, **options)


@pytest.fixture
def on_postgres(server):
    backend = ibis.connect(server.url)
    yield Place(backend)
    backend.disconnect()


@pytest.fixture
def on_spark(session):
    with servers.quiet_pyspark():
        return Place(ibis.pyspark.connect(session))


@pytest.fixture(params=["postgres", "spark"])
def place(request):
    return request.getfixturevalue(f"on_{request.param}")
