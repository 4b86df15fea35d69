"""Pictures by size of cell, by group, and between editions: what they hold, and how they print."""

import json
import re

import numpy as np
import pytest

import discreet as dc
from discreet import Trial
from discreet.assessment import plots
from discreet.errors import DesignError, ParameterError, UnknownNameError

DESIGN = dc.Design.product({"a": ["x", "y", "z"], "b": 4}, "a*b")
TRUTH = dc.Table.from_inner(DESIGN, [1, 2, 3, 40, 1, 0, 2, 9, 5, 6, 7, 300])
LATER = dc.Table.from_inner(DESIGN, [1, 2, 4, 44, 1, 0, 0, 9, 5, 6, 7, 290])


def moved(table, change):
    """A trial whose values lie away from the truth by what is said of each true value."""
    trial = table.simulate("drop-add", seed=1)
    z = table.z + np.array([change(f) for f in table.z.tolist()])
    return Trial.wrap(trial.with_parts(z=z, y=None))


def datasets(chart):
    return list(chart.to_dict()["datasets"].values())


def widths_of(chart):
    """The width of a drawn picture, and where its texts begin."""
    svg = plots.to_svg(chart)
    return float(re.search(r'<svg[^>]* width="([\d.]+)"', svg)[1]), svg


def test_deviations_by_size_are_quantiles_of_each_class():
    releases = {"up": moved(TRUTH, lambda f: 2 if f else 0), "none": moved(TRUTH, lambda f: 0)}
    rows = datasets(plots.deviations_by_size(TRUTH, releases))[0]
    up = {row["size"]: row for row in rows if row["method"] == "up"}
    assert {name: row["middle"] for name, row in up.items() if name != "0"} == dict.fromkeys(
        {*up} - {"0"}, 2.0
    )
    assert up["0"]["middle"] == 0
    assert sum(row["cells"] for row in up.values()) == len(TRUTH.z)
    assert not any(row["high"] - row["low"] for row in rows if row["method"] == "none")
    assert set(up) >= {"0", "1", "2", "3–4", "5–9", "20–49"}


def test_disclosure_by_group_counts_unchanged_small_cells():
    release = moved(TRUTH, lambda f: 1 if f == 2 else 0)
    rows = {
        row["group"]: row for row in datasets(plots.disclosure_by_group(TRUTH, release, "a"))[0]
    }
    assert {g: (r["unchanged"], r["cells"]) for g, r in rows.items()} == {"x": (2, 3), "y": (1, 2)}
    assert [*rows] == ["x", "y"]  # the worst first
    with pytest.raises(UnknownNameError, match="variable"):
        plots.disclosure_by_group(TRUTH, release, "c")
    with pytest.raises(ParameterError, match="larger `small`"):
        plots.disclosure_by_group(LATER, moved(LATER, lambda f: 0), "b", small=0)


def test_changes_between_editions_are_those_of_the_releases():
    same = lambda f: 0  # noqa: E731
    first, second = moved(TRUTH, same), moved(LATER, same)
    for tables, across in ((None, TRUTH.z), ((TRUTH, LATER), LATER.z - TRUTH.z)):
        (rows,) = [
            d for d in datasets(plots.edition_changes(first, second, tables)) if "cells" in d[0]
        ]
        assert sum(row["cells"] for row in rows) == len(TRUTH.z)
        assert {(row["x"], row["y"]) for row in rows} == {
            *zip(across.tolist(), (LATER.z - TRUTH.z).tolist(), strict=True)
        }
        ends = plots.edition_changes(first, second, tables).to_dict()["layer"][1]["encoding"]
        for side, values in (("x", across), ("y", LATER.z - TRUTH.z)):
            low, high = ends[side]["scale"]["domain"]
            assert low < values.min() <= values.max() < high, "circles at the edge are cut"
            assert len(ends[side]["axis"]["values"]) >= 3
    with pytest.raises(DesignError, match="published cells"):
        plots.edition_changes(first, dc.Table.from_inner(
            dc.Design.product({"a": 2}, "a"), [1, 2]).simulate("drop-add", seed=1))  # fmt: skip


def test_hidden_cells_are_in_no_picture_of_public_editions():
    """The figure under a hidden cell is planted; a picture of releases alone must not hold it."""
    status = np.zeros(len(TRUTH.z), dtype=np.int8)
    status[0] = 1
    z = TRUTH.z.copy()
    z[0] = 987_654
    hidden = Trial.wrap(moved(TRUTH, lambda f: 0).with_parts(z=z, y=None, status=status))
    chart = plots.edition_changes(hidden, moved(LATER, lambda f: 0))
    assert "987654" not in json.dumps(chart.to_dict())
    assert "Cells hidden in an edition: 1" in json.dumps(chart.to_dict())


PICTURES = {
    "by size": lambda: plots.deviations_by_size(TRUTH, moved(TRUTH, lambda f: f % 3)),
    "by group": lambda: plots.disclosure_by_group(TRUTH, moved(TRUTH, lambda f: f % 2), "a"),
    "editions": lambda: plots.edition_changes(moved(TRUTH, lambda f: 0), moved(LATER, lambda f: 1)),
    "matrix": lambda: dc.perturbation_table(D=5, V=3, js=2).plot(),
}


@pytest.mark.parametrize("name", PICTURES)
def test_legends_and_titles_lie_inside_the_picture(name):
    """Nothing is cut: no text ends in an ellipsis, and legends have whole numbers."""
    width, svg = widths_of(PICTURES[name]())
    assert width < 800  # fits on an upright page in print
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    assert texts
    assert not [text for text in texts if "…" in text]
    assert not [text for text in texts if re.fullmatch(r"\d\.\d", text)]
