"""Sketches of cells and records: never overstated, keyed, moved back, and stored."""

import numpy as np
import pytest

from discreet.design import Axis, ProductDesign
from discreet.errors import ParameterError
from discreet.tables import SketchedTable
from discreet.tables.sketches import BUCKETS, Passage, RecordSketches, Sketch, tables_of

KEY, OTHER_KEY = b"k" * 32, b"o" * 32


def cells(*codes, counts=None, label="cell"):
    """A table of one variable: each code is a record, or a cell with a count."""
    names = tuple(map(str, codes))
    counts = np.ones(len(names), dtype=np.int64) if counts is None else np.asarray(counts)
    place = np.arange(len(names))
    return SketchedTable((label,), (label,), "", ((label, names, place),), counts)


def sketch(codes, key=KEY):
    return cells(*codes).sketch(key)


@pytest.mark.parametrize(
    ("added", "removed", "short"),
    [(1, 0, 0), (0, 1, 0), (10, 5, 0.1), (50, 50, 0.1), (300, 200, 0.2), (2_000, 2_000, 0.4)],
)
def test_the_number_of_changes_is_near_and_never_overstated(added, removed, short):
    n, true = 8_000, max(added, removed)
    for first in (0, 10**6):
        before = sketch(range(first, first + n))
        after = sketch(range(first + removed, first + n + added))
        assert true * (1 - short) <= after.changed_since(before) <= true
        assert before.changed_since(after) == after.changed_since(before)


def test_changes_against_a_slow_count():
    rng = np.random.default_rng(1)
    codes = range(40)
    for _ in range(30):
        before, after = rng.poisson(3, (2, 40))
        true = max(np.maximum(after - before, 0).sum(), np.maximum(before - after, 0).sum())
        found = (
            cells(*codes, counts=after)
            .sketch(KEY)
            .changed_since(cells(*codes, counts=before).sketch(KEY))
        )
        assert 0.9 * true <= found <= true


def test_likeness_tells_neighbours_from_strangers():
    one, near, stranger = sketch(range(3000)), sketch(range(30, 3000)), sketch(range(9000, 12000))
    assert one.likeness(near) > 0.95
    assert abs(one.likeness(stranger)) < 0.1
    assert abs(one.likeness(sketch(range(3000), OTHER_KEY))) < 0.1
    none = Sketch(np.zeros(BUCKETS, dtype=int), 0)
    assert (none.likeness(none), none.likeness(one)) == (1.0, 0.0)


def test_a_sketch_comes_back_from_its_bytes():
    one = sketch(range(1000))
    assert Sketch.from_bytes(one.to_bytes()) == one
    assert hash(Sketch.from_bytes(one.to_bytes())) == hash(one)
    assert one != sketch(range(999))
    given = RecordSketches("mark", {(): one, ("age", "sex"): sketch(range(3))})
    again = RecordSketches.from_json(given.to_json())
    assert (again.mark, dict(again.by_variables)) == ("mark", dict(given.by_variables))


def test_vectors_that_are_no_sketch_are_refused():
    for bad in (np.zeros(BUCKETS), np.zeros(5, dtype=int)):
        with pytest.raises(ParameterError, match="4,096 whole numbers"):
            Sketch(bad, 0)


def tables(by, passage=None, edition="2024", ages=("30", "31", "32")):
    axes = [
        Axis.flat("region", ("n", "s")),
        Axis.flat("age", ages),
        Axis.flat("year", (edition,)),
    ]
    design = ProductDesign(axes, by)
    y = np.arange(1, design.n_inner + 1)
    return tables_of(design, design.aggregate(y), passage or Passage(), edition)


def test_a_table_is_a_largest_margin_with_those_inside_it():
    assert [t.name for t in tables("region*age + year")] == ["age*region", "year"]
    assert [t.name for t in tables("region*age*year")] == ["age*region*year"]
    assert [t.name for t in tables("1")] == ["1"]


def test_time_is_left_out():
    timed = Passage(time=("year",))
    first, second = (tables("region*age*year", timed, edition)[0] for edition in ("2024", "2025"))
    assert first.name == "age*region"
    assert first.design == second.design
    assert first.sketch(KEY) == second.sketch(KEY)
    plain = [tables("region*age*year", edition=e)[0].sketch(KEY) for e in ("2024", "2025")]
    assert abs(plain[0].likeness(plain[1])) < 0.2  # the fault that this prevents


def test_variables_that_move_are_moved_back():
    ages = Passage(moves={"age": 1})
    before = tables("region*age", ages, "2024", ("30", "31", "(missing)"))[0]
    after = tables("region*age", ages, "2026", ("32", "33", "(missing)"))[0]
    assert before.design == after.design
    assert before.sketch(KEY) == after.sketch(KEY)
    still = tables("region*age", ages, "2026", ("30", "31", "(missing)"))[1]
    assert still.sketch(KEY) == tables("region*age", ages, "2024", ("30", "31", "(missing)"))[
        1
    ].sketch(KEY)
    assert still.design not in (before.design, tables("region*age")[0].design)
    groups = tables("region*age", ages, "2026", ("0-30", "31+"))[0]
    assert (groups.name, [label for label, *_ in groups.parts]) == ("age*region", ["region"])
    with pytest.raises(ParameterError, match="must have a number in it"):
        tables("region*age", ages, "spring")
    with pytest.raises(ParameterError, match="whole steps"):
        Passage(moves={"age": 0.5})
