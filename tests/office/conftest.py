"""An office's database of each kind."""

import psycopg
import pytest

from discreet.serve import OfficeDatabase
from tests import servers


@pytest.fixture(scope="session")
def server():
    """A PostgreSQL server."""
    with servers.postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request, tmp_path):
    """An empty database: a path, or the address of one on a server."""
    if request.param == "sqlite":
        yield str(tmp_path / "office.db")
        return
    server = request.getfixturevalue("server")
    yield server.url
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")


@pytest.fixture
def store(address):
    store = OfficeDatabase(address)
    yield store
    store.close()


@pytest.fixture
def file_store(tmp_path):
    store = OfficeDatabase(tmp_path / "office.db")
    yield store
    store.close()
