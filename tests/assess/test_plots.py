"""Pictures: what they hold, that files stand alone, and that colour is never needed alone."""

import json
import re
import sys

import numpy as np
import pytest

import discreet as dc
from discreet.assessment import plots
from discreet.assessment.plots.risk_utility import HEIGHT, PointLabel, move_apart
from discreet.assessment.plots.style import PALETTE, SHAPES
from discreet.errors import MissingDependencyError, ParameterError
from tests.assess import party
from tests.assess.compare.fitting import SlowChain
from tests.assess.compare.methods import Shift
from tests.assess.helpers import TEST

PTABLE = dc.perturbation_table(D=5, V=3, js=2)


@pytest.fixture(scope="module")
def found():
    return dc.compare(
        party.table(),
        [dc.CellKey(PTABLE), dc.Pram(), Shift(1)],
        fitters=SlowChain(),
        measures=["exact-disclosure-own", "hellinger-utility", "unchanged-cells"],
        replicates=6,
        sensitive="party",
    )


@pytest.fixture(scope="module")
def release():
    return party.table().simulate(dc.CellKey(PTABLE), seed=1)


def datasets(chart):
    """Every inline data set of a chart, in order."""
    return list(chart.to_dict()["datasets"].values())


def test_the_map_shows_every_method_with_its_interval(found):
    points = datasets(found.plot())[0]
    assert [p["name"] for p in points] == found.labels
    for point, line in zip(points, found["hellinger-utility"].lines, strict=True):
        assert point["utility"] == line["mean"]
        assert (point["utility_low"], point["utility_high"]) == (line["lower"], line["upper"])


def test_the_map_names_measures_stages_and_directions(found):
    text = json.dumps(found.plot("unchanged-cells@published", "hellinger-utility").to_dict())
    assert "risk: unchanged-cells (published)" in text
    assert "utility: hellinger-utility (fitted)" in text
    assert "Safer to the left, more useful upwards" in text
    assert "means of 6 draws" in text


def test_marks_are_hollow_so_that_methods_in_one_place_are_all_seen(found):
    marks = [layer["mark"] for layer in found.plot().to_dict()["layer"]]
    assert [m["filled"] for m in marks if m["type"] == "point"] == [False]


def test_several_fitters_are_told_apart_on_the_map():
    found = dc.compare(
        party.table(),
        dc.CellKey(PTABLE),
        fitters=[SlowChain(), SlowChain(sweeps=1)],
        measures=["exact-disclosure-own", "hellinger-utility"],
        replicates=2,
        sensitive="party",
    )
    names = [p["name"] for p in datasets(found.plot())[0]]
    assert len(set(names)) == 2
    assert names[0].endswith("slow-chain")


def test_no_two_methods_look_alike_without_colour():
    looks = [(PALETTE[k % len(PALETTE)], SHAPES[k % len(SHAPES)]) for k in range(56)]
    assert len(set(looks)) == 56
    assert len(set(SHAPES)) == len(SHAPES) >= 7


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def test_colours_can_be_seen_on_white():
    for colour in PALETTE:
        assert 1.05 / (luminance(colour) + 0.05) > 2.2, colour


def test_the_frontier_joins_what_none_beats():
    table = dc.Table.from_inner(dc.Design.product({"a": 5}, "a"), np.array([3, 4, 5, 6, 7]))
    found = dc.assessment.frontier(
        Shift, {"by": [0, 1, 2]}, table, fitters=[], replicates=1, risk="unchanged-cells"
    )
    points = datasets(found.plot())[0]
    assert {p["name"]: p["efficient"] for p in points} == {
        "by=0": True,
        "by=1": True,
        "by=2": False,
    }


def test_deviations_are_shares_that_sum_to_one(found):
    drawn = {label: list(found.trials(label, 3)) for label in found.labels}
    rows = datasets(plots.deviations(party.table(), drawn))[0]
    for label in found.labels:
        own = [r for r in rows if r["method"] == label]
        assert sum(r["share"] for r in own) == pytest.approx(1)
        assert sum(r["cells"] for r in own) == 3 * 24
    unchanged = next(r for r in rows if r["method"] == found.labels[0] and r["deviation"] == 0)
    moved = np.concatenate([t.z - party.table().z for t in drawn[found.labels[0]]])
    assert unchanged["cells"] == (moved == 0).sum()


def test_far_deviations_are_pooled_in_the_outermost_bars():
    table, release = dc.assessment.cells.toy([5] * 1000, [5] * 997 + [900] * 3)
    rows = datasets(plots.deviations(table, release))[0]
    assert max(r["deviation"] for r in rows) == 3
    assert sum(r["cells"] for r in rows) == 1000
    _, wide = dc.assessment.cells.toy([5] * 1000, list(range(1000)))
    bars = datasets(plots.deviations(table, wide))[0]
    assert len(bars) <= 81
    assert "wide" in json.dumps(plots.deviations(table, wide).to_dict())


def test_transitions_hold_the_designed_law_and_the_observed_shares(found):
    drawn = list(found.trials(found.labels[0], 40))
    rows = datasets(plots.transitions(PTABLE, party.table(), drawn, largest=40))[0]
    at_one = {r["deviation"]: r for r in rows if r["count"] == "1"}
    law = dict(zip(PTABLE.deviations.tolist(), PTABLE.probabilities(1), strict=True))
    for move, row in at_one.items():
        assert row["designed"] == pytest.approx(law[move])
    assert sum(r["observed"] for r in at_one.values()) == pytest.approx(1)
    assert np.std([r["difference"] for r in rows if r["designed"] > 0.02]) < 1.6
    small = datasets(plots.transitions(PTABLE, party.table(), drawn[0], largest=3))[0]
    assert {r["count"] for r in small} == {"0", "1", "4+"}


def test_a_wrong_law_stands_out(found):
    wrong = dc.perturbation_table(D=5, V=2, js=2)
    drawn = list(found.trials(found.labels[0], 200))
    right, other = (
        np.array([r["difference"] for r in datasets(plots.transitions(m, party.table(), drawn))[0]])
        for m in (PTABLE, wrong)
    )
    assert np.abs(other).max() > 2 * np.abs(right).max()


def test_few_cells_are_named_many_are_points(release):
    chart = plots.before_after(party.table(), release)
    joined, ends = datasets(chart)
    assert len(joined) == 24
    assert {
        "cell": "total",
        "true": 56.0,
        "released": float(release.z[release.design.position({})]),
    } in joined  # noqa: E501
    assert len(ends) == 48
    y = np.arange(100)
    table, many = dc.assessment.cells.toy(y, y + 1)
    assert sum(r["cells"] for r in datasets(plots.before_after(table, many))[1]) == 100


def test_cells_of_a_bare_matrix_have_numbers():
    table = dc.Table.from_inner(dc.Design.from_matrix(np.eye(2)), np.array([1, 2]))
    release = dc.Release(table.design, table.z + 1, TEST)
    assert datasets(plots.before_after(table, release))[0][0]["cell"] == "cell 1"


@pytest.mark.parametrize("ending", ["svg", "png", "html"])
def test_files_stand_alone_and_are_for_their_owner(found, tmp_path, ending):
    path = plots.save(found.plot(), tmp_path / f"map.{ending}")
    content = path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o600
    start = {"svg": b"<svg", "png": b"\x89PNG", "html": b"<!DOCTYPE html>"}[ending]
    assert content.lstrip().startswith(start)
    if ending == "html":
        assert not re.search(rb'(src|href)="https?:', content)


def test_other_endings_are_refused(found, tmp_path):
    with pytest.raises(ParameterError, match="svg"):
        plots.save(found.plot(), tmp_path / "map.pdf")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_package_is_named(found, monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(MissingDependencyError, match=r"discreet\[plot\]"):
        found.plot()


def test_a_missing_converter_is_named(found, monkeypatch, tmp_path):
    chart = found.plot()
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(MissingDependencyError, match="vl-convert"):
        plots.save(chart, tmp_path / "map.svg")
    assert list(tmp_path.iterdir()) == []


def test_names_of_near_points_do_not_cover_each_other():
    near = [PointLabel(f"setting {k}", 0.5 + k / 1000, 0.9 - k / 1000, "left") for k in range(5)]
    far = PointLabel("far away", 0.05, 0.9, "left")
    placed = {t.name: t for t in move_apart([*near, far], (0, 1), (0, 1))}
    heights = sorted(placed[t.name].utility * HEIGHT for t in near)
    assert min(np.diff(heights)) >= 12.9
    assert placed["far away"].utility == placed["setting 0"].utility < 0.9
