"""Matrices in and out of JSON, the ptable columns and the ONS layout."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from discreet.errors import ParameterError
from discreet.noise import TransitionMatrix, discrete_laplace, drop_add, perturbation_table, pram

GOLDEN = Path(__file__).parents[1] / "golden"
TABLE = perturbation_table(5, 3, 2)
ALL = [TABLE, TABLE.modified(seed=1), drop_add(), pram(), discrete_laplace(1, 4)]


@pytest.mark.parametrize("table", ALL, ids=lambda t: t.name)
def test_json_gives_back_an_equal_matrix(table):
    again = TransitionMatrix.from_json(table.to_json())
    assert again == table
    np.testing.assert_array_equal(again.widths, table.widths)


@pytest.mark.parametrize(
    "text",
    ["{", "[1]", '{"a": 1}', '{"name": "x", "starts": [0], "moves": [[0], [0, 1]], "widths": 1}'],
)
def test_other_json_is_refused(text):
    with pytest.raises(ParameterError, match="JSON"):
        TransitionMatrix.from_json(text)


def test_frame_lists_the_intervals():
    frame = TABLE.to_frame()
    assert frame.column_names == ["i", "j", "p", "v", "lb", "ub", "type"]
    lines = [line for line in frame.to_pylist() if line["i"] == 1]
    assert [line["j"] for line in lines] == [0, 3, 4, 5, 6]
    assert lines[0]["lb"] == 0
    assert lines[-1]["ub"] == pytest.approx(1)
    assert all(line["j"] - line["i"] == line["v"] for line in frame.to_pylist())


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("ptable_*.json")), ids=lambda p: p.stem)
def test_intervals_agree_with_the_peer_s(path, tmp_path):
    golden = json.loads(path.read_text())
    table = perturbation_table(**golden["parameters"], variant="ptable")
    table.to_ptable_csv(tmp_path / "p.csv")
    with (tmp_path / "p.csv").open() as file:
        ours = list(csv.DictReader(file))
    kept = [line for line in golden["intervals"] if line[4] > line[3]]
    assert [[int(x["i"]), int(x["j"]), int(x["v"])] for x in ours] == [x[:3] for x in kept]
    ends = [[float(x["p_int_lb"]), float(x["p_int_ub"])] for x in ours]
    np.testing.assert_allclose(ends, [x[3:] for x in kept], atol=1e-6)


def test_layout_and_numbers_of_a_peer_s_file_survive(tmp_path):
    """A file of ptable 1.0.0, read and written again: same header, quotes, lines and numbers."""
    text = json.loads((GOLDEN / "ptable_D2_V1_js0.json").read_text())["csv"]
    (tmp_path / "in.csv").write_text(text)
    TransitionMatrix.from_ptable_csv(tmp_path / "in.csv").to_ptable_csv(tmp_path / "out.csv")
    back = (tmp_path / "out.csv").read_text()
    assert back.splitlines()[0] == text.splitlines()[0]
    theirs, ours = (list(csv.reader(io.StringIO(t)))[1:] for t in (text, back))
    assert [line[6] for line in ours] == [line[6] for line in theirs]
    for a, b in zip(ours, theirs, strict=True):
        assert [float(x) for x in a[:6]] == pytest.approx([float(x) for x in b[:6]], abs=1e-15)
    assert all(field.startswith('"') for line in back.splitlines() for field in line.split(","))


@pytest.mark.parametrize("table", [TABLE, TABLE.modified(seed=1), drop_add()], ids=lambda t: t.name)
def test_ptable_file_keeps_the_noise(table, tmp_path):
    table.to_ptable_csv(tmp_path / "p.csv")
    again = TransitionMatrix.from_ptable_csv(tmp_path / "p.csv")
    counts = np.array([0, 1, 2, 5, 8, 100, 101, 700])
    for key in (0, 123, 5000, 9999):
        keys = np.full(counts.size, key)
        np.testing.assert_array_equal(
            table.noise(counts, keys, 10**4), again.noise(counts, keys, 10**4)
        )


@pytest.mark.parametrize(
    "table",
    [
        TABLE,
        TABLE.modified(seed=1),
        drop_add(),
        discrete_laplace(1, 4),
        perturbation_table(4, 1, pstay=0.5),
        perturbation_table(30, 0.003),
    ],
    ids=lambda t: f"{t.name} {t.max_move}",
)
def test_ptable_file_gives_back_an_equal_matrix(table, tmp_path):
    table.to_ptable_csv(tmp_path / "p.csv")
    again = TransitionMatrix.from_ptable_csv(tmp_path / "p.csv")
    assert again == table
    assert again.blocked == table.blocked
    np.testing.assert_array_equal(again.law, table.law)


@pytest.mark.parametrize("js", range(4))
def test_blocked_values_of_a_peer_s_file_are_seen(js, tmp_path):
    """A file without our column: the values that no count leads to stay blocked."""
    perturbation_table(9, 3 if js < 3 else 5, js).to_ptable_csv(tmp_path / "p.csv")
    with (tmp_path / "p.csv").open() as file:
        lines = [line[:7] for line in csv.reader(file)]
    with (tmp_path / "p.csv").open("w", newline="") as file:
        csv.writer(file).writerows(lines)
    read = TransitionMatrix.from_ptable_csv(tmp_path / "p.csv")
    assert read.blocked == js
    assert TransitionMatrix.from_ons(read.to_ons()).blocked == js
    read.to_ptable_csv(tmp_path / "q.csv")
    assert TransitionMatrix.from_ptable_csv(tmp_path / "q.csv") == read


def test_a_spoilt_column_of_our_own_is_named(tmp_path):
    text = "i,j,p,v,p_int_lb,p_int_ub,type,about\n0,0,1,0,0,1,all,{\n"
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(ParameterError, match="'about'"):
        TransitionMatrix.from_ptable_csv(tmp_path / "p.csv")


def test_rows_that_take_turns_do_not_fit_the_ptable_layout(tmp_path):
    with pytest.raises(ParameterError, match="take turns"):
        pram().to_ptable_csv(tmp_path / "p.csv")
    with pytest.raises(ParameterError, match="to_json"):
        drop_add(0.0001).to_ptable_csv(tmp_path / "p.csv")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("i,j,p\n0,0,1\n", "lacks the columns"),
        ("i,j,p,v,p_int_lb,p_int_ub,type\n0,0,1,0,0,1,all\n2,2,1,0,0,1,all\n", "0, 1, 2"),
        ("i,j,p,v,p_int_lb,p_int_ub,type\n0,0,1,x,0,1,all\n", "not a number"),
        ("i,j,p,v,p_int_lb,p_int_ub,type\n", "rows in all"),
    ],
)
def test_faulty_ptable_files_are_refused(text, message, tmp_path):
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(ParameterError, match=message):
        TransitionMatrix.from_ptable_csv(tmp_path / "p.csv")


def ons_pcv(count):
    """The rule of the ONS: 751 and 1000 and 1001 use the rows 501, 750 and 501."""
    return count if count <= 750 else (count - 1) % 250 + 501


def test_ons_rule_itself():
    assert [ons_pcv(c) for c in (750, 751, 1000, 1001, 100_001)] == [750, 501, 750, 501, 501]


@pytest.mark.parametrize("keys", [256, 4096])
def test_ons_layout_there_and_back(keys):
    frame = TABLE.to_ons(keys)
    assert frame.column_names == ["pcv", "ckey", "pvalue"]
    assert frame.num_rows == 751 * keys
    back = TransitionMatrix.from_ons(frame)
    assert back.to_ons(keys) == frame
    assert np.abs(back.probabilities(9) - TABLE.probabilities(9)).max() <= 1 / keys


def test_look_up_in_an_ons_table_is_the_join_of_the_ons():
    """Shuffled pvalues: the join on (pcv, ckey) and our look-up agree, also above 750."""
    rng = np.random.default_rng(4)
    pvalue = rng.integers(0, 4, (751, 256))
    pcv, ckey = np.mgrid[0:751, 0:256]
    frame = pd.DataFrame({"pcv": pcv.ravel(), "ckey": ckey.ravel(), "pvalue": pvalue.ravel()})
    table = TransitionMatrix.from_ons(frame)
    counts = np.array([0, 3, 750, 751, 1000, 1001, 2345, 100_001])
    for key in (0, 1, 77, 255):
        joined = [pvalue[ons_pcv(c), key] for c in counts.tolist()]
        assert table.noise(counts, np.full(counts.size, key), 256).tolist() == joined


def test_absent_ons_pairs_have_pvalue_zero():
    frame = pl.DataFrame({"pcv": [1, 1], "ckey": [0, 255], "pvalue": [-1.0, 2.0]})
    table = TransitionMatrix.from_ons(frame)
    assert table.noise([1, 1, 1, 2], [0, 7, 255, 0], 256).tolist() == [-1, 0, 2, 0]


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"pcv": [1], "ckey": [255]}, "lacks the columns"),
        ({"pcv": [1], "ckey": [100], "pvalue": [0]}, "largest ckey must be 255 or 4095"),
        ({"pcv": [900], "ckey": [255], "pvalue": [0]}, "pcv must lie in"),
        ({"pcv": [1], "ckey": [255], "pvalue": [0.5]}, "whole numbers"),
        ({"pcv": [], "ckey": [], "pvalue": []}, "no lines"),
    ],
)
def test_faulty_ons_frames_are_refused(frame, message):
    with pytest.raises(ParameterError, match=message):
        TransitionMatrix.from_ons(pd.DataFrame(frame))


def test_ons_layout_refuses_what_it_cannot_hold():
    for table in (drop_add(), pram()):
        with pytest.raises(ParameterError, match="reuses the rows 501 to 750"):
            table.to_ons()
    with pytest.raises(ParameterError, match="256 or 4096"):
        TABLE.to_ons(100)
