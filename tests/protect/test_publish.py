"""The one way out: units, secrets, ledgers, and further tables."""

from dataclasses import replace

import numpy as np
import pytest

import discreet as dc
from discreet.errors import BudgetError, DesignError, KeysError, LedgerError, ParameterError
from discreet.tables import DataSet
from discreet.testing import sample_table
from tests.protect.methods import ALL, DRAWING, NOISE, TABLE_WISE
from tests.protect.tables import SECRET, keyed_party

SAFE = dc.Safe()


def table(margins="party*age*sex", **options):
    made = keyed_party(margins, declared=True, name="party", **options)
    return made.with_secret(SECRET)


@pytest.fixture
def ledger(tmp_path):
    return dc.Ledger(tmp_path / "ledger.db", epsilon=3.0, delta=1e-6)


@pytest.mark.parametrize("name", [name for name in TABLE_WISE if name in DRAWING])
def test_a_missing_secret_is_named_before_anything_is_entered(name, ledger):
    bare = keyed_party("party*age*sex", name="party")
    for given in ({}, {"ledger": ledger}):
        with pytest.raises(KeysError, match=r"secret='keys.secret'.*simulate\(method, seed=1\)"):
            bare.protect(TABLE_WISE[name], **given)


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in ALL if ALL[n].source != "system"])
def test_the_same_table_has_the_same_release(name):
    first, again = (table().protect(ALL[name]) for _ in range(2))
    np.testing.assert_array_equal(first.z, again.z)
    assert isinstance(first, dc.Release)


def test_noise_of_two_tables_is_unrelated_although_the_secret_is_one():
    """Releases of other counts under one secret and edition share nothing."""
    rng = np.random.default_rng(1)
    design = dc.Design.product({"a": 30, "b": 30}, [("a", "b")])
    method, moves = dc.Pram(invariant=True), []
    for _ in range(2):
        made = dc.Table.from_inner(design, rng.poisson(20, 900)).with_secret(SECRET)
        moves.append(made.protect(method).z - made.z)
    assert abs(np.corrcoef(moves)[0, 1]) < 5 / 30


def test_methods_by_name_and_parameters_that_go_nowhere():
    by_name = table().protect("safe")
    np.testing.assert_array_equal(by_name.z, table().protect(SAFE).z)
    with pytest.raises(ParameterError, match="min_count would have no effect"):
        table().protect(SAFE, min_count=5)
    with pytest.raises(ParameterError, match="a method or its name"):
        table().protect(42)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_a_table_with_weights_is_refused_until_its_unit_is_said(name):
    weighted = sample_table(weights=True).with_secret(SECRET)
    with pytest.raises(ParameterError, match="numbers of sampled records"):
        weighted.protect(ALL[name])
    if name != "controlled-rounding":
        assert weighted.protect(ALL[name], unit="count").unit == "count"


def test_a_second_suppression_is_refused_for_what_the_two_give_away(ledger):
    first = table().protect(dc.Suppress(dc.rules.Threshold(3)), ledger=ledger)
    for method in (
        dc.Suppress(dc.rules.Threshold(1)),
        dc.Suppress(dc.rules.Threshold(1), decimals="rmse"),
    ):
        with pytest.raises(
            LedgerError, match=r"computed from the other.*dc\.consistent"
        ) as refused:
            table().protect(method, ledger=ledger)
        assert "noise" not in str(refused.value)
        assert "tabulate" not in str(refused.value)
    agreeing = dc.suppress.consistent(dc.Suppress(dc.rules.Threshold(3)), table(), first)
    assert table().protect(agreeing, ledger=ledger, again=True).hidden.sum() >= first.hidden.sum()


def test_private_releases_are_entered_before_they_are_returned(ledger, monkeypatch):
    table().protect(dc.DiscreteLaplace(1.0), ledger=ledger)
    assert ledger.spent("party").epsilon == 1.0
    table().protect(dc.DiscreteGaussian(0.01), ledger=ledger)
    assert ledger.spent("party").rho == 0.01

    def dies(*given, **named):
        raise RuntimeError("killed")

    monkeypatch.setattr("discreet.protect.publish.data_step", dies)
    with pytest.raises(RuntimeError):
        table().protect(dc.DiscreteLaplace(0.5), ledger=ledger)
    assert ledger.spent("party").epsilon == 1.5


def test_an_exhausted_budget_refuses_and_other_editions_share_it(ledger):
    table().protect(dc.DiscreteLaplace(2.0), ledger=ledger)
    more = replace(table(), data_set=DataSet("party", "2"))
    with pytest.raises(BudgetError):
        more.protect(dc.DiscreteLaplace(1.5), ledger=ledger)
    more.protect(dc.DiscreteLaplace(1.0), ledger=ledger)
    assert ledger.spent("party").epsilon == 3.0


def test_known_margins_cost_what_a_replacement_costs(ledger, tmp_path):
    method = dc.DiscreteLaplace(1.0, known=["1"])
    with pytest.raises(BudgetError, match="no finite ε for one record added or removed"):
        table().protect(method, ledger=ledger)
    assert ledger.spent("party").entries == 0
    within = dc.Ledger(tmp_path / "known.db", epsilon=3.0, relation="known")
    table().protect(method, ledger=within)
    assert within.spent("party").epsilon == 2.0


def test_with_a_ledger_other_releases_are_counted_and_without_one_the_statement_says_so(ledger):
    counted, alone = (
        table().protect(dc.DiscreteLaplace(1.0), ledger=book).statement.text
        for book in (ledger, None)
    )
    assert "ledger adds up what all private releases of this data set cost" in counted
    assert "Earlier releases of the same records are not counted here" in alone
    assert "Earlier releases" not in counted


def test_a_second_release_for_the_whole_table_needs_a_word(ledger):
    first = table().protect(SAFE, ledger=ledger)
    assert not first.statement.says("released-again")
    same = table("sex*age*party").protect(SAFE, ledger=ledger)
    assert same.z[same.design.position({})] == first.z[first.design.position({})]
    with pytest.raises(LedgerError, match=r"release.tabulate.*again=True"):
        table().protect(dc.Safe(min_count=4), ledger=ledger)
    second = table().protect(dc.Safe(min_count=4), ledger=ledger, again=True)
    assert "This is release 2 of this edition" in second.statement.text
    assert not table().protect(SAFE, ledger=ledger).statement.says("released-again")


def test_tables_under_one_law_need_no_word_and_another_law_does(ledger):
    table().protect(NOISE, ledger=ledger)
    table("sex*age").protect(NOISE, ledger=ledger)
    for method in (dc.DropAdd(), dc.Pram()):
        with pytest.raises(LedgerError, match=r"several laws of noise.*again=True"):
            table().protect(method, ledger=ledger)
        table().protect(method, ledger=ledger, again=True)


def test_other_counts_under_the_same_edition_are_refused(ledger):
    table().protect(NOISE, ledger=ledger)
    made = table()
    other = dc.Table.from_inner(made.design, replace(made.inner, count=made.y[::-1]))
    other = replace(other, data_set=made.data_set, secret=SECRET)
    with pytest.raises(LedgerError) as why:
        other.protect(NOISE, ledger=ledger)
    assert str(why.value) != why.value.public()
    counts = replace(made.inner, count=made.y + 5)
    grown = replace(dc.Table.from_inner(made.design, counts), secret=SECRET)
    with pytest.raises(LedgerError, match="is number 2 of data set 'party', and in mode given"):
        replace(grown, data_set=DataSet("party", "2")).protect(NOISE, ledger=ledger)
    renamed = replace(grown, data_set=DataSet("party", "2", "fresh"))
    assert renamed.protect(NOISE, ledger=ledger).statement.steps[0].parameters["edition"] == "2"


def test_a_ledger_counts_by_name(ledger):
    nameless = keyed_party("party*age*sex").with_secret(SECRET)
    with pytest.raises(ParameterError, match="these records have none"):
        nameless.protect(NOISE, ledger=ledger)


def test_the_tables_own_ledger_is_used_and_a_file_will_do(tmp_path):
    path = tmp_path / "ledger.db"
    replace(table(), ledger=dc.Ledger(path)).protect(dc.Laplace(1.0))
    table().protect(dc.Laplace(1.0), ledger=path)
    assert dc.Ledger(path).spent("party").entries == 2


def test_a_release_names_data_edition_and_keys():
    step = table().protect(NOISE).statement.steps[0]
    assert (step.name, dict(step.parameters)) == (
        "data", {"name": "party", "edition": "1", "keys": "given",
                 "why": "the record keys came with the records"}
    )  # fmt: skip


@pytest.mark.parametrize("margins", ["party*age", "sex", [("age", "sex"), ()]])
@pytest.mark.parametrize(
    "name", ["safe", "forced rounding", "fitted cell-key", "controlled-rounding"]
)
def test_further_tables_are_public_and_agree_with_the_release(name, margins):
    release = (
        table().protect(NOISE).fit(dc.NonNegative())
        if name == "fitted cell-key"
        else table("party*age*sex").protect(ALL[name])
    )
    further = release.tabulate(margins)
    assert isinstance(further, dc.Release)
    for k in range(further.design.n_published):
        there = release.z[release.design.position(further.design.cell(k))]
        np.testing.assert_allclose(further.z[k], there, atol=1e-9)
    assert further.statement.steps[-1].name == "tabulate"
    assert further.statement.steps[:-1] == release.statement.steps
    assert further.to_arrow().num_rows == further.design.n_published
    variable = further.design.axes[-1].name
    once, directly = further.tabulate(variable), release.tabulate(variable)
    np.testing.assert_allclose(once.z, directly.z)


def test_releases_without_inner_cells_give_no_further_tables():
    with pytest.raises(DesignError, match="inner cells are not part of this release"):
        table("party*age + party*sex").protect(NOISE).tabulate("age*sex")


def test_further_tables_on_found_support_do_not_show_it():
    release = table(support="occurring").protect(SAFE)
    further = release.tabulate("party*age")
    assert further.design.n_published == 4 * 4
    assert further.design.support != "occurring"
