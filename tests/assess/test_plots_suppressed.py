"""Pictures of suppressed tables: every cell with its value, state and place."""

import numpy as np
import pytest

import discreet as dc
from discreet.assessment import plots
from discreet.assessment.plots.suppressed import _FILL, MOST_CODES
from discreet.errors import DesignError, ParameterError, UnknownNameError
from tests.assess.audit.test_audit import paper_table
from tests.assess.test_plots import datasets, luminance


def regions():
    codes = {"All": {"A": ["a1", "a2"], "B": ["b1", "b2"]}}
    frame = {
        "region": ["a1", "a1", "a2", "a2", "b1", "b1", "b2", "b2"] * 2,
        "sex": ["f", "m"] * 8,
        "job": ["yes"] * 8 + ["no"] * 8,
        "n": [1, 9, 8, 7, 12, 6, 5, 14, 11, 4, 2, 9, 8, 7, 15, 13],
    }
    trees = {"region": dc.Hierarchy.from_dict(codes)}
    return dc.Table.from_counts(frame, "n", "region*sex*job", hierarchies=trees)


def drawn(chart):
    (cells,) = datasets(chart)
    return {(cell["row"], cell["column"]): cell for cell in cells}


def test_every_cell_is_drawn_with_its_value_state_and_reason():
    pattern = dc.Suppress(dc.rules.Threshold(3)).pattern(paper_table())
    cells = drawn(plots.suppressed(pattern))
    assert len(cells) == 25
    first = cells["1", "1"]
    assert (first["value"], first["text"]) == (3, "3 p")
    assert "sensitive" in first["state"]
    assert first["why"]
    assert cells["Total", "Total"]["text"] == "201"
    letters = [cell["text"][-1] for cell in cells.values()]
    assert (letters.count("p"), letters.count("s")) == (pattern.n_primary, pattern.n_secondary)


def test_parts_follow_their_sums_and_further_variables_are_summed_over():
    table = regions()
    chart = plots.suppressed(dc.Suppress(dc.rules.Threshold(3)).pattern(table), columns="job")
    cells = drawn(chart)
    assert len(cells) == 7 * 3
    value = table.z[table.design.position({"region": "A", "job": "no"})]
    assert cells["A", "no"]["value"] == value
    boxes = chart.to_dict()["layer"][0]["encoding"]
    assert boxes["y"]["sort"] == ["A", "a1", "a2", "B", "b1", "b2", "All"]
    assert boxes["x"]["title"] == "job"
    assert "21 of 63 cells are drawn" in chart.to_dict()["title"]["subtitle"]


def test_states_differ_in_print_without_colours():
    light = [luminance(colour) for colour in _FILL]
    assert light[0] > 1.8 * light[1] > 1.8 * 1.8 * light[2]


def test_pictures_of_patterns_are_written(tmp_path):
    pattern = dc.Suppress(dc.rules.Threshold(3)).pattern(paper_table())
    path = plots.save(plots.suppressed(pattern), tmp_path / "pattern.svg")
    assert "protects others" in path.read_text()


def test_what_cannot_be_drawn_is_refused():
    pattern = dc.Suppress(dc.rules.Threshold(3)).pattern(paper_table())
    with pytest.raises(UnknownNameError, match="column"):
        plots.suppressed(pattern, rows="column")
    with pytest.raises(DesignError, match="two different variables"):
        plots.suppressed(pattern, rows="row", columns="row")
    one = dc.Table.from_inner(dc.Design.product({"row": 3}, "row"), np.array([1, 2, 3]))
    with pytest.raises(DesignError, match="of this table: row"):
        plots.suppressed(dc.Suppress(dc.rules.Threshold(1)).pattern(one))
    design = dc.Design.product({"row": MOST_CODES + 1, "col": 2}, "row*col")
    many = dc.Table.from_inner(design, np.full(design.n_inner, 9))
    with pytest.raises(ParameterError, match="at most 60"):
        plots.suppressed(dc.Suppress(dc.rules.Threshold(1)).pattern(many))
