"""Sketches of records, made in the engine from their keys."""

import hashlib

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet import Secret
from discreet.randomness import stream
from discreet.records.expressions import content_sums, record_sketches
from discreet.records.query import compiled

N = 3_000
SECRET = Secret(b"a secret of the tests, 32 bytes or more")
TABLE = ("age", "sex")


def frame():
    rng = stream(1, "people")
    return pa.table(
        {
            "id": np.arange(N),
            "sex": pa.array(["f", "m", None]).take(rng.integers(0, 3, N)),
            "age": rng.integers(0, 100, N),
            "w": rng.gamma(2.0, 3.0, N),
        }
    )


PEOPLE = frame()


def sketch(table, names=TABLE, secret=SECRET, **roles):
    data = dc.open(table, **{"id": "id", "secret": secret, "editions": "kept", **roles})
    return record_sketches(data, [names]).by_variables[tuple(sorted(names))]


def changed(table, column, rows, value):
    values = table.column(column).to_pylist()
    for row in rows:
        values[row] = value
    place = table.column_names.index(column)
    return table.set_column(place, column, pa.array(values, table.schema.field(column).type))


def test_order_other_columns_and_recodes_are_no_change():
    before = sketch(PEOPLE)
    assert sketch(PEOPLE.take(stream(2, "order").permutation(N))) == before
    assert sketch(PEOPLE.select(["age", "sex", "id"])) == before
    assert sketch(changed(PEOPLE, "w", range(N), 1.0)) == before
    data = dc.open(PEOPLE, id="id", secret=SECRET, editions="kept").recode(
        age=dc.records.cut([0, 50])
    )
    assert record_sketches(data, [TABLE]).by_variables[TABLE] == before


def test_changes_are_counted():
    before = sketch(PEOPLE)
    assert sketch(PEOPLE.slice(1)).changed_since(before) == 1
    assert sketch(changed(PEOPLE, "age", [5], 101)).changed_since(before) == 1
    many = sketch(changed(PEOPLE.slice(300), "age", range(400), 101))
    assert 600 <= many.changed_since(before) <= 700
    assert sketch(PEOPLE.slice(1), ()).changed_since(sketch(PEOPLE, ())) == 1


def test_a_year_older_is_no_change_where_age_moves():
    older = PEOPLE.set_column(2, "age", pa.array(PEOPLE.column("age").to_numpy() + 1))
    texts = older.set_column(2, "age", older.column("age").cast("string"))
    before = sketch(PEOPLE, moves={"age": 1}, edition="2024")
    for after in (older, texts):
        assert sketch(after, moves={"age": 1}, edition="2025") == before
        assert sketch(after.slice(1), moves={"age": 1}, edition="2025").changed_since(before) == 1
    assert sketch(older).changed_since(sketch(PEOPLE)) > 1_000  # the fault that this prevents


def test_records_without_keys_have_no_such_sketch():
    assert record_sketches(dc.open(PEOPLE, id="id"), [TABLE]) is None


def test_neither_a_secret_nor_a_key_is_in_the_query(monkeypatch):
    from discreet.records import expressions

    seen, fetch = [], expressions.fetch

    def watched(backend, query, origin):
        sql, done = compiled(query)
        seen.append(sql + str(done.parameters))
        return fetch(backend, query, origin)

    monkeypatch.setattr(expressions, "fetch", watched)
    sketch(PEOPLE)
    keys = SECRET.keys_for_ids(range(N))
    assert seen
    assert not any(str(key) in text for text in seen for key in keys if key > 10**6)


def test_contents_tell_copies_from_other_records():
    one, copy = dc.open(PEOPLE), dc.open(PEOPLE.take(np.arange(N)[::-1]))
    np.testing.assert_array_equal(content_sums(one), content_sums(copy))
    assert (content_sums(one) != content_sums(dc.open(PEOPLE.slice(1)))).any()


def recognised(vector, people, salt=""):
    """The share of people for whom the bucket of a guessed hash leans to their sign.

    The attacker knows id and values of everybody, and how version 0.2 hashed them.
    """
    hits = 0
    for values in people:
        text = hashlib.sha256((salt + "\x1f".join(map(str, values))).encode()).hexdigest()
        sign = 1 if text[3] in "01234567" else -1
        hits += np.sign(vector[int(text[:3], 16)]) == sign
    return hits / len(people)


def test_a_stored_table_recognises_nobody(tmp_path, record_property):
    """Members are recognised no more often than others; hashes without a key tell 86 from 16 %."""
    half = PEOPLE.slice(0, N // 2)
    data = dc.open(half, id="id", secret=SECRET, name="c", ledger=tmp_path / "ledger.db")
    path = data.tabulate("age*sex").save(tmp_path / "table.parquet")
    stored = dc.facade.read_table(path).sketches.by_variables
    rows = [[row[c] if row[c] is not None else "\x1e" for c in ("age", "id", "sex")]
            for row in PEOPLE.to_pylist()]  # fmt: skip
    inside, outside = rows[: N // 2], rows[N // 2 :]
    unkeyed = content_sums(dc.open(half.select(["age", "id", "sex"])))
    control = recognised(unkeyed, inside) - recognised(unkeyed, outside)
    for vector in (s.vector for s in stored.values()):
        lift = recognised(vector, inside) - recognised(vector, outside)
        record_property("lift", str(lift))
        assert abs(lift) < 4 * np.sqrt(0.5 / (N // 2))
    assert control > 0.4


@pytest.mark.parametrize("way", ["saved", "pickled"])
def test_a_table_keeps_its_ledger_and_sketches(tmp_path, way):
    import pickle

    ledger = dc.Ledger(tmp_path / "ledger.db")
    dated = PEOPLE.append_column("year", pa.array(["2026"] * len(PEOPLE)))
    data = dc.open(dated, id="id", secret=SECRET, name="c", ledger=ledger, time="year",
                   moves={"age": 1})  # fmt: skip
    table = data.tabulate("age*sex")
    if way == "saved":
        again = dc.facade.read_table(table.save(tmp_path / "t.parquet"))
    else:
        again = pickle.loads(pickle.dumps(table))
    assert again.ledger == str(ledger.path)
    assert again.passage == table.passage
    assert dict(again.sketches.by_variables) == dict(table.sketches.by_variables)
    assert not hasattr(again.with_secret(SECRET).protect("cell-key", D=5, V=3, js=2), "sketches")
    assert [row["entry"] for row in ledger.rows()][:2] == ["edition", "table"]
    ledger.path.unlink()
    with pytest.raises(dc.errors.LedgerError, match="there is no ledger"):
        again.protect("cell-key", D=5, V=3, js=2)
