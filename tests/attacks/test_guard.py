"""Editions one person apart, with everything that has hidden them from a ledger."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet import Secret
from discreet.errors import LedgerError
from discreet.ledger import Ledger
from discreet.tables import DataSet
from tests.attacks.victims import SECRET

N = 2_000
OTHER_SECRET = Secret(b"another secret of the custodian's office")


def people():
    rng = np.random.default_rng(1)
    codes = {name: rng.integers(0, k, N) for name, k in (("region", 6), ("sex", 2), ("age", 90))}
    return pa.table({"pid": np.arange(N), **codes, "year": np.full(N, 2024), "noise": codes["age"]})


PEOPLE = people()


def put(frame, **columns):
    for name, values in columns.items():
        place = frame.column_names.index(name)
        frame = frame.set_column(place, name, pa.array(values))
    return frame


def unchanged(frame):
    return frame


def next_year(frame):
    return put(frame, year=np.full(len(frame), 2025))


def other_ids(frame):
    return put(frame, pid=np.random.default_rng(2).permutation(len(frame)) + 10**6)


def some_other_ids(frame):
    ids = frame.column("pid").to_numpy().copy()
    ids[::20] += 10**6
    return put(frame, pid=ids)


def other_noise(frame):
    return put(frame, noise=np.random.default_rng(3).integers(0, 9, len(frame)))


def older(frame):
    return put(frame, age=frame.column("age").to_numpy() + 1)


def grouped(data):
    return data.recode(age=dc.records.cut([0, 15, 30, 45, 60, 75]))


BY, AGES = "region*sex*age", {"moves": {"age": 1}}
CASES = {  # what changes beside one person, how records are opened, and those of the next edition
    "nothing": (unchanged, {}, {}),
    "reference year": (next_year, {}, {}),
    "reference year in the table": (next_year, {"time": "year", "by": f"{BY}*year"}, {}),
    "ids re-issued": (other_ids, {}, {}),
    "some ids re-issued": (some_other_ids, {}, {}),
    "no ids": (unchanged, {"id": None, "secret": None}, {}),
    "ids in one edition alone": (unchanged, {}, {"id": None, "secret": None}),
    "irrelevant column": (other_noise, {}, {}),
    "keys redrawn": (unchanged, {"editions": "redrawn"}, {}),
    "another secret": (unchanged, {"editions": "redrawn"}, {"secret": OTHER_SECRET}),
    "a year older": (older, AGES, {}),
    "a year older, other ids": (lambda frame: other_ids(older(frame)), AGES, {}),
    "a year older, in groups": (older, {**AGES, "after": grouped}, {}),
    "said to be older": (unchanged, AGES, {}),
}


def enter(ledger, frame, edition, id="pid", secret=SECRET, by=BY, after=unchanged, **options):
    data = dc.open(
        frame, id=id, secret=secret, name="census", edition=edition, ledger=ledger, **options
    )
    ledger.enter(after(data).tabulate(by))


@pytest.mark.parametrize("name", CASES)
def test_an_edition_one_person_apart_is_refused(tmp_path, name):
    change, options, later = CASES[name]
    ledger = Ledger(tmp_path / "ledger.db")
    enter(ledger, PEOPLE, "2024", **options)
    with pytest.raises(LedgerError, match=r"table 'age\*region\*sex'.*by about 1 record"):
        enter(ledger, change(PEOPLE.slice(1)), "2025", **options | later)
    enter(ledger, change(PEOPLE.slice(150)), "2025", **options | later)


def test_counts_without_records_are_compared_too(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")

    def table(frame, edition):
        counted = frame.group_by(["region", "sex", "age"]).aggregate([("pid", "count")])
        return dc.Table.from_counts(
            counted, "pid_count", BY, name="census", edition=edition, moves={"age": 1}
        )

    ledger.enter(table(PEOPLE, "2024"))
    with pytest.raises(LedgerError, match="by about 1 record"):
        ledger.enter(table(older(PEOPLE.slice(1)), "2025"))
    ledger.enter(table(older(PEOPLE.slice(150)), "2025"))


def test_magnitudes_and_tables_of_a_matrix_are_compared_by_their_counts(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    X = np.array([[1, 1, 0], [1, 0, 1], [1, 0, 1]])

    def tables(people, edition):
        who = {"region": people % 7, "firm": people, "sales": people + 1.5}
        yield dc.Table.from_contributions(
            pa.table(who), "region", value="sales", contributor="firm", name="a", edition=edition
        )
        made = dc.Table.from_inner(dc.Design.from_matrix(X), np.bincount(people % 3, minlength=3))
        yield replace(made, data_set=DataSet("b", edition))

    for before, near, far in zip(
        tables(np.arange(300), "1"),
        tables(np.arange(1, 300), "2"),
        tables(np.arange(200), "2"),
        strict=True,
    ):
        ledger.enter(before)
        with pytest.raises(LedgerError, match="by about 1 record"):
            ledger.enter(near)
        ledger.enter(far)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda f: put(f, region=f.column("region").to_numpy() + 100), "look unrelated"),
        (lambda f: f.rename_columns(["pid", "place", *f.column_names[2:]]), "no such table"),
    ],
    ids=["other codes", "other variables"],
)
def test_what_cannot_be_compared_is_refused_with_the_remedy(tmp_path, change, why):
    ledger, given = Ledger(tmp_path / "ledger.db"), {"id": None, "secret": None}
    enter(ledger, PEOPLE, "1", **given)
    after = change(PEOPLE.slice(1))
    by = "place*sex*age" if "place" in after.column_names else BY
    with pytest.raises(LedgerError, match=f"cannot be compared.*{why}.*discreet ledger enter"):
        enter(ledger, after, "2", by=by, **given)
    enter(ledger, change(PEOPLE), "1", by=by, **given)  # the remedy: the earlier table in new codes
    with pytest.raises(LedgerError, match="by about 1 record"):
        enter(ledger, after, "2", by=by, **given)


def test_other_declared_code_lists_cannot_be_compared(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    for edition, codes in (("1", range(6)), ("2", range(7))):
        tree = {"region": dc.Hierarchy.flat([str(c) for c in codes])}
        frame = PEOPLE if edition == "1" else PEOPLE.slice(1)
        if edition == "1":
            enter(ledger, frame, edition, hierarchies=tree)
            continue
        with pytest.raises(LedgerError, match="other code lists"):
            enter(ledger, frame, edition, hierarchies=tree)


def test_a_new_table_passes_when_enough_people_came_or_went(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    kept = {"by": "region*age", "editions": "kept"}  # keys of one edition recognise nobody
    enter(ledger, PEOPLE, "1", **kept | {"by": "region*sex"})
    with pytest.raises(LedgerError, match="no such table"):
        enter(ledger, PEOPLE.slice(1), "2", **kept)
    enter(ledger, PEOPLE.slice(100), "2", **kept)
