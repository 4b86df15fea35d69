"""Contributions to cells: laws, order, storage, and how tables of magnitudes show themselves."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dc
from discreet.errors import DataError, DesignError
from discreet.tables.canonical import canonical_table, table_digest
from discreet.tables.magnitude import NOBODY, CellContributions, Contributions, top_contributions

PARTS = ("sum", "absolute", "count", "largest", "owner")

records = st.lists(
    st.tuples(st.integers(-1, 3), st.integers(0, 4), st.integers(-3, 9)), min_size=0, max_size=30
)


def by_hand(rows, cell):
    sums = {}
    for where, who, amount in rows:
        if where == cell:
            sums[who] = sums.get(who, 0) + amount
    return {who: x for who, x in sums.items() if x}


@given(records, st.integers(1, 4))
def test_contributions_are_those_added_up_by_hand(rows, largest):
    columns = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    found = top_contributions(columns[0], columns[1], columns[2].astype(float), 4, largest)
    for cell in range(4):
        expected = by_hand(rows, cell)
        ranked = sorted(expected, key=lambda who: (-abs(expected[who]), who))[:largest]
        filled = [abs(expected[who]) for who in ranked] + [0] * (largest - len(ranked))
        assert found.sum[cell] == sum(expected.values())
        assert found.absolute[cell] == sum(map(abs, expected.values()))
        assert found.count[cell] == len(expected)
        assert found.largest[cell].tolist() == filled
        assert found.owner[cell].tolist() == ranked + [NOBODY] * (largest - len(ranked))


def firms():
    rng = np.random.default_rng(1)
    n = 200
    return pd.DataFrame(
        {
            "trade": rng.choice(["x", "y", "z"], n),
            "region": rng.choice(["n", "s"], n),
            "firm": rng.integers(100, 130, n),
            "value": np.round(rng.lognormal(3, 1, n), 2),
        }
    )


def table(margins="trade*region", **options):
    return dc.Table.from_contributions(
        firms(), margins, value="value", contributor="firm", **options
    )


@pytest.mark.parametrize("support", ["all", "occurring"])
@pytest.mark.parametrize("margins", ["trade*region", "trade + region"])
def test_files_keep_contributions(tmp_path, support, margins):
    before = table(margins, support=support)
    after = dc.facade.read_table(before.save(tmp_path / "t.parquet"))
    for name in PARTS:
        for cells in ("published", "inner"):
            one, two = getattr(before.contributions, cells), getattr(after.contributions, cells)
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert after.contributions.owners == before.contributions.owners
    assert after.contributions.value == "value"


def test_files_keep_what_is_said_of_contributions(tmp_path):
    frame = firms().assign(value=lambda f: f["value"] - 10, w=2.0, contributors="a")
    before = dc.Table.from_contributions(
        frame,
        "trade*contributors",
        value="value",
        contributor="firm",
        weight="w",
        negative="absolute",
        largest=2,
    )
    after = dc.facade.read_table(before.save(tmp_path / "t.parquet")).contributions
    assert after.is_weighted
    assert after.may_be_negative
    np.testing.assert_array_equal(after.published.absolute, before.contributions.published.absolute)
    assert after.largest.shape[1] == 2


def test_the_order_of_variables_changes_nothing_but_places():
    one, two = table("trade*region"), table("region*trade")
    for name in PARTS:
        np.testing.assert_array_equal(
            getattr(canonical_table(one).contributions.published, name),
            getattr(canonical_table(two).contributions.published, name),
        )
    assert table_digest(canonical_table(one)) == table_digest(canonical_table(two))


def test_other_values_are_another_table_to_a_ledger():
    frame = firms()
    counts = [
        dc.Table.from_contributions(f, "trade", value="value", contributor="firm")
        for f in (frame, frame.assign(value=frame["value"] + 1))
    ]
    assert table_digest(counts[0]) != table_digest(counts[1])


def test_a_table_of_magnitudes_shows_sums():
    text = repr(table())
    assert text.startswith("Table of value (confidential)")
    assert f"{firms()['value'].sum():,.2f}" in text
    assert "Table of value" in table()._repr_html_()


def test_frames_of_magnitudes_have_owners_and_contributors():
    frame = table().to_pandas()
    assert list(frame.columns[2:6]) == ["count", "value", "contributors", "largest_1"]
    assert frame["owner_1"].iloc[0] in set(firms()["firm"].astype(str))


def test_a_value_named_count_has_a_column_of_its_own():
    frame = firms().rename(columns={"value": "count"})
    shown = dc.Table.from_contributions(frame, "trade", value="count", contributor="firm")
    assert {"count", "count_"} <= set(shown.to_pandas().columns)


def test_contributions_to_other_cells_are_refused():
    given = table().contributions
    with pytest.raises(DesignError, match="contributions to 4"):
        dc.Table(
            table().design,
            table().published,
            contributions=Contributions("value", given.published.take(np.arange(4))),
        )
    with pytest.raises(DesignError, match="different cells"):
        CellContributions(np.zeros(2), np.zeros(3), np.zeros(2), np.zeros((2, 1)), np.zeros((2, 1)))


def test_a_table_of_counts_has_no_contributions():
    counts = dc.Table.from_counts(firms().assign(n=1), "n", "trade")
    with pytest.raises(DesignError, match="value='turnover', contributor='enterprise'"):
        counts.require_contributions()


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("value", -1.0, "negative='absolute'"),
        ("value", np.inf, "finite"),
        ("firm", None, "every row needs a contributor"),
    ],
)
def test_rows_that_cannot_be_contributions_are_refused(column, values, message):
    frame = firms().astype({"firm": object})
    frame.loc[3, column] = values
    with pytest.raises(DataError, match=message):
        dc.Table.from_contributions(frame, "trade", value="value", contributor="firm")


def test_a_method_for_counts_does_not_take_magnitudes():
    with pytest.raises(dc.DiscreetError, match="say unit='count'"):
        table().protect("small-count-rounding")
    keyed = table().with_secret(dc.Secret.demo())
    assert keyed.protect("small-count-rounding", unit="count").unit == "count"
