"""A second release of the same records: what it tells beside the first, and that it is refused."""

from dataclasses import replace

import numpy as np
import pytest

import discreet as dc
from discreet.errors import LedgerError, ParameterError
from discreet.protect.publish import MEASURED
from discreet.tables import DataSet
from tests.attacks.victims import PTABLE, country

LAWS = [PTABLE, *(dc.perturbation_table(*each) for each in ((5, 2, 0), (6, 4, 2), (3, 1, 0)))]
TABLE = replace(country(mean=3.0), data_set=DataSet("census"))


@pytest.fixture
def ledger(tmp_path):
    return dc.Ledger(tmp_path / "ledger.db")


def attack(releases, laws):
    """The attack's finding; its baseline is the same attack on the last release alone."""
    *earlier, last = releases
    known = dc.Knowledge(tuple(earlier), extra={"laws": laws})
    return dc.attack(TABLE, last, ["several-laws"], knowledge=known)["several-laws"]


# Releases by key


def test_four_perturbation_tables_tell_counts_that_one_hides(record_property):
    """The control: where nobody counts, releases under other parameters are made."""
    laws = (*LAWS[1:], LAWS[0])
    found = attack([TABLE.protect(dc.CellKey(law)) for law in laws], (laws,))
    record_property("exact counts: one, four", str((found.guess, found.success)))
    assert found.guess == pytest.approx(MEASURED["one"], abs=0.02)
    assert found.success == pytest.approx(MEASURED["four"], abs=0.02)


def test_six_releases_by_three_methods_tell_more(record_property):
    keyed = [dc.CellKey(LAWS[1]), dc.CellKey(LAWS[0])]
    apart = [dc.DropAdd(0.05), dc.DropAdd(0.1), dc.Pram(), dc.Pram(epsilon=1.0)]
    laws = (tuple(m.law for m in keyed), *(m.law for m in apart))
    found = attack([TABLE.protect(m) for m in (*keyed, *apart)], laws)
    record_property("exact counts: six releases", float(found.success))
    assert found.success > MEASURED["one"] + 0.3


def test_a_ledger_lets_one_law_pass_and_says_what_another_costs(ledger):
    first = TABLE.protect(dc.CellKey(PTABLE), ledger=ledger)
    others = [dc.CellKey(law) for law in LAWS[1:]]
    others += [dc.DropAdd(), dc.Pram(), dc.CellKey(PTABLE, margins="summed"), dc.Safe()]
    others += [dc.protect.Quality(dc.CellKey(PTABLE)), dc.Pram(invariant=True)]
    for method in others:
        with pytest.raises(LedgerError, match="again=True"):
            TABLE.protect(method, ledger=ledger)
    with pytest.raises(
        LedgerError, match=f"tell {MEASURED['four']:.0%} .* one tells {MEASURED['one']:.0%}"
    ):
        TABLE.protect(others[0], ledger=ledger)
    again = TABLE.protect(dc.CellKey(PTABLE), ledger=ledger)
    assert (again.z == first.z).all()
    assert not again.statement.says("released-again")
    second = TABLE.protect(others[0], ledger=ledger, again=True)
    assert "This is release 2 of this edition" in second.statement.text


def test_all_tables_under_one_law_are_one_release(ledger):
    narrow = replace(country(mean=3.0, terms="region*age"), data_set=TABLE.data_set)
    for table in (TABLE, narrow):
        for method in (dc.CellKey(PTABLE), dc.CellKey(PTABLE, threshold=10)):
            table.protect(method, ledger=ledger)
    assert [row["number"] for row in ledger.rows() if row["entry"] == "release"] == [1]
    nobody_counts = TABLE.protect(dc.CellKey(PTABLE)).statement.text
    assert "one cell-key release gave 21 to 38 % of the counts" in nobody_counts
    assert 0.21 <= MEASURED["one"] <= 0.38
    assert "Nobody counts" in nobody_counts


def test_after_a_table_wise_release_none_by_key_passes(ledger):
    TABLE.protect(dc.ControlledRounding(), ledger=ledger)
    with pytest.raises(LedgerError, match="again=True"):
        TABLE.protect(dc.CellKey(PTABLE), ledger=ledger)
    TABLE.protect(dc.DiscreteLaplace(1.0), ledger=ledger)  # its cost is counted instead


# Draws that nobody counts

NOTHING = np.zeros(TABLE.design.n_inner, dtype=int) - 1
UNLISTED = {
    "effort of SAFE": lambda k: dc.Safe(proposals=1e5 + k),
    "a weight of SAFE": lambda k: dc.Safe(weights={1: 1 + k / 100}),
    "a bound of SAFE": lambda k: dc.Safe(bounds={1: 100 + k}),
    "a move of SAFE": lambda k: dc.Safe(max_move=100 + k),
    "effort of rounding": lambda k: dc.SmallCountRounding(proposals=1e5 + k),
    "rounds of rounding": lambda k: dc.SmallCountRounding(max_iter=101 + k),
    "rows of rounding": lambda k: dc.SmallCountRounding(max_iter_rows=1001 + k),
    "cells rounded before": lambda k: dc.SmallCountRounding(pre_rounded=NOTHING),
    "weights by cell": lambda k: dc.SmallCountRounding(weights=np.full(len(TABLE.z), 1 + k / 99)),
    "base": lambda k: dc.ControlledRounding(11 + k),
    "effort of adjusting": lambda k: dc.Adjust(dc.CellKey(PTABLE), proposals=1e5 + k),
    "a weight of adjusting": lambda k: dc.Adjust(dc.CellKey(PTABLE), weights={0: 2 + k / 99}),
    "what is adjusted": lambda k: dc.Adjust(dc.DropAdd(0.051 + k / 1e3)),
    "alpha": lambda k: dc.Pram(invariant=True, alpha=0.81 + k / 1e3),
    "epsilon": lambda k: dc.Pram(epsilon=2.01 + k / 1e3),
    "share": lambda k: dc.DropAdd(0.051 + k / 1e3),
    "decimals": lambda k: dc.Suppress(decimals=dc.suppress.Decimals(rmse=1.01 + k / 1e3)),
    "orders of SAFE": lambda k: dc.Safe(allowances={3 + k: 1.0}),
    "orders of bounds": lambda k: dc.Adjust(dc.CellKey(PTABLE), bounds={100 + k: 5.0}),
    "orders of weights": lambda k: dc.Adjust(dc.CellKey(PTABLE), weights={3 + k: 4.0}),
    "values": lambda k: dc.Adjust(dc.CellKey(PTABLE), value_weights={10 + k: 4.0}),
    "quality": lambda k: dc.protect.Quality(dc.CellKey(PTABLE), keep=0.51 + k / 1e3),
}


@pytest.mark.parametrize("kind", UNLISTED)
def test_where_nobody_counts_no_option_draws_anew_at_will(kind, ledger):
    method = UNLISTED[kind](1)
    with pytest.raises(ParameterError, match=r"nobody counts releases.*ledger='ledger.db'"):
        TABLE.protect(method)
    if kind not in ("effort of rounding", "cells rounded before"):  # slow, or given by somebody
        TABLE.protect(method, ledger=ledger)


def test_spelling_draws_nothing_anew():
    one, other = (
        dc.Safe(controlled=c) for c in ("region*age", [("age", "region"), "age", "region", ()])
    )
    assert (TABLE.protect(one).z == TABLE.protect(other).z).all()
