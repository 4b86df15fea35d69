"""Two editions that differ by one person, and many editions of nearly the same people."""

import hashlib
import itertools
import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dc
from discreet.attacks import Knowledge, judge
from discreet.attacks.editions import Leavers, UnchangedCells
from discreet.errors import LedgerError, ParameterError
from discreet.facade import read_release
from discreet.noise.series import leaver_claims, unchanged_recovered
from discreet.protect.editions import choose_every, editions_allowed, tables_of
from discreet.tables import DataSet
from discreet.tables.editions import EditionMode
from tests.attacks.victims import MODULUS, MOVES_ZEROS, PTABLE, SECRET, flat_axes, keyed_table
from tests.commands import run

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
    record_keys = SECRET.keys_for_ids(ids, edition=edition, mode=keys)
    cell = np.ravel_multi_index(tuple(codes), tuple(SIZES.values()))
    n = int(np.prod(list(SIZES.values())))
    sums = np.zeros(n, dtype=np.int64)
    np.add.at(sums, cell, record_keys)
    counts = np.bincount(cell, minlength=n)
    table = keyed_table(counts, flat_axes(**SIZES), "*".join(SIZES), keys=sums % MODULUS)
    return replace(table, data_set=DataSet("census", edition, keys))


def test_kept_keys_show_who_left_and_the_statement_says_so():
    """The control: without a ledger, a single leaver is named with all five attributes."""
    codes, ids = people(), np.arange(PEOPLE)
    before = tabulated(codes, ids).protect(METHOD)
    assert "Record keys are kept over editions" in before.statement.text
    assert "a cell in which a single record changed shows that it did" in before.statement.text
    for gone in range(0, PEOPLE, PEOPLE // 3):
        rest = np.delete(np.arange(PEOPLE), gone)
        after = tabulated(codes[:, rest], ids[rest], edition="2").protect(METHOD)
        claims = Leavers(1 / PEOPLE)(after, Knowledge((before,)), rng=np.random.default_rng(0))
        truth = tuple(f"{name}{codes[k, gone]}" for k, name in enumerate(SIZES))
        assert claims.targets == (truth,)


@pytest.mark.parametrize("editions", ["fresh", "phased"])
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


def test_each_choice_is_stated():
    codes, ids = people(), np.arange(PEOPLE)
    modes = ("kept", "fresh", "renewed:0.05", "phased:4")
    said = {keys: tabulated(codes, ids, keys).protect(METHOD).statement for keys in modes}
    assert len({statement.text for statement in said.values()}) == len(modes)
    for keys in modes:
        assert said[keys].steps[0].parameters["keys"] == keys
    assert "Every edition is drawn afresh" in said["fresh"].text
    assert "can be averaged over editions" in said["fresh"].text
    for_a_table = tabulated(codes, ids).protect(dc.Pram(invariant=True)).statement
    assert "Each edition is drawn anew" in for_a_table.text


def cells_that_never_change(said):
    """Cells with the same positive value in eight editions of fresh keys, and the empty ones."""
    codes, ids = people(), np.arange(PEOPLE)
    tables = [tabulated(codes, ids, "fresh", str(k)) for k in range(8)]
    tables = [replace(t, data_set=replace(t.data_set, keys=said)) for t in tables]
    z = np.array([t.protect(dc.CellKey(MOVES_ZEROS)).z for t in tables])
    return (z == z[0]).all(axis=0) & (z[0] > 0), tables[0].z == 0


def test_empty_cells_with_one_key_for_ever_stand_out_among_fresh_ones():
    """The control: keys of records are drawn anew, those of empty cells are not."""
    constant, empty = cells_that_never_change(said="given")
    assert constant.sum() > 30
    assert empty[constant].mean() > 0.95


def test_empty_cells_do_not_stand_out_among_fresh_ones():
    constant, empty = cells_that_never_change(said="fresh")
    assert constant.sum() < 5
    assert empty.sum() > 30


COUNTRY = {"region": 40, "age": 15, "sex": 2, "marital": 4, "work": 5}
INHABITANTS, CHURN = 20_000, 0.05
BY = " + ".join("*".join(three) for three in itertools.combinations(COUNTRY, 3))


def inhabitants(rng, n):
    return {name: rng.integers(size, size=n) for name, size in COUNTRY.items()}


def as_file(path, codes, ids):
    columns = {name: [f"{name}{c:02}" for c in column] for name, column in codes.items()}
    pq.write_table(pa.table({"pid": ids, **columns}), path)


def discreet(*arguments):
    assert run(*map(str, arguments)) == 0


def published_twice(folder, *options):
    """Two editions by the commands of the README, a share of the people replaced in between."""
    rng = np.random.default_rng(20_261)
    codes, ids = inhabitants(rng, INHABITANTS), np.arange(INHABITANTS)
    gone = rng.choice(INHABITANTS, round(CHURN * INHABITANTS), replace=False)
    left = {tuple(f"{v}{codes[v][k]:02}" for v in COUNTRY): True for k in gone}
    releases, secret = [], folder / "keys.secret"
    secret.write_text(hashlib.sha256(b"editions").hexdigest())  # the same figures in every run
    secret.chmod(0o600)
    for edition in ("2025", "2026"):
        as_file(folder / "people.parquet", codes, ids)
        records = ("--id", "pid", "--secret", secret, "--name", "census", "--edition", edition)
        records += ("--churn", CHURN, "--out", folder / "table.parquet")
        discreet("tabulate", folder / "people.parquet", "--by", BY, *records, *options)
        out = folder / f"release-{edition}.parquet"
        before = ("--previous", folder / "release-2025.parquet") if releases else ()
        method = ("--method", "cell-key", "-s", "D=5", "-s", "V=3", "-s", "js=2")
        discreet("protect", folder / "table.parquet", *method, "--secret", secret, *before,
                 "--out", out)  # fmt: skip
        releases.append(read_release(out))
        new = inhabitants(rng, len(gone))
        for name, column in codes.items():
            column[gone] = new[name]
        ids[gone] += INHABITANTS
    return releases, left


def named(releases, left, mode=None):
    """How claims about leavers fare, beside the same attack on one edition."""
    attack, rng = Leavers(CHURN, mode=mode), np.random.default_rng(0)
    alone = attack(releases[0], Knowledge(), rng=rng)
    claims = attack(releases[1], Knowledge(tuple(releases[:1])), rng=rng)
    return judge(claims, left, attack="leavers of two editions", baseline=alone)


def is_within(found, bound):
    """Whether the upper end of the 95 % interval of right claims is below the bound."""
    return found.tally.interval()[1] <= bound


def test_a_second_edition_by_the_commands_names_no_more_leavers_than_stated(tmp_path, capsys):
    """The planted fault: with kept keys smuggled in, the same judgement fails."""
    law, rule = dc.perturbation_table(D=5, V=3, js=2), EditionMode("fresh")
    (tmp_path / "a").mkdir()
    releases, left = published_twice(tmp_path / "a")
    said = capsys.readouterr().out
    assert (
        "Editions are drawn fresh: 5.0% of the records change between editions (declared)" in said
    )
    bound = leaver_claims(rule, law, tables_of(releases[0].design), CHURN, 2)[0]
    found = named(releases, left)
    assert len(left) >= 900  # 1,000 people, some of the same profile
    (tmp_path / "b").mkdir()
    smuggled, gone = published_twice(tmp_path / "b", "--editions", "kept")
    fault = named(smuggled, gone, "kept")
    with capsys.disabled():
        sys.stdout.write(f"\nfresh, at most {bound:.1%}: {found}\nkept, smuggled in: {fault}\n")
    assert is_within(found, bound)
    assert not is_within(fault, bound)
    assert fault.tally.interval()[0] > bound


def test_values_are_repeated_by_a_hash_of_the_cell_and_never_by_the_records():
    codes, ids = people(), np.arange(PEOPLE)
    first = tabulated(codes, ids, "phased:4", "1").protect(METHOD)
    worlds = [np.arange(200, PEOPLE), np.arange(0, PEOPLE - 300)]
    drawn = []
    for rest in worlds:
        table = tabulated(codes[:, rest], ids[rest], "phased:4", "2")
        fresh, second = table.protect(METHOD), table.protect(METHOD, previous=first)
        is_old, is_new = second.z == first.z, second.z == fresh.z
        assert (is_old | is_new).all()
        drawn.append((~is_old, ~is_new))
    # a cell that one world draws afresh is repeated in no other
    assert not (drawn[0][0] & drawn[1][1]).any()
    assert not (drawn[1][0] & drawn[0][1]).any()
    told = (drawn[0][0] | drawn[0][1]).sum()
    assert drawn[0][0].sum() / told == pytest.approx(0.25, abs=0.06)


def test_the_ledger_remembers_what_was_published_and_tables_agree(tmp_path):
    codes, ids = people(), np.arange(PEOPLE)
    one, two = dc.Ledger(tmp_path / "one.db"), dc.Ledger(tmp_path / "two.db")
    first = tabulated(codes, ids, "phased:4", "1").protect(METHOD, ledger=one)
    rest = np.arange(400, PEOPLE)
    later = tabulated(codes[:, rest], ids[rest], "phased:4", "2")
    by_ledger = later.protect(METHOD, ledger=one)
    np.testing.assert_array_equal(by_ledger.z, later.protect(METHOD, previous=first).z)
    assert (by_ledger.z != later.protect(METHOD, ledger=two).z).mean() > 0.3
    assert "that were not due are those of an earlier one" in by_ledger.statement.text
    assert "Some figures are those of an earlier edition" in by_ledger.statement.public
    for wrong in (first.fit(dc.NonNegative()), by_ledger):
        with pytest.raises(ParameterError, match="previous"):
            later.protect(METHOD, previous=wrong)
    with pytest.raises(ParameterError, match="another law cannot be repeated"):
        later.protect(dc.CellKey(dc.perturbation_table(D=5, V=2, js=2)), previous=first)


def test_a_whole_table_is_repeated_until_it_is_due():
    codes, ids = people(), np.arange(PEOPLE)
    method, made, drawn = dc.Safe(), None, []
    for edition in range(1, 6):
        rest = np.arange(100 * edition, PEOPLE)
        table = tabulated(codes[:, rest], ids[rest], "phased:4", str(edition))
        made = table.protect(method, previous=made)
        assert made.statement.steps[0].parameters["edition"] == str(edition)
        drawn.append(made.z)
    assert all((z == drawn[0]).all() for z in drawn[1:4])
    assert (drawn[4] != drawn[0]).any()


def test_the_ledger_counts_editions_and_refuses_kept_keys(tmp_path):
    codes, ids, ledger = people(), np.arange(PEOPLE), dc.Ledger(tmp_path / "ledger.db")
    tabulated(codes, ids, "kept", "1").protect(METHOD, ledger=ledger)
    rest = np.arange(300, PEOPLE)
    with pytest.raises(LedgerError, match="95% right beyond 1 edition") as refused:
        tabulated(codes[:, rest], ids[rest], "kept", "2").protect(METHOD, ledger=ledger)
    assert "2700" not in str(refused.value)
    tabulated(codes[:, rest], ids[rest], "fresh", "2").protect(METHOD, ledger=ledger)


def test_the_rule_repeats_longer_where_less_changes_and_more_is_planned():
    every = [choose_every(PTABLE, 3, churn, 2) for churn in (0.2, 0.05, 0.01, 0.002)]
    assert every == [1, 1, 4, 12]
    assert choose_every(PTABLE, 12, 0.05, 6) > choose_every(PTABLE, 12, 0.05, 2)
    assert editions_allowed("kept", PTABLE, 7, 0.01) == 1
    assert 2 <= editions_allowed("fresh", PTABLE, 12, 0.01) < 12


@pytest.mark.parametrize("mode", ["fresh", "kept"])
def test_unchanged_cells_are_guessed_as_often_as_said_beforehand(mode):
    rng = np.random.default_rng(5)
    counts = rng.geometric(0.4, 2_000)
    names = flat_axes(cell=2_000)
    tables = [keyed_table(counts, names, "cell", keys=rng.integers(MODULUS, size=2_000))]
    tables += [keyed_table(counts, names, "cell", keys=rng.integers(MODULUS, size=2_000))
               for _ in range(11)] if mode == "fresh" else tables * 11  # fmt: skip
    tables = [replace(t, data_set=DataSet("c", str(k), mode)) for k, t in enumerate(tables)]
    releases = [table.protect(METHOD) for table in tables]
    claims = UnchangedCells()(releases[-1], Knowledge(tuple(releases[:-1])), rng=rng)
    truth = {k: int(n) for k, n in enumerate(tables[0].z[:2_000])}
    inner = [k for k, target in enumerate(claims.targets) if target < 2_000]
    right = np.mean([claims.values[k] == truth[claims.targets[k]] for k in inner])
    assert right == pytest.approx(unchanged_recovered(EditionMode(mode), PTABLE, 12), abs=0.04)
