import dataclasses

import duckdb
import ibis
import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.errors import DataError, EngineError, KeysError
from discreet.records import QueryEngine
from discreet.records.engine import values_of
from discreet.tables import DataSet
from discreet.testing import ALL_CASES, NumpyEngine, check_engine
from discreet.testing.engines import REFUSED


@pytest.mark.parametrize("case", ALL_CASES)
def test_battery(place, case):
    assert check_engine(place.backend, engine=place.engine, cases=[case]).passed == (case,)


@pytest.mark.filterwarnings("ignore:The 'future.infer_string'")
def test_another_back_end_is_judged_by_its_types():
    backend = ibis.sqlite.connect()
    good = ["text", "strange names", "no records", "one record", "many records", "boolean", "date"]
    good += REFUSED
    assert check_engine(backend, cases=good).passed == tuple(good)
    with pytest.raises(EngineError, match="int64: "):  # SQLite's integers pass through floats
        check_engine(backend, cases=["int64", "text"])


def test_types_a_back_end_lacks_are_reported():
    class NoTables:
        name = "none"

        def create_table(self, name, frame):
            raise NotImplementedError("no such type")

    report = check_engine(NoTables(), cases=["text"])
    assert report.unsupported == {"text": "no such type"}
    assert "not supported: text" in str(report)


class Drops(QueryEngine):
    def group(self, data, variables):
        return super().group(data, variables).drop_null()


class Rounds(QueryEngine):
    def group(self, data, variables):
        cells = super().group(data, variables)
        keys = pa.array(cells.column(-1).to_numpy().astype(np.float32).astype(np.int64))
        return cells.set_column(cells.num_columns - 1, "k", keys)


class Folds(QueryEngine):
    def query(self, data, variables):
        lower = {v: data.table[v].lower() for v in variables if data.table[v].type().is_string()}
        return super().query(dc.open(data.table.mutate(**lower), **roles(data)), variables)


def roles(data):
    return {"id": data.id, "weight": data.weight, "key": data.key}


class Forgets(QueryEngine):
    def group(self, data, variables):
        return super().group(dataclasses.replace(data, data_set=DataSet()), variables)


class Trusts(QueryEngine):
    def group(self, data, variables):
        sums = {"n": data.table.count(), "w": data.table[data.weight].sum()}
        by = {f"v{i}": data.table[v] for i, v in enumerate(variables)}
        table = data.table.group_by(**by) if by else data.table
        return data.backend.answer(table.aggregate(**sums))


@pytest.mark.parametrize(
    ("liar", "case"),
    [
        (Drops, "text"),
        (Rounds, "many records"),
        (Folds, "text"),
        (Trusts, "negative weight"),
        (Trusts, "missing key"),
        (Forgets, "records of one person"),
        (Forgets, "missing person"),
    ],
)
def test_the_battery_catches_engines_that_lie(liar, case):
    with pytest.raises(EngineError, match=case):
        check_engine(ibis.duckdb.connect(), engine=liar(), cases=[case])


RECORDS = {"a": ["x", "y", "x"], "w": [1.0, 2.0, 3.0], "k": [1, 2, 3]}


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, -0.5, 2.0], "negative values"),
        ([1, -1, 2], "negative values"),
        ([1.0, None, 2.0], "missing"),
        ([1.0, float("nan"), 2.0], "finite"),
        ([1.0, float("inf"), 2.0], "finite"),
        (["1", "b", "2"], "could not be read"),
        ([True, False, True], "not numbers"),
    ],
)
def test_bad_weights_are_refused(place, weights, message):
    frame = pa.table({**RECORDS, "w": weights})
    with pytest.raises(DataError, match=message):
        place.tabulate(frame, "a", roles={"weight": "w"})


@pytest.mark.parametrize(
    ("keys", "convention"),
    [
        ([1, None, 2], "discreet"),
        ([1, -1, 2], "discreet"),
        ([1, 2**32, 2], "discreet"),
        ([1, 256, 2], "ons-256"),
        ([0.1, 1.0, 0.2], "ptable"),
        ([0.1, -0.1, 0.2], "ptable"),
        ([0.1, None, 0.2], "ptable"),
        ([0.1, float("nan"), 0.2], "ptable"),
        ([True, False, True], "discreet"),
    ],
)
def test_bad_keys_are_refused(place, keys, convention):
    frame = pa.table({**RECORDS, "k": keys})
    with pytest.raises((KeysError, DataError)):
        place.tabulate(frame, "a", roles={"key": "k", "convention": convention})


@pytest.mark.parametrize("kind", [pa.int32(), pa.uint32(), pa.int64(), pa.uint64(), pa.string()])
def test_keys_of_any_whole_type(place, kind):
    frame = pa.table({**RECORDS, "k": pa.array([1, 2**31 - 1, 5]).cast(kind)})
    table = place.tabulate(frame, "a", roles={"key": "k"})
    assert table.cell_keys.tolist() == [6, 2**31 - 1, 2**31 + 5]


def test_sums_of_keys_do_not_overflow_or_round(place):
    n = 100_000
    keys = np.full(n, 2**32 - 1)
    frame = pa.table({"a": np.arange(n) % 2, "k": keys})
    cells = place.engine.group(place.people(frame, key="k"), ["a"])
    assert values_of(cells, 1).key.tolist() == [n // 2 * (2**32 - 1)] * 2


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.decimal128(12, 8)])
def test_fractional_keys_are_rounded_to_the_even_neighbour(place, kind):
    fractions = [0.123456785, 0.123456775, 0.5, 0.99999999, 0.0]
    if kind == pa.float32():
        fractions[3] = 0.75
    frame = pa.table({"a": range(5), "k": pa.array(fractions).cast(kind, safe=False)})
    data = place.people(frame, key="k", convention="ptable")
    found = values_of(place.engine.group(data, ["a"]), 1).key % 10**8
    exact = frame.column("k").cast(pa.float64()).to_numpy()
    order = np.argsort(place.engine.group(data, ["a"]).column(0).cast("int64").to_numpy())
    np.testing.assert_array_equal(found[order], data.convention.scale(exact))


def test_weights_are_summed_and_squared(place):
    table = place.tabulate(pa.table(RECORDS), "a", roles={"weight": "w"})
    assert table.weights.tolist() == [4.0, 2.0, 6.0]
    assert table.published.weight_squared.tolist() == [10.0, 4.0, 14.0]


FAMILY = pa.table(
    {
        "a": ["x", "y", "x", "y", "x"],
        "w": [1.0, 8.0, 3.0, 1000.0, 2.0],
        "k": [10, 20, 30, 40, 50],
        "person": ["p", "q", "p", "p", "q"],
        "id": [5, 4, 3, 2, 1],
    }
)


def test_bounds_hold_for_counts_weights_and_keys(place):
    people = place.people(FAMILY, weight="w", key="k", id="id")
    bounded = people.with_roles(weight_bound=5, person="person", max_records=2)
    table = bounded.tabulate("a", engine=place.engine)
    assert table.z.tolist() == [2, 2, 4]  # the record of p with the largest id is left out
    assert table.weights.tolist() == [5.0, 10.0, 15.0]
    assert table.published.weight_squared.tolist() == [13.0, 50.0, 63.0]
    assert table.cell_keys.tolist() == [80, 60, 140]
    assert table.data_set.bounds == bounded.data_set.bounds


def test_one_record_of_a_person_is_counted_unless_said_otherwise(place):
    people = place.people(FAMILY, id="id").with_roles(person="person")
    assert people.tabulate("a", engine=place.engine).z.tolist() == [1, 1, 2]


def test_one_heavy_record_moves_a_bounded_table_by_its_bound(place):
    def total(frame):
        people = place.people(frame, weight="w", id="id").with_roles(weight_bound=2)
        return people.tabulate("a", engine=place.engine).weights[-1]

    assert total(FAMILY) - total(FAMILY.slice(0, 3)) == 4.0


def test_bounds_meet_the_other_columns_after_keys_are_joined(place):
    secret = dc.Secret(b"the secret of a test, and of no office")
    keyed = place.people(FAMILY, id="id").with_keys(secret, editions="kept")
    table = keyed.with_roles(person="person").tabulate("a", engine=place.engine)
    expected = secret.keys_for_ids([1, 2])
    assert table.cell_keys[-1] == expected.sum() % 2**32


@pytest.mark.parametrize("column", ["person", "id"])
def test_records_of_nobody_are_refused_where_persons_are_bounded(place, column):
    values = [None, *FAMILY.column(column).to_pylist()[1:]]
    frame = FAMILY.set_column(FAMILY.column_names.index(column), column, pa.array(values))
    people = place.people(frame, id="id").with_roles(person="person", max_records=5)
    with pytest.raises(DataError, match="no 'person' or no 'id'"):
        people.tabulate("a", engine=place.engine)


@pytest.mark.parametrize("bad", [None, -1.0, float("nan"), float("inf")])
def test_a_bound_hides_no_bad_weight(place, bad):
    frame = FAMILY.set_column(1, "w", pa.array([bad, 1.0, 1.0, 1.0, 1.0]))
    people = place.people(frame, weight="w", id="id").with_roles(weight_bound=2)
    with pytest.raises(DataError, match="weight column 'w'"):
        people.tabulate("a", engine=place.engine)


def test_both_engines_are_in_the_registry():
    table = dc.open(RECORDS).tabulate("a", engine="numpy")
    assert table.z.tolist() == [2, 1, 3]
    with pytest.raises(DataError.__bases__[0], match="'ibis'"):
        dc.open(RECORDS).tabulate("a", engine="ibiss")
    assert QueryEngine.name != NumpyEngine.name


def test_only_cells_come_back(monkeypatch):
    """The answers of the engine are no longer than the number of cells."""
    from discreet.records import query_engine

    seen = []
    real = query_engine.fetch
    monkeypatch.setattr(
        query_engine, "fetch", lambda *a: seen.append(real(*a).num_rows) or real(*a)
    )
    dc.open({"a": ["x", "y"] * 500, "b": ["u"] * 1000}).tabulate("a*b")
    assert seen == [2]


def test_a_lost_engine_is_a_clear_error():
    backend = ibis.duckdb.connect()
    data = dc.open(backend.create_table("p", pa.table(RECORDS)))
    backend.disconnect()
    with pytest.raises(EngineError, match="did not answer") as caught:
        data.tabulate("a")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("'ok'::mood", "ok"),
        ("'6c6ccfcd-0c25-4a43-9aae-1d3c0f4e3a11'::uuid", "6c6ccfcd-0c25-4a43-9aae-1d3c0f4e3a11"),
        ("170141183460469231731687303715884105727::hugeint", str(2**127 - 1)),
        ("'12:00:01'::time", "12:00:01"),
        ("'\\xAA'::blob", "aa"),
        ("'2020-01-01'::timestamp_s", "2020-01-01T00:00:00"),
        ("'2020-01-01 00:00:00.000000001'::timestamp_ns", "2020-01-01T00:00:00.000000001"),
        ("1.5::float", "1.5"),
    ],
)
@pytest.mark.parametrize("engine", ["ibis", "numpy"])
def test_types_of_duckdb_alone(value, code, engine, tmp_path):
    with duckdb.connect(str(tmp_path / "odd.duckdb")) as con:
        con.sql("CREATE TYPE mood AS ENUM ('sad', 'ok')")
        con.sql(f"CREATE TABLE t AS SELECT {value} AS v UNION ALL SELECT NULL")
    table = dc.open(tmp_path / "odd.duckdb").tabulate("v", engine=engine)
    assert table.to_pandas()["v"].tolist() == [code, "(missing)", "Total"]
