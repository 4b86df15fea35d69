"""Refusals rest on public things alone, come before any counting, and say what is allowed."""

import itertools
import math

import pytest

from discreet.serve.refusals import Refusal
from discreet.serve.request import TableRequest
from discreet.serve.settings import Settings


def asked(source, rows=(), columns=(), **limits):
    return TableRequest.checked(source, Settings(**limits), rows, columns)


@pytest.mark.parametrize(
    ("rows", "columns", "limits", "code", "allowed"),
    [
        ([], [], {}, "no_variables", "Between 1 and 3"),
        (["", ""], [""], {}, "no_variables", "Between 1 and 3"),
        (["age", "sex"], [], {"max_variables": 1}, "too_many_variables", "Between 1 and 1"),
        (["age"], ["age"], {}, "repeated_variable", "at most once"),
        (["region"], ["region[part]"], {}, "repeated_variable", "at most once"),
        (["regoin"], [], {}, "unknown_name", "region[part]"),
        (["region[street]"], [], {}, "unknown_name", "region[county]"),
        (["region", "age"], ["sex"], {"max_cells": 100}, "too_many_cells", "At most 100 cells."),
    ],
)
def test_refusals_say_what_is_allowed(source, records, rows, columns, limits, code, allowed):
    before = len(records.asked)
    with pytest.raises(Refusal) as caught:
        asked(source, rows, columns, **limits)
    assert caught.value.code == code
    assert allowed in caught.value.allowed
    assert caught.value.status == 400
    assert len(records.asked) == before


def test_the_limit_is_met_exactly(source):
    cells = 12 * 4 * 3
    assert asked(source, ["region", "age"], ["sex"], max_cells=cells).rows
    with pytest.raises(Refusal, match=f"{cells} cells"):
        asked(source, ["region", "age"], ["sex"], max_cells=cells - 1)


def test_a_smaller_table_that_is_suggested_is_allowed(source):
    with pytest.raises(Refusal) as caught:
        asked(source, ["region"], ["sex"], max_cells=30)
    assert "With Region (finest detail) it would have 21." in caught.value.allowed
    assert asked(source, ["region[leaves]"], ["sex"], max_cells=30).rows


def test_when_no_single_change_helps_the_refusal_says_so(source):
    with pytest.raises(Refusal) as caught:
        asked(source, ["region", "age"], ["sex"], max_cells=5)
    assert "Leave out a variable" in caught.value.allowed


def test_the_number_of_cells_is_that_of_the_full_crossing(source):
    for a, b in itertools.combinations(source.variables, 2):
        for x, y in itertools.product(a.details, b.details):
            request = asked(source, [x.name], [y.name])
            design = source.release(request.margins).design
            assert design.n_published <= math.prod((x.cells, y.cells))


def test_margins_do_not_depend_on_the_order_of_the_request(source):
    orders = itertools.permutations(["region[part]", "age", "sex"])
    found = {tuple(asked(source, names[:2], names[2:]).margins) for names in orders}
    assert len(found) == 1
    assert () in next(iter(found))


def test_a_request_writes_its_own_address(source):
    request = asked(source, ["region[part]", "age"], ["sex"])
    assert request.query == "rows=region%5Bpart%5D&rows=age&columns=sex"
    assert request.turned_query == "rows=sex&columns=region%5Bpart%5D&columns=age"
    assert request.title == "Region (part) and age by sex"
    assert asked(source, ["sex"]).title == "Sex"
