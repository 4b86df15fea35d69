"""Every figure of a page is the released value of the cell its headers name."""

import itertools

import numpy as np
import pytest

from discreet.design.release import CellStatus, Release
from discreet.design.statement import Statement
from discreet.serve.layout import HIDDEN, IMPOSSIBLE, laid_out, number
from discreet.serve.request import TableRequest
from discreet.serve.settings import Settings

LAYOUTS = [
    (["region"], []),
    ([], ["region"]),
    (["region"], ["sex"]),
    (["sex"], ["region[part]"]),
    (["region", "age"], ["sex"]),
    (["age", "region[leaves]", "sex"], []),
    (["sex"], ["age", "region[county]"]),
    ([], ["sex", "age"]),
]


@pytest.fixture(params=LAYOUTS, ids=str)
def request_(request, source):
    return TableRequest.checked(source, Settings(), *request.param)


def expected_texts(release, request):
    """Slow and obvious: look every cell up by its codes."""
    from discreet.serve.layout import entries_of

    names = [a.variable.name for a in (*request.rows, *request.columns)]
    rows = list(itertools.product(*map(entries_of, request.rows)))
    columns = list(itertools.product(*map(entries_of, request.columns)))
    for row, column in itertools.product(rows, columns):
        cell = {
            name: e.code for name, e in zip(names, (*row, *column), strict=True) if not e.is_total
        }
        try:
            yield f"{release.z[release.design.position(cell)]:,}"
        except ValueError:
            yield IMPOSSIBLE


def test_every_figure_is_the_released_one(source, request_):
    release = source.release(request_.margins)
    grid = laid_out(release, request_)
    found = [text for group in grid.groups for row in group for text in row.cells]
    assert found == list(expected_texts(release, request_))
    assert all(len(row.cells) == len(grid.sums) for group in grid.groups for row in group)
    for heads in grid.heads:
        assert sum(head.span for head in heads) == len(grid.sums)


def test_a_group_is_led_by_its_own_total(source):
    request = TableRequest.checked(source, Settings(), ["region", "sex"], [])
    grid = laid_out(source.release(request.margins), request)
    assert grid.is_grouped
    assert [[r.is_lead for r in group] for group in grid.groups] == [[True, False, False]] * 12
    north = grid.groups[1]
    assert [[e.label for e in row.entries] for row in north] == [["North"], ["Women"], ["Men"]]
    assert [row.indent for row in north] == [1, 2, 2]


def test_impossible_cells_are_marked_and_explained(source):
    request = TableRequest.checked(source, Settings(), ["region"], ["age"])
    grid = laid_out(source.release(request.margins), request)
    abroad = grid.groups[0][-1]
    assert abroad.entries[0].code == "ABROAD"
    assert abroad.cells[-1] == IMPOSSIBLE
    assert grid.symbols == {IMPOSSIBLE: "cannot occur"}


def test_hidden_cells_show_a_symbol_and_no_number(source):
    request = TableRequest.checked(source, Settings(), ["sex"], [])
    design = source.release(request.margins).design
    status = np.array([CellStatus.below_threshold, CellStatus.suppressed, CellStatus.published])
    release = Release(
        design, np.array([123, 456, 789]), Statement((), ""), status=status.astype(np.int8)
    )
    grid = laid_out(release, request)
    texts = [row.cells[0] for row in grid.groups[0]]
    assert texts == ["789", HIDDEN, HIDDEN]
    assert grid.symbols == {HIDDEN: "not published"}


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (1234567, "1,234,567"), (-1200, "−1,200"), (12.345, "12.35"), (float("nan"), ":c")],
)
def test_numbers_are_written_for_readers(value, text):
    assert number(value) == text
