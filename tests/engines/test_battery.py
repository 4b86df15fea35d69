"""The same counts, weights and keys on every engine."""

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.randomness import stream
from discreet.testing import ALL_CASES, NumpyEngine, check_engine
from tests import servers


@pytest.mark.parametrize("case", ALL_CASES)
def test_postgres_counts_as_it_should(on_postgres, case):
    assert check_engine(on_postgres.backend, cases=[case]).passed == (case,)


@pytest.fixture
def uncompiled(session):
    """Spark compiles every query: a quarter of the time of small cases, and no concern of ours.

    Compiled queries are what the other tests run.
    """
    settings = {"wholeStage": "false", "factoryMode": "NO_CODEGEN"}
    for name, value in settings.items():
        session.conf.set(f"spark.sql.codegen.{name}", value)
    yield
    for name in settings:
        session.conf.unset(f"spark.sql.codegen.{name}")


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("case", ALL_CASES)
def test_spark_counts_as_it_should(on_spark, case):
    assert check_engine(on_spark.backend, cases=[case]).passed == (case,)


def census(n):
    rng = stream(5, "census for engines")
    towns = pa.array([f"Ü{i:03d}" if i % 7 else None for i in range(150)])
    return pa.table(
        {
            "id": rng.permutation(n),
            "town": towns.take(rng.integers(0, len(towns), n)),
            "age": rng.integers(0, 100, n).astype(np.int16),
            "sex": pa.array(["f", "m", ""]).take(rng.integers(0, 3, n)),
            "w": rng.gamma(4.0, 10.0, n),
            "k": rng.integers(0, 2**32, n),
        }
    )


@pytest.fixture(scope="module")
def many():
    """More than any engine takes at once, and five to a cell."""
    return census(250_000)


@pytest.fixture(scope="module")
def expected(many):
    people = dc.open(many, weight="w", key="k")
    return people.tabulate("town*age*sex", engine=NumpyEngine())


def assert_same(table, expected):
    assert [a.leaves for a in table.design.axes] == [a.leaves for a in expected.design.axes]
    np.testing.assert_array_equal(table.z, expected.z)
    np.testing.assert_array_equal(table.y, expected.y)
    np.testing.assert_array_equal(table.cell_keys, expected.cell_keys)
    np.testing.assert_allclose(table.weights, expected.weights, rtol=1e-12, atol=0)


def test_many_records_are_the_same_table_on_duckdb(many, expected):
    assert_same(dc.open(many, weight="w", key="k").tabulate("town*age*sex"), expected)


def test_many_records_are_the_same_table_elsewhere(place, many, expected):
    assert_same(place.tabulate(many, "town*age*sex", roles={"weight": "w", "key": "k"}), expected)


def test_recodes_and_side_tables_are_the_same_elsewhere(place):
    frame, secret = census(3_000), dc.Secret(b"the secret of a test, and of no office")
    bands = dc.records.cut([0, 15, 65])

    def table(people):
        keyed = people.recode(age=bands, sex={"": "?"}).with_keys(secret, id="id")
        return keyed.tabulate("town*age + sex")

    here, there = table(dc.open(frame)), table(place.people(frame))
    np.testing.assert_array_equal(there.z, here.z)
    np.testing.assert_array_equal(there.cell_keys, here.cell_keys)


def test_missing_servers_say_what_to_install(monkeypatch):
    """A test without its server fails with this line; it is never left out."""
    monkeypatch.setattr(servers.shutil, "which", lambda program: None)
    with pytest.raises(RuntimeError, match="apt-get install default-jre-headless"):
        servers.spark().__enter__()
    monkeypatch.setattr(servers.Path, "glob", lambda self, pattern: [])
    with pytest.raises(RuntimeError, match="apt-get install postgresql"):
        servers.postgres().__enter__()
