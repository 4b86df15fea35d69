import numpy as np
import pytest

from discreet import Design, Table
from discreet.errors import DesignError, ParameterError
from discreet.rules.counts import Difference
from discreet.suppress import PUBLISHED, Pattern
from discreet.suppress.pattern import PRIMARY, SECONDARY


def small_table():
    design = Design.product({"a": ["x", "y"], "b": ["u", "v"]}, "a*b")
    return Table.from_inner(design, np.array([1, 5, 7, 9]))


def test_a_pattern_is_read_from_letters_by_cell():
    table = small_table()
    pattern = Pattern.from_labels(table, {("x", "u"): "p", ("x", "v"): "s", ("Total", "u"): "s"})
    at = pattern.position
    assert pattern.state[at({"a": "x", "b": "u"})] == PRIMARY
    assert pattern.state[at({"b": "u"})] == SECONDARY
    assert pattern.state[at({})] == PUBLISHED
    assert pattern.cells(pattern.primary) == [{"a": "x", "b": "u"}]
    assert (pattern.n_primary, pattern.n_secondary, pattern.cost) == (1, 2, 1 + 5 + 8)


def test_a_pattern_is_read_from_a_letter_for_each_cell_in_order():
    table = small_table()
    letters = "".join("p" if z == 1 else "." for z in table.z)
    pattern = Pattern.from_labels(table.design, letters, z=table.z)
    assert pattern.z[pattern.primary].tolist() == [1]
    assert Pattern.from_labels(table, letters).lone.sum() == 1


def test_a_pattern_that_shows_some_cells_hides_all_others_and_those_that_are_sensitive():
    pattern = Pattern.from_labels(small_table(), {("x", "u"): "p", ("x", "v"): "s"})
    shown = [pattern.position(cell) for cell in ({}, {"a": "x", "b": "u"}, {"a": "x", "b": "v"})]
    found = pattern.showing(np.array(shown))
    assert found.state[shown].tolist() == [PUBLISHED, PRIMARY, PUBLISHED]
    assert found.n_secondary == len(found.z) - 3


def test_publishing_a_cell_changes_that_cell_alone():
    pattern = Pattern.from_labels(small_table(), {("x", "u"): "p", ("x", "v"): "s"})
    again = pattern.publishing({"a": "x", "b": "v"})
    assert again.cells() == [{"a": "x", "b": "u"}]
    assert len(pattern.cells()) == 2


def test_columns_of_differences_are_those_of_their_cells():
    table = small_table()
    parent, child = table.design.position({"a": "x"}), table.design.position({"a": "x", "b": "v"})
    pattern = Pattern.from_labels(
        table, {}, differences=(Difference((parent, child), (1, -1), "close to its part"),)
    )
    assert pattern.difference_columns().toarray().T @ table.y == table.z[parent] - table.z[child]


def test_wrong_letters_and_lengths_are_named():
    table = small_table()
    with pytest.raises(ParameterError, match="unknown state 'q'"):
        Pattern.from_labels(table, {("x", "u"): "q"})
    with pytest.raises(DesignError, match="state of a pattern needs one value for each of 9"):
        Pattern.from_labels(table, "..")
    with pytest.raises(ParameterError, match="needs true values"):
        Pattern.from_labels(table.design, "." * 9)
