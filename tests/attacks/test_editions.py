"""Two editions that differ by one person, and many editions of nearly the same people."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.errors import LedgerError
from discreet.tables.truth import DataSet
from tests.attacks.victims import MODULUS, MOVES_ZEROS, PTABLE, SECRET, flat_axes, keyed_table

SIZES = {"region": 6, "age": 5, "sex": 2, "marital": 4, "work": 3}
PEOPLE = 3_000
METHOD = dc.CellKey(PTABLE)


def people(seed=1):
    """Codes of each person, one column for each variable."""
    rng = np.random.default_rng(seed)
    return np.array([rng.choice(n, PEOPLE, p=skewed(n)) for n in SIZES.values()])


def skewed(n):
    p = 1.0 / np.arange(1, n + 1)
    return p / p.sum()


def tabulated(codes, ids, keys="kept", edition="1"):
    """The table of some people, with record keys made from their ids."""
    record_keys = SECRET.keys_for_ids(ids, edition=edition if keys == "redrawn" else None)
    cell = np.ravel_multi_index(tuple(codes), tuple(SIZES.values()))
    n = int(np.prod(list(SIZES.values())))
    sums = np.zeros(n, dtype=np.int64)
    np.add.at(sums, cell, record_keys)
    counts = np.bincount(cell, minlength=n)
    table = keyed_table(counts, flat_axes(**SIZES), "*".join(SIZES), keys=sums % MODULUS)
    return replace(table, data_set=DataSet("census", edition, keys))


def who_left(before, after):
    """The attributes that cells which changed have in common, by comparing two releases."""
    frame = before.to_pandas()[after.z != before.z]
    totals = {axis.name: set(axis.total_codes) for axis in before.design.axes}
    seen = {name: set(frame[name].astype(str)) - totals[name] for name in SIZES}
    return {name: codes.pop() if len(codes) == 1 else None for name, codes in seen.items()}


def test_kept_keys_show_who_left_and_the_statement_says_so():
    """The control: without a ledger, all five attributes are read off in nearly every trial."""
    codes, ids = people(), np.arange(PEOPLE)
    before, found = tabulated(codes, ids).protect(METHOD), 0
    assert "Record keys are kept over editions" in before.statement.text
    assert "a cell in which a single record changed shows that it did" in before.statement.text
    for gone in range(0, PEOPLE, PEOPLE // 30):
        rest = np.delete(np.arange(PEOPLE), gone)
        after = tabulated(codes[:, rest], ids[rest], edition="2").protect(METHOD)
        truth = {name: f"{name}{codes[k, gone]}" for k, name in enumerate(SIZES)}
        found += who_left(before, after) == truth
    assert found >= 29


@pytest.mark.parametrize("editions", ["kept", "redrawn"])
def test_an_edition_with_one_person_less_is_refused(tmp_path, editions):
    ledger = dc.Ledger(tmp_path / "ledger.db")
    columns = dict(zip(SIZES, people().astype(str), strict=True))
    frame = pa.table({"pid": np.arange(PEOPLE), **columns})

    def opened(part, edition):
        return dc.open(
            part,
            id="pid",
            name="census",
            edition=edition,
            secret=SECRET,
            editions=editions,
            ledger=ledger,
        )

    opened(frame, "1").tabulate("region*sex").protect(METHOD)
    with pytest.raises(LedgerError, match="min_changed"):
        opened(frame.slice(1), "2").tabulate("region*sex").protect(METHOD)
    with pytest.raises(LedgerError, match="another set of records"):
        opened(frame.slice(1), "1").tabulate("region*sex").protect(METHOD)
    opened(frame.slice(200), "2").tabulate("region*sex").protect(METHOD)


def test_redrawn_keys_hide_who_left_but_editions_average_and_the_statement_says_so():
    codes, ids = people(), np.arange(PEOPLE)
    editions = [tabulated(codes, ids, "redrawn", str(k)).protect(METHOD) for k in range(25)]
    assert "drawn anew for each edition" in editions[0].statement.text
    assert "smaller by the square root of n" in editions[0].statement.text
    truth = tabulated(codes, ids).z
    large = truth >= 10
    noise = np.array([release.z - truth for release in editions])[:, large]
    single, averaged = noise[0].std(), noise.mean(axis=0).std()
    assert single / averaged == pytest.approx(5, rel=0.15)
    rest = np.arange(1, PEOPLE)
    after = tabulated(codes[:, rest], ids[rest], "redrawn", "next").protect(METHOD)
    assert None in who_left(editions[0], after).values()


def test_each_choice_is_stated():
    codes, ids = people(), np.arange(PEOPLE)
    said = {
        keys: tabulated(codes, ids, keys).protect(METHOD).statement for keys in ("kept", "redrawn")
    }
    assert said["kept"].text != said["redrawn"].text
    assert said["kept"].steps[0].parameters["keys"] == "kept"
    assert said["redrawn"].steps[0].parameters["keys"] == "redrawn"
    for_a_table = tabulated(codes, ids).protect(dc.Pram(invariant=True)).statement
    assert "Each edition is drawn anew" in for_a_table.text


def cells_that_never_change(said):
    """Cells with the same positive value in eight editions of redrawn keys, and the empty ones."""
    codes, ids = people(), np.arange(PEOPLE)
    tables = [tabulated(codes, ids, "redrawn", str(k)) for k in range(8)]
    tables = [replace(t, data_set=replace(t.data_set, keys=said)) for t in tables]
    z = np.array([t.protect(dc.CellKey(MOVES_ZEROS)).z for t in tables])
    return (z == z[0]).all(axis=0) & (z[0] > 0), tables[0].z == 0


def test_empty_cells_with_one_key_for_ever_stand_out_among_redrawn_ones():
    """The control: keys of records are drawn anew, those of empty cells are not."""
    constant, empty = cells_that_never_change(said="given")
    assert constant.sum() > 30
    assert empty[constant].mean() > 0.95


def test_empty_cells_do_not_stand_out_among_redrawn_ones():
    constant, empty = cells_that_never_change(said="redrawn")
    assert constant.sum() < 5
    assert empty.sum() > 30
