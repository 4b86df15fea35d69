"""Targeted record swapping: laws, statement, an intruder, and the command line."""

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import discreet as dc
from discreet.cli.app import app
from discreet.errors import DataError, KeysError, ParameterError, UnknownNameError
from discreet.synthesis import swap_records
from discreet.synthesis.swap import SwapEvidence

SECRET = dc.Secret(b"what the custodian knows and nobody else")
OPTIONS = {
    "geography": ["region", "town"],
    "risk": ["age", "occupation"],
    "similar": ["sex"],
    "household": "household",
}


def people(n=3000, seed=1):
    rng = np.random.default_rng(seed)
    homes = n * 2 // 5
    home = np.sort(rng.integers(0, homes, n))
    region = rng.integers(0, 3, homes)
    town = 4 * region + rng.integers(0, 4, homes)
    return pd.DataFrame(
        {
            "id": range(n),
            "household": home,
            "region": [f"R{k}" for k in region[home]],
            "town": [f"T{k:02d}" for k in town[home]],
            "age": rng.integers(0, 9, n),
            "occupation": rng.choice(list("abcdef"), n, p=[0.4, 0.3, 0.15, 0.1, 0.04, 0.01]),
            "sex": rng.choice(["f", "m"], n),
        }
    )


def census(frame=None, secret=SECRET):
    return dc.open(people() if frame is None else frame, id="id", secret=secret, name="census")


def frame_of(swapped, tmp_path):
    swapped.save(tmp_path / "swapped.parquet")
    return pq.read_table(tmp_path / "swapped.parquet").to_pandas()


@pytest.fixture(scope="module")
def before():
    return people()


@pytest.fixture(scope="module")
def swapped():
    return swap_records(census(), **OPTIONS)


@pytest.fixture(scope="module")
def after(swapped, tmp_path_factory):
    return frame_of(swapped, tmp_path_factory.mktemp("swap"))


def test_records_keep_all_but_their_area(before, after):
    rest = ["id", "household", "age", "occupation", "sex"]
    pd.testing.assert_frame_equal(after[rest], before[rest], check_dtype=False)
    assert (after["town"] != before["town"]).any()
    assert (after.groupby("town")["region"].nunique() == 1).all()


@pytest.mark.parametrize("by", [["region"], ["town"], ["region", "sex"], ["town", "sex"]])
def test_margins_of_similar_variables_are_kept_at_every_level(before, after, by):
    pd.testing.assert_series_equal(after.groupby(by).size(), before.groupby(by).size())


def test_households_move_whole_and_change_places_with_their_like(before, after):
    assert (after.groupby("household")["town"].nunique() == 1).all()
    for frame in (before, after):
        frame["size"] = frame.groupby("household")["id"].transform("size")
    sizes = [f.groupby(["town", "size"]).size() for f in (before, after)]
    pd.testing.assert_series_equal(*sizes)


def test_an_exchange_changes_no_count_above_its_level(before, after, swapped):
    fine = swapped.levels == 1
    assert fine.any()
    assert (after["region"] == before["region"])[fine].all()
    assert (after["town"] != before["town"])[fine].all()
    coarse = swapped.levels == 0
    assert (after["region"] != before["region"])[coarse].all()
    assert (after["town"] == before["town"])[swapped.levels < 0].all()


def test_who_is_rare_has_moved_or_is_counted_as_unmatched(before, swapped):
    """The slow reference of risk: people of an area with the same combination, one by one."""
    moved, rare = swapped.levels >= 0, {}
    for level, area in enumerate(("region", "town")):
        sizes = before.groupby([area, "age", "occupation"])["id"].transform("size")
        for home in before.loc[sizes < 3, "household"]:
            rare.setdefault(home, level)
    measures = swapped.measures
    by_level = [sum(level == k for level in rare.values()) for k in (0, 1)]
    assert list(measures.at_risk.values()) == by_level
    stayed = {h for h in rare if not moved[before["household"] == h].any()}
    assert len(stayed) == measures.unmatched < 0.05 * len(rare)
    assert measures.share == pytest.approx(
        len(set(before.loc[moved, "household"])) / before["household"].nunique()
    )


def test_a_share_of_all_is_exchanged_where_nobody_is_rare(tmp_path):
    found = swap_records(census(), **{**OPTIONS, "risk": ["sex"], "rate": 0.1})
    assert 0.1 <= found.measures.share < 0.102
    assert found.measures.at_risk == {"region": 0, "town": 0}
    assert found.measures.changed_cells == 0  # by sex, in which all agree
    assert swap_records(census(), **{**OPTIONS, "risk": ["sex"], "rate": 0.0}).measures.share == 0


def test_nobody_leaves_where_that_is_asked_for(tmp_path):
    options = {**OPTIONS, "geography": ["town"], "within": "region"}
    found = swap_records(census(), **options)
    after = frame_of(found, tmp_path)
    before = people()
    assert (after["region"] == before["region"]).all()
    assert set(map(tuple, after[["region", "town"]].to_numpy())) == set(
        map(tuple, before[["region", "town"]].to_numpy())
    )


def test_the_same_records_move_alike_in_any_order_and_others_with_another_secret(after, tmp_path):
    mixed = people().sample(frac=1, random_state=3)
    other = frame_of(swap_records(census(mixed), **OPTIONS), tmp_path)
    other = other.sort_values("id").reset_index(drop=True)
    pd.testing.assert_series_equal(other["town"], after["town"])
    secret = dc.Secret(b"another secret of more than thirty-two bytes")
    third = frame_of(swap_records(census(secret=secret), **OPTIONS), tmp_path)
    assert (third["town"] != after["town"]).any()


def test_tables_and_cell_keys_follow(swapped):
    table = swapped.records.tabulate("town*occupation")
    assert table.z.sum() == census().tabulate("town*occupation").z.sum()
    release = table.protect(dc.CellKey())
    assert (np.abs(release.z - table.z) <= 5).all()
    same = swapped.records.tabulate("sex*age"), census().tabulate("sex*age")
    np.testing.assert_array_equal(same[0].z, same[1].z)
    np.testing.assert_array_equal(same[0].cell_keys, same[1].cell_keys)


def test_sentences_hold_and_false_ones_are_caught(before, after):
    options = {**OPTIONS, "geography": ["town"], "within": "region"}
    found = swap_records(census(), **options)
    said = {s.kind: s for s in found.statement.sentences if s.holds is not None}
    assert set(said) == {"profiles-stay", "values-stay", "nobody-leaves"}
    good = swap_records(census(), **OPTIONS).statement.sentences
    evidence = SwapEvidence(before, after)
    assert all(s.holds(evidence) for s in good if s.holds is not None)
    moved = after.copy()
    moved.loc[0, "town"] = "T00" if moved.loc[0, "town"] != "T00" else "T01"
    assert not said["profiles-stay"].holds(SwapEvidence(before, moved))
    assert not said["values-stay"].holds(SwapEvidence(before, after.assign(age=1)))
    gone = before.assign(region="R9")
    assert not said["nobody-leaves"].holds(SwapEvidence(before, gone))
    text = swap_records(census(people(900, 2)), **OPTIONS).statement.text
    assert text == swap_records(census(), **OPTIONS).statement.text


def right_claims(before, released):
    """Share of lone combinations of a town behind which the person of that town stands."""
    sizes = released.groupby(["town", "age", "occupation"])["id"].transform("size")
    alone = sizes == 1
    return float((released["town"] == before["town"])[alone].mean())


def test_an_intruder_cannot_rely_on_a_lone_combination(before, after):
    found = right_claims(before, after)
    assert found < 0.6
    assert right_claims(before, before) == 1.0  # the fault: nobody moved


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"rate": 0.033}, ParameterError, "rate is one of"),
        ({"k": 1}, ParameterError, "k"),
        ({"geography": []}, ParameterError, "needs columns"),
        ({"similar": ["town"]}, ParameterError, "another role"),
        ({"risk": ["income"]}, UnknownNameError, "income"),
        ({"household": "sex"}, DataError, "several areas"),
    ],
)
def test_what_cannot_be_exchanged_is_refused(options, error, said):
    with pytest.raises(error, match=said):
        swap_records(census(), **{**OPTIONS, **options})


def test_a_secret_is_needed():
    with pytest.raises(KeysError, match="secret"):
        swap_records(dc.open(people()), **OPTIONS)
    with pytest.raises(ParameterError, match="not a frame"):
        swap_records(people(), **OPTIONS)


def test_the_command_writes_confidential_records(tmp_path):
    people(600).to_parquet(tmp_path / "people.parquet")
    call = ["swap", str(tmp_path / "people.parquet"), "--geography", "region", "--geography"]
    call += ["town", "--risk", "age", "--risk", "occupation", "--similar", "sex", "--household"]
    call += ["household", "--id", "id", "--secret", str(tmp_path / "k.secret")]
    call += ["--out", str(tmp_path / "swapped.parquet")]
    done = CliRunner().invoke(app, call)
    assert done.exit_code == 0, done.output
    assert "confidential" in done.output
    assert (tmp_path / "swapped.parquet").stat().st_mode & 0o077 == 0
    assert len(pq.read_table(tmp_path / "swapped.parquet")) == 600
