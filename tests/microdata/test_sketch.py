import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.randomness import stream
from discreet.records.expressions import sketch_of

N = 3_000


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


def sketch(table, **roles):
    return sketch_of(dc.open(table, **{"id": "id", "weight": "w", **roles}))


def changed(table, column, rows, value):
    values = table.column(column).to_pylist()
    for row in rows:
        values[row] = value
    place = table.column_names.index(column)
    return table.set_column(place, column, pa.array(values, table.schema.field(column).type))


@pytest.fixture(scope="module")
def people():
    return frame()


@pytest.fixture(scope="module")
def before(people):
    return sketch(people)


def test_the_order_of_records_and_columns_is_no_change(people, before):
    shuffled = people.take(stream(2, "order").permutation(N))
    assert sketch(shuffled) == before
    assert sketch(people.select(["w", "age", "sex", "id"])) == before


def test_a_person_removed_is_one_change(people, before):
    after = sketch(people.slice(1))
    assert after.changed_since(before) == 1
    assert before.changed_since(after) == 1


@pytest.mark.parametrize(("column", "value"), [("sex", "x"), ("sex", None), ("age", -1), ("w", 99)])
def test_a_value_changed_is_one_change(people, before, column, value):
    row = next(i for i, v in enumerate(people.column(column).to_pylist()) if v != value)
    after = sketch(changed(people, column, [row], value))
    assert after.changed_since(before) == pytest.approx(1, abs=1.01)
    assert after.changed_since(before) > 0
    np.testing.assert_array_equal(after.ids, before.ids)


def test_many_changes_are_counted_within_a_tenth(people, before):
    after = sketch(changed(people.slice(300), "age", range(400), -1))
    assert after.changed_since(before) == pytest.approx(700, rel=0.1)


def test_recodes_roles_and_keys_are_no_change(people, before):
    data = dc.open(people, id="id", weight="w")
    assert (
        sketch_of(data.recode(age=dc.records.cut([0, 50])).with_keys(dc.Secret.generate()))
        == before
    )
    assert sketch_of(dc.open(people, id="id")) == before


def test_record_keys_are_left_out(people, before):
    keyed = people.append_column("k", pa.array(stream(3, "k").integers(0, 2**32, N)))
    assert sketch(keyed, key="k") == before


def test_missing_is_no_value(people):
    texts = changed(people, "sex", range(N), "")
    assert sketch(texts) != sketch(changed(people, "sex", range(N), None))


def test_without_ids_changes_are_never_overcounted(people):
    bare = people.drop_columns(["id"])
    one = sketch_of(dc.open(bare))
    assert not one.ids.any()
    assert 0 < sketch_of(dc.open(bare.slice(1))).changed_since(one) <= 1
    keys = [stream(k, "k").integers(0, 2**32, N) for k in (3, 4)]
    drawn = [sketch_of(dc.open(bare.append_column("k", pa.array(k)), key="k")) for k in keys]
    assert drawn[0].changed_since(drawn[1]) == 0


def test_no_records_make_an_empty_sketch(people):
    assert not sketch(people.slice(0, 0)).rows.any()
