"""Hierarchies found in the columns of data."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import Hierarchy
from discreet.design import MISSING
from discreet.design.codes import canonical
from discreet.design.formats import tables
from discreet.errors import CodeError, UnknownNameError

TOWNS = [
    ("Oslo", "East", "NO", False, 1),
    ("Bergen", "West", "NO", False, 1),
    ("Malmö", "South", "SE", True, 1),
    ("Åbo", "Far", "FI", True, 1),
    ("Lund", "South", "SE", True, 0),
    ("Voss", "West", "NO", False, 0),
]
PEOPLE = [(sex, *town) for town in TOWNS for sex in ("m", "w")]
COLUMNS = ("sex", "town", "region", "country", "eu", "coast")
GEO = {name: list(cells) for name, cells in zip(COLUMNS, zip(*PEOPLE, strict=True), strict=True)}


def relation(columns):
    people = pa.table(columns)  # noqa: F841 - read by name
    return duckdb.sql("select * from people")


@pytest.mark.parametrize(
    "wrap",
    [dict, pa.table, pd.DataFrame, pl.DataFrame, pl.LazyFrame, relation],
    ids=lambda wrap: wrap.__name__,
)
def test_chains_that_branch_give_several_hierarchies(wrap):
    found = Hierarchy.find(wrap(GEO))
    assert list(found) == ["town"]
    assert len(found) == 1
    assert found.chains["town"] == [("coast", "town"), ("eu", "country", "region", "town")]
    by_coast, by_country = found["town"]
    assert by_coast.to_dict() == {
        "Total": {"0": ["Lund", "Voss"], "1": ["Bergen", "Malmö", "Oslo", "Åbo"]}
    }
    assert by_country.level_names == ("Total", "eu", "country", "region", "town")
    assert by_country.children("Total") == ("false", "true")
    assert by_country.leaves_of("SE") == ("Lund", "Malmö")


def test_the_report_is_readable():
    report = str(Hierarchy.find(GEO, ["town", "country", "sex"]))
    assert report == "country > town  (3 > 6 codes)"
    assert (
        str(Hierarchy.find({"a": [1, 1, 2, 2], "b": [1, 2, 1, 2]})) == "no column refines another"
    )


def test_found_hierarchies_can_be_chosen_by_column():
    found = Hierarchy.find(GEO, ["region", "country", "sex"])
    assert found["region"][0].to_dict() == {
        "Total": {"FI": ["Far"], "NO": ["East", "West"], "SE": ["South"]}
    }
    with pytest.raises(UnknownNameError, match="Did you mean 'region'"):
        Hierarchy.find(GEO, ["regio"])


def test_codes_that_several_columns_share_are_told_apart():
    found = Hierarchy.find({"town": [1, 2, 3, 4], "region": [1, 1, 2, 2], "zone": [1, 2, 2, 9]})
    region, zone = found["town"]
    assert region.to_dict() == {"Total": {"region=1": ["1", "2"], "region=2": ["3", "4"]}}
    assert zone.to_dict() == {"Total": {"zone=1": ["1"], "zone=2": ["2", "3"], "9": ["4"]}}


def test_missing_values_are_a_code_of_their_own():
    found = Hierarchy.find({"town": ["a", "b", None, "c"], "region": ["X", "X", None, "Y"]})
    (tree,) = found["town"]
    assert tree.leaves_of(f"region={MISSING}") == (MISSING,)
    torn = {"town": ["a", None, None, "c"], "region": ["X", "X", "Y", "Y"]}
    assert len(Hierarchy.find(torn)) == 0


def test_equal_constant_and_measured_columns_are_noted():
    frame = {
        "town": ["a", "b", "c"],
        "name": ["Aa", "Bb", "Cc"],
        "region": ["X", "X", "Y"],
        "year": [2020, 2020, 2020],
        "income": [1.5, 2.5, 2.5],
    }
    found = Hierarchy.find(frame)
    assert found.chains == {"town": [("region", "town")]}
    notes = "\n".join(found.notes)
    assert "name was left out: it has the same categories as town" in notes
    assert "year was left out: it has one category only" in notes
    assert "income was left out: type float64" in notes
    named = Hierarchy.find(frame, ["income", "town"])
    assert named["town"][0].children("Total") == ("1.5", "2.5")


def test_identifiers_are_left_out(monkeypatch):
    monkeypatch.setattr(tables, "MOST_CATEGORIES", 5)
    found = Hierarchy.find({**GEO, "id": range(12)})
    assert "town" not in found
    assert "id was left out: 12 categories are more than 5" in found.notes


def test_nearly_nested_columns_are_told_with_the_code_in_the_way():
    town = [str(i // 2) for i in range(80)]
    region = [f"R{i // 20}" for i in range(80)]
    assert Hierarchy.find({"town": town, "region": region}).chains
    region[7] = "R3"
    found = Hierarchy.find({"town": town, "region": region})
    assert not found.chains
    (note,) = found.notes
    assert note.startswith("town nearly refines region: 1 of 40 codes lie in several, such as '3'")
    assert "'R0'" in note
    assert "'R3'" in note


def test_the_root_must_not_be_a_code():
    frame = {"town": ["a", "b", "c"], "region": ["Total", "Total", "Y"]}
    assert Hierarchy.find(frame, root="All")["town"][0].root == "All"
    with pytest.raises(CodeError, match="Total"):
        Hierarchy.find(frame)


@pytest.mark.parametrize("frame", [{"a": [], "b": []}, {"a": [1], "b": [2]}, {}])
def test_little_data_nests_nothing(frame):
    assert len(Hierarchy.find(pa.table(frame))) == 0


def refines(fine, coarse):
    return len(set(zip(fine, coarse, strict=True))) == len(set(fine))


columns = st.integers(1, 12).flatmap(
    lambda n: st.lists(
        st.lists(st.sampled_from([0, 1, 2, 3, None]), min_size=n, max_size=n),
        min_size=1,
        max_size=4,
    )
)


@given(columns)
def test_found_chains_agree_with_pair_counting(values):
    data = {f"v{i}": [None if v is None else f"v{i}:{v}" for v in c] for i, c in enumerate(values)}
    found = Hierarchy.find(pa.table({k: pa.array(v, pa.string()) for k, v in data.items()}))
    for finest, chains in found.chains.items():
        for chain, tree in zip(chains, found[finest], strict=True):
            assert chain[-1] == finest
            assert all(refines(data[f], data[c]) for c, f in zip(chain, chain[1:], strict=False))
            assert set(tree.leaves) == {canonical(v) for v in data[finest]}
            for coarse, fine in zip(data[chain[0]], data[finest], strict=True):
                top = tree.ancestor_at(1)[canonical(fine)]
                assert top.removeprefix(f"{chain[0]}=") == canonical(coarse)
    proper = [
        (f, c)
        for f in data
        for c in data
        if 1 < len(set(data[c])) < len(set(data[f])) and refines(data[f], data[c])
    ]
    in_chains = {name for chains in found.chains.values() for chain in chains for name in chain}
    twins = {note.split()[0] for note in found.notes if "same categories" in note}
    assert {name for pair in proper for name in pair} <= in_chains | twins


def test_a_tree_of_many_codes_is_found():
    n = 20_000
    frame = {"leaf": np.arange(n), "ten": np.arange(n) // 10 + 10**6, "odd": np.arange(n) % 2 - 2}
    found = Hierarchy.find(pa.table(frame))
    assert sorted(len(tree.children("Total")) for tree in found["leaf"]) == [2, 2000]
