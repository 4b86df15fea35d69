"""The matrix object: what it refuses, which row serves which count, and its views."""

import subprocess
import sys

import numpy as np
import pytest

from discreet.errors import MissingDependencyError, ParameterError
from discreet.noise import TransitionMatrix, drop_add, perturbation_table, pram

STAY = [0.0, 1.0, 0.0]
STEP = [0.25, 0.5, 0.25]


def law(*rows, **options):
    return TransitionMatrix.from_law("test", rows, **options)


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([STAY, [0.25, 0.5, 0.2]], {}, r"row of count 1 sums to 0\.95, not to one"),
        ([STAY, [-0.1, 0.9, 0.2]], {}, r"row of count 1 holds a negative probability, -0\.1"),
        ([STAY, [np.nan, 0.5, 0.5]], {}, "row of count 1 holds a value that is not finite"),
        ([STAY, [np.inf, 0.0, 0.0]], {}, "not finite"),
        ([STEP, STEP], {}, "row of count 0 leads to the negative count -1"),
        ([STAY], {}, "got 1 rows in all"),
        ([STAY, STEP], {"starts": [1, 2]}, "must begin at count 0"),
        ([STAY, STEP, STEP], {"starts": [0, 2, 2]}, "must begin at count 0 and rise"),
        ([STAY, STEP], {"period": 2}, r"period must lie in 1\.\.1"),
        ([STAY, STEP, STEP], {"starts": [0, 1, 5], "period": 2}, "one count apart"),
        ([STAY, STEP], {"starts": [0, 1, 2]}, "3 rows were named"),
        ([[0.5, 0.5], [0.5, 0.5]], {}, "odd number of columns"),
        ([STAY, STEP], {"blocked": 1}, r"row of count 1 leads to a value in 1\.\.1"),
        ([STAY, [1.0, 0.0, 0.0]], {"blocked": 1}, "too few rows: the row of count 1 also serves"),
    ],
)
def test_each_fault_has_its_own_message(rows, options, message):
    with pytest.raises(ParameterError, match=message):
        law(*rows, **options)


def test_blocked_values_are_checked_for_rows_that_take_turns():
    rows = [STAY, [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    assert law(*rows, period=2, blocked=1).blocked == 1
    with pytest.raises(ParameterError, match="leads to a value"):
        law(STAY, [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], period=2, blocked=1)


def test_arrays_cannot_be_changed():
    table = law(STAY, STEP)
    for array in (table.widths, table.moves, table.starts, table.law):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_last_row_serves_larger_counts():
    table = law(STAY, STEP, [0.1, 0.8, 0.1])
    assert table.row_of([0, 1, 2, 3, 10**9]).tolist() == [0, 1, 2, 2, 2]
    np.testing.assert_array_equal(table.probabilities(77), [0.1, 0.8, 0.1])


def test_rows_by_classes_and_by_turns():
    by_class = drop_add()
    counts = [0, 1, 100, 101, 200, 201, 600, 601, 10**6]
    assert by_class.row_of(counts).tolist() == [0, 1, 1, 2, 2, 3, 6, 7, 7]
    turns = pram()
    assert turns.row_of([6, 7, 21, 22, 37, 7 + 15 * 10**6]).tolist() == [6, 7, 21, 7, 7, 7]
    np.testing.assert_array_equal(turns.probabilities(20), turns.probabilities(35))


def test_dense_is_the_matrix_of_targets():
    P = np.array([[1, 0, 0, 0], [0.3, 0.4, 0.3, 0], [0.1, 0.2, 0.4, 0.3]])
    table = TransitionMatrix.from_targets("test", P)
    np.testing.assert_allclose(table.dense(4)[:3], P)
    np.testing.assert_allclose(table.dense(4)[3], [0, 0.1, 0.2, 0.4])
    np.testing.assert_allclose(table.dense(9).sum(axis=1)[:7], 1)


def test_targets_may_be_named():
    P = [[1, 0, 0], [0.5, 0.5, 0], [0, 0.75, 0.25], [0.25, 0.5, 0.25]]
    table = TransitionMatrix.from_targets("test", P, targets=[0, 3, 4])
    assert table.probabilities(1)[table.max_move + 2] == 0.5
    assert table.dense(5)[2, 4] == 0.25


def test_equality_is_by_content():
    a, b = perturbation_table(3, 1), perturbation_table(3, 1)
    assert a == b
    assert hash(a) == hash(b)
    assert a != perturbation_table(3, 1.1)
    assert a != "a table"


def test_a_matrix_shows_itself_in_one_line():
    assert repr(perturbation_table(3, 1)) == (
        "<maximum entropy perturbation table: 4 rows, moves up to 3>"
    )


def test_modified_has_the_same_law_in_another_order():
    table = perturbation_table(5, 3, 2)
    modified = table.modified(seed=3)
    np.testing.assert_allclose(modified.law, table.law, atol=1e-15)
    assert modified.widths.max() == 1
    assert modified.widths[1:].max() <= 0.2 + 1e-15
    assert modified == table.modified(seed=3)
    assert modified != table.modified(seed=4)
    moves = modified.moves[8][modified.widths[8] > 0]
    assert np.any(np.diff(moves) < 0)
    with pytest.raises(ParameterError, match="threshold"):
        table.modified(0, seed=1)


def test_modified_cuts_an_exact_multiple_without_a_rest():
    table = law(STAY, [0.0, 0.4, 0.6]).modified(0.2, seed=1)
    assert sorted(table.moves[1][table.widths[1] > 0].tolist()) == [0, 0, 1, 1, 1]


def test_picture_shows_the_probabilities():
    chart = perturbation_table(3, 1).plot().to_dict()
    (cells,) = chart["datasets"].values()
    assert sum(c["probability"] for c in cells if c["count"] == 2) == pytest.approx(1)
    assert chart["encoding"]["color"]["scale"]["scheme"] == "cividis"
    (larger,) = perturbation_table(3, 1).plot(9).to_dict()["datasets"].values()
    assert max(c["count"] for c in larger) == 9
    assert {c["row"] for c in larger} >= {"0", "8", "9+"}, "the last row is that of larger counts"
    (fewer,) = perturbation_table(3, 1).plot(2).to_dict()["datasets"].values()
    assert {c["row"] for c in fewer} == {"0", "1", "2"}


def test_picture_needs_altair(monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(MissingDependencyError, match="altair"):
        perturbation_table(3, 1).plot()


def test_the_package_loads_nothing_heavy():
    heavy = ["numba", "scipy", "pyarrow", "altair", "pandas", "highspy"]
    code = (
        "import sys, discreet.noise as n; n.perturbation_table(5, 3, 2).audit(); "
        f"print([m for m in {heavy} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
